#include "model/gguf_writer.h"

#include <algorithm>
#include <cstring>

namespace quire {
namespace {

uint64_t RoundUp(uint64_t value, uint64_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}

// Bytes that the dims and the type ask for; 0 where they make no sense.
uint64_t DataBytes(const GgufWriter::Tensor& tensor) {
  if (!tensor.data.empty()) return tensor.data.size();
  const auto type = WeightTypeFromId(tensor.type_id);
  if (!type || tensor.dims.empty() || tensor.dims[0] > 1u << 20 ||
      tensor.dims[0] % BlockElements(*type) != 0)
    return 0;
  uint64_t bytes = RowBytes(*type, static_cast<int64_t>(tensor.dims[0]));
  for (size_t i = 1; i < tensor.dims.size(); ++i) {
    if (tensor.dims[i] > 1u << 20) return 0;
    bytes *= tensor.dims[i];
  }
  return bytes;
}

template <class T>
T* FindByName(std::vector<T>& list, std::string_view name) {
  const auto place = std::find_if(list.begin(), list.end(),
                                  [&](const T& element) { return element.name == name; });
  return place == list.end() ? nullptr : &*place;
}

}  // namespace

void GgufWriter::Append(Bytes& bytes, const Bytes& more) {
  bytes.insert(bytes.end(), more.begin(), more.end());
}

Bytes GgufWriter::EncodeString(std::string_view text) {
  Bytes bytes(8 + text.size());
  const uint64_t length = text.size();
  std::memcpy(bytes.data(), &length, 8);
  std::memcpy(bytes.data() + 8, text.data(), text.size());
  return bytes;
}

GgufWriter& GgufWriter::SetString(std::string_view name, std::string_view text) {
  return SetRaw(name, static_cast<uint32_t>(GgufType::kString), EncodeString(text));
}

GgufWriter& GgufWriter::SetStrings(std::string_view name, const std::vector<std::string>& texts) {
  Bytes elements;
  for (const std::string& text : texts) Append(elements, EncodeString(text));
  return SetRawArray(name, static_cast<uint32_t>(GgufType::kString), texts.size(), elements);
}

GgufWriter& GgufWriter::SetRawArray(std::string_view name, uint32_t element_type_id, uint64_t count,
                                    const Bytes& elements) {
  Bytes value = Encode(element_type_id);
  Append(value, Encode(count));
  Append(value, elements);
  return SetRaw(name, static_cast<uint32_t>(GgufType::kArray), value);
}

GgufWriter& GgufWriter::SetRaw(std::string_view name, uint32_t type_id, const Bytes& value) {
  Key* key = FindByName(keys_, name);
  if (key == nullptr) return AppendRaw(name, type_id, value);
  *key = {std::string(name), type_id, value};
  return *this;
}

GgufWriter& GgufWriter::AppendRaw(std::string_view name, uint32_t type_id, const Bytes& value) {
  keys_.push_back({std::string(name), type_id, value});
  return *this;
}

GgufWriter& GgufWriter::Remove(std::string_view name) {
  std::erase_if(keys_, [&](const Key& key) { return key.name == name; });
  return *this;
}

GgufWriter& GgufWriter::SetTensor(std::string_view name, std::vector<uint64_t> dims,
                                  WeightType type, Bytes data) {
  Tensor tensor{std::string(name), std::move(dims), static_cast<uint32_t>(type),
                std::move(data),   std::nullopt,    std::nullopt};
  if (Tensor* found = FindTensor(name)) {
    *found = std::move(tensor);
    return *this;
  }
  return AppendTensor(std::move(tensor));
}

GgufWriter& GgufWriter::AppendTensor(Tensor tensor) {
  tensors_.push_back(std::move(tensor));
  return *this;
}

GgufWriter& GgufWriter::RemoveTensor(std::string_view name) {
  std::erase_if(tensors_, [&](const Tensor& tensor) { return tensor.name == name; });
  return *this;
}

GgufWriter::Tensor* GgufWriter::FindTensor(std::string_view name) {
  return FindByName(tensors_, name);
}

std::vector<GgufWriter> GgufWriter::Split(uint16_t count) const {
  std::vector<GgufWriter> parts(count);
  parts[0] = *this;
  parts[0].tensors_.clear();
  for (size_t i = 0; i < tensors_.size(); ++i)
    parts[i * count / tensors_.size()].tensors_.push_back(tensors_[i]);
  for (uint16_t i = 0; i < count; ++i)
    parts[i]
        .Set<uint16_t>("split.no", i)
        .Set<uint16_t>("split.count", count)
        .Set<int32_t>("split.tensors.count", static_cast<int32_t>(tensors_.size()));
  return parts;
}

std::vector<uint64_t> GgufWriter::Offsets() const {
  std::vector<uint64_t> offsets;
  uint64_t end = 0;
  for (const Tensor& tensor : tensors_) {
    offsets.push_back(tensor.offset.value_or(RoundUp(end, alignment)));
    end = std::max(end, RoundUp(end, alignment) + DataBytes(tensor));
  }
  return offsets;
}

Bytes GgufWriter::Header() const {
  Bytes bytes;
  for (const char c : std::string_view("GGUF")) bytes.push_back(static_cast<std::byte>(c));
  Append(bytes, Encode(version));
  Append(bytes, Encode(claimed_tensors.value_or(tensors_.size())));
  Append(bytes, Encode(claimed_keys.value_or(keys_.size())));
  for (const Key& key : keys_) {
    Append(bytes, EncodeString(key.name));
    Append(bytes, Encode(key.type_id));
    Append(bytes, key.value);
  }
  const std::vector<uint64_t> offsets = Offsets();
  for (size_t i = 0; i < tensors_.size(); ++i) {
    const Tensor& tensor = tensors_[i];
    Append(bytes, EncodeString(tensor.name));
    Append(bytes, Encode(tensor.num_dims.value_or(static_cast<uint32_t>(tensor.dims.size()))));
    for (const uint64_t dim : tensor.dims) Append(bytes, Encode(dim));
    Append(bytes, Encode(tensor.type_id));
    Append(bytes, Encode(offsets[i]));
  }
  return bytes;
}

Bytes GgufWriter::File() const {
  Bytes bytes = Header();
  const uint64_t data_start = RoundUp(bytes.size(), alignment);
  uint64_t end = 0;
  for (const Tensor& tensor : tensors_) {
    const uint64_t start = RoundUp(end, alignment);
    end = start + DataBytes(tensor);
    bytes.resize(data_start + end);
    std::copy(tensor.data.begin(), tensor.data.end(),
              bytes.begin() + static_cast<std::ptrdiff_t>(data_start + start));
  }
  return bytes;
}

GgufWriter TinyOf(std::string_view architecture) {
  const bool qwen2 = architecture == "qwen2", gemma3 = architecture == "gemma3";
  const bool head_norms = architecture == "qwen3" || gemma3;
  const std::string prefix = std::string(architecture) + ".";
  GgufWriter writer;
  writer.SetString("general.architecture", architecture)
      .SetString("general.name", "tiny")
      .Set<uint32_t>(prefix + "context_length", 64)
      .Set<uint32_t>(prefix + "embedding_length", 16)
      .Set<uint32_t>(prefix + "block_count", 2)
      .Set<uint32_t>(prefix + "feed_forward_length", 24)
      .Set<uint32_t>(prefix + "attention.head_count", 4)
      .Set<uint32_t>(prefix + "attention.head_count_kv", 2)
      .Set<float>(prefix + "attention.layer_norm_rms_epsilon", 1e-5f);
  if (gemma3)
    writer.Set<uint32_t>(prefix + "attention.sliding_window", 8)
        .Set<uint32_t>(prefix + "attention.sliding_window_pattern", 2)
        .Set<float>(prefix + "rope.freq_base", 1e6f)
        .Set<float>(prefix + "rope.freq_base_swa", 20000);
  writer.SetString("tokenizer.ggml.model", "llama")
      .SetStrings("tokenizer.ggml.tokens", {"<unk>", "<s>", "</s>", "a", "b", "c", "ab", "bc",
                                            "abc", "<0x41>", "<0x42>", "\xE2\x96\x81"})
      .SetArray<float>("tokenizer.ggml.scores", {0, 0, 0, -4, -5, -6, -1, -2, -3, 0, 0, -7})
      .SetArray<int32_t>("tokenizer.ggml.token_type", {2, 3, 3, 1, 1, 1, 1, 1, 1, 6, 6, 1})
      .Set<uint32_t>("tokenizer.ggml.bos_token_id", 1)
      .Set<uint32_t>("tokenizer.ggml.eos_token_id", 2)
      .Set<bool>("tokenizer.ggml.add_bos_token", true);
  writer.SetTensor("token_embd.weight", {16, 12}).SetTensor("output_norm.weight", {16});
  for (const std::string layer : {"blk.0.", "blk.1."}) {
    writer.SetTensor(layer + "attn_norm.weight", {16})
        .SetTensor(layer + "attn_q.weight", {16, 16})
        .SetTensor(layer + "attn_k.weight", {16, 8})
        .SetTensor(layer + "attn_v.weight", {16, 8})
        .SetTensor(layer + "attn_output.weight", {16, 16})
        .SetTensor(layer + "ffn_norm.weight", {16})
        .SetTensor(layer + "ffn_gate.weight", {16, 24})
        .SetTensor(layer + "ffn_up.weight", {16, 24})
        .SetTensor(layer + "ffn_down.weight", {24, 16});
    if (qwen2)
      writer.SetTensor(layer + "attn_q.bias", {16})
          .SetTensor(layer + "attn_k.bias", {8})
          .SetTensor(layer + "attn_v.bias", {8});
    if (head_norms)
      writer.SetTensor(layer + "attn_q_norm.weight", {4})
          .SetTensor(layer + "attn_k_norm.weight", {4});
    if (gemma3)
      writer.SetTensor(layer + "post_attention_norm.weight", {16})
          .SetTensor(layer + "post_ffw_norm.weight", {16});
  }
  return writer;
}

GgufWriter TinyLlama() { return TinyOf("llama"); }

}  // namespace quire
