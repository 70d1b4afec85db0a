#include "model/forward.h"

#include <algorithm>
#include <atomic>
#include <utility>
#include <vector>

#include "attention/kernels.h"
#include "base/errors.h"
#include "base/memory.h"
#include "linear/kernels.h"
#include "model/forward_buffers.h"
#include "model/product_items.h"
#include "model/rope_angles.h"
#include "model/step_plan.h"

namespace quire {
namespace {

// Where a step has at most so many values in its rows (or one row), whoever ends a stage last does
// the work over rows that follows: that takes less time than a barrier more.
constexpr int kTailValues = 16 << 10;
// Rows of an item of the stages that walk over rows.
constexpr int kItemRows = 8;
int NumItems(int count, int per_item) { return (count + per_item - 1) / per_item; }

}  // namespace

// Everything one ForwardPass owns, and the stages of a step. The members named Stage... are called
// by every worker of the team, in the same order, and end with a barrier.
class ForwardPass::Step {
 public:
  Step(const Model& model, const ForwardOptions& options, int num_threads, ForwardBuffers buffers)
      : model_(model),
        shape_(model.shape()),
        architecture_(model.architecture()),
        options_(options),
        linear_(GetLinearKernels(options.instruction_set)),
        attention_(GetAttentionKernels(options.instruction_set)),
        items_(linear_, num_threads),
        plan_(shape_, options, num_threads),
        buffers_(std::move(buffers)),
        scratch_(num_threads),
        head_parts_done_(static_cast<size_t>(shape_.num_kv_heads)) {
    for (const RopeShape& rope : shape_.ropes)
      ropes_.emplace_back(rope, model.weights().rope_freqs);
  }

  Status Run(ThreadTeam& team, std::span<const ForwardSequence> sequences, float* logits) {
    QUIRE_CHECK(team.num_threads() == static_cast<int>(scratch_.size()));
    QUIRE_RETURN_IF_ERROR(BuildPlan(sequences));
    bad_layer_.store(-1, std::memory_order_relaxed);
    team.Run([&](int worker) {
      StageEmbed(team);
      for (int layer = 0; layer < shape_.num_layers; ++layer) RunLayer(team, worker, layer);
      if (logits != nullptr && !plan_.logit_rows().empty()) ComputeLogits(team, logits);
    });
    if (const int layer = bad_layer_.load(); layer >= 0)
      return NonFinite(
          "K or V of layer {} holds a NaN or infinity: the weights or the prompt are damaged, or "
          "the values are out of this model's range",
          layer);
    return OkStatus();
  }

  uint64_t num_saturated() const { return num_saturated_.load(std::memory_order_relaxed); }
  uint64_t num_chunks_read() const { return num_chunks_read_.load(std::memory_order_relaxed); }
  uint64_t buffer_bytes() const { return buffers_.memory.size() + workspace_.size(); }

 private:
  Status BuildPlan(std::span<const ForwardSequence> sequences) {
    plan_.Build(sequences);
    num_rows_ = plan_.num_rows();
    QUIRE_CHECK(num_rows_ > 0 && num_rows_ <= static_cast<int>(options_.max_rows));
    is_small_ = num_rows_ == 1 || num_rows_ * shape_.embedding_length <= kTailValues;
    QUIRE_RETURN_IF_ERROR(Grow(workspace_, plan_.workspace_floats()));
    for (AnonymousMemory& scratch : scratch_)
      QUIRE_RETURN_IF_ERROR(Grow(scratch, plan_.scratch_floats()));
    return OkStatus();
  }

  static Status Grow(AnonymousMemory& memory, size_t num_floats) {
    const size_t bytes = num_floats * sizeof(float);
    if (memory.size() >= bytes) return OkStatus();
    QUIRE_ASSIGN_OR_RETURN(memory, AnonymousMemory::Reserve(bytes + bytes / 2));
    return OkStatus();
  }

  void RunLayer(ThreadTeam& team, int worker, int index) {
    const std::span<const LayerWeights> layers = model_.weights().layers;
    const LayerWeights& layer = layers[index];
    const bool sandwich = architecture_.norm_placement == NormPlacement::kSandwich;
    const float* attention_norm = sandwich ? layer.post_attention_norm.data() : nullptr;
    const float* ffn_norm = sandwich ? layer.post_ffw_norm.data() : nullptr;
    const float* next_norm =
        index + 1 < shape_.num_layers ? layers[index + 1].attn_norm.data() : nullptr;

    StageQkv(team, index, layer);
    StageAttend(team, worker, index);
    StageBranch(team, Attended(), layer.attn_output, attention_norm, layer.ffn_norm.data());
    StageGateUp(team, layer);
    StageBranch(team, Gate(), layer.ffn_down, ffn_norm, next_norm);
  }

  // What the products read.
  Activations Normed(int num_rows) {
    return Describe(buffers_.normed, num_rows, shape_.embedding_length, buffers_.int8);
  }
  Activations Attended() {
    return Describe(buffers_.attended, num_rows_, shape_.attention_columns(), buffers_.int8);
  }
  Activations Gate() {
    return Describe(buffers_.gate, num_rows_, shape_.feed_forward_length, buffers_.gate_int8);
  }

  Activations Describe(const float* rows, int num_rows, int num_cols, Int8Buffer& int8) {
    Activations x{.num_rows = num_rows,
                  .num_cols = num_cols,
                  .rows = rows,
                  .row_stride = num_cols,
                  .int8 = {}};
    if (options_.activations == ActivationForm::kInt8 && num_cols % kActivationBlock == 0)
      x.int8 = int8.Rows(num_cols);
    return x;
  }

  // Row `source` of `hidden`, normalised into row `row` of `normed`, also as codes.
  void NormRow(int source, const float* weight, int row) {
    const int num_cols = shape_.embedding_length;
    const Activations x = Normed(num_rows_);
    linear_.rms_norm(Row(buffers_.hidden, source, num_cols), weight, num_cols, Epsilon(),
                     Row(buffers_.normed, row, num_cols));
    if (x.int8.codes != nullptr) linear_.quantise_rows(x.rows, num_cols, row, row + 1, x.int8);
  }

  // Runs item(i) for all items, then tail(begin, end) over the rows. In a small step whoever ends
  // the last item does the tail; in others it is a stage of its own.
  template <class Item, class Tail>
  void StageWithTail(ThreadTeam& team, uint32_t num_items, Item&& item, Tail&& tail) {
    if (!is_small_) {
      team.ForEach(num_items, item);
      return StageRows(team, num_rows_, tail);
    }
    team.ForEach(num_items, [&](uint32_t i) {
      item(i);
      if (items_done_.fetch_add(1, std::memory_order_acq_rel) + 1 < num_items) return;
      items_done_.store(0, std::memory_order_relaxed);  // for the next stage, behind the barrier
      tail(0, num_rows_);
    });
  }

  template <class Work>
  void StageRows(ThreadTeam& team, int num_rows, Work&& work) {
    team.ForEach(NumItems(num_rows, kItemRows), [&](uint32_t item) {
      const int begin = static_cast<int>(item) * kItemRows;
      work(begin, std::min(begin + kItemRows, num_rows));
    });
  }

  void StageEmbed(ThreadTeam& team) {
    const PackedMatrix& table = model_.weights().token_embd.matrix;
    const int num_cols = shape_.embedding_length, pairs = ropes_[0].num_pairs();
    const auto scale = static_cast<float>(shape_.embedding_scale);
    StageRows(team, num_rows_, [&](int begin, int end) {
      for (int row = begin; row < end; ++row) {
        float* hidden = Row(buffers_.hidden, row, num_cols);
        table.DequantiseRow(plan_.token(row), hidden);
        if (scale != 1)
          for (int i = 0; i < num_cols; ++i) hidden[i] *= scale;
        for (int i = 0; i < static_cast<int>(ropes_.size()); ++i)
          ropes_[i].Compute(plan_.position(row), AnglesOf(buffers_.cos, row, i, pairs),
                            AnglesOf(buffers_.sin, row, i, pairs));
        NormRow(row, model_.weights().layers[0].attn_norm.data(), row);
      }
    });
  }

  // q, k and v of all rows; then head norms and rope, and K and V go to their pages.
  void StageQkv(ThreadTeam& team, int index, const LayerWeights& layer) {
    const Activations x = Normed(num_rows_);
    const Product products[] = {
        {&layer.attn_q, buffers_.q}, {&layer.attn_k, buffers_.k}, {&layer.attn_v, buffers_.v}};
    // Rows of each product that belong to one KV head.
    const int head_rows[] = {shape_.group_size() * shape_.head_dim_k, shape_.head_dim_k,
                             shape_.head_dim_v};
    const bool is_small = num_rows_ * (head_rows[0] + head_rows[1] + head_rows[2]) <= kTailValues;
    if (!is_small && num_rows_ > 1) {
      StageMultiply(team, x, products);
      const auto heads = static_cast<uint32_t>(shape_.num_kv_heads);
      return team.ForEach(static_cast<uint32_t>(plan_.appends().size()) * heads, [&](uint32_t i) {
        RotateAndAppend(index, static_cast<int>(i % heads), plan_.appends()[i / heads]);
      });
    }
    // Whoever ends the last item that has rows of a head goes on with that head.
    team.ForEach(items_.Count(products), [&](uint32_t item) {
      const auto [p, begin, end] = items_.Multiply(x, products, item);
      for (int head = begin / head_rows[p]; head * head_rows[p] < end; ++head) {
        uint32_t num_parts = 0;
        for (int i = 0; i < 3; ++i)
          num_parts += items_.CountOver(products[i].layer->matrix, head * head_rows[i],
                                        (head + 1) * head_rows[i]);
        const std::atomic_ref<uint32_t> done(head_parts_done_[static_cast<size_t>(head)]);
        if (done.fetch_add(1, std::memory_order_acq_rel) + 1 < num_parts) continue;
        done.store(0, std::memory_order_relaxed);  // for the next layer, behind barriers
        for (const StepPlan::Append& append : plan_.appends()) RotateAndAppend(index, head, append);
      }
    });
  }

  void StageMultiply(ThreadTeam& team, const Activations& x, std::span<const Product> products) {
    team.ForEach(items_.Count(products),
                 [&](uint32_t item) { items_.Multiply(x, products, item); });
  }

  // The residual stream takes a branch's last product: += layer(x), or += norm(layer(x)) with
  // `own_norm`. Then `next_norm`, unless null, makes of it what the next products read.
  void StageBranch(ThreadTeam& team, const Activations& x, const LinearLayer& layer,
                   const float* own_norm, const float* next_norm) {
    const int num_cols = shape_.embedding_length;
    const Product products[] = {{&layer, own_norm != nullptr ? buffers_.normed : buffers_.hidden,
                                 /*accumulate=*/own_norm == nullptr}};
    if (own_norm == nullptr && next_norm == nullptr) return StageMultiply(team, x, products);
    StageWithTail(
        team, items_.Count(products), [&](uint32_t item) { items_.Multiply(x, products, item); },
        [&](int begin, int end) {
          for (int row = begin; row < end; ++row) {
            if (own_norm != nullptr)
              linear_.add_rms_norm(Row(buffers_.normed, row, num_cols), own_norm, num_cols,
                                   Epsilon(), Row(buffers_.hidden, row, num_cols));
            if (next_norm != nullptr) NormRow(row, next_norm, row);
          }
        });
  }

  // For one KV head and its query heads.
  void RotateAndAppend(int index, int head, const StepPlan::Append& append) {
    const SequenceRows& sequence = plan_.sequences()[append.sequence];
    const uint32_t first_row = sequence.first_row + append.row_offset;
    const LayerWeights& layer = model_.weights().layers[index];
    const int head_dim = shape_.head_dim_k, group = shape_.group_size();
    for (uint32_t row = first_row; row < first_row + append.num_rows; ++row) {
      float* q = Row(buffers_.q, row, shape_.q_rows()) + head * group * head_dim;
      TurnHeads(index, row, q, group, layer.attn_q_norm.data());
      float* k = Row(buffers_.k, row, shape_.k_rows()) + head * head_dim;
      TurnHeads(index, row, k, 1, layer.attn_k_norm.data());
    }
    const AppendResult result = attention_.append(
        options_.kv_layout, options_.kv_codec, options_.kv_codec, static_cast<uint32_t>(index),
        static_cast<uint32_t>(head), sequence.kv, sequence.first_position + append.row_offset,
        append.num_rows, Row(buffers_.k, first_row, shape_.k_rows()) + head * head_dim,
        shape_.k_rows(), Row(buffers_.v, first_row, shape_.v_rows()) + head * shape_.head_dim_v,
        shape_.v_rows());
    int none = -1;  // the first layer counts: later ones inherit its trouble
    if (result.non_finite)
      bad_layer_.compare_exchange_strong(none, index, std::memory_order_relaxed);
    if (result.num_saturated > 0)
      num_saturated_.fetch_add(result.num_saturated, std::memory_order_relaxed);
  }

  void TurnHeads(int index, size_t row, float* heads, int num_heads, const float* norm) {
    const int head_dim = shape_.head_dim_k;
    if (architecture_.head_norm == HeadNorm::kRms)
      for (float* head = heads; head < heads + num_heads * head_dim; head += head_dim)
        linear_.rms_norm(head, norm, head_dim, Epsilon(), head);
    const int rope = shape_.layers[index].rope, pairs = ropes_[rope].num_pairs();
    linear_.rope(heads, num_heads, head_dim, 2 * pairs, AnglesOf(buffers_.cos, row, rope, pairs),
                 AnglesOf(buffers_.sin, row, rope, pairs), architecture_.rope_pairs);
  }

  void StageAttend(ThreadTeam& team, int worker, int layer) {
    auto* workspace = reinterpret_cast<float*>(workspace_.data());
    auto* scratch = reinterpret_cast<float*>(scratch_[worker].data());
    WindowPlan& window = plan_.of_layer(layer);
    const AttentionPlan& plan = window.plan();
    const Activations x = Attended();
    // The columns of an item are whole blocks of codes, but in models with odd heads.
    const int columns = shape_.group_size() * shape_.head_dim_v;
    const bool by_item = columns % kActivationBlock == 0, coded = x.int8.codes != nullptr;
    const auto end_rows = [&](const auto& item) {
      if (!coded || !by_item) return;
      const auto row =
          static_cast<int>(plan.sequences()[item.sequence].first_row + item.row_offset);
      const int block = static_cast<int>(item.kv_head) * columns / kActivationBlock;
      linear_.quantise_blocks(x.rows, x.row_stride, row, row + static_cast<int>(item.num_rows),
                              block, block + columns / kActivationBlock, x.int8);
    };
    uint64_t chunks = 0;
    const auto run_item = [&](uint32_t i) {
      chunks += attention_
                    .run_item(plan, i, static_cast<uint32_t>(layer), buffers_.q, buffers_.attended,
                              workspace, scratch)
                    .chunks_read;
      if (!plan.items()[i].is_partial) return end_rows(plan.items()[i]);
      const int merge = window.FinishPart(i);
      if (merge < 0) return;
      attention_.merge_item(plan, static_cast<uint32_t>(merge), workspace, buffers_.attended,
                            scratch);
      end_rows(plan.merge_items()[static_cast<size_t>(merge)]);
    };
    if (!coded || by_item) {
      team.ForEach(plan.num_items(), run_item);
    } else {
      StageWithTail(team, plan.num_items(), run_item, [&](int begin, int end) {
        linear_.quantise_rows(x.rows, x.row_stride, begin, end, x.int8);
      });
    }
    num_chunks_read_.fetch_add(chunks, std::memory_order_relaxed);
  }

  // gate = activation(gate x) * (up x), in the form that the next product reads: an item computes
  // the same columns of both, whole blocks of codes.
  void StageGateUp(ThreadTeam& team, const LayerWeights& layer) {
    constexpr int kUnit = kActivationBlock / PackedMatrix::kPanelRows;
    const int num_cols = shape_.feed_forward_length;
    const Activations x = Normed(num_rows_), out = Gate();
    const Product gate{&layer.ffn_gate, buffers_.gate}, up{&layer.ffn_up, buffers_.up};
    const auto activate = architecture_.activation == Activation::kGeluGate ? linear_.gelu_multiply
                                                                            : linear_.silu_multiply;
    const int num_panels = layer.ffn_gate.matrix.num_panels();
    const int units = NumItems(items_.PanelsPerItem(layer.ffn_gate.matrix) / 2, kUnit);
    const int per_item = std::max(1, units) * kUnit;
    team.ForEach(NumItems(num_panels, per_item), [&](uint32_t item) {
      const int begin = static_cast<int>(item) * per_item;
      const int end = std::min(begin + per_item, num_panels);
      for (const Product& product : {gate, up}) items_.MultiplyPanels(x, product, begin, end);
      const int first = begin * PackedMatrix::kPanelRows;
      const int last = std::min(end * PackedMatrix::kPanelRows, num_cols);
      for (int row = 0; row < num_rows_; ++row) {
        float* values = Row(buffers_.gate, row, num_cols) + first;
        activate(values, Row(buffers_.up, row, num_cols) + first, values, last - first);
      }
      if (out.int8.codes != nullptr)
        linear_.quantise_blocks(out.rows, num_cols, 0, num_rows_, first / kActivationBlock,
                                last / kActivationBlock, out.int8);
    });
  }

  void ComputeLogits(ThreadTeam& team, float* logits) {
    const std::span<const uint32_t> rows = plan_.logit_rows();
    StageRows(team, static_cast<int>(rows.size()), [&](int begin, int end) {
      for (int i = begin; i < end; ++i)
        NormRow(static_cast<int>(rows[i]), model_.weights().output_norm.data(), i);
    });
    const Product output[] = {{&model_.weights().output, logits}};
    StageMultiply(team, Normed(static_cast<int>(rows.size())), output);
  }

  static float* Row(float* rows, size_t row, int num_cols) {
    return rows + row * static_cast<size_t>(num_cols);
  }
  float* AnglesOf(float* angles, size_t row, int rope, int pairs) const {
    return angles + (row * ropes_.size() + static_cast<size_t>(rope)) * static_cast<size_t>(pairs);
  }
  float Epsilon() const { return static_cast<float>(shape_.rms_epsilon); }

  const Model& model_;
  const ModelShape& shape_;
  const Architecture& architecture_;
  const ForwardOptions options_;
  const LinearKernels& linear_;
  const AttentionKernels& attention_;
  const ProductItems items_;
  std::vector<RopeAngles> ropes_;
  StepPlan plan_;
  ForwardBuffers buffers_;
  std::vector<AnonymousMemory> scratch_;  // of each worker, for the attention kernels
  AnonymousMemory workspace_;

  // Of the step.
  int num_rows_ = 0;
  bool is_small_ = false;
  std::atomic<uint32_t> items_done_{0};
  std::vector<uint32_t> head_parts_done_;  // of each KV head; atomic while a step runs
  std::atomic<int> bad_layer_{-1};

  std::atomic<uint64_t> num_saturated_{0}, num_chunks_read_{0};
};

ForwardPass::ForwardPass(std::unique_ptr<Step> step) : step_(std::move(step)) {}
ForwardPass::~ForwardPass() = default;

StatusOr<std::unique_ptr<ForwardPass>> ForwardPass::Create(const Model& model,
                                                           const ForwardOptions& options,
                                                           int num_threads) {
  QUIRE_ASSIGN_OR_RETURN(ForwardBuffers buffers,
                         ForwardBuffers::Create(model.shape(), options.max_rows));
  return std::unique_ptr<ForwardPass>(
      new ForwardPass(std::make_unique<Step>(model, options, num_threads, std::move(buffers))));
}

Status ForwardPass::Run(ThreadTeam& team, std::span<const ForwardSequence> sequences,
                        float* logits) {
  return step_->Run(team, sequences, logits);
}

uint64_t ForwardPass::num_saturated() const { return step_->num_saturated(); }
uint64_t ForwardPass::num_chunks_read() const { return step_->num_chunks_read(); }
uint64_t ForwardPass::buffer_bytes() const { return step_->buffer_bytes(); }

}  // namespace quire
