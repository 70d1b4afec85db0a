// PLN-04, PLN-13: what a plan says and what a pool counts are the same bytes, for every model file
// that runs, codec that exists, page size and context.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/test_data.h"
#include "engine/engine.h"
#include "plan/capacity.h"
#include "plan/kv_choice.h"
#include "plan/read_kv_model.h"

namespace quire {
namespace {

// Models that the planner says run.
std::vector<std::pair<std::string, KvModel>> RunningModels(const std::string& folder) {
  std::vector<std::pair<std::string, KvModel>> models;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.path().extension() != ".gguf") continue;
    auto model = ReadKvModel(entry.path().string());
    if (model.ok() && model->runs) models.emplace_back(entry.path().string(), *model);
  }
  std::ranges::sort(models, {}, &std::pair<std::string, KvModel>::first);
  return models;
}

// Grows `num_users` sequences together to `tokens` tokens, as decodes do, without computing; the
// most bytes that the pool counted. Of each page its first, last but one and last token are steps.
size_t MostHeld(KvCache& cache, uint32_t num_users, uint32_t tokens) {
  const std::vector<TokenId> text(tokens);
  std::vector<SequencePages> sequences;
  for (uint32_t i = 0; i < num_users; ++i) sequences.push_back(cache.NewPrivateSequence(tokens));
  size_t most = 0;
  const uint32_t page_size = cache.shape().page_size;
  for (uint32_t end = 1; end <= tokens; ++end) {
    const uint32_t slot = end % page_size;
    if (slot != 1 && slot != 0 && slot != page_size - 1 && end != tokens) continue;
    for (SequencePages& pages : sequences) {
      const Status status = pages.Reserve(end);
      EXPECT_TRUE(status.ok()) << end << " tokens: " << status.message();
      if (!status.ok()) return 0;
    }
    most = std::max(most, cache.pool().held_bytes());
    for (SequencePages& pages : sequences) pages.Commit(end, text);
  }
  return most;
}

TEST(PlanPool, PlannedBytesAreThePoolsBytes) {
  const auto folder = SharedData("models");
  if (!folder.has_value()) GTEST_SKIP() << "no shared data";
  const auto models = RunningModels(*folder);
  EXPECT_GE(models.size(), 20u);
  for (const auto& named : models) {
    const std::string& path = named.first;
    const KvModel& model = named.second;
    EngineOptions options;
    options.num_threads = 1;
    options.kv_memory_bytes = uint64_t{64} << 20;
    const auto loaded = ModelRunner::Load(path, options, {});
    ASSERT_TRUE(loaded.ok()) << loaded.status().message();
    for (const KvFormat& format : KvFormats()) {
      if (!format.runs()) continue;
      for (const uint32_t page_size : {16u, 64u}) {
        const KvChoice choice = {.k = &format, .v = &format, .page_size = page_size};
        const auto shape = ShapeOf(model, choice);
        ASSERT_TRUE(shape.ok()) << path << ": " << shape.status().message();
        options.kv_codec = *format.codec;
        options.page_size = page_size;
        for (const uint32_t tokens : {128u, 4096u, 131'072u}) {
          const auto what = [&] {
            return path + ", " + std::string(format.name) + ", pages of " +
                   std::to_string(page_size) + ", " + std::to_string(tokens) + " tokens";
          };
          // The planned bytes as the whole budget: enough, and all of it is used.
          const uint64_t planned = BytesFor(*shape, 2, tokens, 0);
          options.kv_memory_bytes = planned;
          const auto runner = ModelRunner::Create((*loaded)->shared_model(), options);
          ASSERT_TRUE(runner.ok()) << what() << ": " << runner.status().message();
          ASSERT_EQ(MostHeld((*runner)->cache(), 2, tokens), planned) << what();
          EXPECT_EQ((*runner)->cache().pool().held_bytes(), 0u);
        }
      }
    }
  }
}

TEST(PlanPool, CommittedBytesAreThePools) {
  const auto window = SharedData("models/rplus/gemma3.gguf");
  for (const std::string& path : {TestData("models/llama-gqa.gguf"), window.value_or("")}) {
    if (path.empty()) continue;
    const auto model = ReadKvModel(path);
    ASSERT_TRUE(model.ok()) << model.status().message();
    for (const char* codec : {"f16", "kivi4"})
      for (const uint32_t tokens : {17u, 3000u, 20'000u}) {
        KvChoice choice{.page_size = 16};
        ASSERT_TRUE(ParseKvChoice(codec, &choice).ok());
        const KvShape shape = ShapeOf(*model, choice).value();
        EngineOptions options;
        options.num_threads = 1;
        options.page_size = 16;
        options.kv_codec = *choice.k->codec;
        options.kv_memory_bytes = 2 * BytesFor(shape, 1, tokens, 0) + (4 << 20);
        const auto runner = ModelRunner::Load(path, options, {});
        ASSERT_TRUE(runner.ok()) << runner.status().message();
        const KvUse use = ConversationUse(shape, tokens);
        EXPECT_EQ(MostHeld((*runner)->cache(), 1, tokens), use.counted_bytes);
        EXPECT_EQ((*runner)->cache().pool().committed_bytes(), CommittedBytes(shape, use))
            << path << ", " << codec << ", " << tokens;
      }
  }
}

// Of requests with 384 tokens of prompt and 128 of answer, in 64 MiB. The engine starts a request
// if its prompt, a page and 1/32 of the budget are free, so all of them start.
EngineStats StatsOfUsers(const std::string& path, uint32_t num_users, uint32_t page_size) {
  EngineOptions options;
  options.page_size = page_size;
  options.kv_memory_bytes = 64 << 20;
  options.max_seqs = 256;
  options.token_budget = 4096;
  auto engine = Engine::Load(path, options, {});
  EXPECT_TRUE(engine.ok()) << engine.status().message();
  std::vector<std::shared_ptr<Answer>> answers;
  for (uint32_t user = 0; user < num_users; ++user) {
    Request request{.max_tokens = 128, .uses_prefixes = false};
    for (uint32_t i = 0; i < 384; ++i)
      request.prompt.push_back(static_cast<TokenId>(1 + (user * 131 + i * 7 + i * i) % 500));
    request.sampling.temperature = 0;
    request.sampling.ignore_eos = true;
    auto answer = (*engine)->Submit(std::move(request));
    EXPECT_TRUE(answer.ok()) << answer.status().message();
    answers.push_back(std::move(answer).value());
  }
  for (const auto& answer : answers) answer->Wait(0, UINT32_MAX);
  for (const auto& answer : answers) EXPECT_EQ(answer->tokens(0).size(), 128u);
  return (*engine)->stats();
}

TEST(PlanPoolSlow, AsManyUsersAsPlannedRunAtOnce) {
  const auto path = SharedData("models/stories260K/stories260K-f32.gguf");
  if (!path.has_value()) GTEST_SKIP() << "no shared data";
  const auto model = ReadKvModel(*path);
  ASSERT_TRUE(model.ok()) << model.status().message();
  for (const auto& [page_size, expected] : {std::pair{64u, 204u}, std::pair{16u, 170u}}) {
    const KvShape shape = ShapeOf(*model, {.page_size = page_size}).value();
    const uint32_t users = UsersIn(shape, 64 << 20, 512, 0);
    ASSERT_EQ(users, expected);
    EXPECT_EQ(StatsOfUsers(*path, users, page_size).num_preemptions, 0u) << page_size;
    EXPECT_GT(BytesFor(shape, users + 1, 512, 0), uint64_t{64} << 20);
    // One more cannot run with them. (In pages of 16 the first ones end before the last ones are
    // so long.)
    if (page_size == 64) {
      EXPECT_GT(StatsOfUsers(*path, users + 1, page_size).num_preemptions, 0u) << page_size;
    }
  }
}

}  // namespace
}  // namespace quire
