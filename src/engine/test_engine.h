// Engines, prompts and requests of the engine's tests.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "base/test_data.h"
#include "engine/engine.h"

namespace quire {

inline EngineOptions SmallOptions() {
  EngineOptions options;
  options.num_threads = 1;
  options.page_size = 16;
  options.kv_memory_bytes = uint64_t{16} << 20;
  options.fill_with_nan = true;
  return options;
}

inline std::unique_ptr<Engine> LoadSmall(const EngineOptions& options = SmallOptions()) {
  auto engine = Engine::Load(TestData("models/llama-gqa.gguf"), options, {});
  EXPECT_TRUE(engine.ok()) << engine.status().message();
  return std::move(engine).value();
}

inline std::vector<TokenId> Tokens(size_t count, uint32_t seed = 1) {
  std::mt19937 random(seed);
  std::vector<TokenId> tokens(count);
  for (TokenId& token : tokens) token = static_cast<TokenId>(random() % 250);
  return tokens;
}

inline Request GreedyRequest(std::vector<TokenId> prompt, uint32_t max_tokens) {
  Request request{.prompt = std::move(prompt), .max_tokens = max_tokens};
  request.sampling.temperature = 0;
  request.sampling.top_logprobs = 0;
  request.sampling.ignore_eos = true;
  return request;
}

inline std::shared_ptr<Answer> Submit(Engine& engine, Request request) {
  auto answer = engine.Submit(std::move(request));
  EXPECT_TRUE(answer.ok()) << answer.status().message();
  return answer.ok() ? std::move(answer).value() : nullptr;
}

// Of SmallOptions().
inline size_t PageBytes() {
  size_t page_bytes = 0;
  LoadSmall()->Ask([&](StepLoop& loop) { page_bytes = loop.cache().pool().stride(OpenClass(0)); });
  return page_bytes;
}

// With a KV memory of so many pages.
inline std::unique_ptr<Engine> LoadWithPages(size_t num_pages) {
  EngineOptions options = SmallOptions();
  options.kv_memory_bytes = num_pages * PageBytes();
  return LoadSmall(options);
}

struct Result {
  std::vector<TokenId> ids;
  std::vector<double> logprobs;
  bool operator==(const Result&) const = default;
};

inline Result ResultOf(const Answer& answer, uint32_t choice = 0) {
  answer.Wait(choice, UINT32_MAX);
  EXPECT_TRUE(answer.status(choice).ok()) << answer.status(choice).message();
  Result result;
  result.ids.assign(answer.tokens(choice).begin(), answer.tokens(choice).end());
  for (uint32_t i = 0; i < result.ids.size(); ++i)
    result.logprobs.push_back(answer.logprobs(choice, i).sampled);
  return result;
}

inline Result AnswerOf(Engine& engine, Request request) {
  return ResultOf(*Submit(engine, std::move(request)));
}

}  // namespace quire
