// ForwardPass: from token ids to logits, through the pages.
//
// One call is one step: for each layer it computes q, K and V of all rows, appends K and V to the
// pages of their sequences, attends over the page tables, and runs the feed forward. Which rows are
// in a step changes no bit of any of them.
//
// Stages run on a thread team; within a stage items are taken from a counter. A layer has five
// stages, each with a barrier at its end: q k v with rope and append; attention; its output; gate
// and up; down. What lies between (norms, codes) is done by whoever ends a stage last when a step
// has few rows; with many, it is a stage of its own, whose barrier costs little beside it.
//
// Not here: pages are taken by the caller (cache/page_table.h) before the call. After warm-up (a
// step of max_rows rows at the longest context) Run allocates nothing.
//
// Threading: one Run at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "base/ids.h"
#include "base/instruction_set.h"
#include "base/kv_layout.h"
#include "base/kv_view.h"
#include "base/status.h"
#include "base/threads.h"
#include "codec/kv_codec.h"
#include "linear/activations.h"
#include "model/model.h"

namespace quire {

// The rows of one sequence in a step.
struct ForwardSequence {
  std::span<const TokenId> tokens;  // each in [0, vocab_size)
  uint32_t first_position = 0;      // of tokens[0]; the KV of all before it is in the pages
  KvView kv;                        // has slots for first_position + tokens.size() tokens
  uint32_t num_logits = 0;          // logits are wanted of the last so many rows
};

struct ForwardOptions {
  KvLayout kv_layout;
  KvCodec kv_codec = KvCodec::kF16;
  ActivationForm activations = ActivationForm::kInt8;
  InstructionSet instruction_set = InstructionSet::kPortable;
  uint32_t max_rows = 512;  // most rows of one step
  // Sequences of a step that have pages in common read them together. Changes no bit.
  bool cascade = true;
};

class ForwardPass {
 public:
  // `model` must outlive it. Errors: kResourceExhausted (work buffers).
  static StatusOr<std::unique_ptr<ForwardPass>> Create(const Model& model,
                                                       const ForwardOptions& options,
                                                       int num_threads);
  ~ForwardPass();

  // logits [sum of num_logits, vocab_size] f32, in the order of the sequences; may be null if none
  // are wanted. kNonFinite if K or V of a row holds a NaN or infinity: its pages are then not to be
  // used beyond first_position.
  // Requires: at most max_rows rows in all; a team of num_threads.
  Status Run(ThreadTeam& team, std::span<const ForwardSequence> sequences, float* logits);

  // Finite K or V values beyond the codec's range, stored as its largest, since the start.
  uint64_t num_saturated() const;
  // (page, KV head) chunks that attention has read since the start.
  uint64_t num_chunks_read() const;
  // Of the work buffers, as reserved; they are committed as they are used.
  uint64_t buffer_bytes() const;

 private:
  class Step;
  explicit ForwardPass(std::unique_ptr<Step> step);
  std::unique_ptr<Step> step_;
};

}  // namespace quire
