#include "attention/measure.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>
#include <random>

#include "attention/plan.h"
#include "base/median.h"
#include "base/seconds.h"

namespace quire {
namespace {

constexpr size_t kPoolBytes = size_t{256} << 20;
constexpr uint32_t kHeadsInMemory = 4;
constexpr int64_t kPeakRounds = 20'000;
// A sample is short, so that some are free of neighbours, and long beside the clock's steps.
constexpr double kSampleMacs = 2e7;

StatusOr<AttentionShape> ShapeOf(const AttentionTest& test) {
  const uint32_t num_kv_heads = test.in_memory ? kHeadsInMemory : 1;
  QUIRE_ASSIGN_OR_RETURN(const KvForms forms,
                         MakeKvForms({.page_size = test.page_size,
                                      .num_layers = 1,
                                      .num_kv_heads = num_kv_heads,
                                      .head_dim_k = test.head_dim,
                                      .head_dim_v = test.head_dim},
                                     {.k_codec = test.codec, .v_codec = test.codec}, 0));
  return AttentionShape{.layout = forms.open.layout,
                        .k_codec = forms.open.k_codec,
                        .v_codec = forms.open.v_codec,
                        .num_q_heads = num_kv_heads * test.group_size,
                        .num_kv_heads = num_kv_heads,
                        .scale = 1 / std::sqrt(static_cast<float>(test.head_dim)),
                        .sealed = forms.sealed,
                        .rule = forms.rule};
}

}  // namespace

std::string NameOf(const AttentionTest& test) {
  std::string name = test.num_rows == 1 ? "decode" : "prefill " + std::to_string(test.num_rows);
  name += " d" + std::to_string(test.depth) + " hd" + std::to_string(test.head_dim) + " g" +
          std::to_string(test.group_size) + " " + std::string(KvCodecName(test.codec));
  if (test.page_size != 64) name += " page" + std::to_string(test.page_size);
  return name + (test.in_memory ? " memory" : " cache");
}

std::vector<AttentionTest> AttentionTests(bool all) {
  std::vector<AttentionTest> tests;
  const auto add = [&](uint32_t head_dim, uint32_t group) {
    const AttentionTest test = {.head_dim = head_dim, .group_size = group};
    const auto with = [&](uint32_t num_rows, uint32_t depth, bool in_memory) {
      tests.push_back(test);
      tests.back().num_rows = num_rows;
      tests.back().depth = depth;
      tests.back().in_memory = in_memory;
    };
    with(1, 511, false);
    with(1, 4096, true);
    with(64, 4096, false);
    with(64, 0, false);
    with(512, 0, false);
    if (!all) return;
    with(1, 1024, true);
    with(1, 16384, true);
    with(64, 4096, true);
    with(128, 0, false);
    with(200, 0, false);
    with(512, 4096, false);
  };
  for (const uint32_t head_dim : {64u, 128u, 256u})
    for (const uint32_t group : {1u, 4u, 8u}) add(head_dim, group);
  for (const uint32_t head_dim : {64u, 128u}) {
    AttentionTest sealed = {.head_dim = head_dim, .depth = 4096, .codec = KvCodec::kKivi4};
    for (const bool in_memory : {true, false}) {
      sealed.in_memory = in_memory;
      tests.push_back(sealed);
    }
    sealed.num_rows = 64;
    tests.push_back(sealed);
  }
  if (!all) return tests;
  for (const uint32_t group : {2u, 3u, 5u, 6u, 7u, 16u}) add(128, group);
  for (const uint32_t head_dim : {80u, 96u, 192u}) add(head_dim, 4);
  add(64, 3);
  for (const uint32_t page_size : {16u, 32u, 128u})
    for (const bool in_memory : {false, true})
      tests.push_back({.depth = 511, .in_memory = in_memory, .page_size = page_size});
  return tests;
}

AttentionMeter::AttentionMeter(InstructionSet set, int num_threads)
    : kernels_(GetAttentionKernels(set)), ceilings_(GetCeilings(set)), team_(num_threads) {}

template <class Job>
double AttentionMeter::Seconds(Job&& job) {
  const auto start = std::chrono::steady_clock::now();
  team_.Run(job);
  return SecondsSince(start);
}

double AttentionMeter::MacsPerSecond() {
  double best = 1;
  for (int i = 0; i < 3; ++i)
    best = std::min(best, Seconds([&](int) { ceilings_.fma(kPeakRounds); }));
  return static_cast<double>(kPeakRounds * ceilings_.fma_per_round * team_.num_threads()) / best;
}

double AttentionMeter::ReadBytesPerSecond() {
  constexpr size_t kPiece = size_t{1} << 20;
  return kPoolBytes / Seconds([&](int) {
           team_.ForEach(kPoolBytes / kPiece,
                         [&](uint32_t i) { ceilings_.read(pool_.data() + i * kPiece, kPiece); });
         });
}

std::vector<std::byte*> AttentionMeter::PageTable(size_t page_bytes, size_t num_pages,
                                                  bool shuffled) {
  std::vector<size_t> order(kPoolBytes / page_bytes);
  std::iota(order.begin(), order.end(), size_t{0});
  if (shuffled) std::shuffle(order.begin(), order.end(), std::mt19937(7));
  std::vector<std::byte*> table;
  for (size_t i = 0; i < num_pages; ++i) table.push_back(pool_.data() + order[i] * page_bytes);
  return table;
}

StatusOr<AttentionSpeed> AttentionMeter::Measure(const AttentionTest& test, int repetitions) {
  if (pool_.size() == 0) {
    QUIRE_ASSIGN_OR_RETURN(pool_, AnonymousMemory::Reserve(kPoolBytes + 4096));
    // Halves around 1, which are floats as well: values do not matter, as long as they are finite
    // and none is subnormal.
    std::mt19937 rng(1);
    for (uint16_t& half : pool_.as<uint16_t>())
      half = static_cast<uint16_t>(0x3800u + (rng() & 0x87FFu));
  }
  const auto num_threads = static_cast<uint32_t>(team_.num_threads());
  QUIRE_ASSIGN_OR_RETURN(const AttentionShape shape, ShapeOf(test));
  const KvLayout& layout = shape.has_sealed() ? shape.sealed.layout : shape.layout;
  const uint32_t num_pages = (test.depth + test.num_rows + test.page_size - 1) / test.page_size;
  const size_t page_bytes = layout.page_bytes();
  const auto num_sequences = static_cast<uint32_t>(
      test.in_memory ? std::max<size_t>(1, kPoolBytes / page_bytes / num_pages) : num_threads);
  const size_t num_all = size_t{num_sequences} * num_pages;
  const auto table = PageTable(page_bytes, num_all, test.in_memory);
  // Few pages are read open where most are read sealed: they may have memory in common.
  std::vector<std::byte*> open = table;
  if (shape.has_sealed()) {
    const auto some = PageTable(shape.layout.page_bytes(), kPoolBytes / shape.layout.page_bytes(),
                                test.in_memory);
    for (size_t i = 0; i < num_all; ++i) open[i] = some[i % some.size()];
  }
  std::vector<SequenceRows> sequences;
  for (uint32_t i = 0; i < num_sequences; ++i)
    sequences.push_back({.kv = {.pages = &open[size_t{i} * num_pages],
                                .sealed = &table[size_t{i} * num_pages],
                                .num_pages = num_pages},
                         .first_row = i * test.num_rows,
                         .num_rows = test.num_rows,
                         .first_position = test.depth});
  // In cache, a thread has a plan of its own: another thread's pages would not be in its cache.
  std::vector<AttentionPlan> plans(test.in_memory ? 1 : num_threads);
  if (test.in_memory)
    plans[0].Build(shape, sequences, team_.num_threads());
  else
    for (uint32_t i = 0; i < num_threads; ++i) plans[i].Build(shape, {&sequences[i], 1}, 1);

  const size_t num_q = size_t{num_sequences} * test.num_rows * shape.num_q_heads * test.head_dim;
  std::mt19937 rng(2);
  std::normal_distribution<float> normal;
  std::vector<float> q(num_q), out(num_q);
  for (float& x : q) x = normal(rng);
  QUIRE_ASSIGN_OR_RETURN(AnonymousMemory workspace,
                         AnonymousMemory::Reserve(plans[0].workspace_floats() * 4));
  const size_t scratch_floats = (plans[0].scratch_floats() + 1023) / 1024 * 1024 + 16;
  QUIRE_ASSIGN_OR_RETURN(AnonymousMemory scratch,
                         AnonymousMemory::Reserve(scratch_floats * 4 * num_threads));
  const auto scratch_of = [&](int worker) {
    return scratch.as<float>().data() + static_cast<size_t>(worker) * scratch_floats;
  };

  const double keys = test.num_rows * (test.depth + (test.num_rows + 1) / 2.0) * num_sequences *
                      layout.num_kv_heads;
  const double macs = keys * test.group_size * 2 * test.head_dim;
  const int rounds = std::max(1, static_cast<int>(kSampleMacs * num_threads / macs));
  const auto job = [&](int worker) {
    const AttentionPlan& plan = plans[test.in_memory ? 0 : static_cast<size_t>(worker)];
    const auto run_item = [&](uint32_t item) {
      kernels_.run_item(plan, item, 0, q.data(), out.data(), workspace.as<float>().data(),
                        scratch_of(worker));
    };
    for (int round = 0; round < rounds; ++round) {
      if (!test.in_memory) {
        for (uint32_t item = 0; item < plan.num_items(); ++item) run_item(item);
        continue;
      }
      team_.ForEach(plan.num_items(), run_item);
      team_.ForEach(plan.num_merge_items(), [&](uint32_t item) {
        kernels_.merge_item(plan, item, workspace.as<float>().data(), out.data(),
                            scratch_of(worker));
      });
    }
  };
  double best = 1e9, best_peak = 0;
  std::vector<double> roofs, roof_ratios;
  for (int i = 0; i < (test.in_memory ? repetitions : 8 * repetitions); ++i) {
    best_peak = std::max(best_peak, MacsPerSecond());
    const double roof = test.in_memory ? ReadBytesPerSecond() : 1;
    const double seconds = Seconds(job) / rounds;
    best = std::min(best, seconds);
    roofs.push_back(roof);
    roof_ratios.push_back(keys / test.num_rows * layout.chunk_bytes / test.page_size / seconds /
                          roof);
  }
  AttentionSpeed speed;
  speed.ns_per_key = best / keys * num_threads * 1e9;
  speed.macs_per_second = macs / best;
  speed.of_fma_peak = macs / best / best_peak;
  if (test.in_memory) {
    speed.of_read_roof = Median(roof_ratios);
    speed.read_bytes_per_second = Median(roofs);
  }
  return speed;
}

}  // namespace quire
