// Checks, with any model, that the cache changes no bit and that its bytes are accounted for: what
// `quire verify` runs.
//
// A position's logits depend on the model, the activations, the KV codec, the page size and the
// tokens before it (engine/model_runner.h). So every way to compute the same tokens must give the
// same bits: these checks go those ways, with random ids, and compare all of them with the first.
//
// Threading: one thread; it starts engines with threads of their own.
#pragma once

#include <memory>
#include <vector>

#include "base/status.h"
#include "cli/check_list.h"
#include "engine/options.h"
#include "model/model.h"

namespace quire {

// What is computed: prompts that begin with the same pages, and answers.
struct PurityLengths {
  uint32_t page_size = 64;
  uint32_t answer_len = 12;
  // At least two pages, and 64 tokens: attention reads no less once for several readers.
  uint32_t shared_len() const {
    return page_size < 32 ? 64 / page_size * page_size : 2 * page_size;
  }
  uint32_t prompt_len() const { return shared_len() + page_size + page_size / 2; }
};

// The largest pages, 64 at most, and the longest answers with which the checks of `num_codecs`
// codecs take about `seconds` at the speed that this model has here. kInvalidArgument if its
// context is too short for any.
//   options.page_size  used whatever it costs if `keeps_page_size`
StatusOr<PurityLengths> ChooseLengths(const std::shared_ptr<const Model>& model,
                                      const EngineOptions& options, bool keeps_page_size,
                                      size_t num_codecs, double seconds);

// One codec: options.kv_codec. Each check goes to `list`. Errors: the codec and the model don't go
// together, the machine has no memory.
//   options.num_threads  the most that are tried; not 0
Status RunPurityChecks(const std::shared_ptr<const Model>& model, const EngineOptions& options,
                       const PurityLengths& lengths, CheckList& list);

}  // namespace quire
