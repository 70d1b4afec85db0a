#include "model/weights.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <string>
#include <string_view>

#include "base/errors.h"
#include "base/half.h"

namespace quire {
namespace {

constexpr uint64_t kAlignment = 64;
// Bytes of the bands of all workers together, and the least of one: enough for a read call to cost
// nothing beside its copy, little beside the weights.
constexpr int64_t kAllBandsBytes = int64_t{8} << 20;
constexpr int64_t kLeastBandBytes = int64_t{1} << 16;
constexpr int64_t kMostBandBytes = int64_t{1} << 20;

uint64_t Aligned(uint64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

// Some rows of one matrix: what one worker reads and packs at a time.
struct Band {
  const GgufTensor* tensor;
  PackedMatrix* matrix;
  int tensor_row;  // first of the tensor
  int first_row;   // first of the matrix
  int num_rows;
};

class WeightLoader {
 public:
  WeightLoader(const GgufFile& file, const ModelShape& shape, const Architecture& architecture)
      : file_(file), shape_(shape), architecture_(architecture) {}

  StatusOr<ModelWeights> Load(ThreadTeam& team,
                              const std::function<void(uint64_t, uint64_t)>& progress) {
    weights_.layers.resize(shape_.num_layers);
    band_bytes_ = std::clamp(kAllBandsBytes / team.num_threads(), kLeastBandBytes, kMostBandBytes);
    // The first walk measures, the second places: then the memory is one piece of the exact size.
    QUIRE_RETURN_IF_ERROR(Walk());
    // Panels are filled up to 16 rows; no real model has many matrices of fewer.
    if (used_bytes_ > 2 * file_.size_bytes() + (uint64_t{64} << 20))
      return Unsupported("the weights would take {} bytes of memory, the file has {}", used_bytes_,
                         file_.size_bytes());
    QUIRE_ASSIGN_OR_RETURN(weights_.memory, AnonymousMemory::Reserve(used_bytes_));
    used_bytes_ = 0;
    placing_ = true;
    QUIRE_RETURN_IF_ERROR(Walk());
    QUIRE_RETURN_IF_ERROR(ReadBands(team, progress));
    QUIRE_RETURN_IF_ERROR(file_.CheckUnchanged());
    return std::move(weights_);
  }

 private:
  // Every layer and vector that the architecture may have, in the order of use.
  Status Walk() {
    QUIRE_RETURN_IF_ERROR(AddLinear("token_embd", 0, weights_.token_embd));
    for (int i = 0; i < shape_.num_layers; ++i) {
      LayerWeights& layer = weights_.layers[i];
      QUIRE_RETURN_IF_ERROR(AddNorm("blk.N.attn_norm", i, layer.attn_norm));
      QUIRE_RETURN_IF_ERROR(AddQkv(i, layer));
      QUIRE_RETURN_IF_ERROR(AddNorm("blk.N.attn_q_norm", i, layer.attn_q_norm));
      QUIRE_RETURN_IF_ERROR(AddNorm("blk.N.attn_k_norm", i, layer.attn_k_norm));
      QUIRE_RETURN_IF_ERROR(AddLinear("blk.N.attn_output", i, layer.attn_output));
      QUIRE_RETURN_IF_ERROR(AddNorm("blk.N.post_attention_norm", i, layer.post_attention_norm));
      QUIRE_RETURN_IF_ERROR(AddNorm("blk.N.ffn_norm", i, layer.ffn_norm));
      QUIRE_RETURN_IF_ERROR(AddLinear("blk.N.ffn_gate", i, layer.ffn_gate));
      QUIRE_RETURN_IF_ERROR(AddLinear("blk.N.ffn_up", i, layer.ffn_up));
      QUIRE_RETURN_IF_ERROR(AddLinear("blk.N.ffn_down", i, layer.ffn_down));
      QUIRE_RETURN_IF_ERROR(AddNorm("blk.N.post_ffw_norm", i, layer.post_ffw_norm));
    }
    QUIRE_RETURN_IF_ERROR(AddNorm("output_norm", 0, weights_.output_norm));
    QUIRE_RETURN_IF_ERROR(AddNorm("rope_freqs", 0, weights_.rope_freqs));
    if (Find("output", 0, ".weight") != nullptr) return AddLinear("output", 0, weights_.output);
    weights_.output.matrix = weights_.token_embd.matrix;
    return AddBias("output", 0, weights_.output, 0);
  }

  const GgufTensor* Find(std::string_view rule_name, int layer, std::string_view suffix) const {
    return file_.header().FindTensor(TensorName(rule_name, layer, suffix));
  }

  const TensorRule* FindRule(std::string_view name) const {
    for (const TensorRule& rule : architecture_.tensors)
      if (rule.name == name) return &rule;
    return nullptr;
  }

  std::byte* Take(uint64_t bytes) {
    std::byte* place = placing_ ? weights_.memory.data() + used_bytes_ : nullptr;
    used_bytes_ += Aligned(bytes);
    return place;
  }

  // A file has q, k and v apart, or as the rows of one matrix: we always have them apart.
  Status AddQkv(int i, LayerWeights& layer) {
    if (Find("blk.N.attn_qkv", i, ".weight") == nullptr) {
      QUIRE_RETURN_IF_ERROR(AddLinear("blk.N.attn_q", i, layer.attn_q));
      QUIRE_RETURN_IF_ERROR(AddLinear("blk.N.attn_k", i, layer.attn_k));
      return AddLinear("blk.N.attn_v", i, layer.attn_v);
    }
    const int q = shape_.q_rows(), k = shape_.k_rows(), v = shape_.v_rows();
    QUIRE_RETURN_IF_ERROR(AddLinear("blk.N.attn_qkv", i, layer.attn_q, 0, q));
    QUIRE_RETURN_IF_ERROR(AddLinear("blk.N.attn_qkv", i, layer.attn_k, q, k));
    return AddLinear("blk.N.attn_qkv", i, layer.attn_v, q + k, v);
  }

  // Rows [first_row, first_row + num_rows) of the tensor and of its bias; num_rows 0: all.
  Status AddLinear(std::string_view name, int layer, LinearLayer& linear, int first_row = 0,
                   int num_rows = 0) {
    const TensorRule* rule = FindRule(name);
    const GgufTensor* tensor = Find(name, layer, ".weight");
    if (rule == nullptr || tensor == nullptr) return OkStatus();
    if (num_rows == 0) num_rows = static_cast<int>(tensor->rows());
    const auto num_cols = static_cast<int>(tensor->columns());
    std::byte* place =
        Take(static_cast<uint64_t>(PackedMatrix::PackedBytes(tensor->type, num_rows, num_cols)));
    if (placing_) {
      linear.matrix = PackedMatrix(tensor->type, num_rows, num_cols, place);
      AddBands(*tensor, first_row, linear.matrix);
    }
    QUIRE_RETURN_IF_ERROR(AddBias(name, layer, linear, first_row));
    if (rule->scale == ScaleForm::kNone || rule->scale == ScaleForm::kIgnored) return OkStatus();
    std::span<const float> scale;
    QUIRE_RETURN_IF_ERROR(AddVector(name, layer, ".scale", scale));
    if (!scale.empty()) linear.scale = scale[0];
    linear.scale_after_bias = rule->scale == ScaleForm::kAfterBias;
    return OkStatus();
  }

  // The part of the bias that belongs to the matrix, whose first row is `first_row` of the tensor.
  Status AddBias(std::string_view name, int layer, LinearLayer& linear, int first_row) {
    const TensorRule* rule = FindRule(name);
    if (rule == nullptr || rule->bias == Presence::kAbsent) return OkStatus();
    QUIRE_RETURN_IF_ERROR(AddVector(name, layer, ".bias", linear.bias));
    if (!linear.bias.empty())
      linear.bias = linear.bias.subspan(first_row, linear.matrix.num_rows());
    return OkStatus();
  }

  // A vector of weights, where the architecture has a rule for it.
  Status AddNorm(std::string_view name, int layer, std::span<const float>& vector) {
    if (FindRule(name) == nullptr) return OkStatus();
    return AddVector(name, layer, ".weight", vector);
  }

  void AddBands(const GgufTensor& tensor, int tensor_row, PackedMatrix& matrix) {
    const int64_t row_bytes = RowBytes(tensor.type, tensor.columns());
    const int64_t panels =
        std::max<int64_t>(1, band_bytes_ / (row_bytes * PackedMatrix::kPanelRows));
    const auto rows_per_band =
        static_cast<int>(std::min<int64_t>(panels * PackedMatrix::kPanelRows, matrix.num_rows()));
    for (int row = 0; row < matrix.num_rows(); row += rows_per_band)
      bands_.push_back({&tensor, &matrix, tensor_row + row, row,
                        std::min(rows_per_band, matrix.num_rows() - row)});
  }

  // A vector is small: it is read here and now.
  Status AddVector(std::string_view name, int layer, std::string_view suffix,
                   std::span<const float>& vector) {
    const GgufTensor* tensor = Find(name, layer, suffix);
    if (tensor == nullptr) return OkStatus();
    const auto count = static_cast<size_t>(tensor->columns());
    auto* values = reinterpret_cast<float*>(Take(count * sizeof(float)));
    if (!placing_) return OkStatus();
    std::vector<std::byte> bytes(tensor->size_bytes);
    QUIRE_RETURN_IF_ERROR(file_.Read(*tensor, 0, bytes));
    if (tensor->type == WeightType::kF32) {
      std::copy(bytes.begin(), bytes.end(), reinterpret_cast<std::byte*>(values));
    } else {
      const auto* halves = reinterpret_cast<const uint16_t*>(bytes.data());
      for (size_t i = 0; i < count; ++i)
        values[i] =
            tensor->type == WeightType::kF16 ? HalfToFloat(halves[i]) : BFloat16ToFloat(halves[i]);
    }
    vector = {values, count};
    return OkStatus();
  }

  Status ReadBands(ThreadTeam& team, const std::function<void(uint64_t, uint64_t)>& progress) {
    uint64_t total_bytes = 0, band_bytes = 0;
    for (const Band& band : bands_) {
      total_bytes += BytesOf(band);
      band_bytes = std::max(band_bytes, BytesOf(band));
    }
    std::atomic<uint64_t> done_bytes = 0;
    std::atomic<bool> failed = false;
    std::mutex error_mutex;  // a cold path: taken once for each error
    Status error;
    team.Run([&](int worker) {
      std::vector<std::byte> buffer(band_bytes);
      team.ForEach(static_cast<uint32_t>(bands_.size()), [&](uint32_t i) {
        if (failed.load(std::memory_order_relaxed)) return;
        const Band& band = bands_[i];
        const std::span<std::byte> rows(buffer.data(), BytesOf(band));
        const auto offset =
            static_cast<uint64_t>(band.tensor_row) * static_cast<uint64_t>(RowBytesOf(band));
        if (Status status = file_.Read(*band.tensor, offset, rows); !status.ok()) {
          const std::lock_guard<std::mutex> lock(error_mutex);
          if (error.ok()) error = status;
          failed.store(true, std::memory_order_relaxed);
          return;
        }
        band.matrix->PackRows(band.first_row, band.num_rows, rows.data());
        const uint64_t done = done_bytes.fetch_add(rows.size()) + rows.size();
        if (worker == 0 && progress) progress(done, total_bytes);
      });
    });
    if (progress && error.ok()) progress(total_bytes, total_bytes);
    return error;
  }

  static int64_t RowBytesOf(const Band& band) {
    return RowBytes(band.tensor->type, band.tensor->columns());
  }
  static uint64_t BytesOf(const Band& band) {
    return static_cast<uint64_t>(band.num_rows) * static_cast<uint64_t>(RowBytesOf(band));
  }

  const GgufFile& file_;
  const ModelShape& shape_;
  const Architecture& architecture_;
  ModelWeights weights_;
  std::vector<Band> bands_;
  int64_t band_bytes_ = kMostBandBytes;
  uint64_t used_bytes_ = 0;
  bool placing_ = false;
};

}  // namespace

StatusOr<ModelWeights> LoadWeights(const GgufFile& file, const ModelShape& shape,
                                   const Architecture& architecture, ThreadTeam& team,
                                   const std::function<void(uint64_t, uint64_t)>& progress) {
  return WeightLoader(file, shape, architecture).Load(team, progress);
}

}  // namespace quire
