#include "cache/prefix_pins.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace quire {

PinResult PrefixPins::Make(NodeId node, Pin pin, const PinOptions& options) {
  PinResult result;
  result.length = tree_->LengthOf(node);
  const auto known = by_node_.find(node);
  if (known != by_node_.end()) {
    Pin& before = pins_.at(known->second);
    if (pin.label.empty()) pin.label = std::move(before.label);
    before = std::move(pin);
    result.pin = known->second;
    return result;
  }
  const uint64_t cost = tree_->PinCost(node);
  const uint64_t retained = pool_->retained_bytes(tree_->TenantOf(node));
  const auto fits = [&](uint64_t there, uint64_t most) {
    return there <= most && cost <= most - there;
  };
  if (!fits(retained, options.most_bytes) ||
      !fits(pool_->retained_bytes(), options.most_total_bytes)) {
    result.is_over_budget = true;
    return result;
  }
  result.bytes = cost;
  result.pin = next_pin_++;
  tree_->Pin(node);
  pins_.emplace(result.pin, std::move(pin));
  by_node_.emplace(node, result.pin);
  return result;
}

PinResult PrefixPins::Add(NodeId node, const PinOptions& options) {
  const Pin* known = Find(node);
  return Make(node,
              {.node = node,
               .is_pinned = options.until_s == 0 || (known != nullptr && known->is_pinned),
               .until_s = std::max(options.until_s, known != nullptr ? known->until_s : 0),
               .label = options.label},
              options);
}

PinResult PrefixPins::Set(NodeId node, bool is_pinned, const PinOptions& options) {
  if (is_pinned || options.until_s > 0)
    return Make(
        node,
        {.node = node, .is_pinned = is_pinned, .until_s = options.until_s, .label = options.label},
        options);
  PinResult result;
  result.length = tree_->LengthOf(node);
  if (const auto known = by_node_.find(node); known != by_node_.end()) Remove(known->second);
  return result;
}

bool PrefixPins::Remove(PinId id) {
  const auto at = pins_.find(id);
  if (at == pins_.end()) return false;
  Erase(at, /*expired=*/false);
  return true;
}

PrefixPins::Position PrefixPins::Erase(Position at, bool expired) {
  const NodeId node = at->second.node;
  by_node_.erase(node);
  const Position next = pins_.erase(at);
  tree_->Unpin(node, expired);
  return next;
}

void PrefixPins::Expire(uint32_t now_s, const std::function<void(NodeId)>& on_expired) {
  for (auto at = pins_.begin(); at != pins_.end();) {
    Pin& pin = at->second;
    if (pin.until_s > now_s || pin.until_s == 0) {
      ++at;
    } else if (pin.is_pinned) {
      pin.until_s = 0;
      ++at;
    } else {
      if (on_expired) on_expired(pin.node);
      at = Erase(at, /*expired=*/true);
    }
  }
}

void PrefixPins::RemoveDropped() {
  for (auto at = pins_.begin(); at != pins_.end();)
    at = tree_->is_dropped(at->second.node) ? Erase(at, /*expired=*/false) : std::next(at);
}

const PrefixPins::Pin* PrefixPins::Find(NodeId node) const {
  const auto known = by_node_.find(node);
  return known == by_node_.end() ? nullptr : &pins_.at(known->second);
}

}  // namespace quire
