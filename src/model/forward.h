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
// A page of a page-wise codec is sealed in each layer by whoever appends its last missing token,
// before the layer attends: no barrier of its own. It is sealed in the step that fills it, unless
// it is a sink page. Within the step, its open form must be there too.
//
// Not here: pages are taken by the caller (cache/page_table.h) before the call. After warm-up (a
// step of max_rows rows at the longest context) Run allocates nothing.
//
// Threading: one Run at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/ids.h"
#include "base/instruction_set.h"
#include "base/kv_view.h"
#include "base/status.h"
#include "base/threads.h"
#include "codec/kv_forms.h"
#include "linear/activations.h"
#include "model/model.h"

namespace quire {

// The rows of one sequence in a step.
struct ForwardSequence {
  std::span<const TokenId> tokens;  // each in [0, vocab_size)
  uint32_t first_position = 0;      // of tokens[0]; the KV of all before it is in the pages
  // Positions before it are in the pages already: their K and V are computed anew, but not written.
  // So the last token of a prompt that is cached whole gets its logits and writes no shared page.
  uint32_t first_append = 0;
  // Pages before it are sealed already and are not sealed again, should the step fill them.
  uint32_t first_seal = 0;
  // Of each layer group. Each has slots for first_position + tokens.size() tokens: what is appended
  // needs its open page, what is sealed its sealed page, and what is read the form of the read rule
  // (codec/kv_forms.h). Views and tables must stay as they are until Run returns.
  std::span<const KvView> kv;
  uint32_t num_logits = 0;  // logits are wanted of the last so many rows
};

struct ForwardOptions {
  std::vector<KvForms> kv;  // of each layer group: MakeGroupForms of model/layer_groups.h
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
  // are wanted. A sequence with a NaN or infinity in its K or V harms no other: see bad_layer.
  // Requires: at most max_rows rows in all; a team of num_threads. Errors: kResourceExhausted (work
  // memory of attention).
  Status Run(ThreadTeam& team, std::span<const ForwardSequence> sequences, float* logits);

  // Of the last Run: the first layer in which K or V of the sequence's rows held a NaN or infinity,
  // or -1. If there is one, its logits mean nothing, and its pages are not to be used beyond the
  // position where the step began, in any form.
  int bad_layer(size_t sequence) const;

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
