#include "cache/sequence_pages.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/errors.h"
#include "base/message_text.h"
#include "cache/kv_cache.h"

namespace quire {

SequencePages::SequencePages(KvCache* cache, NodeId root, uint32_t max_length, bool shares)
    : cache_(cache), max_length_(max_length), shares_(shares), node_(root) {
  tables_.reserve(cache->shape().num_groups());
  for (uint32_t g = 0; g < cache->shape().num_groups(); ++g)
    tables_.emplace_back(&cache->pool(), &cache->shape(), g, max_length,
                         cache->tree().TenantOf(root));
  views_.resize(tables_.size());
  RefreshViews();
  cache_->tree().Lock(node_);
}

SequencePages::SequencePages(SequencePages&& other) noexcept
    : cache_(other.cache_),
      max_length_(other.max_length_),
      shares_(other.shares_),
      length_(std::exchange(other.length_, 0)),
      next_(std::exchange(other.next_, 0)),
      node_(std::exchange(other.node_, kNoNode)),
      num_shared_(std::exchange(other.num_shared_, 0)),
      num_inserted_(std::exchange(other.num_inserted_, 0)),
      tables_(std::exchange(other.tables_, {})),
      views_(std::exchange(other.views_, {})) {}

SequencePages& SequencePages::operator=(SequencePages&& other) noexcept {
  if (this == &other) return *this;
  Release();
  cache_ = other.cache_;
  max_length_ = other.max_length_;
  shares_ = other.shares_;
  length_ = std::exchange(other.length_, 0);
  next_ = std::exchange(other.next_, 0);
  node_ = std::exchange(other.node_, kNoNode);
  num_shared_ = std::exchange(other.num_shared_, 0);
  num_inserted_ = std::exchange(other.num_inserted_, 0);
  tables_ = std::exchange(other.tables_, {});
  views_ = std::exchange(other.views_, {});
  return *this;
}

size_t SequencePages::BytesNeeded(uint32_t end) const {
  size_t bytes = 0;
  for (const PageTable& table : tables_) bytes += table.BytesNeeded(length_, end);
  return bytes;
}

size_t SequencePages::ReleasableBytes() const {
  const PagePool& pool = cache_->pool();
  size_t bytes = 0;
  for (const PageTable& table : tables_)
    for (uint32_t page = table.first_page(); page < table.num_pages(); ++page)
      for (const PageRef* form : {&table.open(page), &table.sealed(page)})
        if (*form && pool.num_uses(form->page_class(), form->id()) == 1 &&
            !pool.is_pinned(form->page_class(), form->id()))
          bytes += pool.stride(form->page_class());
  return bytes;
}

Status SequencePages::Reserve(uint32_t end) {
  const size_t bytes = BytesNeeded(end);
  if (!cache_->MakeRoom(bytes))
    return ResourceExhausted(
        "need {} bytes of KV pages, {} of {} can be free: shorten the text, lower the number of "
        "sequences or raise --kv-memory",
        GroupDigits(bytes), GroupDigits(cache_->available_bytes()),
        GroupDigits(cache_->pool().budget_bytes()));
  for (PageTable& table : tables_) table.Grow(length_, end);
  RefreshViews();
  return OkStatus();
}

void SequencePages::Commit(uint32_t end, std::span<const TokenId> tokens) {
  QUIRE_CHECK(end >= length_ && tokens.size() >= end);
  const uint32_t page_size = cache_->shape().page_size;
  length_ = next_ = end;
  if (shares_)
    while ((num_shared_ + 1) * page_size <= end) {
      const uint32_t before = num_shared_;
      Share(num_shared_, tokens.subspan(size_t{num_shared_} * page_size, page_size));
      if (num_shared_ == before) break;  // the tree is full
    }
  SettleTables();
}

// Full page `page` goes into the tree; what the tree has of it already takes the place of ours.
void SequencePages::Share(uint32_t page, std::span<const TokenId> tokens) {
  PrefixTree& tree = cache_->tree();
  const NodeId node = tree.FindOrAdd(node_, tokens);
  if (node == kNoNode) return;
  bool is_new = false;
  for (uint32_t g = 0; g < tables_.size(); ++g) {
    PageTable& table = tables_[g];
    if (page < table.first_page()) continue;
    const bool seals = cache_->shape().groups[g].Seals(page);
    const bool keeps_open = !seals || cache_->shape().groups[g].recent_pages > 0;
    for (PageRef* form : {&table.open(page), &table.sealed(page)}) {
      if (!*form || (form == &table.open(page) && !keeps_open)) continue;
      const PageClass c = form->page_class();
      if (tree.has_page(node, c)) {
        *form = tree.Use(node, c);
      } else {
        tree.KeepPage(node, *form);
        is_new = true;
      }
    }
    table.RefreshAddress(page);
  }
  MoveTo(node);
  ++num_shared_;
  if (is_new) num_inserted_ += cache_->shape().page_size;
}

void SequencePages::MoveTo(NodeId node) {
  if (node == node_) return;
  cache_->tree().Lock(node);
  cache_->tree().Unlock(std::exchange(node_, node));
}

void SequencePages::SettleTables() {
  for (PageTable& table : tables_) table.Settle(length_, next_);
  RefreshViews();
}

void SequencePages::Cancel() { SettleTables(); }

uint32_t SequencePages::LongestOpen(uint32_t length) const {
  const KvShape& shape = cache_->shape();
  const uint32_t page_size = shape.page_size;
  for (const PageTable& table : tables_)
    if (length % page_size != 0 && !table.has_open(length / page_size))
      length = length / page_size * page_size;
  for (uint32_t g = 0; g < tables_.size(); ++g) {
    const KvGroupShape& group = shape.groups[g];
    if (tables_[g].first_page() > group.FirstPage(length, page_size)) return 0;
    const uint32_t at = length / page_size;
    const uint32_t first =
        std::max(at > group.recent_pages ? at - group.recent_pages : 0, tables_[g].first_page());
    for (uint32_t page = first; page < at; ++page)
      if (!tables_[g].has_open(page)) return 0;
  }
  return length;
}

uint32_t SequencePages::Truncate(uint32_t length) {
  QUIRE_CHECK(length <= length_);
  if (length == length_) return length;
  length_ = next_ = LongestOpen(length);
  SettleTables();
  while (num_shared_ > length_ / cache_->shape().page_size) {
    MoveTo(cache_->tree().parent(node_));
    --num_shared_;
  }
  return length_;
}

SequencePages SequencePages::Fork() const {
  SequencePages fork(cache_, node_, max_length_, shares_);
  fork.tables_.clear();
  for (const PageTable& table : tables_) fork.tables_.push_back(table.Fork(max_length_));
  fork.length_ = length_;
  fork.next_ = next_;
  fork.num_shared_ = num_shared_;
  fork.RefreshViews();
  return fork;
}

void SequencePages::Attach(const PrefixMatch& match, uint32_t prompt_len) {
  PrefixTree& tree = cache_->tree();
  const KvShape& shape = cache_->shape();
  length_ = match.length;
  next_ = std::min(match.length, prompt_len - 1);
  num_shared_ = tree.is_root(match.node) ? 0 : tree.nodes()[match.node].depth + 1;
  std::vector<NodeId> path(num_shared_);
  for (NodeId node = match.node; !tree.is_root(node); node = tree.parent(node))
    path[tree.nodes()[node].depth] = node;
  for (const NodeId node : path) tree.Hit(node);
  if (match.tail != kNoNode) tree.Hit(match.tail);
  for (uint32_t g = 0; g < tables_.size(); ++g) {
    tables_[g].SkipTo(std::min(shape.groups[g].FirstPage(next_, shape.page_size), num_shared_));
    for (uint32_t page = tables_[g].first_page(); page < num_shared_; ++page)
      AdoptFrom(path[page], page, g);
    if (match.tail != kNoNode) tables_[g].Adopt(tree.Use(match.tail, OpenClass(g)), PageRef());
  }
  RefreshViews();
  MoveTo(match.node);
}

void SequencePages::AdoptFrom(NodeId node, uint32_t page, uint32_t group) {
  PrefixTree& tree = cache_->tree();
  const KvGroupShape& shape = cache_->shape().groups[group];
  const bool open = shape.StaysOpen(page, next_ / cache_->shape().page_size);
  tables_[group].Adopt(open ? tree.Use(node, OpenClass(group)) : PageRef(),
                       shape.Seals(page) ? tree.Use(node, SealedClass(group)) : PageRef());
}

uint32_t SequencePages::Follow(std::span<const TokenId> tokens) {
  PrefixTree& tree = cache_->tree();
  const KvShape& shape = cache_->shape();
  const uint32_t page_size = shape.page_size;
  while (shares_ && length_ == num_shared_ * page_size && tokens.size() > length_ + page_size) {
    const NodeId child = tree.FindChild(node_, tokens.subspan(length_, page_size));
    if (child == kNoNode) break;
    const uint32_t page = num_shared_;
    bool is_whole = true;
    for (uint32_t g = 0; g < tables_.size(); ++g) {
      const KvGroupShape& group = shape.groups[g];
      if (group.Seals(page)) is_whole = is_whole && tree.has_page(child, SealedClass(g));
      if (!group.Seals(page) || group.recent_pages > 0)
        is_whole = is_whole && tree.has_page(child, OpenClass(g));
    }
    if (!is_whole) break;
    tree.Hit(child);
    length_ = next_ = length_ + page_size;
    for (uint32_t g = 0; g < tables_.size(); ++g) AdoptFrom(child, page, g);
    MoveTo(child);
    ++num_shared_;
    SettleTables();
  }
  return length_;
}

void SequencePages::End(std::span<const TokenId> tokens) {
  const uint32_t page_size = cache_->shape().page_size, page = length_ / page_size;
  if (node_ != kNoNode && shares_ && num_shared_ == page && !cache_->tree().is_dropped(node_)) {
    PrefixTree& tree = cache_->tree();
    NodeId end = node_;
    if (length_ % page_size != 0) {
      const NodeId tail =
          tree.FindOrAdd(node_, tokens.subspan(size_t{page} * page_size, length_ % page_size));
      if (tail != kNoNode) end = tail;
      for (uint32_t g = 0; tail != kNoNode && g < tables_.size(); ++g)
        if (!tree.has_page(tail, OpenClass(g))) tree.KeepPage(tail, tables_[g].open(page));
    }
    if (!tree.is_root(end)) tree.MarkEnd(end);
  }
  Release();
}

void SequencePages::Release() {
  if (node_ == kNoNode) return;
  tables_.clear();
  views_.clear();
  cache_->tree().Unlock(std::exchange(node_, kNoNode));
  length_ = next_ = num_shared_ = 0;
}

void SequencePages::RefreshViews() {
  for (size_t g = 0; g < tables_.size(); ++g) views_[g] = tables_[g].view();
}

Status SequencePages::CheckInvariants() const {
  const PrefixTree& tree = cache_->tree();
  NodeId node = node_;
  for (const PageTable& table : tables_)
    QUIRE_RETURN_IF_ERROR(table.CheckInvariants(length_, next_));
  for (uint32_t page = num_shared_; page-- > 0; node = tree.parent(node)) {
    if (tree.is_root(node))
      return Internal("[cache.sequence.1] {} pages are shared, the path is shorter", num_shared_);
    for (const PageTable& table : tables_)
      for (const PageRef* form : {&table.open(page), &table.sealed(page)}) {
        if (!*form || !tree.has_page(node, form->page_class())) continue;
        if (tree.page(node, form->page_class()) != form->id())
          return Internal("[cache.sequence.1] page {} is {}, its node has {}", page, form->id(),
                          tree.page(node, form->page_class()));
      }
  }
  if (!tree.is_root(node) || !tree.is_locked(node_))
    return Internal("[cache.sequence.1] {} pages are shared, the path is longer or not locked",
                    num_shared_);
  return OkStatus();
}

}  // namespace quire
