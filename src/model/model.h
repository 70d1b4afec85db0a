// Model: a GGUF file made ready to run: its shape, its packed weights, its vocabulary.
//
// Loading reads the file once, with pread, into anonymous memory packed for the kernels; what
// happens to the file afterwards cannot hurt. The forward pass is forward.h.
//
// Threads: constant after loading.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/status.h"
#include "base/threads.h"
#include "linear/activations.h"
#include "model/architecture.h"
#include "model/gguf_file.h"
#include "model/shape.h"
#include "model/weights.h"
#include "text/vocabulary.h"

namespace quire {

class Model {
 public:
  // Reads and packs the model in `file` on the workers of `team`.
  // `progress(done_bytes, total_bytes)` may be empty; it is called by worker 0.
  static StatusOr<std::unique_ptr<Model>> Load(
      const GgufFile& file, ThreadTeam& team,
      const std::function<void(uint64_t, uint64_t)>& progress);

  const ModelShape& shape() const { return shape_; }
  const Architecture& architecture() const { return *architecture_; }
  const ModelWeights& weights() const { return weights_; }

  // Views into header memory that it keeps alive; text/tokenizer.h makes a tokenizer of it.
  const Vocabulary& vocabulary() const { return vocabulary_; }

 private:
  Model() = default;
  Status Read(const GgufFile& file, ThreadTeam& team,
              const std::function<void(uint64_t, uint64_t)>& progress);

  ModelShape shape_;
  const Architecture* architecture_ = nullptr;
  ModelWeights weights_;
  Vocabulary vocabulary_;
};

}  // namespace quire
