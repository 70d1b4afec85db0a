#include "model/forward.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <utility>
#include <vector>

#include "attention/kernels.h"
#include "attention/plan.h"
#include "base/errors.h"
#include "base/memory.h"
#include "linear/kernels.h"
#include "model/forward_buffers.h"
#include "model/rope_angles.h"

namespace quire {
namespace {

// A step with at most so many rows is normalised and quantised by each worker for itself.
constexpr int kPrivateRows = 2;
// Rows of an item of the stages that walk over rows.
constexpr int kItemRows = 8;
// Weights of an item of a stage of products: long enough a stream for the prefetcher, short enough
// to share out.
constexpr int64_t kItemWeightBytes = 48 << 10;
// Tokens of an item of the stage that rotates and appends.
constexpr uint32_t kAppendRows = 32;

RopePairs PairsOf(RopePairing pairing) {
  return pairing == RopePairing::kInterleaved ? RopePairs::kInterleaved : RopePairs::kHalves;
}

Epilogue EpilogueOf(const LinearLayer& layer, bool accumulate) {
  return {.bias = layer.bias.empty() ? nullptr : layer.bias.data(),
          .scale = layer.scale,
          .scale_after_bias = layer.scale_after_bias,
          .accumulate = accumulate};
}

// out [rows, matrix rows] = or += the layer's product.
struct Product {
  const LinearLayer* layer;
  float* out;
  bool accumulate = false;
};

// Panels that one item takes of `matrix`.
int PanelsPerItem(const PackedMatrix& matrix, int num_threads) {
  const int64_t by_bytes = std::max<int64_t>(1, kItemWeightBytes / matrix.panel_bytes());
  const int by_threads = std::max(1, matrix.num_panels() / (4 * num_threads));
  return static_cast<int>(std::min<int64_t>(by_bytes, by_threads));
}

int NumItems(int count, int per_item) { return (count + per_item - 1) / per_item; }

}  // namespace

// Everything one ForwardPass owns, and the stages of a step. The members named Stage... are called
// by every worker of the team, in the same order.
class ForwardPass::Step {
 public:
  Step(const Model& model, const ForwardOptions& options, int num_threads, ForwardBuffers buffers)
      : model_(model),
        shape_(model.shape()),
        options_(options),
        linear_(GetLinearKernels(options.instruction_set)),
        attention_(GetAttentionKernels(options.instruction_set)),
        rope_(shape_.rope, model.weights().rope_freqs),
        buffers_(std::move(buffers)),
        workers_(num_threads) {
    attention_shape_ = {.layout = options.kv_layout,
                        .k_codec = options.kv_codec,
                        .v_codec = options.kv_codec,
                        .num_q_heads = static_cast<uint32_t>(shape_.num_q_heads),
                        .num_kv_heads = static_cast<uint32_t>(shape_.num_kv_heads),
                        .scale = static_cast<float>(1.0 / std::sqrt(shape_.head_dim_k)),
                        .window = static_cast<uint32_t>(shape_.sliding_window)};
    for (Worker& worker : workers_) {
      worker.normed.resize(size_t{kPrivateRows} * shape_.embedding_length + 16);
      worker.int8 = Int8Buffer(kPrivateRows, WidestInput(shape_));
    }
  }

  Status Run(ThreadTeam& team, std::span<const ForwardSequence> sequences, float* logits) {
    QUIRE_CHECK(team.num_threads() == static_cast<int>(workers_.size()));
    QUIRE_RETURN_IF_ERROR(BuildPlan(sequences));
    bad_layer_.store(-1, std::memory_order_relaxed);
    team.Run([&](int worker) {
      StageEmbed(team);
      for (int layer = 0; layer < shape_.num_layers; ++layer) RunLayer(team, worker, layer);
      if (logits != nullptr && !logit_rows_.empty()) ComputeLogits(team, worker, logits);
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
  // What one worker has for itself.
  struct Worker {
    std::vector<float> normed;
    Int8Buffer int8;
    AnonymousMemory scratch;  // of the attention kernels
  };

  // Some tokens of one sequence and one KV head, to be rotated and appended.
  struct AppendItem {
    uint32_t sequence;
    uint32_t kv_head;
    uint32_t row_offset;  // within the sequence's rows
    uint32_t num_rows;
  };

  Status BuildPlan(std::span<const ForwardSequence> sequences) {
    row_tokens_.clear();
    row_positions_.clear();
    logit_rows_.clear();
    sequences_.clear();
    appends_.clear();
    for (const ForwardSequence& sequence : sequences) {
      const auto num_rows = static_cast<uint32_t>(sequence.tokens.size());
      const auto first_row = static_cast<uint32_t>(row_tokens_.size());
      const auto index = static_cast<uint32_t>(sequences_.size());
      sequences_.push_back({.kv = sequence.kv,
                            .first_row = first_row,
                            .num_rows = num_rows,
                            .first_position = sequence.first_position});
      for (uint32_t i = 0; i < num_rows; ++i) {
        row_tokens_.push_back(sequence.tokens[i]);
        row_positions_.push_back(sequence.first_position + i);
        if (i + sequence.num_logits >= num_rows) logit_rows_.push_back(first_row + i);
      }
      for (uint32_t head = 0; head < attention_shape_.num_kv_heads; ++head)
        for (uint32_t row = 0; row < num_rows; row += kAppendRows)
          appends_.push_back({index, head, row, std::min(kAppendRows, num_rows - row)});
    }
    num_rows_ = static_cast<int>(row_tokens_.size());
    QUIRE_CHECK(num_rows_ > 0 && row_tokens_.size() <= options_.max_rows);
    plan_.Build(attention_shape_, sequences_, static_cast<int>(workers_.size()));
    QUIRE_RETURN_IF_ERROR(Grow(workspace_, plan_.workspace_floats()));
    for (Worker& worker : workers_)
      QUIRE_RETURN_IF_ERROR(Grow(worker.scratch, plan_.scratch_floats()));
    return OkStatus();
  }

  static Status Grow(AnonymousMemory& memory, size_t num_floats) {
    const size_t bytes = num_floats * sizeof(float);
    if (memory.size() >= bytes) return OkStatus();
    QUIRE_ASSIGN_OR_RETURN(memory, AnonymousMemory::Reserve(bytes + bytes / 2));
    return OkStatus();
  }

  void StageEmbed(ThreadTeam& team) {
    const PackedMatrix& table = model_.weights().token_embd.matrix;
    const int pairs = rope_.num_pairs();
    team.ForEach(NumItems(num_rows_, kItemRows), [&](uint32_t item) {
      const int begin = static_cast<int>(item) * kItemRows;
      for (int row = begin; row < std::min(begin + kItemRows, num_rows_); ++row) {
        table.DequantiseRow(row_tokens_[row], Row(buffers_.hidden, row, shape_.embedding_length));
        rope_.Compute(row_positions_[row], Row(buffers_.cos, row, pairs),
                      Row(buffers_.sin, row, pairs));
      }
    });
  }

  void RunLayer(ThreadTeam& team, int worker, int index) {
    const LayerWeights& layer = model_.weights().layers[index];
    Activations x = Normed(team, worker, layer.attn_norm.data(), {});
    const Product qkv[] = {
        {&layer.attn_q, buffers_.q}, {&layer.attn_k, buffers_.k}, {&layer.attn_v, buffers_.v}};
    StageMultiply(team, x, qkv);
    StageRotateAndAppend(team, static_cast<uint32_t>(index));
    StageAttend(team, worker, static_cast<uint32_t>(index));
    x = Quantised(team, worker, buffers_.attended, shape_.attention_columns());
    const Product output[] = {{&layer.attn_output, buffers_.hidden, /*accumulate=*/true}};
    StageMultiply(team, x, output);
    x = Normed(team, worker, layer.ffn_norm.data(), {});
    StageGateUp(team, x, layer);
    x = Quantised(team, worker, buffers_.gate, shape_.feed_forward_length);
    const Product down[] = {{&layer.ffn_down, buffers_.hidden, /*accumulate=*/true}};
    StageMultiply(team, x, down);
  }

  void ComputeLogits(ThreadTeam& team, int worker, float* logits) {
    const Activations x = Normed(team, worker, model_.weights().output_norm.data(), logit_rows_);
    const Product output[] = {{&model_.weights().output_matrix(), logits}};
    StageMultiply(team, x, output);
  }

  // Rows of `hidden` (all, or those of `row_index`), normalised, in the form that products read.
  Activations Normed(ThreadTeam& team, int worker, const float* weight,
                     std::span<const uint32_t> row_index) {
    const int num_rows = row_index.empty() ? num_rows_ : static_cast<int>(row_index.size());
    const int num_cols = shape_.embedding_length;
    const bool is_private = num_rows <= kPrivateRows;
    float* normed = is_private ? workers_[worker].normed.data() : buffers_.normed;
    Activations x = Describe(worker, normed, num_rows, num_cols);
    OverRows(team, num_rows, [&](int begin, int end) {
      for (int row = begin; row < end; ++row) {
        const int source = row_index.empty() ? row : static_cast<int>(row_index[row]);
        linear_.rms_norm(Row(buffers_.hidden, source, num_cols), weight, num_cols,
                         static_cast<float>(shape_.rms_epsilon), Row(normed, row, num_cols));
      }
      if (x.int8.codes != nullptr) linear_.quantise_rows(normed, num_cols, begin, end, x.int8);
    });
    return x;
  }

  // `rows` as they are, in the form that products read.
  Activations Quantised(ThreadTeam& team, int worker, const float* rows, int num_cols) {
    const Activations x = Describe(worker, rows, num_rows_, num_cols);
    if (x.int8.codes != nullptr)
      OverRows(team, num_rows_, [&](int begin, int end) {
        linear_.quantise_rows(rows, num_cols, begin, end, x.int8);
      });
    return x;
  }

  Activations Describe(int worker, const float* rows, int num_rows, int num_cols) {
    Activations x;
    x.num_rows = num_rows;
    x.num_cols = num_cols;
    x.rows = rows;
    x.row_stride = num_cols;
    if (options_.activations == ActivationForm::kInt8 && num_cols % kActivationBlock == 0)
      x.int8 = (num_rows <= kPrivateRows ? workers_[worker].int8 : buffers_.int8)
                   .Rows(num_rows, num_cols);
    return x;
  }

  // Calls work(begin, end) over the rows: shared out, or all of them by every worker.
  template <class Work>
  void OverRows(ThreadTeam& team, int num_rows, Work&& work) {
    if (num_rows <= kPrivateRows) return work(0, num_rows);
    team.ForEach(NumItems(num_rows, kItemRows), [&](uint32_t item) {
      const int begin = static_cast<int>(item) * kItemRows;
      work(begin, std::min(begin + kItemRows, num_rows));
    });
  }

  void StageMultiply(ThreadTeam& team, const Activations& x, std::span<const Product> products) {
    uint32_t num_items = 0;
    for (const Product& product : products) num_items += ItemsOf(product.layer->matrix);
    team.ForEach(num_items, [&](uint32_t item) {
      for (const Product& product : products) {
        const uint32_t items = ItemsOf(product.layer->matrix);
        if (item < items) return MultiplyItem(x, product, item);
        item -= items;
      }
    });
  }

  uint32_t ItemsOf(const PackedMatrix& matrix) const {
    return NumItems(matrix.num_panels(), PanelsPerItem(matrix, NumThreads()));
  }

  void MultiplyItem(const Activations& x, const Product& product, uint32_t item) {
    const PackedMatrix& matrix = product.layer->matrix;
    const int per_item = PanelsPerItem(matrix, NumThreads());
    const int begin = static_cast<int>(item) * per_item;
    linear_.multiply(matrix, x, 0, x.num_rows, begin,
                     std::min(begin + per_item, matrix.num_panels()), product.out,
                     matrix.num_rows(), EpilogueOf(*product.layer, product.accumulate));
  }

  void StageRotateAndAppend(ThreadTeam& team, uint32_t layer) {
    const auto group_size = static_cast<int>(attention_shape_.group_size());
    const int pairs = rope_.num_pairs(), head_dim = shape_.head_dim_k;
    const RopePairs kind = PairsOf(model_.architecture().rope_pairing);
    team.ForEach(static_cast<uint32_t>(appends_.size()), [&](uint32_t i) {
      const AppendItem& item = appends_[i];
      const SequenceRows& sequence = sequences_[item.sequence];
      const uint32_t first_row = sequence.first_row + item.row_offset;
      const auto head = static_cast<int>(item.kv_head);
      for (uint32_t row = first_row; row < first_row + item.num_rows; ++row) {
        const float* cos = Row(buffers_.cos, row, pairs);
        const float* sin = Row(buffers_.sin, row, pairs);
        linear_.rope(Row(buffers_.q, row, shape_.q_rows()) + head * group_size * head_dim,
                     group_size, head_dim, shape_.rope.dimension_count, cos, sin, kind);
        linear_.rope(Row(buffers_.k, row, shape_.k_rows()) + head * head_dim, 1, head_dim,
                     shape_.rope.dimension_count, cos, sin, kind);
      }
      const AppendResult result = attention_.append(
          options_.kv_layout, options_.kv_codec, options_.kv_codec, layer, item.kv_head,
          sequence.kv, sequence.first_position + item.row_offset, item.num_rows,
          Row(buffers_.k, first_row, shape_.k_rows()) + head * head_dim, shape_.k_rows(),
          Row(buffers_.v, first_row, shape_.v_rows()) + head * shape_.head_dim_v, shape_.v_rows());
      int none = -1;  // the first layer counts: later ones inherit its trouble
      if (result.non_finite)
        bad_layer_.compare_exchange_strong(none, static_cast<int>(layer),
                                           std::memory_order_relaxed);
      if (result.num_saturated > 0)
        num_saturated_.fetch_add(result.num_saturated, std::memory_order_relaxed);
    });
  }

  void StageAttend(ThreadTeam& team, int worker, uint32_t layer) {
    auto* workspace = reinterpret_cast<float*>(workspace_.data());
    auto* scratch = reinterpret_cast<float*>(workers_[worker].scratch.data());
    uint64_t chunks = 0;
    team.ForEach(plan_.num_items(), [&](uint32_t item) {
      chunks +=
          attention_.run_item(plan_, item, layer, buffers_.q, buffers_.attended, workspace, scratch)
              .chunks_read;
    });
    num_chunks_read_.fetch_add(chunks, std::memory_order_relaxed);
    if (plan_.num_merge_items() == 0) return;
    team.ForEach(plan_.num_merge_items(), [&](uint32_t item) {
      attention_.merge_item(plan_, item, workspace, buffers_.attended, scratch);
    });
  }

  // gate = silu(gate x) * (up x): an item computes the same columns of both.
  void StageGateUp(ThreadTeam& team, const Activations& x, const LayerWeights& layer) {
    const int num_cols = shape_.feed_forward_length;
    const Product gate{&layer.ffn_gate, buffers_.gate}, up{&layer.ffn_up, buffers_.up};
    const int per_item = std::max(1, PanelsPerItem(layer.ffn_gate.matrix, NumThreads()) / 2);
    const int num_panels = layer.ffn_gate.matrix.num_panels();
    team.ForEach(NumItems(num_panels, per_item), [&](uint32_t item) {
      const int begin = static_cast<int>(item) * per_item;
      const int end = std::min(begin + per_item, num_panels);
      for (const Product& product : {gate, up})
        linear_.multiply(product.layer->matrix, x, 0, x.num_rows, begin, end, product.out, num_cols,
                         EpilogueOf(*product.layer, false));
      const int first = begin * PackedMatrix::kPanelRows;
      const int count = std::min(end * PackedMatrix::kPanelRows, num_cols) - first;
      for (int row = 0; row < x.num_rows; ++row) {
        float* values = Row(buffers_.gate, row, num_cols) + first;
        linear_.silu_multiply(values, Row(buffers_.up, row, num_cols) + first, values, count);
      }
    });
  }

  static float* Row(float* rows, size_t row, int num_cols) {
    return rows + row * static_cast<size_t>(num_cols);
  }
  int NumThreads() const { return static_cast<int>(workers_.size()); }

  const Model& model_;
  const ModelShape& shape_;
  const ForwardOptions options_;
  const LinearKernels& linear_;
  const AttentionKernels& attention_;
  const RopeAngles rope_;
  AttentionShape attention_shape_;
  ForwardBuffers buffers_;
  std::vector<Worker> workers_;

  // Of the step.
  int num_rows_ = 0;
  std::vector<TokenId> row_tokens_;
  std::vector<uint32_t> row_positions_;
  std::vector<uint32_t> logit_rows_;
  std::vector<SequenceRows> sequences_;
  std::vector<AppendItem> appends_;
  AttentionPlan plan_;
  AnonymousMemory workspace_;
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
