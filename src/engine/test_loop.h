// A step loop without a thread, for tests that no race decides.
#pragma once

#include <memory>
#include <optional>
#include <utility>

#include "base/check.h"
#include "engine/step_loop.h"
#include "engine/test_engine.h"

namespace quire {

struct Loop {
  // A KV memory of 16 MiB, or of so many pages.
  explicit Loop(EngineOptions options = {}, size_t num_pages = 0) {
    options.num_threads = 1;
    options.page_size = 16;
    options.kv_memory_bytes = num_pages > 0 ? num_pages * PageBytes() : uint64_t{16} << 20;
    options.fill_with_nan = true;
    auto loaded = ModelRunner::Load(TestData("models/llama-gqa.gguf"), options, {});
    QUIRE_CHECK(loaded.ok());
    runner = std::move(loaded).value();
    tokenizer.emplace(Tokenizer::Create(runner->model().vocabulary()).value());
    steps = std::make_unique<StepLoop>(runner.get(), &*tokenizer);
  }

  std::shared_ptr<Answer> Add(Request request, uint32_t max_tokens) {
    request.max_tokens = max_tokens;
    request.sampling.ignore_eos = true;
    const auto num_tokens = static_cast<uint32_t>(runner->model().shape().num_tokens);
    QUIRE_CHECK(request.sampling.Prepare(num_tokens, {}).ok());
    auto answer = std::make_shared<Answer>(next_id++, request, max_tokens);
    steps->Add(std::move(request), answer, max_tokens);
    return answer;
  }
  // Requires: the answer has one choice.
  void RunUntilEnd(const Answer& answer) {
    while (!answer.ended(0)) steps->Step();
  }
  EngineStats stats() const { return steps->stats(); }

  std::unique_ptr<ModelRunner> runner;
  std::optional<Tokenizer> tokenizer;
  std::unique_ptr<StepLoop> steps;
  uint64_t next_id = 1;
};

}  // namespace quire
