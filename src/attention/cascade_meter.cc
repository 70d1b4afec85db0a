#include "attention/cascade_meter.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <random>
#include <vector>

#include "attention/plan_progress.h"
#include "base/ceilings.h"
#include "base/median.h"
#include "base/memory.h"
#include "base/seconds.h"

namespace quire {
namespace {

constexpr int64_t kPeakRounds = 200'000;

template <class Job>
double Seconds(Job&& job) {
  const auto start = std::chrono::steady_clock::now();
  job();
  return SecondsSince(start);
}

// One plan with what it needs to run.
struct Runner {
  AttentionPlan plan;
  PlanProgress progress;
  AnonymousMemory workspace, scratch;
  size_t scratch_floats = 0;
  double build_seconds = 1e9, best_seconds = 1e9;
  uint64_t num_chunks = 0;

  Status Build(const AttentionShape& shape, std::span<const SequenceRows> sequences,
               int num_threads, Cascade cascade) {
    for (int i = 0; i < 20; ++i)
      build_seconds = std::min(
          build_seconds, Seconds([&] { plan.Build(shape, sequences, num_threads, cascade); }));
    scratch_floats = (plan.scratch_floats() + 1023) / 1024 * 1024 + 16;
    QUIRE_ASSIGN_OR_RETURN(workspace, AnonymousMemory::Reserve(plan.workspace_floats() * 4));
    QUIRE_ASSIGN_OR_RETURN(
        scratch, AnonymousMemory::Reserve(scratch_floats * 4 * static_cast<size_t>(num_threads)));
    return OkStatus();
  }

  // All layers once.
  double Run(const AttentionKernels& kernels, ThreadTeam& team, uint32_t num_layers, const float* q,
             float* out) {
    std::atomic<uint64_t> chunks = 0;
    const double seconds = Seconds([&] {
      progress.Build(plan);
      team.Run([&](int worker) {
        float* own = scratch.as<float>().data() + static_cast<size_t>(worker) * scratch_floats;
        float* states = workspace.as<float>().data();
        for (uint32_t layer = 0; layer < num_layers; ++layer)
          team.ForEach(plan.num_items(), [&](uint32_t item) {
            progress.WaitFor(item, layer);
            chunks += kernels.run_item(plan, item, layer, q, out, states, own).chunks_read;
            const int merge = progress.Finish(item, layer);
            if (merge >= 0)
              kernels.merge_item(plan, static_cast<uint32_t>(merge), states, out, own);
          });
      });
    });
    num_chunks = chunks;
    best_seconds = std::min(best_seconds, seconds);
    return seconds;
  }
};

}  // namespace

std::string NameOf(const CascadeTest& test) {
  return "cascade " + std::to_string(test.num_sequences) + " x (" + std::to_string(test.shared) +
         " + " + std::to_string(test.own) + ") hd" + std::to_string(test.head_dim) + " " +
         std::to_string(test.num_kv_heads) + "x" + std::to_string(test.group_size) + " " +
         std::string(KvCodecName(test.codec));
}

CascadeMeter::CascadeMeter(InstructionSet set, int num_threads) : set_(set), team_(num_threads) {}

StatusOr<CascadeSpeed> CascadeMeter::Measure(const CascadeTest& test, int repetitions) {
  const AttentionKernels& kernels = GetAttentionKernels(set_);
  const Ceilings& ceilings = GetCeilings(set_);
  QUIRE_ASSIGN_OR_RETURN(const KvForms forms,
                         MakeKvForms({.page_size = test.page_size,
                                      .num_layers = test.num_layers,
                                      .num_kv_heads = test.num_kv_heads,
                                      .head_dim_k = test.head_dim,
                                      .head_dim_v = test.head_dim},
                                     {.k_codec = test.codec, .v_codec = test.codec}, 0));
  const AttentionShape shape = {.layout = forms.open.layout,
                                .k_codec = forms.open.k_codec,
                                .v_codec = forms.open.v_codec,
                                .num_q_heads = test.num_kv_heads * test.group_size,
                                .num_kv_heads = test.num_kv_heads,
                                .scale = 1 / std::sqrt(static_cast<float>(test.head_dim)),
                                .sealed = forms.sealed,
                                .rule = forms.rule};
  const uint32_t num_shared = test.shared / test.page_size;
  const uint32_t num_pages = (test.shared + test.own + test.page_size - 1) / test.page_size;
  const size_t num_all = num_shared + size_t{num_pages - num_shared} * test.num_sequences;
  const size_t open_bytes = forms.open.layout.page_bytes();
  const size_t sealed_bytes = forms.sealed.layout.page_bytes();
  QUIRE_ASSIGN_OR_RETURN(AnonymousMemory pool,
                         AnonymousMemory::Reserve(num_all * (open_bytes + sealed_bytes) + 4096));
  // Halves around 1, which are floats as well, and parameters of codes.
  std::mt19937 rng(1);
  for (uint16_t& half : pool.as<uint16_t>())
    half = static_cast<uint16_t>(0x3800u + (rng() & 0x87FFu));
  std::vector<std::vector<std::byte*>> open(test.num_sequences), sealed(test.num_sequences);
  std::vector<SequenceRows> sequences;
  size_t next = num_shared;
  for (uint32_t i = 0; i < test.num_sequences; ++i) {
    for (uint32_t page = 0; page < num_pages; ++page) {
      const size_t at = page < num_shared ? page : next++;
      open[i].push_back(pool.data() + at * open_bytes);
      sealed[i].push_back(pool.data() + num_all * open_bytes + at * sealed_bytes);
    }
    sequences.push_back(
        {.kv = {.pages = open[i].data(), .sealed = sealed[i].data(), .num_pages = num_pages},
         .first_row = i,
         .num_rows = 1,
         .first_position = test.shared + test.own - 1});
  }

  Runner with, without;
  QUIRE_RETURN_IF_ERROR(with.Build(shape, sequences, team_.num_threads(), Cascade::kOn));
  QUIRE_RETURN_IF_ERROR(without.Build(shape, sequences, team_.num_threads(), Cascade::kOff));
  const size_t num_values = size_t{test.num_sequences} * shape.num_q_heads * test.head_dim;
  std::normal_distribution<float> normal;
  std::vector<float> q(num_values), out(num_values);
  for (float& x : q) x = normal(rng);
  std::vector<double> ratios;
  double best_peak = 1e9;
  for (int i = 0; i < repetitions; ++i) {
    best_peak =
        std::min(best_peak, Seconds([&] { team_.Run([&](int) { ceilings.fma(kPeakRounds); }); }));
    const double seconds = with.Run(kernels, team_, test.num_layers, q.data(), out.data());
    ratios.push_back(without.Run(kernels, team_, test.num_layers, q.data(), out.data()) / seconds);
  }
  const double keys = static_cast<double>(test.num_sequences) * (test.shared + test.own) *
                      test.num_kv_heads * test.num_layers;
  const double macs = keys * test.group_size * 2 * test.head_dim;
  const double peak =
      static_cast<double>(kPeakRounds * ceilings.fma_per_round * team_.num_threads()) / best_peak;
  return CascadeSpeed{.speedup = Median(ratios),
                      .ns_per_key = with.best_seconds / keys * team_.num_threads() * 1e9,
                      .of_fma_peak = macs / with.best_seconds / peak,
                      .of_fma_peak_alone = macs / without.best_seconds / peak,
                      .chunks_alone = static_cast<double>(without.num_chunks) /
                                      static_cast<double>(with.num_chunks),
                      .plan_seconds = with.build_seconds};
}

}  // namespace quire
