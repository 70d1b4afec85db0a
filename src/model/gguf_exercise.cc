#include "model/gguf_exercise.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"
#include "model/architecture.h"
#include "model/gguf_header.h"
#include "model/gguf_split.h"
#include "model/vocabulary_reader.h"

namespace quire {
namespace {

// Sums something of every view, so that a sanitizer sees each byte that a view claims.
uint64_t TouchEverything(const GgufHeader& header) {
  uint64_t sum = 0;
  for (const GgufKey& key : header.keys()) {
    QUIRE_CHECK(header.FindKey(key.name) == &key);
    sum += GgufValueText(key).size() + GgufTypeText(key).size();
    for (const std::byte value : key.bytes) sum += static_cast<uint64_t>(value);
    sum += ReadInteger(key, -5, 5).ok() + ReadNumber(key).ok() + ReadBool(key).ok();
    sum += ReadIntegers(key, -5, 5).ok() + ReadFloats(key).ok();
    if (const auto text = ReadString(key); text.ok()) sum += text->size();
    if (const auto texts = ReadStrings(key); texts.ok())
      for (const std::string_view text : *texts)
        for (const char c : text) sum += static_cast<unsigned char>(c);
  }
  for (const GgufTensor& tensor : header.tensors()) {
    QUIRE_CHECK(header.FindTensor(tensor.name) == &tensor);
    QUIRE_CHECK(tensor.size_bytes <= header.file_bytes());
    QUIRE_CHECK(tensor.file_offset >= header.header_bytes());
    QUIRE_CHECK(tensor.file_offset <= header.file_bytes() - tensor.size_bytes);
    sum += DimsText(tensor).size();
  }
  return sum;
}

// What the checks promise.
void CheckShape(const ModelShape& shape) {
  QUIRE_CHECK(shape.num_layers >= 1 && shape.num_kv_heads >= 1);
  QUIRE_CHECK(shape.num_q_heads % shape.num_kv_heads == 0);
  QUIRE_CHECK(shape.rms_epsilon > 0 && shape.attention_scale > 0 && shape.embedding_scale > 0);
  QUIRE_CHECK(!shape.ropes.empty());
  for (const RopeShape& rope : shape.ropes) {
    QUIRE_CHECK(rope.dimension_count % 2 == 0 && rope.dimension_count <= shape.head_dim_k);
    QUIRE_CHECK(rope.dimension_count == shape.rope().dimension_count);
    QUIRE_CHECK(rope.freq_base > 1 && rope.factor > 0);
  }
  QUIRE_CHECK(shape.layers.size() == static_cast<size_t>(shape.num_layers));
  for (const LayerShape& layer : shape.layers) {
    QUIRE_CHECK(layer.window >= 0);
    QUIRE_CHECK(layer.rope >= 0 && static_cast<size_t>(layer.rope) < shape.ropes.size());
  }
  QUIRE_CHECK(shape.num_tokens >= 1 && shape.num_tokens <= shape.vocab_size);
  QUIRE_CHECK(shape.q_rows() > 0 && shape.k_rows() > 0 && shape.v_rows() > 0);
  QUIRE_CHECK(shape.KvBytesPerToken(4) > 0);
}

GgufProgress ExerciseModel(const GgufHeader& header) {
  (void)ReadVocabulary(header, nullptr).ok();
  const auto shape = ReadShape(header);
  if (!shape.ok()) return GgufProgress::kParsed;
  CheckShape(*shape);
  return CheckTensors(header, *shape).ok() ? GgufProgress::kHasTensors : GgufProgress::kHasShape;
}

}  // namespace

GgufProgress ExerciseGguf(std::span<const std::byte> bytes, uint64_t file_bytes) {
  const auto parsed = ParseGguf(bytes, file_bytes);
  if (!parsed.ok()) {
    QUIRE_CHECK(!parsed.status().message().empty());
    return GgufProgress::kRefused;
  }
  if (!parsed->has_value()) return GgufProgress::kUnfinished;
  const GgufHeader& header = **parsed;
  QUIRE_CHECK(TouchEverything(header) != 1);
  (void)ReadSplitPlace(header).ok();
  return ExerciseModel(header);
}

GgufProgress ExerciseGgufParts(std::span<const std::byte> bytes, uint64_t file_bytes) {
  constexpr std::string_view kMagic = "GGUF";
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  std::vector<GgufHeader> headers;
  for (size_t begin = text.find(kMagic); begin != text.npos;) {
    const size_t next = text.find(kMagic, begin + kMagic.size());
    const auto part = bytes.subspan(begin, std::min(next, text.size()) - begin);
    auto parsed = ParseGguf(part, part.size() + file_bytes);
    if (!parsed.ok()) return GgufProgress::kRefused;
    if (!parsed->has_value()) return GgufProgress::kUnfinished;
    headers.push_back(std::move(**parsed));
    begin = next;
  }
  if (headers.empty()) return GgufProgress::kRefused;
  std::vector<const GgufHeader*> parts;
  size_t num_tensors = 0;
  for (const GgufHeader& header : headers) {
    parts.push_back(&header);
    num_tensors += header.tensors().size();
  }
  const auto merged = MergeParts(parts);
  if (!merged.ok()) return GgufProgress::kParsed;
  QUIRE_CHECK(merged->tensors().size() == num_tensors);
  for (const GgufTensor& tensor : merged->tensors()) {
    QUIRE_CHECK(merged->FindTensor(tensor.name) == &tensor);
    const GgufTensor* own = headers[tensor.part].FindTensor(tensor.name);
    QUIRE_CHECK(own != nullptr && own->file_offset == tensor.file_offset);
  }
  return ExerciseModel(*merged);
}

}  // namespace quire
