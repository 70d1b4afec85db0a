#include "cache/kv_cache.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/errors.h"
#include "base/fnv.h"

namespace quire {
namespace {

// Where the keys of a namespace's prefixes start.
uint64_t PrefixKeyOf(const NamespaceKey& key) {
  uint64_t hash = kFnvStart;
  for (const std::string* part : {&key.tenant, &key.salt, &key.adapter, &key.identity}) {
    hash = FnvStep(hash, part->size());
    for (const char c : *part) hash = FnvStep(hash, static_cast<unsigned char>(c));
  }
  return hash;
}

}  // namespace

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
  cache->pins_ = std::make_unique<PrefixPins>(cache->tree_.get(), cache->pool_.get());
  QUIRE_ASSIGN_OR_RETURN(cache->private_, cache->tree_->AddNamespace(cache->TenantOf("")));
  cache->private_hold_ = cache->Hold(cache->private_);
  return cache;
}

TenantId KvCache::TenantOf(std::string_view name) {
  if (const auto known = FindTenant(name)) return *known;
  const TenantId id = num_tenants();
  tenants_.emplace_back(name);
  tenant_by_name_.emplace(name, id);
  pool_->AddAccounts(id + 1);
  return id;
}

std::optional<TenantId> KvCache::FindTenant(std::string_view name) const {
  const auto known = tenant_by_name_.find(name);
  if (known == tenant_by_name_.end()) return std::nullopt;
  return known->second;
}

std::optional<NamespaceId> KvCache::FindNamespace(const NamespaceKey& key) const {
  const auto known = namespaces_.find(key);
  if (known == namespaces_.end()) return std::nullopt;
  return known->second;
}

StatusOr<NamespaceId> KvCache::Namespace(const NamespaceKey& key) {
  if (const auto known = FindNamespace(key)) return *known;
  const TenantId tenant = TenantOf(key.tenant);
  StatusOr<NamespaceId> ns = tree_->AddNamespace(tenant, PrefixKeyOf(key));
  if (!ns.ok()) {
    ns = tree_->ReuseNamespace(tenant, PrefixKeyOf(key));
    if (!ns.ok()) return ns.status();
    namespaces_.erase(namespaces_.find(*keys_[*ns]));
  }
  keys_.resize(std::max<size_t>(keys_.size(), *ns + 1));
  keys_[*ns] = &namespaces_.emplace(key, *ns).first->first;
  return ns;
}

PrefixMatch KvCache::Find(NamespaceId ns, std::span<const TokenId> prompt) const {
  return FindPrefix(*tree_, shape_, tree_->root(ns), prompt);
}

PrefixMatch KvCache::Find(const NamespaceKey& key, std::span<const TokenId> prompt) const {
  const auto ns = FindNamespace(key);
  return ns.has_value() ? Find(*ns, prompt) : PrefixMatch();
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

PinResult KvCache::Pin(NamespaceId ns, std::span<const TokenId> tokens, const PinOptions& options) {
  NodeId node = tree_->root(ns);
  uint32_t length = 0;
  while (tokens.size() - length >= shape_.page_size) {
    const NodeId child = tree_->FindChild(node, tokens.subspan(length, shape_.page_size));
    if (child == kNoNode) break;
    node = child;
    length += shape_.page_size;
  }
  return length == 0 ? PinResult() : pins_->Add(node, options);
}

uint32_t KvCache::Pin(NamespaceId ns, std::span<const TokenId> tokens, uint32_t until_s,
                      PinId* pin) {
  const PinResult result = Pin(ns, tokens, {.until_s = until_s});
  if (result.pin != 0) *pin = result.pin;
  return result.length;
}

void KvCache::ExpirePins(uint32_t now_s, const std::function<void(NodeId)>& on_expired) {
  SetNow(uint64_t{1000} * now_s);
  pins_->Expire(now_s, on_expired);
}

std::optional<PinResult> KvCache::SetPin(PrefixId id, const std::optional<std::string>& tenant,
                                         bool is_pinned, const PinOptions& options) {
  const NodeId node = FindPrefixNode(*this, id, tenant);
  if (node == kNoNode) return std::nullopt;
  return pins_->Set(node, is_pinned, options);
}

std::optional<uint32_t> KvCache::DropPrefixById(PrefixId id,
                                                const std::optional<std::string>& tenant) {
  const NodeId node = FindPrefixNode(*this, id, tenant);
  if (node == kNoNode) return std::nullopt;
  return Drop(TopOfText(node));
}

uint32_t KvCache::Drop(NodeId node) {
  const uint32_t num_nodes = tree_->nodes().num_nodes();
  tree_->Drop(node);
  pins_->RemoveDropped();
  return num_nodes - tree_->nodes().num_nodes();
}

uint32_t KvCache::DropNamespace(NamespaceId ns) { return Drop(tree_->root(ns)); }

uint32_t KvCache::DropTenant(std::string_view tenant) {
  uint32_t num_nodes = 0;
  for (const auto& [key, ns] : namespaces_)
    if (key.tenant == tenant) num_nodes += DropNamespace(ns);
  return num_nodes;
}

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
  return Drop(TopOfText(node));
}

// The first node of those before `end` that no other text has: none parts, is held or pinned there.
NodeId KvCache::TopOfText(NodeId end) const {
  NodeId top = end;
  for (NodeId above = tree_->parent(top); !tree_->is_root(above); above = tree_->parent(top)) {
    if (tree_->nodes()[above].num_children > 1 || tree_->is_locked(above)) break;
    if (tree_->has_own_pin(above)) break;
    top = above;
  }
  return top;
}

void KvCache::SetTenantShare(std::string_view tenant, double share) {
  tree_->shares().SetShare(TenantOf(tenant), share);
}

size_t KvCache::tenant_bytes(std::string_view tenant) const {
  const auto known = FindTenant(tenant);
  return known.has_value() ? tree_->tenant_bytes(*known) : 0;
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
