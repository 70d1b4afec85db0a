// How fast the attention kernels are, as ratios inside one run: to the FMA peak (a loop that stays
// in registers) and to a streaming read of the same pool, each timed next to the kernel in every
// repetition. One thread, thread CPU time.
//
//     attention_bench [repetitions [hot | cold | prefill]]
//
// "best" compares the best samples of both sides, "median" is the median of the repetitions'
// ratios. Samples are short, so that some are free of neighbours. Figures of different runs must
// not be compared: neighbours and the clock move them by 20 % and more.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attention/attention_bench.cc"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include "base/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace quire {
namespace HWY_NAMESPACE {

// Multiplies and adds kFmaLanes lanes `n` times, in as many vectors as AVX2 and AVX-512 have
// registers for and as hide the latency.
inline constexpr int kAccumulators = kVecs == 1 ? 12 : 6;
inline constexpr int kFmaLanes = kAccumulators * 16;
float FmaLoop(size_t n) {
  F32x16 acc[kAccumulators];
  for (int i = 0; i < kAccumulators; ++i) acc[i] = Zero16();
  const F32x16 a = Set16(1.0f), b = Set16(0x1p-30f);
  for (size_t j = 0; j < n; ++j) {
#if defined(__clang__)
#pragma unroll
#else
#pragma GCC unroll 12
#endif
    for (int i = 0; i < kAccumulators; ++i) acc[i] = Fma16(acc[i], a, b);
  }
  for (int i = 1; i < kAccumulators; ++i) acc[0] = Add16(acc[0], acc[i]);
  return SumLanes16(acc[0]);
}

float ReadLoop(const float* p, size_t n) {
  F32x16 sum[4] = {Zero16(), Zero16(), Zero16(), Zero16()};
  for (size_t i = 0; i + 64 <= n; i += 64)
    for (size_t j = 0; j < 4; ++j) sum[j] = Max16(sum[j], Load16(p + i + 16 * j));
  return MaxLanes16(Max16(Max16(sum[0], sum[1]), Max16(sum[2], sum[3])));
}

}  // namespace HWY_NAMESPACE
}  // namespace quire
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <time.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "attention/kernels.h"
#include "base/memory.h"

namespace quire {
namespace {

constexpr size_t kFmaRounds = 20000;
volatile float g_sink;

struct Loops {
  float (*fma)(size_t);
  int fma_lanes;
  float (*read)(const float*, size_t);
};
Loops LoopsOf(InstructionSet set) {
  if (set == InstructionSet::kAvx2) return {N_AVX2::FmaLoop, N_AVX2::kFmaLanes, N_AVX2::ReadLoop};
  if (set == InstructionSet::kAvx512) return {N_AVX3::FmaLoop, N_AVX3::kFmaLanes, N_AVX3::ReadLoop};
  return {N_SCALAR::FmaLoop, N_SCALAR::kFmaLanes, N_SCALAR::ReadLoop};
}

double ThreadSeconds() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}
template <class F>
double Seconds(F f) {
  const double start = ThreadSeconds();
  f();
  return ThreadSeconds() - start;
}

// Rates of a kernel and of a roof, timed next to each other.
class Samples {
 public:
  void Add(double kernel, double roof) {
    best_kernel_ = std::max(best_kernel_, kernel);
    best_roof_ = std::max(best_roof_, roof);
    ratios_.push_back(kernel / roof);
  }
  void Print(const char* roof) {
    std::sort(ratios_.begin(), ratios_.end());
    std::printf("  %s %.2f (median %.2f)", roof, best_kernel_ / best_roof_,
                ratios_[ratios_.size() / 2]);
  }

 private:
  double best_kernel_ = 0, best_roof_ = 0;
  std::vector<double> ratios_;
};

class Bench {
 public:
  Bench(InstructionSet set, int repetitions)
      : kernels_(GetAttentionKernels(set)), loops_(LoopsOf(set)), repetitions_(repetitions) {
    pool_ = AnonymousMemory::Reserve(kPoolBytes + 4096).value();
    // Halves around 1: values do not matter, as long as they are finite and none is subnormal.
    std::mt19937 rng(1);
    for (uint16_t& half : pool_.as<uint16_t>())
      half = static_cast<uint16_t>(0x3800u + (rng() & 0x87FFu));
  }

  // One row of one sequence. Hot: its pages stay in the L2 cache. Cold: the pool, pages shuffled.
  void Decode(uint32_t head_dim, uint32_t group, uint32_t context, bool is_hot) {
    const uint32_t heads = is_hot ? 1 : 4;
    const AttentionShape shape = Shape(head_dim, group, heads);
    const size_t page_bytes = shape.layout.page_bytes();
    const uint32_t pages = context / 64;
    const size_t sequences = is_hot ? 1 : kPoolBytes / page_bytes / pages;
    FillTable(page_bytes, sequences * pages, !is_hot);
    std::vector<AttentionPlan> plans(sequences);
    for (size_t i = 0; i < sequences; ++i) {
      const SequenceRows rows = {{&table_[i * pages], pages}, 0, 1, context - 1};
      plans[i].Build(shape, {&rows, 1}, 1);
    }
    const size_t rounds = is_hot ? 10 : 1;
    const int repetitions = is_hot ? 20 * repetitions_ : repetitions_;
    const double units = static_cast<double>(rounds * sequences * heads) * context;
    Samples fma, read;
    double ns = 1e9;
    for (int i = 0; i < repetitions; ++i) {
      const double peak = MacsPerSecond(), roof = is_hot ? 1 : PoolBytesPerSecond();
      const double seconds = Seconds([&] {
        for (size_t round = 0; round < rounds; ++round)
          for (const AttentionPlan& plan : plans) RunAll(plan);
      });
      fma.Add(units * group * 2 * head_dim / seconds, peak);
      read.Add(units / 64 * shape.layout.chunk_bytes / seconds, roof);
      ns = std::min(ns, seconds / units * 1e9);
    }
    std::printf("decode  %-4s dim %3u group %u context %5u  %6.2f ns", is_hot ? "hot" : "cold",
                head_dim, group, context, ns);
    fma.Print("FMA peak");
    if (!is_hot) read.Print("read roof");
    std::printf("\n");
  }

  // The last `num_rows` rows of one sequence, one KV head.
  void Prefill(uint32_t head_dim, uint32_t group, uint32_t depth, uint32_t num_rows) {
    const AttentionShape shape = Shape(head_dim, group, 1);
    const uint32_t pages = (depth + num_rows + 63) / 64;
    FillTable(shape.layout.page_bytes(), pages, true);
    const SequenceRows rows = {{table_.data(), pages}, 0, num_rows, depth};
    AttentionPlan plan;
    plan.Build(shape, {&rows, 1}, 1);
    const double keys = static_cast<double>(num_rows) * depth + num_rows * (num_rows + 1.0) / 2;
    Samples fma;
    for (int i = 0; i < 4 * repetitions_; ++i) {
      const double peak = MacsPerSecond();
      const double seconds = Seconds([&] { RunAll(plan); });
      fma.Add(keys * group * 2 * head_dim / seconds, peak);
    }
    std::printf("prefill dim %3u group %u, %3u rows at %4u", head_dim, group, num_rows, depth);
    fma.Print("FMA peak");
    std::printf("\n");
  }

 private:
  static constexpr size_t kPoolBytes = size_t{256} << 20;

  static AttentionShape Shape(uint32_t head_dim, uint32_t group, uint32_t heads) {
    const KvGeometry geometry = {.page_size = 64,
                                 .num_layers = 1,
                                 .num_kv_heads = heads,
                                 .head_dim_k = head_dim,
                                 .head_dim_v = head_dim};
    return {.layout = MakeKvLayout(geometry, KvCodec::kF16, KvCodec::kF16).value(),
            .num_q_heads = heads * group,
            .num_kv_heads = heads,
            .scale = 1 / std::sqrt(static_cast<float>(head_dim))};
  }

  void FillTable(size_t page_bytes, size_t num_pages, bool shuffle) {
    std::vector<size_t> order(kPoolBytes / page_bytes);
    std::iota(order.begin(), order.end(), size_t{0});
    if (shuffle) std::shuffle(order.begin(), order.end(), std::mt19937(7));
    table_.clear();
    for (size_t i = 0; i < num_pages; ++i) table_.push_back(pool_.data() + order[i] * page_bytes);
  }

  double MacsPerSecond() {
    double best = 1;
    for (int i = 0; i < 3; ++i)
      best = std::min(best, Seconds([&] { g_sink = loops_.fma(kFmaRounds); }));
    return static_cast<double>(kFmaRounds) * loops_.fma_lanes / best;
  }
  double PoolBytesPerSecond() {
    return kPoolBytes / Seconds([&] {
             g_sink = loops_.read(reinterpret_cast<const float*>(pool_.data()), kPoolBytes / 4);
           });
  }

  void RunAll(const AttentionPlan& plan) {
    const AttentionShape& shape = plan.shape();
    const size_t rows = plan.sequences()[0].num_rows * size_t{shape.num_q_heads};
    if (q_.size() < rows * shape.layout.head_dim_k) {
      std::mt19937 rng(2);
      std::normal_distribution<float> normal;
      q_.resize(rows * shape.layout.head_dim_k);
      for (float& x : q_) x = normal(rng);
    }
    out_.resize(std::max(out_.size(), rows * shape.layout.head_dim_v));
    if (scratch_.size() < plan.scratch_floats() * 4)
      scratch_ = AnonymousMemory::Reserve(plan.scratch_floats() * 4).value();
    for (uint32_t i = 0; i < plan.num_items(); ++i)
      kernels_.run_item(plan, i, 0, q_.data(), out_.data(), nullptr, scratch_.as<float>().data());
  }

  const AttentionKernels& kernels_;
  const Loops loops_;
  const int repetitions_;
  AnonymousMemory pool_, scratch_;
  std::vector<std::byte*> table_;
  std::vector<float> q_, out_;
};

int Main(int argc, char** argv) {
  const auto set = ChooseInstructionSet(std::nullopt);
  const int repetitions = argc > 1 ? std::max(1, std::atoi(argv[1])) : 9;
  std::printf("%s, %d repetitions, f16; ns for one token x KV head: best\n",
              std::string(InstructionSetName(*set)).c_str(), repetitions);
  Bench bench(*set, repetitions);
  const std::string only = argc > 2 ? argv[2] : "";
  for (uint32_t head_dim : {64u, 128u})
    for (uint32_t group : {1u, 3u, 4u, 8u}) {
      if (only.empty() || only == "hot") bench.Decode(head_dim, group, 512, true);
      if (!only.empty() && only != "cold") continue;
      bench.Decode(head_dim, group, 1024, false);
      bench.Decode(head_dim, group, 16384, false);
    }
  if (!only.empty() && only != "prefill") return 0;
  for (uint32_t depth : {0u, 4096u}) {
    bench.Prefill(64, 3, depth, 64);
    bench.Prefill(64, 3, depth, 512);
    bench.Prefill(128, 4, depth, 64);
    bench.Prefill(128, 1, depth, 64);
  }
  return 0;
}

}  // namespace
}  // namespace quire

int main(int argc, char** argv) { return quire::Main(argc, argv); }
#endif  // HWY_ONCE
