// StepDraft: a step while it is being put together: who computes up to where, and what tokens and
// bytes are left. For schedule.cc.
//
// Bytes left are those that are free or evictable, less those of the parts so far, plus those that
// preempted sequences alone use. They are a lower bound: what two preempted ones share is not
// counted.
//
// Threading: not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "schedule/schedule.h"
#include "schedule/start_need.h"

namespace quire {

class StepDraft {
 public:
  // A running sequence, or a waiting one that may start.
  struct Item {
    const ScheduledSequence* sequence;
    uint32_t index;
    uint32_t begin, end;  // computes [begin, end); equal: no part
    size_t bytes;         // of that part
    StartNeed start;      // of a new one
    double service;       // tokens that its tenant got, by its share
    bool is_new, takes_match;
    bool is_gone;  // preempted
    bool is_protected;
    bool has_turn;  // goes before all others

    uint32_t length() const { return is_new ? start.length : sequence->pages->length(); }
    NodeId node() const { return is_new ? start.node : sequence->pages->node(); }
    uint32_t num_tokens() const { return end - begin; }
    uint32_t num_known() const { return static_cast<uint32_t>(sequence->tokens.size()); }
    uint32_t num_left() const { return num_known() - end; }
    bool is_decode() const { return !is_new && num_known() - begin == 1; }
  };

  // Running ones become items.
  void Begin(const ScheduleState& state, const ScheduleLimits& limits);
  Item MakeNew(uint32_t index, const StartNeed& need, bool takes_match) const;

  // Gives an item up to `most` tokens more, as many as there is room for. False: none.
  bool Give(Item& item, uint32_t most);
  // What a part that ends there takes.
  size_t BytesTo(const Item& item, uint32_t end) const;
  // What its known tokens take beside what it holds.
  size_t PromisedBytes(const Item& item) const;

  // An item's pages go back; so do the tokens and bytes of its part.
  void Preempt(Item& item);
  // Preempts those that `may_go`, the last in order first, until `bytes` are left. If that cannot
  // be: false, and nothing changed.
  template <typename MayGo>
  bool MakeRoom(size_t bytes, MayGo may_go);
  // Preempts the last in order of them; false if there is none.
  template <typename MayGo>
  bool PreemptLast(MayGo may_go);

  // Protected, then priority, then arrival: the last gives its pages first.
  static bool HoldsBefore(const Item& a, const Item& b);
  // Turn, priority, service, arrival.
  static bool ComputesBefore(const Item& a, const Item& b);
  // The same of two without a turn.
  bool ComesBefore(const ScheduledSequence& a, const ScheduledSequence& b) const;

  const ScheduleState& state() const { return *state_; }
  const ScheduleLimits& limits() const { return *limits_; }
  const KvCache& cache() const { return *state_->cache; }

  std::vector<Item> items;   // running ones first
  uint32_t num_running = 0;  // less the preempted
  uint32_t tokens_left = 0;
  size_t bytes_left = 0;
  std::vector<uint32_t> order;  // scratch of schedule.cc
  std::vector<uint32_t> prompts, candidates, leaders;
  StepDecision decision;

 private:
  double ServiceOf(const ScheduledSequence& sequence) const;
  size_t ReleasableBytes(const Item& item) const;

  const ScheduleState* state_ = nullptr;
  const ScheduleLimits* limits_ = nullptr;
};

template <typename MayGo>
bool StepDraft::MakeRoom(size_t bytes, MayGo may_go) {
  size_t possible = bytes_left;
  uint32_t num_staying = 0;
  for (const Item& item : items) {
    if (item.is_new || item.is_gone) continue;
    if (may_go(item))
      possible += item.bytes + ReleasableBytes(item);
    else
      ++num_staying;
  }
  // If nobody stays, what they share goes too.
  if (num_staying == 0) possible = bytes_left + cache().pool().held_bytes();
  if (possible < bytes) return false;
  while (bytes_left < bytes && PreemptLast(may_go)) continue;  // a rest is free one step later
  return true;
}

template <typename MayGo>
bool StepDraft::PreemptLast(MayGo may_go) {
  Item* last = nullptr;
  for (Item& item : items)
    if (!item.is_new && !item.is_gone && may_go(item) &&
        (last == nullptr || HoldsBefore(*last, item)))
      last = &item;
  if (last != nullptr) Preempt(*last);
  return last != nullptr;
}

}  // namespace quire
