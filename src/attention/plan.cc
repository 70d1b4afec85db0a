#include "attention/plan.h"

#include <algorithm>

#include "attention/scratch.h"
#include "base/check.h"

namespace quire {
namespace {

// Query rows of an item: enough that the page's bytes cost nothing beside the arithmetic, few
// enough that q and o of all rows stay in the L2 cache.
constexpr uint64_t kMaxItemQueryRows = 192;
constexpr uint64_t kMinItemQueryRows = 48;

// With this many equal items a thread, the last one to finish keeps the others waiting for less
// than a quarter of the stage.
constexpr uint64_t kItemsPerThread = 4;

// An item of a run has the rows of all readers, up to this many: q and o stay in a cache near the
// core. Readers are divided for the sake of threads only if the run's splits and KV heads make less
// than so many items a thread, and into parts that are still worth a page.
constexpr uint64_t kMaxRunQueryRows = 1024;
constexpr uint64_t kMinRunQueryRows = 24;
constexpr uint64_t kRunItemsPerThread = 2;

uint64_t CeilDiv(uint64_t a, uint64_t b) { return (a + b - 1) / b; }

// Of keys [first, end).
uint64_t NumSplits(uint64_t first, uint64_t end) {
  return (end - 1) / kSplitTokens - first / kSplitTokens + 1;
}

}  // namespace

void AttentionPlan::Build(const AttentionShape& shape, std::span<const SequenceRows> sequences,
                          int num_threads, Cascade cascade) {
  QUIRE_CHECK(num_threads >= 1);
  QUIRE_CHECK(shape.num_kv_heads > 0 && shape.num_kv_heads == shape.layout.num_kv_heads);
  QUIRE_CHECK(shape.num_q_heads > 0 && shape.num_q_heads % shape.num_kv_heads == 0);
  for (const SequenceRows& s : sequences)
    QUIRE_CHECK(uint64_t{s.first_position} + s.num_rows <=
                uint64_t{s.kv.num_pages} * shape.layout.page_size);
  shape_ = shape;
  sequences_.assign(sequences.begin(), sequences.end());
  num_threads_ = items_in_flight_ = static_cast<uint32_t>(num_threads);
  items_.clear();
  merge_items_.clear();
  scratch_floats_ = 0;
  if (cascade == Cascade::kOn)
    shared_.Build(shape, sequences, kMaxWorkspaceFloats / state_floats());
  else
    shared_.Clear();
  ReserveMost();
  AddRowsAndTiles();
  run_items_.assign(shared_.runs().size() * shape.num_kv_heads, 0);
  // The states of rows that share come first, those of all rows for one KV head together.
  workspace_floats_ = num_shared_states_ * shape.num_kv_heads * state_floats();

  // An item may cost a wanted item's share.
  const uint64_t cost = Cost();
  // Runs before those below them, and what waits for none before what waits for the last ones.
  for (uint32_t run = 0; run < shared_.runs().size(); ++run) AddRunItems(run, cost);
  for (const bool shares : {false, true})
    for (uint32_t kv_head = 0; kv_head < shape.num_kv_heads; ++kv_head)
      for (const Tile& tile : tiles_)
        if (shares == (tile.run != SharedRuns::kNone)) AddItems(tile, kv_head, cost);

  uint32_t most_rows = 0;
  for (const AttentionItem& item : items_) most_rows = std::max(most_rows, item.num_rows);
  if (most_rows > 0)
    scratch_floats_ = ScratchLayout(shape_, uint64_t{most_rows} * shape.group_size()).num_floats;
}

// Small steps may be cut into more items than large ones: what is reserved depends on how many rows
// and sequences there are, and not on how they are planned.
void AttentionPlan::ReserveMost() {
  const size_t num_heads = shape_.num_kv_heads, num_sequences = sequences_.size();
  size_t num_rows = 0;
  for (const SequenceRows& s : sequences_) num_rows += s.num_rows;
  // There are fewer runs than sequences that have rows. Items cost a wanted item's share or are one
  // tile or part of a run for one head, but for rounding.
  items_.reserve(2 * num_rows * num_heads + 8 * WantedItems());
  merge_items_.reserve(num_rows * num_heads);
  run_items_.reserve(num_sequences * num_heads);
  rows_.reserve(num_rows);
  tiles_.reserve(num_rows);
  reader_rows_.reserve(num_sequences + 1);
}

uint64_t AttentionPlan::WantedItems() const {
  return num_threads_ == 1 ? 1 : num_threads_ * kItemsPerThread;
}

void AttentionPlan::AddRowsAndTiles() {
  rows_.clear();
  tiles_.clear();
  reader_rows_.clear();
  num_states_ = 0;
  uint64_t num_query_rows = 0;
  for (const SequenceRows& s : sequences_)
    num_query_rows += uint64_t{s.num_rows} * shape_.num_q_heads;
  const uint64_t item_query_rows =
      std::clamp<uint64_t>(num_query_rows / WantedItems(), kMinItemQueryRows, kMaxItemQueryRows);
  const auto rows_per_item =
      static_cast<uint32_t>(std::max<uint64_t>(1, item_query_rows / shape_.group_size()));

  is_reader_.assign(sequences_.size(), false);
  for (const SharedRuns::Reader& reader : shared_.readers()) {
    reader_rows_.push_back(static_cast<uint32_t>(rows_.size()));
    if (reader.run == SharedRuns::kNone) continue;
    is_reader_[reader.sequence] = true;
    const SequenceRows& s = sequences_[reader.sequence];
    const auto first_row = static_cast<uint32_t>(rows_.size());
    AddRows(s);
    for (uint32_t end = s.num_rows, num_rows; end > 0; end -= num_rows) {
      num_rows = RowsOfOneForm(s, end);
      tiles_.push_back({.sequence = reader.sequence,
                        .first_row = first_row + end - num_rows,
                        .num_rows = num_rows,
                        .first_key = shared_.runs()[reader.run].end_page * shape_.layout.page_size,
                        .run = reader.run});
    }
  }
  reader_rows_.push_back(static_cast<uint32_t>(rows_.size()));
  num_shared_states_ = num_states_;
  for (uint32_t i = 0; i < sequences_.size(); ++i) {
    if (is_reader_[i]) continue;
    const auto first_row = static_cast<uint32_t>(rows_.size());
    AddRows(sequences_[i]);
    // The last rows have the most keys, so they come first.
    for (uint32_t end = sequences_[i].num_rows; end > 0;) {
      const uint32_t num_rows = std::min(RowsOfOneForm(sequences_[i], end), rows_per_item);
      end -= num_rows;
      tiles_.push_back({.sequence = i,
                        .first_row = first_row + end,
                        .num_rows = num_rows,
                        .first_key = 0,
                        .run = SharedRuns::kNone});
    }
  }
}

uint32_t AttentionPlan::RowsOfOneForm(const SequenceRows& rows, uint32_t end) const {
  if (!shape_.has_sealed()) return end;
  return std::min(end, (rows.first_position + end - 1) % shape_.layout.page_size + 1);
}

void AttentionPlan::AddRows(const SequenceRows& rows) {
  for (uint32_t i = 0; i < rows.num_rows; ++i) {
    const uint32_t position = rows.first_position + i;
    rows_.push_back({rows.first_row + i, position, num_states_});
    num_states_ += NumSplits(shape_.FirstKey(position), position + 1) * shape_.group_size();
  }
}

// Of all items; a query row over one split is a unit.
uint64_t AttentionPlan::Cost() const {
  uint64_t cost = 0;
  for (const Tile& tile : tiles_)
    cost += tile.num_rows * NumSplits(FirstKeyOf(tile), EndKeyOf(tile));
  for (const SharedRuns::Run& run : shared_.runs()) cost += CostOf(run);
  return cost * shape_.num_kv_heads;
}

uint64_t AttentionPlan::CostOf(const SharedRuns::Run& run) const {
  const uint64_t page_size = shape_.layout.page_size;
  return uint64_t{EndRowOf(run) - FirstRowOf(run)} *
         NumSplits(run.begin_page * page_size, run.end_page * page_size);
}

uint64_t AttentionPlan::SplitsPerItem(uint64_t cost, uint32_t num_rows) const {
  return num_threads_ == 1 ? UINT32_MAX : std::max<uint64_t>(1, cost / WantedItems() / num_rows);
}

void AttentionPlan::AddRunItems(uint32_t index, uint64_t cost) {
  const SharedRuns::Run& run = shared_.runs()[index];
  const uint32_t page_size = shape_.layout.page_size, num_heads = shape_.num_kv_heads;
  const uint32_t begin = FirstRowOf(run), num_rows = EndRowOf(run) - begin;
  const uint64_t query_rows = uint64_t{num_rows} * shape_.group_size();
  uint64_t num_parts = 1;
  if (num_threads_ > 1) {
    const uint64_t wanted =
        CeilDiv(kRunItemsPerThread * num_threads_ * CostOf(run) * num_heads, cost);
    num_parts = std::min(CeilDiv(wanted, CostOf(run) / num_rows * num_heads),
                         query_rows / kMinRunQueryRows);
  }
  num_parts = std::max({num_parts, CeilDiv(query_rows, kMaxRunQueryRows), uint64_t{1}});
  num_parts = std::min<uint64_t>(num_parts, num_rows);
  for (uint32_t kv_head = 0; kv_head < num_heads; ++kv_head)
    for (uint64_t part = 0; part < num_parts; ++part) {
      const auto first = static_cast<uint32_t>(begin + num_rows * part / num_parts);
      const auto end = static_cast<uint32_t>(begin + num_rows * (part + 1) / num_parts);
      AttentionItem item = {.sequence = run.sequence,
                            .kv_head = kv_head,
                            .first_row = first,
                            .num_rows = end - first,
                            .first_key = run.begin_page * page_size,
                            .end_key = run.end_page * page_size,
                            .is_partial = true,
                            .run = index * num_heads + kv_head};
      if (run.parent != SharedRuns::kNone) {
        item.after = run.parent * num_heads + kv_head;
        item.resumes = item.first_key % kSplitTokens != 0;
      } else {
        // Rows whose windows begin later see less; if nothing, they still leave their empty states.
        uint32_t first_position = UINT32_MAX;
        for (uint32_t row = first; row < end; ++row)
          first_position = std::min(first_position, rows_[row].position);
        item.first_key = std::min(shape_.FirstKey(first_position), item.end_key - page_size);
      }
      item.workspace_offset = SharedOffset(kv_head, first);
      CutBySplits(item, SplitsPerItem(cost, item.num_rows));
    }
}

void AttentionPlan::AddItems(const Tile& tile, uint32_t kv_head, uint64_t cost) {
  AttentionItem item = {.sequence = tile.sequence,
                        .kv_head = kv_head,
                        .first_row = tile.first_row,
                        .num_rows = tile.num_rows,
                        .first_key = FirstKeyOf(tile),
                        .end_key = EndKeyOf(tile)};
  const uint64_t most_splits = SplitsPerItem(cost, tile.num_rows);
  bool is_whole = NumSplits(item.first_key, item.end_key) <= most_splits;
  if (tile.run != SharedRuns::kNone) {
    item.workspace_offset = SharedOffset(kv_head, tile.first_row);
    // The window of a tile's rows may begin behind the run, even behind its last split.
    item.resumes = (tile.first_key - 1) / kSplitTokens == item.first_key / kSplitTokens;
    item.after = tile.run * shape_.num_kv_heads + kv_head;
  } else if (!is_whole) {
    const uint32_t end_row = tile.first_row + tile.num_rows;
    const uint64_t end_state = end_row < rows_.size() ? rows_[end_row].first_state : num_states_;
    const size_t floats = (end_state - rows_[tile.first_row].first_state) * state_floats();
    item.workspace_offset = workspace_floats_;
    is_whole = workspace_floats_ + floats > kMaxWorkspaceFloats;
    if (!is_whole) workspace_floats_ += floats;
  }
  if (is_whole) {
    items_.push_back(item);
    return;
  }
  item.is_partial = true;
  item.merge = static_cast<uint32_t>(merge_items_.size());
  merge_items_.push_back({.kv_head = kv_head,
                          .first_row = tile.first_row,
                          .num_rows = tile.num_rows,
                          .num_parts = 0,
                          .workspace_offset = item.workspace_offset});
  CutBySplits(item, most_splits);
}

void AttentionPlan::CutBySplits(AttentionItem item, uint64_t splits_per_item) {
  const uint64_t end = item.end_key;
  for (uint64_t key = item.first_key; key < end; key = item.end_key) {
    item.first_key = static_cast<uint32_t>(key);
    item.end_key =
        static_cast<uint32_t>(std::min(end, (key / kSplitTokens + splits_per_item) * kSplitTokens));
    items_.push_back(item);
    item.resumes = false;
    if (item.merge != AttentionItem::kNone) ++merge_items_[item.merge].num_parts;
    if (item.run != AttentionItem::kNone) ++run_items_[item.run];
  }
}

}  // namespace quire
