// SharedRuns: the runs of pages that several sequences of a step read, so that one item can read a
// page for all of them (cascade).
//
// Tables share prefixes: where two sequences both see page j and have the same page there, they
// have the same pages wherever both see a page before j [attention.shared_runs.1]. So sequences
// form a tree, and a run is an edge of it: pages that its readers, and nobody else, read from the
// same memory. Readers that go on sharing in smaller groups have runs below it, which begin where
// it ends.
//
// A run has only pages that lie before its readers' own pages (of their first rows): every row sees
// them whole, up to where its window begins. Where pages are sealed, they also lie before the
// recent pages, so that all readers read the same form.
//
// Sequences with few rows take part; a long chunk fills items by itself, which read a page once for
// many rows. Build costs n log n comparisons of tables, each by bisection.
//
// Threading: Build by one thread; afterwards any number may read. Build allocates nothing once it
// has seen as many sequences.
// Papers: Juravsky et al., Hydragen, 2024; Ye et al., FlashInfer, 2025 (cascade).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "attention/sequence_rows.h"
#include "attention/shape.h"

namespace quire {

// A sequence with more query rows for a KV head reads its pages alone.
inline constexpr uint32_t kMaxSharingQueryRows = 48;

class SharedRuns {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;

  struct Run {
    uint32_t parent = kNone;  // the run before it, of a smaller index
    uint32_t first_reader = 0;
    uint32_t num_readers = 0;  // at least 2; all of them are readers of the parent
    uint32_t begin_page = 0;   // the first page that any reader sees, or where the parent ends
    uint32_t end_page = 0;
    uint32_t sequence = 0;  // the reader that sees all pages of the run
  };
  struct Reader {
    uint32_t sequence = 0;
    uint32_t run = kNone;  // the last run that it reads
  };

  // max_states: how many states of splits, of one query head each, readers may leave in the
  // workspace. Sequences for which there is no room read alone.
  void Build(const AttentionShape& shape, std::span<const SequenceRows> sequences,
             uint64_t max_states);
  void Clear();

  std::span<const Run> runs() const { return runs_; }
  // Those of a run are neighbours. Some read no run.
  std::span<const Reader> readers() const { return readers_; }

 private:
  // A sequence that may share pages [begin_page, end_page).
  struct Candidate {
    uint32_t sequence;
    uint32_t begin_page;  // the first that it sees
    uint32_t end_page;
    std::byte* const* open;
    std::byte* const* sealed;
    uint32_t first_sealed;  // pages before it are read open, the others sealed

    const std::byte* page(uint32_t index) const {
      return index < first_sealed ? open[index] : sealed[index];
    }
  };
  // Readers [begin, end) have the same pages before `page`.
  struct Group {
    uint32_t begin;
    uint32_t end;
    uint32_t page;
    uint32_t run;  // the last run that all of them read
  };

  // Pages from `anchor` on that both have, all of which are the same: where they end.
  static uint32_t EndOfSame(const Candidate& a, const Candidate& b, uint32_t anchor);
  // Candidates that all see page `anchor`.
  void AddCluster(const AttentionShape& shape, std::span<const SequenceRows> sequences,
                  std::span<Candidate> cluster, uint32_t anchor);
  void AddRuns(uint32_t page_size, std::span<const Candidate> cluster, uint32_t first_reader);

  std::vector<Run> runs_;
  std::vector<Reader> readers_;
  uint64_t states_left_ = 0;

  // Of a Build in progress.
  std::vector<Candidate> candidates_;
  std::vector<uint32_t> same_until_;  // of a candidate of the cluster and the one before it
  std::vector<Group> groups_;
};

}  // namespace quire
