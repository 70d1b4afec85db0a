// Engines for tests: loading one, and taking logits from it in one way or another.
//
// A load or a computation that fails ends the test program: tests of errors do not use this file.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/ids.h"
#include "engine/engine.h"
#include "engine/model_runner.h"
#include "model/gguf_writer.h"

namespace quire {

// f32 activations, f32 KV, the best instruction set (or the one that QUIRE_CPU names), one thread.
EngineOptions ExactOptions();

std::unique_ptr<ModelRunner> LoadRunner(const std::string& path, const EngineOptions& options);
std::unique_ptr<ModelRunner> LoadRunner(const GgufWriter& writer, const EngineOptions& options);

// One that answers requests.
std::unique_ptr<Engine> LoadEngine(const std::string& path, const EngineOptions& options);

// Logits of positions [first, tokens.size()) of a new sequence, computed in calls of `step` tokens
// (0: one call).
std::vector<float> ComputeLogits(ModelRunner& engine, std::span<const TokenId> tokens,
                                 size_t first = 0, size_t step = 0);

// The index of the greatest value; of equal ones the lowest.
template <class T>
TokenId ArgMax(std::span<const T> row) {
  size_t best = 0;
  for (size_t i = 1; i < row.size(); ++i)
    if (row[i] > row[best]) best = i;
  return static_cast<TokenId>(best);
}

// `count` tokens after `prompt`, each the likeliest.
std::vector<TokenId> Greedy(ModelRunner& engine, std::span<const TokenId> prompt, size_t count);

}  // namespace quire
