// PrefixPins: which prefixes are kept although nobody uses them: pinned, until somebody says
// otherwise, or retained, until a time. A node has one pin at most, which may be both.
//
// Not here: what a pin holds (cache/prefix_tree.h).
//
// Threading: not thread-safe; owned by the engine thread.
// Cost: O(log pins) and the path's pages a call; Expire() looks at all pins.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <unordered_map>

#include "cache/prefix_tree.h"

namespace quire {

using PinId = uint64_t;  // never used again

struct PinOptions {
  uint32_t until_s = 0;    // 0: pinned, for ever
  std::string label = {};  // of the prefix, for lists; empty: as it is
  // Of the pages of the prefix's tenant with a pin, each counted once, in use or not.
  uint64_t most_bytes = std::numeric_limits<uint64_t>::max();
  // The same of all tenants together.
  uint64_t most_total_bytes = std::numeric_limits<uint64_t>::max();
};

struct PinResult {
  PinId pin = 0;        // 0: none was made or changed
  uint32_t length = 0;  // tokens of the prefix: whole pages
  uint64_t bytes = 0;   // of its pages that had no pin before
  bool is_over_budget = false;
};

class PrefixPins {
 public:
  struct Pin {
    NodeId node;
    bool is_pinned;
    uint32_t until_s;  // retained until then; 0: not
    std::string label;
  };

  // Both must outlive it.
  PrefixPins(PrefixTree* tree, const PagePool* pool) : tree_(tree), pool_(pool) {}

  // Pins a node, or adds to the pin that it has: pinned stays pinned, the later time counts. Over
  // the budget: changes nothing. Requires: not a root, not dropped.
  PinResult Add(NodeId node, const PinOptions& options);
  // Makes the node's pin just this, or takes it away if it is neither. Errors and requires: as Add.
  PinResult Set(NodeId node, bool is_pinned, const PinOptions& options);
  bool Remove(PinId id);
  // `on_expired` hears of each node before its pin goes.
  void Expire(uint32_t now_s, const std::function<void(NodeId)>& on_expired = {});
  // A pin on what was dropped goes with it.
  void RemoveDropped();

  size_t size() const { return pins_.size(); }
  const std::map<PinId, Pin>& all() const { return pins_; }  // oldest first
  const Pin* Find(NodeId node) const;

 private:
  using Position = std::map<PinId, Pin>::iterator;
  PinResult Make(NodeId node, Pin pin, const PinOptions& options);
  Position Erase(Position at, bool expired);

  PrefixTree* const tree_;
  const PagePool* const pool_;
  std::map<PinId, Pin> pins_;
  std::unordered_map<NodeId, PinId> by_node_;
  PinId next_pin_ = 1;
};

}  // namespace quire
