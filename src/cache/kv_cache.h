// KvCache: the pages of all sequences and of the prefixes that are kept, under one budget.
//
// Joins the pool (who holds a page), the prefix tree (which tokens it is for, what goes first) and
// the sequences. Namespaces keep apart what must never be shared: each key has a root of its own.
//
// Not here: which sequence runs, waits or is preempted (schedule/); the bytes of K and V.
//
// Threading: not thread-safe; owned by the engine thread.
// Time: seconds of any clock that does not go back, given by the caller.
//
// Invariants (CheckInvariants(), kv_cache_test.cc): those of pool and tree, and
//   [cache.kv.1] In bytes, over all classes: held + cached + free = budget, after every operation.
//   [cache.kv.2] Room is made by evicting only what nobody uses, pins or retains.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "base/status.h"
#include "cache/kv_shape.h"
#include "cache/page_pool.h"
#include "cache/prefix_list.h"
#include "cache/prefix_match.h"
#include "cache/prefix_pins.h"
#include "cache/prefix_tree.h"
#include "cache/sequence_pages.h"

namespace quire {

struct KvCacheOptions {
  KvShape shape;
  size_t budget_bytes = 0;
  EvictionPolicyKind policy = kDefaultEvictionPolicy;
  bool keeps_prefixes = true;  // false: nothing is shared or cached
  uint32_t max_namespaces = 1 << 16;
  bool fill_with_nan = false;  // tests: see PagePoolOptions
};

// Pages are shared only between sequences with equal keys. Parts, not one text: a salt that spells
// an adapter's name is another key (PFX-05).
struct NamespaceKey {
  std::string tenant = {}, salt = {}, adapter = {};
  std::string identity = {};  // of the arithmetic: model, codecs, page size, ... (engine/)
  bool operator<(const NamespaceKey& other) const {
    return std::tie(tenant, salt, adapter, identity) <
           std::tie(other.tenant, other.salt, other.adapter, other.identity);
  }
};

// Of matches, since the start.
struct MatchCounts {
  uint64_t num_matches = 0;
  uint64_t queried_tokens = 0, matched_tokens = 0;
  uint64_t by_stop[6] = {};  // [MatchStop]
};

// While it lives, the place of its namespace is given to no other key. Must die before the cache.
class NamespaceHold {
 public:
  NamespaceHold() = default;
  NamespaceHold(PrefixTree* tree, NamespaceId ns) : tree_(tree), root_(tree->root(ns)) {
    tree->Lock(root_);
  }
  NamespaceHold(NamespaceHold&& other) noexcept
      : tree_(std::exchange(other.tree_, nullptr)), root_(other.root_) {}
  NamespaceHold& operator=(NamespaceHold&& other) noexcept {
    std::swap(tree_, other.tree_);
    std::swap(root_, other.root_);
    return *this;
  }
  ~NamespaceHold() {
    if (tree_ != nullptr) tree_->Unlock(root_);
  }

 private:
  PrefixTree* tree_ = nullptr;
  NodeId root_ = kNoNode;
};

class KvCache {
 public:
  // kInvalidArgument, kResourceExhausted: as PagePool::Create.
  static StatusOr<std::unique_ptr<KvCache>> Create(const KvCacheOptions& options);

  // The namespace of a key, made if it is new: in the place of another one if there are
  // max_namespaces (PrefixTree::ReuseNamespace). So an id that is stored needs a hold.
  // kResourceExhausted if all are held or pinned.
  StatusOr<NamespaceId> Namespace(const NamespaceKey& key);
  NamespaceHold Hold(NamespaceId ns) { return {tree_.get(), ns}; }
  // None is made by a look.
  std::optional<NamespaceId> FindNamespace(const NamespaceKey& key) const;
  size_t num_namespaces() const { return namespaces_.size(); }

  // What the cache has of a prompt; changes nothing. Of a key that has no namespace: nothing.
  PrefixMatch Find(NamespaceId ns, std::span<const TokenId> prompt) const;
  PrefixMatch Find(const NamespaceKey& key, std::span<const TokenId> prompt) const;
  // An empty sequence that may grow to `max_length` tokens without allocating.
  SequencePages NewSequence(NamespaceId ns, uint32_t max_length);
  // A sequence that begins with what the cache has of its prompt. `counts`: in match_counts().
  SequencePages NewSequence(NamespaceId ns, std::span<const TokenId> prompt, uint32_t max_length,
                            PrefixMatch* match, bool counts = true);

  TenantId tenant_of(NamespaceId ns) const { return tree_->tenant_of(ns); }
  // A namespace that stays empty: that of private sequences.
  NamespaceId private_namespace() const { return private_; }
  // An empty sequence that neither takes pages from others nor leaves any.
  SequencePages NewPrivateSequence(uint32_t max_length);

  // Evicts until `bytes` are free; false, and nothing changed, if that is not possible.
  bool MakeRoom(size_t bytes);
  // Most bytes that MakeRoom can give now.
  size_t available_bytes() const { return pool_->free_bytes() + pool_->evictable_bytes(); }

  // Keeps what the cache has of these tokens in whole pages until Unpin or, with `until_s` > 0,
  // until that time. Returns how many tokens; 0 keeps nothing and makes no pin.
  PinResult Pin(NamespaceId ns, std::span<const TokenId> tokens, const PinOptions& options);
  uint32_t Pin(NamespaceId ns, std::span<const TokenId> tokens, uint32_t until_s, PinId* pin);
  bool Unpin(PinId pin) { return pins_->Remove(pin); }
  // The time: for what is used last and for residency(). An earlier one changes nothing.
  void SetNow(uint64_t now_ms) { tree_->SetNow(now_ms); }
  // The time has come to `now_s`, for pins too. `on_expired`: as PrefixPins::Expire.
  void ExpirePins(uint32_t now_s, const std::function<void(NodeId)>& on_expired = {});
  size_t num_pins() const { return pins_->size(); }
  const PrefixPins& pins() const { return *pins_; }

  // Of a listed prefix (cache/prefix_list.h), for the tenant if one is given; nullopt if there is
  // no such prefix. SetPin: as PrefixPins::Set. DropPrefixById: what goes on from it goes too, and
  // what is before it and belongs to no other listed text; the number of pages of tokens.
  std::optional<PinResult> SetPin(PrefixId id, const std::optional<std::string>& tenant,
                                  bool is_pinned, const PinOptions& options);
  std::optional<uint32_t> DropPrefixById(PrefixId id, const std::optional<std::string>& tenant);

  // Forget a namespace; everything; what begins with `prefix` (of its own pages the last, if it
  // ends with a whole one); or the pages that no other text than `tokens` has. What runs keeps its
  // pages to its end; pins go. Return the number of pages (of tokens) that went.
  uint32_t DropNamespace(NamespaceId ns);
  uint32_t DropTenant(std::string_view tenant);
  uint32_t DropAll();
  uint32_t DropPrefix(NamespaceId ns, std::span<const TokenId> prefix);
  uint32_t DropText(NamespaceId ns, std::span<const TokenId> tokens);

  // Of the memory of one tenant against another's, any unit; 1 unless set.
  void SetTenantShare(std::string_view tenant, double share);
  size_t tenant_bytes(std::string_view tenant) const;
  // Tenants are never forgotten: their names come from the operator, not from requests.
  TenantId num_tenants() const { return static_cast<TenantId>(tenants_.size()); }
  const std::string& tenant_name(TenantId id) const { return tenants_[id]; }
  std::optional<TenantId> FindTenant(std::string_view name) const;

  const KvShape& shape() const { return shape_; }
  PagePool& pool() { return *pool_; }
  const PagePool& pool() const { return *pool_; }
  PrefixTree& tree() { return *tree_; }
  const PrefixTree& tree() const { return *tree_; }
  bool keeps_prefixes() const { return keeps_prefixes_; }
  const MatchCounts& match_counts() const { return match_counts_; }

  Status CheckInvariants() const;

 private:
  KvCache() = default;
  TenantId TenantOf(std::string_view name);
  uint32_t Drop(NodeId node);
  NodeId TopOfText(NodeId end) const;

  KvShape shape_;
  bool keeps_prefixes_ = true;
  std::unique_ptr<PagePool> pool_;
  std::unique_ptr<PrefixTree> tree_;
  std::unique_ptr<PrefixPins> pins_;
  std::map<NamespaceKey, NamespaceId> namespaces_;
  std::vector<const NamespaceKey*> keys_;  // [NamespaceId] in namespaces_
  NamespaceId private_ = 0;                // always empty
  NamespaceHold private_hold_;
  std::vector<std::string> tenants_;  // [TenantId]
  std::map<std::string, TenantId, std::less<>> tenant_by_name_;
  MatchCounts match_counts_;
};

}  // namespace quire
