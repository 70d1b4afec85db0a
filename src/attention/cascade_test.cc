// Sequences that share pages and read them together: the bits are those of each sequence alone, and
// each page is read once.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <string>

#include "attention/kernels.h"
#include "attention/test_pages.h"

namespace quire {
namespace {

constexpr uint32_t kNobody = UINT32_MAX;

// A sequence that has its first shared_pages pages from an earlier one, and then tokens of its own.
struct Member {
  uint32_t from = kNobody;
  uint32_t shared_pages = 0;
  uint32_t length = 0;
  uint32_t num_rows = 1;  // the last ones
};

class Family {
 public:
  Family(const TestCase& test, std::vector<Member> members, uint32_t seed)
      : shape_(MakeTestShape(test)),
        members_(std::move(members)),
        rng_(seed),
        pages_(shape_, Lengths(members_), rng_) {
    const AttentionKernels& writer = GetAttentionKernels(AvailableInstructionSets().back());
    const size_t k_row = size_t{test.num_kv_heads} * test.head_dim_k;
    const size_t v_row = size_t{test.num_kv_heads} * test.head_dim_v;
    uint32_t num_rows = 0;
    for (const Member& m : members_) num_rows += m.num_rows;
    const size_t q_row = size_t{shape_.num_q_heads} * test.head_dim_k;
    q_ = RandomValues(rng_, num_rows * q_row, 2.0f);
    for (uint32_t i = 0; i < members_.size(); ++i) {
      const Member& m = members_[i];
      uint32_t first = 0;
      if (m.from != kNobody) {
        pages_.Share(m.from, i, m.shared_pages);
        first = std::min(m.length, m.shared_pages * test.page_size);
      }
      const uint32_t n = m.length - first;
      const auto k = RandomValues(rng_, n * k_row);
      auto v = RandomValues(rng_, n * v_row);
      // Zeros of both signs and tiny values: sums that a stray + 0 would change.
      for (size_t j = 0; j < v.size(); j += 3) v[j] = j % 2 == 0 ? -0.0f : -1e-7f;
      pages_.Append(writer, i, 0, first, n, k.data(), v.data());
      // Rows stand in another order than the sequences.
      num_rows -= m.num_rows;
      rows_.push_back({pages_.view(i), num_rows, m.num_rows, m.length - m.num_rows});
    }
    for (uint32_t i = 0; i < members_.size(); ++i)
      pages_.Forget(i, members_[i].length - members_[i].num_rows);
  }

  AttentionRun Run(InstructionSet set, int num_threads, Cascade cascade) const {
    return RunAttention(GetAttentionKernels(set), shape_, rows_, 0, q_, num_threads, cascade);
  }
  std::vector<float> Alone(InstructionSet set) const {
    const size_t q_row = size_t{shape_.num_q_heads} * shape_.layout.head_dim_k;
    const size_t out_row = size_t{shape_.num_q_heads} * shape_.layout.head_dim_v;
    std::vector<float> all(q_.size() / q_row * out_row);
    for (const SequenceRows& rows : rows_) {
      SequenceRows alone = rows;
      alone.first_row = 0;
      const auto run = RunAttention(GetAttentionKernels(set), shape_, {&alone, 1}, 0,
                                    {&q_[rows.first_row * q_row], rows.num_rows * q_row});
      std::copy(run.out.begin(), run.out.end(),
                all.begin() + static_cast<int64_t>(rows.first_row * out_row));
    }
    return all;
  }

 private:
  static std::vector<uint32_t> Lengths(const std::vector<Member>& members) {
    std::vector<uint32_t> lengths;
    for (const Member& m : members) lengths.push_back(m.length);
    return lengths;
  }

  AttentionShape shape_;
  std::vector<Member> members_;
  std::mt19937 rng_;
  TestPages pages_;
  std::vector<SequenceRows> rows_;
  std::vector<float> q_;
};

bool SameBits(const std::vector<float>& a, const std::vector<float>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](float x, float y) {
    return std::bit_cast<uint32_t>(x) == std::bit_cast<uint32_t>(y);
  });
}

// num_readers sequences with `shared` tokens in common, as far as those fill pages, and up to
// `own` more.
std::vector<Member> Readers(const TestCase& test, uint32_t num_readers, uint32_t shared,
                            uint32_t own) {
  std::vector<Member> members = {{.length = shared + own}};
  for (uint32_t i = 1; i < num_readers; ++i)
    members.push_back({.from = 0,
                       .shared_pages = shared / test.page_size,
                       .length = shared + 1 + (own - 1) * i / num_readers});
  return members;
}

// Decode in groups of 1, 3, 4 and 8, head_dims with tails, windows, splits that begin in a page.
constexpr KvCodec kKivi = KvCodec::kKivi4;
const TestCase kCases[] = {
    {.num_kv_heads = 2, .group_size = 3},
    {.page_size = 16, .num_kv_heads = 2, .group_size = 1, .head_dim_k = 32, .head_dim_v = 32},
    {.page_size = 128, .group_size = 4, .head_dim_k = 80, .head_dim_v = 80},
    {.page_size = 48, .group_size = 2, .head_dim_k = 40, .head_dim_v = 17, .window = 1000},
    {.page_size = 32,
     .group_size = 8,
     .head_dim_k = 16,
     .head_dim_v = 48,
     .k_codec = KvCodec::kF32,
     .v_codec = KvCodec::kF32},
    {.group_size = 5, .head_dim_k = 16, .head_dim_v = 33, .k_codec = KvCodec::kF32},
    {.page_size = 16, .group_size = 3, .head_dim_k = 16, .head_dim_v = 16, .window = 130},
    {.page_size = 16, .group_size = 4, .head_dim_k = 32, .head_dim_v = 32, .window = 300},
    {.num_kv_heads = 2, .group_size = 3, .k_codec = kKivi, .v_codec = kKivi, .sink_pages = 1},
    {.page_size = 16,
     .group_size = 2,
     .head_dim_k = 40,
     .head_dim_v = 17,
     .k_codec = kKivi,
     .v_codec = kKivi,
     .window = 300},
    {.page_size = 48,
     .group_size = 3,
     .head_dim_k = 16,
     .head_dim_v = 16,
     .k_codec = KvCodec::kF32,
     .v_codec = kKivi,
     .sink_pages = 1,
     .recent_pages = 2},
};

void ExpectSameBits(const Family& family, InstructionSet set) {
  const auto alone = family.Alone(set);
  for (int num_threads : {1, 2, 4}) {
    const auto on = family.Run(set, num_threads, Cascade::kOn);
    const auto off = family.Run(set, num_threads, Cascade::kOff);
    EXPECT_EQ(off.num_runs, 0u);
    EXPECT_TRUE(SameBits(on.out, alone)) << num_threads << " threads, cascade";
    EXPECT_TRUE(SameBits(off.out, alone)) << num_threads << " threads";
  }
}

TEST(AttentionCascade, ReadersOfOneRunHaveTheBitsOfEachAlone) {
  for (const TestCase& test : kCases)
    for (InstructionSet set : AvailableInstructionSets())
      for (uint32_t num_readers : {2u, 8u, 32u})
        for (uint32_t shared : {1000u, 1357u, 2048u}) {
          // Portable code is a hundred times slower.
          if (set == InstructionSet::kPortable && (num_readers != 8 || shared == 2048)) continue;
          SCOPED_TRACE(std::string(InstructionSetName(set)) + " group " +
                       std::to_string(test.group_size) + " window " + std::to_string(test.window) +
                       ": " + std::to_string(num_readers) + " x " + std::to_string(shared));
          const Family family(test, Readers(test, num_readers, shared, 90), shared + num_readers);
          ExpectSameBits(family, set);
          const auto on = family.Run(set, 1, Cascade::kOn);
          // Readers with more tokens have other recent pages, and so more pages in common.
          if (test.recent_pages == 0)
            EXPECT_EQ(on.num_runs, 1u);
          else
            EXPECT_GE(on.num_runs, 1u);
          EXPECT_LT(on.counters.chunks_read,
                    family.Run(set, 1, Cascade::kOff).counters.chunks_read);
        }
}

// Runs below runs, some of a few tokens only; short chunks among decode rows; a long prefill and
// sequences of other pages beside them.
TEST(AttentionCascade, NestedRunsAndMixedStepsHaveTheBitsOfEachAlone) {
  for (const TestCase& test : kCases)
    for (InstructionSet set : AvailableInstructionSets()) {
      SCOPED_TRACE(std::string(InstructionSetName(set)) + " group " +
                   std::to_string(test.group_size) + " window " + std::to_string(test.window));
      const uint32_t p = test.page_size;
      const auto pages = [&](uint32_t tokens) { return tokens / p; };
      std::vector<Member> members = {
          {.length = 2500},
          {.from = 0, .shared_pages = pages(2200), .length = 2450, .num_rows = 5},
          {.from = 0, .shared_pages = pages(700), .length = 1800},
          {.from = 2, .shared_pages = pages(1500), .length = 1700, .num_rows = 3},
          {.from = 2, .shared_pages = pages(1700), .length = 1900},
          {.length = 300},
          {.from = 1, .shared_pages = pages(2300), .length = 2600},
          {.from = 1, .shared_pages = pages(1100), .length = 1300, .num_rows = 100},
          {.from = 0, .shared_pages = pages(2490), .length = 2499, .num_rows = 2},
          {.from = 5, .shared_pages = pages(299), .length = 310},
          {.from = 4, .shared_pages = pages(1900), .length = 1905},
      };
      const Family family(test, members, 77);
      if (set != InstructionSet::kPortable) {
        ExpectSameBits(family, set);
        if (test.window == 0) {
          EXPECT_GT(family.Run(set, 1, Cascade::kOn).num_runs, 4u);
        }
      } else {
        EXPECT_TRUE(SameBits(family.Run(set, 1, Cascade::kOn).out, family.Alone(set)));
      }
    }
}

TEST(AttentionCascade, AnyTreeHasTheBitsOfEachAlone) {
  std::mt19937 rng(3);
  const InstructionSet set = AvailableInstructionSets().back();
  uint32_t num_runs = 0;
  for (uint32_t round = 0; round < 60; ++round) {
    SCOPED_TRACE(round);
    const TestCase& test = kCases[round % std::size(kCases)];
    std::vector<Member> members;
    for (uint32_t i = 0; i < 9; ++i) {
      Member m = {.length = 1 + static_cast<uint32_t>(rng()) % 2400};
      m.num_rows = std::min(m.length, 1 + static_cast<uint32_t>(rng()) % (i % 4 == 0 ? 20 : 2));
      if (i > 0 && rng() % 5 != 0) {
        m.from = static_cast<uint32_t>(rng()) % i;
        const uint32_t other = members[m.from].length;
        const uint32_t most = std::min((m.length - m.num_rows), other);
        m.shared_pages = most / test.page_size;
        if (rng() % 2 == 0) m.shared_pages = static_cast<uint32_t>(rng()) % (m.shared_pages + 1);
        // Rows in a page of the other one, as when the last token of a prompt is computed again.
        if (m.length <= other && rng() % 2 == 0)
          m.shared_pages = (m.length + test.page_size - 1) / test.page_size;
      }
      members.push_back(m);
    }
    const Family family(test, members, round);
    const auto alone = family.Alone(set);
    for (int num_threads : {1, 3}) {
      const auto run = family.Run(set, num_threads, Cascade::kOn);
      EXPECT_TRUE(SameBits(run.out, alone)) << num_threads << " threads";
      num_runs += run.num_runs;
    }
  }
  EXPECT_GT(num_runs, 60u);
}

// A chunk's later rows may see nothing of a run that its first row sees the end of.
TEST(AttentionCascade, RowsWhoseWindowBeginsBehindTheRunHaveTheBitsOfEachAlone) {
  const TestCase test = {.page_size = 16, .head_dim_k = 16, .head_dim_v = 16, .window = 128};
  const std::vector<Member> members = {
      {.length = 981}, {.from = 0, .shared_pages = 61, .length = 1138, .num_rows = 48}};
  const Family family(test, members, 9);
  for (InstructionSet set : AvailableInstructionSets())
    for (int num_threads : {1, 8}) {
      const auto run = family.Run(set, num_threads, Cascade::kOn);
      EXPECT_EQ(run.num_runs, 1u);
      EXPECT_TRUE(SameBits(run.out, family.Alone(set))) << num_threads;
    }
}

// PFX-18: 32 readers of 4,096 tokens in pages of 16 load each page of them once per KV head, 256
// loads instead of 8,192.
TEST(AttentionCascade, ASharedPageIsReadOnceForAllReaders) {
  const TestCase test = {
      .page_size = 16, .num_kv_heads = 2, .group_size = 3, .head_dim_k = 16, .head_dim_v = 16};
  const Family family(test, Readers(test, 32, 4096, 1), 5);
  const InstructionSet set = AvailableInstructionSets().back();
  for (int num_threads : {1, 2, 4}) {
    EXPECT_EQ(family.Run(set, num_threads, Cascade::kOn).counters.chunks_read, 2u * (256 + 32));
    EXPECT_EQ(family.Run(set, num_threads, Cascade::kOff).counters.chunks_read,
              2u * (256 + 1) * 32);
  }
}

}  // namespace
}  // namespace quire
