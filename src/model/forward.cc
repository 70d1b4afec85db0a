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
#include "model/kv_writer.h"
#include "model/product_items.h"
#include "model/rope_angles.h"
#include "model/row_blocks.h"
#include "model/step_plan.h"

namespace quire {
namespace {

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
        writer_(attention_, options.max_rows),
        buffers_(std::move(buffers)),
        scratch_(num_threads) {
    for (const RopeShape& rope : shape_.ropes)
      ropes_.emplace_back(rope, model.weights().rope_freqs);
  }

  Status Run(ThreadTeam& team, std::span<const ForwardSequence> sequences, float* logits) {
    QUIRE_CHECK(team.num_threads() == NumThreads());
    QUIRE_RETURN_IF_ERROR(BuildPlan(sequences));
    writer_.Begin(sequences.size());
    team.Run([&](int worker) {
      StageEmbed(team);
      uint32_t items_before = 0;  // of one block of rows
      for (int layer = 0; layer < shape_.num_layers; ++layer)
        RunLayer(team, worker, layer, items_before);
      if (logits != nullptr && !plan_.logit_rows().empty()) ComputeLogits(team, logits);
    });
    return OkStatus();
  }

  int bad_layer(size_t sequence) const { return writer_.bad_layer(sequence); }
  uint64_t num_saturated() const { return writer_.num_saturated(); }
  uint64_t num_chunks_read() const { return num_chunks_read_.load(std::memory_order_relaxed); }
  uint64_t buffer_bytes() const { return buffers_.memory.size() + workspace_.size(); }

 private:
  Status BuildPlan(std::span<const ForwardSequence> sequences) {
    plan_.Build(sequences);
    num_rows_ = plan_.num_rows();
    QUIRE_CHECK(num_rows_ > 0 && static_cast<uint32_t>(num_rows_) <= options_.max_rows);
    blocks_.Build(num_rows_);
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

  // Five stages, each of which ends with a barrier.
  void RunLayer(ThreadTeam& team, int worker, int index, uint32_t& items_before) {
    const std::span<const LayerWeights> layers = model_.weights().layers;
    const LayerWeights& layer = layers[index];
    // Norms of the branches' own outputs, and the norm of what the next layer reads.
    const bool sandwich = architecture_.norm_placement == NormPlacement::kSandwich;
    const float* attention_norm = sandwich ? layer.post_attention_norm.data() : nullptr;
    const float* ffn_norm = sandwich ? layer.post_ffw_norm.data() : nullptr;
    const bool is_last = index + 1 == shape_.num_layers;
    const float* next_norm = is_last ? nullptr : layers[index + 1].attn_norm.data();

    StageQkv(team, index, layer, items_before);
    StageAttend(team, worker, index);
    StageBranch(team, Attended(), layer.attn_output, attention_norm, layer.ffn_norm.data(),
                items_before);
    StageGateUp(team, layer);
    StageBranch(team, Gate(), layer.ffn_down, ffn_norm, next_norm, items_before);
  }

  // What the products read.
  Activations Normed(int num_rows) {
    return Describe(buffers_.normed, num_rows, shape_.embedding_length, buffers_.normed_int8);
  }
  Activations Attended() {
    return Describe(buffers_.attended, num_rows_, shape_.attention_columns(), buffers_.branch_int8);
  }
  Activations Gate() {
    return Describe(buffers_.gate, num_rows_, shape_.feed_forward_length, buffers_.branch_int8);
  }

  Activations Describe(const float* rows, int num_rows, int num_cols, Int8Buffer& int8) {
    Activations x;
    x.num_rows = num_rows;
    x.num_cols = num_cols;
    x.rows = rows;
    x.row_stride = num_cols;
    if (options_.activations == ActivationForm::kInt8 && num_cols % kActivationBlock == 0)
      x.int8 = int8.Rows(num_rows, num_cols);
    return x;
  }

  // Row `source` of `hidden`, normalised into row `row` of the `num_rows` of `normed`, in the form
  // that products read.
  void NormRow(int source, const float* weight, int row, int num_rows) {
    const int num_cols = shape_.embedding_length;
    const Activations x = Normed(num_rows);
    linear_.rms_norm(Row(buffers_.hidden, source, num_cols), weight, num_cols, Epsilon(),
                     Row(buffers_.normed, row, num_cols));
    if (x.int8.codes != nullptr) linear_.quantise_rows(x.rows, num_cols, row, row + 1, x.int8);
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
        NormRow(row, model_.weights().layers[0].attn_norm.data(), row, num_rows_);
      }
    });
  }

  // q, k and v of all rows; then head norms and rope, and K and V go to their pages.
  void StageQkv(ThreadTeam& team, int index, const LayerWeights& layer, uint32_t& items_before) {
    const Activations x = Normed(num_rows_);
    const Product products[] = {
        {&layer.attn_q, buffers_.q}, {&layer.attn_k, buffers_.k}, {&layer.attn_v, buffers_.v}};
    blocks_.RunStage(
        team, items_.Count(products), items_before,
        [&](int block, uint32_t item) { MultiplyBlock(x, block, products, item); },
        [&](int begin, int end) {
          plan_.ForEachAppend(
              begin, end, [&](const StepPlan::Append& append) { RotateAndAppend(index, append); });
        });
  }

  void MultiplyBlock(const Activations& x, int block, std::span<const Product> products,
                     uint32_t item) {
    items_.Multiply(x, blocks_.Begin(block), blocks_.End(block), products, item);
  }

  // The residual stream takes a branch's last product: += layer(x), or += norm(layer(x)) with
  // `own_norm`. Then `next_norm`, unless null, makes of it what the next products read.
  void StageBranch(ThreadTeam& team, const Activations& x, const LinearLayer& layer,
                   const float* own_norm, const float* next_norm, uint32_t& items_before) {
    const int num_cols = shape_.embedding_length;
    const Product products[] = {{&layer, own_norm != nullptr ? buffers_.normed : buffers_.hidden,
                                 /*accumulate=*/own_norm == nullptr}};
    blocks_.RunStage(
        team, items_.Count(products), items_before,
        [&](int block, uint32_t item) { MultiplyBlock(x, block, products, item); },
        [&](int begin, int end) {
          for (int row = begin; row < end; ++row) {
            if (own_norm != nullptr)
              linear_.add_rms_norm(Row(buffers_.normed, row, num_cols), own_norm, num_cols,
                                   Epsilon(), Row(buffers_.hidden, row, num_cols));
            if (next_norm != nullptr) NormRow(row, next_norm, row, num_rows_);
          }
        });
  }

  void RotateAndAppend(int index, const StepPlan::Append& append) {
    const uint32_t first_row = plan_.sequences()[append.sequence].first_row + append.row_offset;
    const LayerWeights& layer = model_.weights().layers[index];
    for (uint32_t row = first_row; row < first_row + append.num_rows; ++row) {
      TurnHeads(index, row, Row(buffers_.q, row, shape_.q_rows()), shape_.num_q_heads,
                layer.attn_q_norm.data());
      TurnHeads(index, row, Row(buffers_.k, row, shape_.k_rows()), shape_.num_kv_heads,
                layer.attn_k_norm.data());
    }
    writer_.Append(plan_, index, append, Row(buffers_.k, first_row, shape_.k_rows()),
                   Row(buffers_.v, first_row, shape_.v_rows()));
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
    GroupPlan& group = plan_.of_layer(layer);
    const AttentionPlan& plan = group.plan();
    PlanProgress& progress = group.progress();
    const uint32_t index = plan_.index_in_group(layer);
    uint64_t chunks = 0;
    const Activations x = Attended();
    // The columns of a KV head's queries are whole blocks of codes: each item makes its own.
    const bool in_items = shape_.group_size() * shape_.head_dim_v % kActivationBlock == 0;
    const auto finish = [&](const auto& item) {
      if (x.int8.codes == nullptr || !in_items) return;
      const auto first = static_cast<int>(plan.rows()[item.first_row].row);
      const int blocks = shape_.group_size() * shape_.head_dim_v / kActivationBlock;
      const int block = static_cast<int>(item.kv_head) * blocks;
      linear_.quantise_blocks(x.rows, x.row_stride, first, first + static_cast<int>(item.num_rows),
                              block, block + blocks, x.int8);
    };
    const auto run_item = [&](uint32_t item) {
      progress.WaitFor(item, index);
      chunks +=
          attention_.run_item(plan, item, index, buffers_.q, buffers_.attended, workspace, scratch)
              .chunks_read;
      const int merge = progress.Finish(item, index);
      if (!plan.items()[item].is_partial) return finish(plan.items()[item]);
      if (merge < 0) return;
      attention_.merge_item(plan, static_cast<uint32_t>(merge), workspace, buffers_.attended,
                            scratch);
      finish(plan.merge_items()[static_cast<size_t>(merge)]);
    };
    team.ForEach(plan.num_items(), run_item);
    if (x.int8.codes != nullptr && !in_items)
      StageRows(team, num_rows_, [&](int begin, int end) {
        linear_.quantise_rows(x.rows, x.row_stride, begin, end, x.int8);
      });
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
    const int num_units = NumItems(num_panels, kUnit);
    const int64_t unit_bytes =
        kUnit * (layer.ffn_gate.matrix.panel_bytes() + layer.ffn_up.matrix.panel_bytes());
    team.ForEach(items_.CountOf(num_units, unit_bytes), [&](uint32_t item) {
      const auto [first_unit, last_unit] = items_.RangeOf(num_units, unit_bytes, item);
      const int begin = first_unit * kUnit, end = std::min(last_unit * kUnit, num_panels);
      for (const Product& product : {gate, up})
        items_.MultiplyPanels(x, 0, num_rows_, product, begin, end);
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
    const auto num_rows = static_cast<int>(rows.size());
    StageRows(team, num_rows, [&](int begin, int end) {
      for (int i = begin; i < end; ++i)
        NormRow(static_cast<int>(rows[i]), model_.weights().output_norm.data(), i, num_rows);
    });
    const Product output[] = {{&model_.weights().output, logits}};
    const Activations x = Normed(num_rows);
    team.ForEach(items_.Count(output),
                 [&](uint32_t item) { items_.Multiply(x, 0, num_rows, output, item); });
  }

  static float* Row(float* rows, size_t row, int num_cols) {
    return rows + row * static_cast<size_t>(num_cols);
  }
  float* AnglesOf(float* angles, size_t row, int rope, int pairs) const {
    return angles + (row * ropes_.size() + static_cast<size_t>(rope)) * static_cast<size_t>(pairs);
  }
  float Epsilon() const { return static_cast<float>(shape_.rms_epsilon); }
  int NumThreads() const { return static_cast<int>(scratch_.size()); }

  const Model& model_;
  const ModelShape& shape_;
  const Architecture& architecture_;
  const ForwardOptions options_;
  const LinearKernels& linear_;
  const AttentionKernels& attention_;
  const ProductItems items_;
  std::vector<RopeAngles> ropes_;
  StepPlan plan_;
  KvWriter writer_;
  ForwardBuffers buffers_;
  std::vector<AnonymousMemory> scratch_;  // of each worker, for the attention kernels
  AnonymousMemory workspace_;

  // Of the step.
  int num_rows_ = 0;
  RowBlocks blocks_;

  std::atomic<uint64_t> num_chunks_read_{0};
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

int ForwardPass::bad_layer(size_t sequence) const { return step_->bad_layer(sequence); }
uint64_t ForwardPass::num_saturated() const { return step_->num_saturated(); }
uint64_t ForwardPass::num_chunks_read() const { return step_->num_chunks_read(); }
uint64_t ForwardPass::buffer_bytes() const { return step_->buffer_bytes(); }

}  // namespace quire
