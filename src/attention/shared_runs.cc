#include "attention/shared_runs.h"

#include <algorithm>

#include "attention/plan.h"
#include "base/check.h"

namespace quire {
namespace {

// Shorter runs save less than their items and states cost.
constexpr uint32_t kMinRunTokens = 64;

// States that a sequence leaves, at most.
uint64_t NumStates(const AttentionShape& shape, const SequenceRows& rows) {
  const uint32_t first_split = shape.FirstKey(rows.first_position) / kSplitTokens;
  const uint32_t last_split = (rows.first_position + rows.num_rows - 1) / kSplitTokens;
  return uint64_t{last_split - first_split + 1} * rows.num_rows * shape.num_q_heads;
}

}  // namespace

void SharedRuns::Clear() {
  runs_.clear();
  readers_.clear();
}

void SharedRuns::Build(const AttentionShape& shape, std::span<const SequenceRows> sequences,
                       uint64_t max_states) {
  Clear();
  if (sequences.size() < 2) return;
  states_left_ = max_states;
  candidates_.clear();
  runs_.reserve(sequences.size());
  readers_.reserve(sequences.size());
  candidates_.reserve(sequences.size());
  same_until_.reserve(sequences.size() + 1);
  groups_.reserve(2 * sequences.size());
  const uint32_t page_size = shape.layout.page_size;
  const uint32_t most_rows = std::max(1u, kMaxSharingQueryRows / shape.group_size());
  for (uint32_t i = 0; i < sequences.size(); ++i) {
    const SequenceRows& rows = sequences[i];
    const uint32_t begin = shape.FirstKey(rows.first_position) / page_size;
    uint32_t end = rows.first_position / page_size;
    uint32_t first_sealed = UINT32_MAX;
    if (shape.has_sealed()) {
      end -= std::min(end, shape.rule.recent_pages);
      first_sealed = shape.rule.sink_pages;
    }
    if (rows.num_rows > 0 && rows.num_rows <= most_rows && begin < end)
      candidates_.push_back({i, begin, end, rows.kv.pages, rows.kv.sealed, first_sealed});
  }
  // Windows begin at different pages: those that all see some page together are compared from the
  // last page on at which one begins.
  std::sort(candidates_.begin(), candidates_.end(), [](const Candidate& a, const Candidate& b) {
    return a.begin_page != b.begin_page ? a.begin_page < b.begin_page : a.sequence < b.sequence;
  });
  for (size_t first = 0; first < candidates_.size();) {
    size_t last = first;
    uint32_t end_page = UINT32_MAX;
    for (; last < candidates_.size() && candidates_[last].begin_page < end_page; ++last)
      end_page = std::min(end_page, candidates_[last].end_page);
    AddCluster(shape, sequences, std::span(candidates_).subspan(first, last - first),
               candidates_[last - 1].begin_page);
    first = last;
  }
}

uint32_t SharedRuns::EndOfSame(const Candidate& a, const Candidate& b, uint32_t anchor) {
  uint32_t same = anchor, end = std::min(a.end_page, b.end_page);
  while (same < end) {
    const uint32_t middle = same + (end - same) / 2;
    if (a.page(middle) == b.page(middle))
      same = middle + 1;
    else
      end = middle;
  }
#ifndef NDEBUG
  for (uint32_t page = anchor; page < same; ++page) QUIRE_CHECK(a.page(page) == b.page(page));
#endif
  return same;
}

void SharedRuns::AddCluster(const AttentionShape& shape, std::span<const SequenceRows> sequences,
                            std::span<Candidate> cluster, uint32_t anchor) {
  // By the first page that differs: sequences with the same beginning become neighbours.
  std::sort(cluster.begin(), cluster.end(), [anchor](const Candidate& a, const Candidate& b) {
    if (a.page(anchor) != b.page(anchor)) return a.page(anchor) < b.page(anchor);
    const uint32_t page = EndOfSame(a, b, anchor);
    if (page < std::min(a.end_page, b.end_page)) return a.page(page) < b.page(page);
    return a.end_page != b.end_page ? a.end_page < b.end_page : a.sequence < b.sequence;
  });
  same_until_.assign(cluster.size() + 1, anchor);
  for (size_t i = 1; i < cluster.size(); ++i)
    same_until_[i] = EndOfSame(cluster[i - 1], cluster[i], anchor);

  const auto first_reader = static_cast<uint32_t>(readers_.size());
  size_t num_readers = 0;
  for (; num_readers < cluster.size(); ++num_readers) {
    const uint32_t sequence = cluster[num_readers].sequence;
    const bool shares = std::max(same_until_[num_readers], same_until_[num_readers + 1]) > anchor;
    const uint64_t num_states = shares ? NumStates(shape, sequences[sequence]) : 0;
    if (num_states > states_left_) break;
    states_left_ -= num_states;
    readers_.push_back({.sequence = sequence});
  }
  groups_.clear();
  if (num_readers > 1) groups_.push_back({0, static_cast<uint32_t>(num_readers), anchor, kNone});
  AddRuns(shape.layout.page_size, cluster, first_reader);
}

void SharedRuns::AddRuns(uint32_t page_size, std::span<const Candidate> cluster,
                         uint32_t first_reader) {
  // Groups that are found go to the end: a run comes after those above it.
  for (size_t g = 0; g < groups_.size(); ++g) {
    const Group group = groups_[g];
    for (uint32_t begin = group.begin, end; begin < group.end; begin = end) {
      uint32_t page = UINT32_MAX;
      for (end = begin + 1; end < group.end && same_until_[end] > group.page; ++end)
        page = std::min(page, same_until_[end]);
      if (end - begin < 2) continue;
      const auto seen_most = std::min_element(
          cluster.begin() + begin, cluster.begin() + end,
          [](const Candidate& a, const Candidate& b) { return a.begin_page < b.begin_page; });
      Run run = {.parent = group.run,
                 .first_reader = first_reader + begin,
                 .num_readers = end - begin,
                 .begin_page = seen_most->begin_page,
                 .end_page = page,
                 .sequence = seen_most->sequence};
      if (group.run != kNone) run.begin_page = runs_[group.run].end_page;
      uint32_t index = group.run;
      if (uint64_t{page - run.begin_page} * page_size >= kMinRunTokens) {
        index = static_cast<uint32_t>(runs_.size());
        runs_.push_back(run);
        for (uint32_t i = 0; i < run.num_readers; ++i) readers_[run.first_reader + i].run = index;
      }
      groups_.push_back({begin, end, page, index});
    }
  }
}

}  // namespace quire
