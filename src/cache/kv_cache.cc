#include "cache/kv_cache.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/errors.h"

namespace quire {

StatusOr<std::unique_ptr<KvCache>> KvCache::Create(const KvCacheOptions& options) {
  QUIRE_CHECK(!options.shape.groups.empty() && options.shape.page_size > 0);
  std::unique_ptr<KvCache> cache(new KvCache());
  cache->shape_ = options.shape;
  cache->keeps_prefixes_ = options.keeps_prefixes;
  QUIRE_ASSIGN_OR_RETURN(cache->pool_,
                         PagePool::Create({.page_bytes = PageBytesByClass(options.shape),
                                           .budget_bytes = options.budget_bytes,
                                           .fill_with_nan = options.fill_with_nan}));
  cache->tree_ = std::make_unique<PrefixTree>(cache->shape_, cache->pool_.get(), options.policy,
                                              options.max_namespaces);
  QUIRE_ASSIGN_OR_RETURN(cache->private_, cache->tree_->AddNamespace(cache->TenantOf("")));
  return cache;
}

TenantId KvCache::TenantOf(std::string_view name) {
  const auto known = std::ranges::find(tenants_, name);
  if (known == tenants_.end()) tenants_.emplace_back(name);
  return static_cast<TenantId>(std::ranges::find(tenants_, name) - tenants_.begin());
}

StatusOr<NamespaceId> KvCache::Namespace(const NamespaceKey& key) {
  const auto known = namespaces_.find(key);
  if (known != namespaces_.end()) return known->second;
  QUIRE_ASSIGN_OR_RETURN(const NamespaceId ns, tree_->AddNamespace(TenantOf(key.tenant)));
  namespaces_.emplace(key, ns);
  return ns;
}

PrefixMatch KvCache::Find(NamespaceId ns, std::span<const TokenId> prompt) const {
  return FindPrefix(*tree_, shape_, tree_->root(ns), prompt);
}

SequencePages KvCache::NewSequence(NamespaceId ns, uint32_t max_length) {
  return SequencePages(this, tree_->root(ns), max_length, keeps_prefixes_);
}

SequencePages KvCache::NewPrivateSequence(uint32_t max_length) {
  return SequencePages(this, tree_->root(private_), max_length, /*shares=*/false);
}

SequencePages KvCache::NewSequence(NamespaceId ns, std::span<const TokenId> prompt,
                                   uint32_t max_length, PrefixMatch* match, bool counts) {
  SequencePages sequence = NewSequence(ns, max_length);
  *match = Find(ns, prompt);
  if (!keeps_prefixes_) *match = {.node = tree_->root(ns)};
  if (match->length > 0) sequence.Attach(*match, static_cast<uint32_t>(prompt.size()));
  if (!counts) return sequence;
  ++match_counts_.num_matches;
  ++match_counts_.by_stop[static_cast<size_t>(match->stop)];
  match_counts_.queried_tokens += prompt.size();
  match_counts_.matched_tokens += sequence.next_position();
  return sequence;
}

bool KvCache::MakeRoom(size_t bytes) {
  if (bytes > available_bytes()) return false;
  while (pool_->free_bytes() < bytes) QUIRE_CHECK(tree_->EvictOne());
  return true;
}

uint32_t KvCache::Pin(NamespaceId ns, std::span<const TokenId> tokens, uint32_t until_s,
                      PinId* pin) {
  NodeId node = tree_->root(ns);
  uint32_t length = 0;
  while (tokens.size() - length >= shape_.page_size) {
    const NodeId child = tree_->FindChild(node, tokens.subspan(length, shape_.page_size));
    if (child == kNoNode) break;
    node = child;
    length += shape_.page_size;
  }
  if (length == 0) return 0;
  tree_->Pin(node);
  *pin = next_pin_++;
  pins_.emplace(*pin, Pinned{node, until_s});
  return length;
}

bool KvCache::Unpin(PinId pin) {
  const auto it = pins_.find(pin);
  if (it == pins_.end()) return false;
  tree_->Unpin(it->second.node);
  pins_.erase(it);
  return true;
}

void KvCache::ExpirePins(uint32_t now_s) {
  for (auto it = pins_.begin(); it != pins_.end();) {
    const Pinned& pinned = it->second;
    if (pinned.until_s == 0 || pinned.until_s > now_s) {
      ++it;
      continue;
    }
    tree_->Unpin(pinned.node);
    it = pins_.erase(it);
  }
}

uint32_t KvCache::Drop(NodeId node) {
  const uint32_t num_nodes = tree_->nodes().num_nodes();
  tree_->Drop(node);
  for (auto it = pins_.begin(); it != pins_.end();) {  // a pin on what is forgotten goes with it
    const NodeId pinned = it->second.node;
    it = tree_->is_dropped(pinned) ? pins_.erase(it) : std::next(it);
    if (tree_->is_dropped(pinned)) tree_->Unpin(pinned);
  }
  return num_nodes - tree_->nodes().num_nodes();
}

uint32_t KvCache::DropNamespace(NamespaceId ns) { return Drop(tree_->root(ns)); }

uint32_t KvCache::DropAll() {
  uint32_t num_nodes = 0;
  for (const auto& [key, ns] : namespaces_) num_nodes += DropNamespace(ns);
  return num_nodes;
}

uint32_t KvCache::DropPrefix(NamespaceId ns, std::span<const TokenId> prefix) {
  NodeId node = tree_->root(ns);
  for (; prefix.size() >= shape_.page_size; prefix = prefix.subspan(shape_.page_size)) {
    node = tree_->FindChild(node, prefix.first(shape_.page_size));
    if (node == kNoNode) return 0;
  }
  if (prefix.empty()) return Drop(node);
  std::vector<NodeId> children;
  tree_->nodes().AppendChildren(node, &children);
  uint32_t num_nodes = 0;
  for (const NodeId child : children) {
    const auto text = tree_->nodes().tokens(child);
    if (text.size() < prefix.size() || !std::ranges::equal(text.first(prefix.size()), prefix))
      continue;
    num_nodes += Drop(child);
  }
  return num_nodes;
}

uint32_t KvCache::DropText(NamespaceId ns, std::span<const TokenId> tokens) {
  NodeId node = tree_->root(ns);
  while (!tokens.empty()) {
    const auto page = tokens.first(std::min<size_t>(tokens.size(), shape_.page_size));
    const NodeId child = tree_->FindChild(node, page);
    if (child == kNoNode) break;
    node = child;
    tokens = tokens.subspan(page.size());
  }
  if (tree_->is_root(node) || tree_->nodes()[node].num_children > 0) return 0;
  for (NodeId above = tree_->parent(node); !tree_->is_root(above); above = tree_->parent(node)) {
    if (tree_->nodes()[above].num_children > 1 || tree_->is_locked(above)) break;
    node = above;
  }
  return Drop(node);
}

void KvCache::SetTenantShare(std::string_view tenant, double share) {
  tree_->shares().SetShare(TenantOf(tenant), share);
}

size_t KvCache::tenant_bytes(std::string_view tenant) const {
  const auto known = std::ranges::find(tenants_, tenant);
  return known == tenants_.end()
             ? 0
             : tree_->tenant_bytes(static_cast<TenantId>(known - tenants_.begin()));
}

Status KvCache::CheckInvariants() const {
  QUIRE_RETURN_IF_ERROR(pool_->CheckInvariants());
  QUIRE_RETURN_IF_ERROR(tree_->CheckInvariants());
  if (pool_->held_bytes() + pool_->cached_bytes() + pool_->free_bytes() != pool_->budget_bytes())
    return Internal("[cache.kv.1] {} bytes held, {} cached, {} free of {}", pool_->held_bytes(),
                    pool_->cached_bytes(), pool_->free_bytes(), pool_->budget_bytes());
  return OkStatus();
}

}  // namespace quire
