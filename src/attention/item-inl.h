// One work item, for the instruction set that is being compiled: the walk over splits, pages and
// tiles around the micro-kernels of tile-inl.h.
//
// Included by kernels.cc once for each target. Not here: std:: functions (base/vector-inl.h).
#if defined(QUIRE_ATTENTION_ITEM_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef QUIRE_ATTENTION_ITEM_INL_H_
#undef QUIRE_ATTENTION_ITEM_INL_H_
#else
#define QUIRE_ATTENTION_ITEM_INL_H_
#endif

#include "attention/item_rows-inl.h"
#include "attention/kernels.h"
#include "attention/step_panels-inl.h"
#include "attention/tile-inl.h"
#include "attention/tiling.h"

HWY_BEFORE_NAMESPACE();
namespace quire {
namespace HWY_NAMESPACE {

// The functions for tiles of R rows.
struct TileFns {
  void (*multiply[2])(const Product&, Ahead&);  // [is_half]
  void (*multiply_ragged[2])(const Product&, const StepRows&);
};
template <int R>
constexpr TileFns FnsOfRows() {
  return {{Multiply<R, float>, Multiply<R, uint16_t>},
          {MultiplyRagged<R, float>, MultiplyRagged<R, uint16_t>}};
}
inline constexpr TileFns kTileFns[kTileRows] = {FnsOfRows<1>(), FnsOfRows<2>(), FnsOfRows<3>(),
                                                FnsOfRows<4>(), FnsOfRows<5>(), FnsOfRows<6>()};

class ItemWalk {
 public:
  ItemWalk(const AttentionPlan& plan, uint32_t item_index, uint32_t layer, float* scratch)
      : shape_(plan.shape()),
        layout_(shape_.layout),
        item_(plan.items()[item_index]),
        kv_(plan.sequences()[item_.sequence].kv),
        group_(shape_.group_size()),
        whole_(Tiling::Whole(item_.num_rows, group_)),
        by_position_(Tiling::ByPosition(item_.num_rows, group_)),
        layer_(layer),
        rows_(plan, item_, scratch),
        query_page_(rows_.first_position() / layout_.page_size),
        at_(rows_.at()),
        scratch_(scratch) {
    const uint32_t next_index = item_index + plan.items_in_flight();
    if (next_index < plan.num_items()) {
      const AttentionItem& next = plan.items()[next_index];
      next_item_chunk_ = ChunkFor(plan.rows()[next.first_row].position / layout_.page_size,
                                  next.first_key / layout_.page_size,
                                  plan.sequences()[next.sequence].kv, next.kv_head);
    }
  }

  AttentionCounters Run(const float* q, float* out, float* workspace) {
    q_ = q;
    // Rows of several sequences see ranges of keys in any order.
    if (item_.run != AttentionItem::kNone) PrepareQueries(0, rows_.num_query_rows());
    const uint32_t first_split = item_.first_key / kSplitTokens;
    const uint32_t last_split = (item_.end_key - 1) / kSplitTokens;
    // The splits before the first one, if rows see any, are those of a run.
    const bool merges =
        !item_.is_partial && shape_.FirstKey(rows_.first_position()) / kSplitTokens < last_split;
    if (merges) rows_.StartMerged(first_split, workspace);
    for (uint32_t split = first_split; split <= last_split; ++split) {
      StartSplit(split, split == first_split && item_.resumes, workspace);
      WalkSplit(split);
      if (item_.is_partial)
        rows_.SaveSplit(split, workspace);
      else if (merges)
        rows_.MergeSplit();
    }
    if (merges)
      rows_.WriteMerged(out);
    else if (!item_.is_partial)
      rows_.WriteOnlySplit(out);
    return counters_;
  }

 private:
  // Where a row of page `query_page` reads a page of this layer.
  const char* ChunkFor(uint32_t query_page, uint32_t page, const KvView& kv,
                       uint32_t kv_head) const {
    const KvLayout& layout = shape_.ReadsOpen(query_page, page) ? layout_ : shape_.sealed.layout;
    return reinterpret_cast<const char*>(shape_.PageFor(query_page, page, kv)) +
           layout.ChunkOffset(layer_, kv_head);
  }
  const char* ChunkOf(uint32_t page) const {
    return ChunkFor(query_page_, page, kv_, item_.kv_head);
  }

  void PrepareQueries(uint32_t start, uint32_t end) {
    rows_.PrepareQueries(q_, start, end);
    first_unprepared_ = end;
  }

  void StartSplit(uint32_t split, bool resumes, float* workspace) {
    first_fresh_ = rows_.num_query_rows();
    if (resumes) return rows_.ResumeSplit(split, workspace);
    rows_.StartSplit();
    if (item_.run != AttentionItem::kNone)
      rows_.ClearValues(0, first_fresh_);
    else
      first_fresh_ = 0;  // a tile's first step writes o
  }

  void WalkSplit(uint32_t split) {
    const uint64_t split_end = (uint64_t{split} + 1) * kSplitTokens;
    const uint32_t split_start = split * kSplitTokens;
    const uint32_t end =
        item_.end_key < split_end ? item_.end_key : static_cast<uint32_t>(split_end);
    uint32_t key = item_.first_key > split_start ? item_.first_key : split_start;
    const uint32_t last_page = (item_.end_key - 1) / layout_.page_size;
    while (key < end) {
      const uint32_t page = key / layout_.page_size;
      const uint64_t page_end = (uint64_t{page} + 1) * layout_.page_size;
      const uint32_t step_end = page_end < end ? static_cast<uint32_t>(page_end) : end;
      // The step starts where page and split both have begun, whatever the rows see of it.
      const uint32_t page_start = page * layout_.page_size;
      const uint32_t step = page_start > split_start ? page_start : split_start;
      Ahead ahead = {.next = nullptr, .next2 = nullptr, .line_bytes = 64};
      ahead.next = page < last_page ? ChunkOf(page + 1) : next_item_chunk_;
      ahead.next2 = page + 1 < last_page ? ChunkOf(page + 2) : next_item_chunk_;
      if (ahead.next == nullptr) ahead.next = ChunkOf(page);
      if (ahead.next2 == nullptr) ahead.next2 = ahead.next;
      ++counters_.chunks_read;
      OpenStep(page, step - page_start, step, step_end, ahead);
      WalkTiles(step, step_end, ahead);
      key = step_end;
    }
  }

  // Makes K and V of keys [step, step_end) ready, from token `token` of their page on.
  void OpenStep(uint32_t page, uint32_t token, uint32_t step, uint32_t step_end, Ahead& ahead) {
    const uint32_t visible = shape_.FirstKey(rows_.first_position());
    const StepTokens tokens = {.first = token,
                               .num = step_end - step,
                               .first_visible = visible > step ? visible - step : 0};
    if (shape_.ReadsOpen(query_page_, page)) {
      const KvForm open = {layout_, shape_.k_codec, shape_.v_codec};
      step_ = OpenPanels(open, ChunkOf(page), tokens, at_, scratch_);
      return;
    }
    step_ = OpenPanels(shape_.sealed, ChunkOf(page), tokens, at_, scratch_);
    // The next chunk is probably sealed too: it is fetched over as many lines as are read of this
    // one's panels.
    const size_t panel_bytes = size_t{layout_.page_size} * (layout_.head_dim_k * step_.k.bytes() +
                                                            layout_.head_dim_v * step_.v.bytes());
    ahead.line_bytes = shape_.sealed.layout.chunk_bytes * 64 / panel_bytes;
  }

  void StandStill(Ahead& ahead) const {
    ahead.next = ahead.next2 = reinterpret_cast<const char*>(scratch_ + at_.max);
    ahead.line_bytes = 0;
  }

  // All tiles over one step, keys [step, step_end).
  void WalkTiles(uint32_t step, uint32_t step_end, Ahead ahead) {
    // Most steps lie before all rows, and inside the window of all.
    const bool all_see_all =
        rows_.first_position() + 1 >= step_end && shape_.FirstKey(rows_.last_position()) <= step;
    const Tiling& tiling = all_see_all ? whole_ : by_position_;
    StepRows rows;
    for (uint32_t block = 0; block < tiling.num_blocks; ++block) {
      const uint32_t first_row = tiling.FirstRow(block), last_row = tiling.FirstRow(block + 1);
      if (all_see_all)
        SetWhole(step_end - step, rows);
      else
        SetRanges(first_row, last_row, step, step_end, rows);
      if (rows.end == 0) continue;
      const uint32_t block_start = first_row * group_, size = (last_row - first_row) * group_;
      uint32_t start = block_start;
      for (uint32_t part = 1; part <= tiling.parts; ++part) {
        const uint32_t end =
            block_start + static_cast<uint32_t>(uint64_t{part} * size / tiling.parts);
        RunTile(start, end, rows, ahead);
        start = end;
        // The next chunk is on its way; the other tiles prefetch what is near already.
        StandStill(ahead);
      }
    }
  }

  // Query rows [start, end) over the step.
  void RunTile(uint32_t start, uint32_t end, const StepRows& rows, Ahead& ahead) {
    if (end > first_unprepared_)
      PrepareQueries(start > first_unprepared_ ? start : first_unprepared_, end);
    // Rows see rising ranges of keys: a row that is passed over comes later only if all after it
    // do.
    float* o = scratch_ + at_.o + start * at_.o_stride;
    const bool is_first = start >= first_fresh_;
    if (end > first_fresh_) {
      if (!is_first) rows_.ClearValues(first_fresh_, end);
      first_fresh_ = end;
    }
    const TileFns& fns = kTileFns[end - start - 1];
    const size_t block = rows.begin / 16 * 16;
    alignas(64) float keep[16];
    const SoftmaxRows softmax = {.num_rows = static_cast<int>(end - start),
                                 .scores = scratch_ + at_.scores,
                                 .max = scratch_ + at_.max + start,
                                 .sums = scratch_ + at_.sums + size_t{start} * 16,
                                 .keep = keep};
    fns.multiply[step_.k.is_half]({.a = scratch_ + at_.q + start * at_.q_stride,
                                   .a_stride = at_.q_stride,
                                   .panels = step_.k.At(block * layout_.head_dim_k),
                                   .panel_step = size_t{16} * layout_.head_dim_k,
                                   .n = layout_.head_dim_k,
                                   .num_columns = (rows.end - block + kVecLanes - 1) / kVecLanes,
                                   .out = softmax.scores + block,
                                   .out_stride = kScoreStride,
                                   .keep = nullptr,
                                   .is_first = false},
                                  ahead);
    if (rows.is_ragged || rows.begin % 16 != 0 || rows.end % 16 != 0)
      Softmax<true>(softmax, rows);
    else
      Softmax<false>(softmax, rows);
    // When the ranges differ, they are counted from the step's start.
    const size_t from = rows.is_ragged ? 0 : rows.begin;
    Product values = {.a = softmax.scores + from,
                      .a_stride = kScoreStride,
                      .panels = step_.v.At(from * 16),
                      .panel_step = step_.v_panel_step,
                      .n = rows.end - from,
                      .num_columns = layout_.head_dim_v / 16 * kVecs,
                      .out = o,
                      .out_stride = at_.o_stride,
                      .keep = keep,
                      .is_first = is_first};
    if (rows.is_ragged)
      fns.multiply_ragged[step_.v.is_half](values, rows);
    else
      fns.multiply[step_.v.is_half](values, ahead);
    if (layout_.head_dim_v % 16 == 0) return;
    values.panels = step_.narrow_v + from * 16;
    values.out += values.num_columns * kVecLanes;
    values.num_columns = kVecs;
    if (rows.is_ragged)
      fns.multiply_ragged[0](values, rows);
    else
      fns.multiply[0](values, ahead);
  }

  static void SetWhole(uint32_t num_tokens, StepRows& rows) {
    for (uint32_t r = 0; r < kTileRows; ++r) rows.first[r] = 0, rows.last[r] = num_tokens;
    rows.begin = 0;
    rows.end = num_tokens;
    rows.is_ragged = false;
  }

  // What item rows [first_row, last_row), with as many heads as a tile has of each, see of a step.
  void SetRanges(uint32_t first_row, uint32_t last_row, uint32_t step, uint32_t step_end,
                 StepRows& rows) const {
    const uint32_t heads = group_ < kTileRows ? group_ : kTileRows;
    rows.begin = rows.end = 0;
    rows.is_ragged = false;
    for (uint32_t row = first_row, r = 0; row < last_row; ++row) {
      const uint32_t position = rows_.PositionOf(row);
      const uint32_t visible = shape_.FirstKey(position);
      const uint32_t first = visible > step ? visible : step;
      const uint32_t last = position < step_end ? position + 1 : step_end;
      const bool sees = first < last;
      if (sees) {
        if (rows.end == 0 || first - step < rows.begin) rows.begin = first - step;
        if (last - step > rows.end) rows.end = last - step;
      }
      for (uint32_t head = 0; head < heads; ++head, ++r) {
        rows.first[r] = sees ? first - step : 0;
        rows.last[r] = sees ? last - step : 0;
      }
      rows.is_ragged =
          rows.is_ragged || rows.first[r - 1] != rows.first[0] || rows.last[r - 1] != rows.last[0];
    }
  }

  const AttentionShape& shape_;
  const KvLayout& layout_;
  const AttentionItem& item_;
  const KvView kv_;
  const uint32_t group_;
  const Tiling whole_, by_position_;
  const uint32_t layer_;
  ItemRows rows_;
  const uint32_t query_page_;  // of all rows, or in a run of some of them: it reads as all do
  const ScratchLayout& at_;
  float* const scratch_;
  const char* next_item_chunk_ = nullptr;
  AttentionCounters counters_;
  const float* q_ = nullptr;
  uint32_t first_unprepared_ = 0;  // the first query row whose q is not scaled yet
  uint32_t first_fresh_ = 0;       // the first that has no o in the split in progress
  StepPanels step_;
};

AttentionCounters RunItem(const AttentionPlan& plan, uint32_t item, uint32_t layer, const float* q,
                          float* out, float* workspace, float* scratch) {
  return ItemWalk(plan, item, layer, scratch).Run(q, out, workspace);
}

}  // namespace HWY_NAMESPACE
}  // namespace quire
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
