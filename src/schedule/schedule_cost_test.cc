// What the scheduler costs: nothing allocated, linear in what runs, whatever is cached.
#include <gtest/gtest.h>

#include <string>

#include "base/allocation_count.h"
#include "base/test_cost.h"
#include "cache/kv_cache.h"
#include "schedule/schedule.h"

namespace quire {
namespace {

constexpr uint32_t kPageSize = 16;

// Sequences in the middle of their answers beside cached pages; no bytes are ever written.
class Load {
 public:
  Load(uint32_t num_running, uint32_t length, uint32_t num_cached) {
    KvCacheOptions options;
    options.shape.page_size = kPageSize;
    options.shape.groups = {{.open_page_bytes = 64}};
    options.budget_bytes = (num_cached + num_running * 300 + 100) * PageStride(64);
    cache_ = KvCache::Create(options).value();
    ns_ = cache_->Namespace({.tenant = "a"}).value();
    constexpr uint32_t kPagesEach = 100;
    for (uint32_t i = 0; i < num_cached / kPagesEach; ++i) {
      const std::vector<TokenId> tokens = Tokens(i + num_running, kPagesEach * kPageSize);
      SequencePages pages = cache_->NewSequence(ns_, static_cast<uint32_t>(tokens.size()));
      Compute(pages, tokens);
      pages.End(tokens);
    }
    for (uint32_t i = 0; i < num_running; ++i) {
      tokens_.push_back(Tokens(i, 4'000));
      pages_.push_back(cache_->NewSequence(ns_, 4'000));
      Compute(pages_.back(), std::span(tokens_.back()).first(length + i % kPageSize));
    }
    sequences_.resize(num_running);
    Fill();
  }

  // What the engine does in a step, less the model and sampling.
  void Step() {
    Fill();
    Decide();
    for (const StepPart& part : decision_->parts) {
      SequencePages& pages = pages_[part.index];
      const uint32_t end = pages.next_position() + part.num_tokens;
      if (!pages.Reserve(end).ok()) std::abort();
      pages.Commit(end, tokens_[part.index]);
    }
  }
  void Decide() {
    const ScheduleState state{
        .sequences = sequences_, .tenants = {}, .cache = cache_.get(), .step = ++step_};
    decision_ = &scheduler_.Schedule(state, ScheduleLimits());
  }
  // Adds waiting ones; Decide() only after that.
  void Queue(uint32_t num_waiting) {
    for (uint32_t i = 0; i < num_waiting; ++i)
      sequences_.push_back({.id = 1'000 + i,
                            .arrival = 1'000 + i,
                            .ns = ns_,
                            .tokens = tokens_[i % tokens_.size()],
                            .most_tokens = 4'000});
  }
  void EndAllButOne() {
    pages_.erase(pages_.begin() + 1, pages_.end());
    sequences_.resize(1);
  }
  size_t num_parts() const { return decision_->parts.size(); }

 private:
  static std::vector<TokenId> Tokens(uint32_t salt, uint32_t length) {
    std::vector<TokenId> tokens(length);
    for (uint32_t i = 0; i < length; ++i) tokens[i] = static_cast<TokenId>(salt * 31 + i % 31);
    return tokens;
  }
  static void Compute(SequencePages& pages, std::span<const TokenId> tokens) {
    const auto end = static_cast<uint32_t>(tokens.size());
    if (!pages.Reserve(end).ok()) std::abort();
    pages.Commit(end, tokens);
  }
  void Fill() {
    for (size_t i = 0; i < sequences_.size(); ++i)
      sequences_[i] = {.id = i,
                       .arrival = i,
                       .ns = ns_,
                       .tokens = std::span(tokens_[i]).first(pages_[i].length() + 1),
                       .most_tokens = 4'000,
                       .pages = &pages_[i]};
  }

  std::unique_ptr<KvCache> cache_;
  NamespaceId ns_;
  std::vector<std::vector<TokenId>> tokens_;
  std::vector<SequencePages> pages_;
  std::vector<ScheduledSequence> sequences_;
  Scheduler scheduler_;
  const StepDecision* decision_ = nullptr;
  uint64_t step_ = 0;
};

TEST(ScheduleCost, ADecodingStepAllocatesNothing) {
  Load load(64, 512, 1'000);
  load.Step();
  const uint64_t before = AllocationCount();
  for (int i = 0; i < 40; ++i) load.Step();  // over two page ends
  EXPECT_EQ(AllocationCount(), before);
  EXPECT_EQ(load.num_parts(), 64u);
}

#ifdef NDEBUG
TEST(ScheduleCost, IsLinearInRunningSequences) {
  Load few(64, 512, 1'000), many(512, 512, 1'000);
  // Caches are smaller than 512 sequences: twice the eight times.
  EXPECT_TRUE(CostsAtMost(
      {.factor = 8 * 2, .num_rounds = 200}, [&] { few.Step(); }, [&] { many.Step(); }));
  const double many_us = 1e6 * LeastSeconds(300, [&] { many.Step(); });
  RecordProperty("us_512", std::to_string(many_us));
  // Of a step of the smallest model with 256 running, 1 to 2 ms, a tenth.
  EXPECT_LE(many_us / 2, 200);
}

TEST(ScheduleCost, DoesNotDependOnTheNumberOfCachedPages) {
  Load few(64, 512, 1'000), many(64, 512, 1'000'000);
  EXPECT_TRUE(CostsAtMost(
      {.factor = 2, .num_rounds = 200}, [&] { few.Step(); }, [&] { many.Step(); }));
}

TEST(ScheduleCost, ALongQueueCostsLittleMore) {
  Load alone(256, 512, 0), queued(256, 512, 0);
  queued.Queue(10'000);
  EXPECT_TRUE(CostsAtMost(
      {.factor = 1, .slack_seconds = 200e-6, .num_rounds = 100}, [&] { alone.Decide(); },
      [&] { queued.Decide(); }));
}

// CAC-13
TEST(ScheduleCost, AStepIsAsQuickAfterOthersHaveGoneAsWithoutThem) {
  Load busy(64, 512, 0), fresh(1, 512, 0);
  for (int i = 0; i < 20; ++i) busy.Step();
  busy.EndAllButOne();
  // Several steps a run: for the resolution of the clock, and for the caches to hold their own.
  const auto steps = [](Load& load) {
    return [&load] {
      for (int i = 0; i < 10; ++i) load.Step();
    };
  };
  EXPECT_TRUE(CostsAtMost({.factor = 1.1, .slack_seconds = 10 * 0.2e-6, .num_rounds = 30},
                          steps(fresh), steps(busy)));
}
#endif

}  // namespace
}  // namespace quire
