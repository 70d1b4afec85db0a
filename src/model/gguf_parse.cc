// ParseGguf of gguf_header.h. Order of the format: magic, version, counts, keys, tensors, padding,
// data.
#include <algorithm>
#include <cstring>
#include <numeric>

#include "base/check.h"
#include "base/errors.h"
#include "base/message_text.h"
#include "model/gguf_header.h"

namespace quire {
namespace {

constexpr uint64_t kMinKeyBytes = 13;     // empty name, type, one byte
constexpr uint64_t kMinTensorBytes = 24;  // empty name, no dims, type, offset
constexpr uint64_t kMaxKeyNameBytes = 65'535;
constexpr uint64_t kMaxTensorNameBytes = 63;
constexpr uint64_t kMaxElements = uint64_t{1} << 60;  // no size in bytes overflows below it
constexpr uint64_t kMaxOffset = uint64_t{1} << 62;
constexpr std::string_view kAlignmentKey = "general.alignment";
constexpr uint64_t kDefaultAlignment = 32;

std::string_view AsText(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

// Walks the bytes once. Every method leaves an error, or sets starved_ and returns an error that
// ParseGguf drops, when it needs bytes that are not there yet.
class GgufParser {
 public:
  GgufParser(std::span<const std::byte> bytes, uint64_t file_bytes)
      : bytes_(bytes), file_bytes_(file_bytes) {
    header_.file_bytes_ = file_bytes;
  }

  Status Parse();
  bool starved() const { return starved_; }
  GgufHeader&& header() && { return std::move(header_); }

 private:
  uint64_t rest() const { return file_bytes_ - place_; }  // in the file, not only in bytes_

  // The next `size` bytes.
  Status Take(uint64_t size, std::string_view what, std::span<const std::byte>& taken);
  template <class T>
  Status TakeNumber(std::string_view what, T& number);
  Status TakeString(uint64_t max_bytes, std::string_view what, std::string_view& text);

  Status ParsePreamble();
  Status ParseKey();
  Status ParseArray(GgufKey& key);
  Status CheckBools(const GgufKey& key) const;
  Status ReadAlignment();
  Status ParseTensor();
  Status ParseDims(GgufTensor& tensor, uint32_t num_dims);
  Status CheckPlaces();

  // Fills `by_name`; an error if two elements bear one name.
  template <class T>
  Status SortByName(const std::vector<T>& list, std::string_view what,
                    std::vector<uint32_t>& by_name) const;

  std::span<const std::byte> bytes_;
  uint64_t file_bytes_;
  uint64_t place_ = 0;
  bool starved_ = false;
  uint64_t num_keys_ = 0;
  uint64_t num_tensors_ = 0;
  GgufHeader header_;
};

Status GgufParser::Take(uint64_t size, std::string_view what, std::span<const std::byte>& taken) {
  if (size > rest())
    return InvalidFile("the file ends inside its header: {} at byte {} needs {} bytes, {} are left",
                       what, GroupDigits(place_), GroupDigits(size), GroupDigits(rest()));
  if (size > bytes_.size() - place_) {
    starved_ = true;
    return InvalidFile("{} at byte {}: more of the file is needed", what, place_);
  }
  taken = bytes_.subspan(place_, size);
  place_ += size;
  return OkStatus();
}

template <class T>
Status GgufParser::TakeNumber(std::string_view what, T& number) {
  std::span<const std::byte> taken;
  QUIRE_RETURN_IF_ERROR(Take(sizeof(T), what, taken));
  std::memcpy(&number, taken.data(), sizeof(T));
  return OkStatus();
}

Status GgufParser::TakeString(uint64_t max_bytes, std::string_view what, std::string_view& text) {
  uint64_t length = 0;
  QUIRE_RETURN_IF_ERROR(TakeNumber(what, length));
  if (length > max_bytes)
    return InvalidFile("{} at byte {} is {} bytes long: at most {} are allowed", what,
                       GroupDigits(place_), GroupDigits(length), GroupDigits(max_bytes));
  std::span<const std::byte> taken;
  QUIRE_RETURN_IF_ERROR(Take(length, what, taken));
  text = AsText(taken);
  return OkStatus();
}

Status GgufParser::ParsePreamble() {
  std::span<const std::byte> magic;
  QUIRE_RETURN_IF_ERROR(Take(4, "the magic number", magic));
  if (AsText(magic) != "GGUF")
    return InvalidFile("not a GGUF file: it starts with \"{}\"", Printable(AsText(magic)));
  QUIRE_RETURN_IF_ERROR(TakeNumber("the version", header_.version_));
  const uint32_t version = header_.version_;
  if (version != 0 && (version & 0xFFFFu) == 0)
    return Unsupported("big-endian GGUF file (version field 0x{:08X}): convert it to little-endian",
                       version);
  if (version != 2 && version != 3)
    return Unsupported("GGUF version {}: versions 2 and 3 can be read; convert the model again",
                       version);
  QUIRE_RETURN_IF_ERROR(TakeNumber("the tensor count", num_tensors_));
  QUIRE_RETURN_IF_ERROR(TakeNumber("the key count", num_keys_));
  if (num_keys_ > rest() / kMinKeyBytes || num_tensors_ > rest() / kMinTensorBytes)
    return InvalidFile("the header counts {} keys and {} tensors, but only {} bytes follow",
                       GroupDigits(num_keys_), GroupDigits(num_tensors_), GroupDigits(rest()));
  if (num_keys_ > kMaxGgufKeys || num_tensors_ > kMaxGgufTensors)
    return InvalidFile("the header counts {} keys and {} tensors: at most {} and {} are allowed",
                       GroupDigits(num_keys_), GroupDigits(num_tensors_), GroupDigits(kMaxGgufKeys),
                       GroupDigits(kMaxGgufTensors));
  return OkStatus();
}

Status GgufParser::ParseKey() {
  GgufKey key{};
  QUIRE_RETURN_IF_ERROR(TakeString(kMaxKeyNameBytes, "a key's name", key.name));
  if (key.name.empty()) return InvalidFile("key {} has an empty name", header_.keys_.size());
  const auto in_key = [&](const Status& status) {
    return status.WithContext("key " + Printable(key.name));
  };
  uint32_t type = 0;
  QUIRE_RETURN_IF_ERROR(in_key(TakeNumber("the type", type)));
  if (type > kLastGgufType)
    return InvalidFile("key {}: unknown value type {}", Printable(key.name), type);
  key.type = key.element_type = static_cast<GgufType>(type);
  key.count = 1;
  if (key.type == GgufType::kArray) {
    QUIRE_RETURN_IF_ERROR(in_key(ParseArray(key)));
  } else if (key.type == GgufType::kString) {
    std::string_view text;
    QUIRE_RETURN_IF_ERROR(in_key(TakeString(kMaxGgufHeaderBytes, "the string", text)));
    key.bytes = std::as_bytes(std::span(text));
  } else {
    QUIRE_RETURN_IF_ERROR(in_key(Take(GgufTypeBytes(key.type), "the value", key.bytes)));
  }
  QUIRE_RETURN_IF_ERROR(CheckBools(key));
  header_.keys_.push_back(key);
  return OkStatus();
}

Status GgufParser::ParseArray(GgufKey& key) {
  uint32_t element_type = 0;
  QUIRE_RETURN_IF_ERROR(TakeNumber("the element type", element_type));
  if (element_type > kLastGgufType) return InvalidFile("unknown element type {}", element_type);
  key.element_type = static_cast<GgufType>(element_type);
  if (key.element_type == GgufType::kArray) return Unsupported("an array of arrays");
  QUIRE_RETURN_IF_ERROR(TakeNumber("the element count", key.count));
  const bool of_strings = key.element_type == GgufType::kString;
  const uint64_t element_bytes = of_strings ? 8 : GgufTypeBytes(key.element_type);
  if (key.count > rest() / element_bytes)
    return InvalidFile("array of {} elements of at least {} bytes, but only {} bytes follow",
                       GroupDigits(key.count), element_bytes, GroupDigits(rest()));
  if (!of_strings) return Take(key.count * element_bytes, "the array", key.bytes);

  // Strings one by one, without the messages of TakeString: this loop sees every token and merge.
  const uint64_t start = place_;
  for (uint64_t i = 0; i < key.count; ++i) {
    uint64_t length = 0;
    if (bytes_.size() - place_ >= 8) std::memcpy(&length, bytes_.data() + place_, 8);
    if (bytes_.size() - place_ < 8 || length > bytes_.size() - place_ - 8) {
      std::string_view text;
      return TakeString(kMaxGgufHeaderBytes, fmt::format("string {}", i),
                        text);  // says what is wrong
    }
    place_ += 8 + length;
  }
  key.bytes = bytes_.subspan(start, place_ - start);
  return OkStatus();
}

Status GgufParser::CheckBools(const GgufKey& key) const {
  if (key.element_type != GgufType::kBool) return OkStatus();
  for (const std::byte value : key.bytes)
    if (value > std::byte{1})
      return InvalidFile("key {}: a bool is {}: need 0 or 1", Printable(key.name),
                         static_cast<int>(value));
  return OkStatus();
}

Status GgufParser::ReadAlignment() {
  header_.alignment_ = kDefaultAlignment;
  const GgufKey* key = header_.FindKey(kAlignmentKey);
  if (key == nullptr) return OkStatus();
  if (key->type != GgufType::kU32)
    return InvalidFile("key {}: found {} {}, need u32", kAlignmentKey, GgufTypeText(*key),
                       GgufValueText(*key));
  QUIRE_ASSIGN_OR_RETURN(const int64_t value, ReadInteger(*key, 0, UINT32_MAX));
  header_.alignment_ = static_cast<uint64_t>(value);
  if (value == 0 || (value & (value - 1)) != 0 || header_.alignment_ > kMaxGgufAlignment)
    return InvalidFile("key {} is {}: need a power of two up to {}", kAlignmentKey, value,
                       kMaxGgufAlignment);
  return OkStatus();
}

Status GgufParser::ParseTensor() {
  GgufTensor tensor{};
  QUIRE_RETURN_IF_ERROR(TakeString(kMaxTensorNameBytes, "a tensor's name", tensor.name));
  if (tensor.name.empty())
    return InvalidFile("tensor {} has an empty name", header_.tensors_.size());
  const auto in_tensor = [&](const Status& status) {
    return status.WithContext("tensor " + Printable(tensor.name));
  };
  uint32_t num_dims = 0;
  QUIRE_RETURN_IF_ERROR(in_tensor(TakeNumber("the number of dimensions", num_dims)));
  QUIRE_RETURN_IF_ERROR(in_tensor(ParseDims(tensor, num_dims)));
  uint32_t type_id = 0;
  QUIRE_RETURN_IF_ERROR(in_tensor(TakeNumber("the type", type_id)));
  const auto type = WeightTypeFromId(type_id);
  if (!type)
    return Unsupported("tensor {}: weight type {} cannot be read", Printable(tensor.name),
                       WeightTypeIdName(type_id));
  tensor.type = *type;
  if (tensor.dims[0] % BlockElements(tensor.type) != 0)
    return InvalidFile("tensor {}: rows of {} elements, but {} needs a multiple of {}",
                       Printable(tensor.name), tensor.dims[0], WeightTypeName(tensor.type),
                       BlockElements(tensor.type));
  tensor.size_bytes = static_cast<uint64_t>(RowBytes(tensor.type, tensor.dims[0])) *
                      static_cast<uint64_t>(tensor.rows());
  QUIRE_RETURN_IF_ERROR(in_tensor(TakeNumber("the offset", tensor.file_offset)));
  if (tensor.file_offset % header_.alignment_ != 0)
    return InvalidFile("tensor {}: offset {} is not a multiple of the alignment, {}",
                       Printable(tensor.name), tensor.file_offset, header_.alignment_);
  if (tensor.file_offset > kMaxOffset)
    return InvalidFile("tensor {}: offset {} lies far outside the file of {} bytes",
                       Printable(tensor.name), tensor.file_offset, GroupDigits(file_bytes_));
  header_.tensors_.push_back(tensor);
  return OkStatus();
}

Status GgufParser::ParseDims(GgufTensor& tensor, uint32_t num_dims) {
  tensor.dims.fill(1);
  if (num_dims < 1 || num_dims > tensor.dims.size())
    return InvalidFile("{} dimensions: need 1 to {}", num_dims, tensor.dims.size());
  tensor.num_dims = static_cast<int>(num_dims);
  uint64_t num_elements = 1;
  for (uint32_t i = 0; i < num_dims; ++i) {
    uint64_t dim = 0;
    QUIRE_RETURN_IF_ERROR(TakeNumber("a dimension", dim));
    if (dim == 0) return InvalidFile("dimension {} is 0", i);
    if (dim > kMaxElements / num_elements)
      return InvalidFile("dimension {} is {}: more than 2^60 elements in all", i, dim);
    num_elements *= dim;
    tensor.dims[i] = static_cast<int64_t>(dim);
  }
  return OkStatus();
}

// Makes offsets absolute; checks that each tensor lies in the file and none in another.
Status GgufParser::CheckPlaces() {
  const uint64_t alignment = header_.alignment_;
  const uint64_t data_start = (header_.header_bytes_ + alignment - 1) / alignment * alignment;
  uint64_t needed = 0;
  const GgufTensor* last = nullptr;
  for (GgufTensor& tensor : header_.tensors_) {
    tensor.file_offset += data_start;
    const uint64_t end = tensor.file_offset + tensor.size_bytes;  // both at most 2^62 or so
    if (end > needed) {
      needed = end;
      last = &tensor;
    }
  }
  if (needed > file_bytes_)
    return InvalidFile(
        "file has {} bytes, tensors need {}: tensor {} has {} bytes from byte {} on; "
        "the file is cut or damaged, fetch it again",
        GroupDigits(file_bytes_), GroupDigits(needed), Printable(last->name),
        GroupDigits(last->size_bytes), GroupDigits(last->file_offset));

  std::vector<const GgufTensor*> by_place;
  by_place.reserve(header_.tensors_.size());
  for (const GgufTensor& tensor : header_.tensors_) by_place.push_back(&tensor);
  std::sort(by_place.begin(), by_place.end(), [](const GgufTensor* a, const GgufTensor* b) {
    return a->file_offset < b->file_offset;
  });
  for (size_t i = 1; i < by_place.size(); ++i) {
    const GgufTensor& before = *by_place[i - 1];
    if (before.file_offset + before.size_bytes > by_place[i]->file_offset)
      return InvalidFile("tensors {} and {} overlap at byte {}", Printable(before.name),
                         Printable(by_place[i]->name), GroupDigits(by_place[i]->file_offset));
  }
  return OkStatus();
}

template <class T>
Status GgufParser::SortByName(const std::vector<T>& list, std::string_view what,
                              std::vector<uint32_t>& by_name) const {
  by_name.resize(list.size());
  std::iota(by_name.begin(), by_name.end(), 0u);
  std::sort(by_name.begin(), by_name.end(),
            [&](uint32_t a, uint32_t b) { return list[a].name < list[b].name; });
  const auto same = std::adjacent_find(by_name.begin(), by_name.end(), [&](uint32_t a, uint32_t b) {
    return list[a].name == list[b].name;
  });
  if (same != by_name.end())
    return InvalidFile("{} {} is in the header twice", what, Printable(list[*same].name));
  return OkStatus();
}

Status GgufParser::Parse() {
  QUIRE_RETURN_IF_ERROR(ParsePreamble());
  // Capacity in proportion to the bytes seen, whatever the counts claim.
  header_.keys_.reserve(std::min<uint64_t>(num_keys_, bytes_.size() / kMinKeyBytes));
  for (uint64_t i = 0; i < num_keys_; ++i) QUIRE_RETURN_IF_ERROR(ParseKey());
  QUIRE_RETURN_IF_ERROR(SortByName(header_.keys_, "key", header_.keys_by_name_));
  QUIRE_RETURN_IF_ERROR(ReadAlignment());
  header_.tensors_.reserve(
      std::min<uint64_t>(num_tensors_, (bytes_.size() - place_) / kMinTensorBytes));
  for (uint64_t i = 0; i < num_tensors_; ++i) QUIRE_RETURN_IF_ERROR(ParseTensor());
  QUIRE_RETURN_IF_ERROR(SortByName(header_.tensors_, "tensor", header_.tensors_by_name_));
  header_.header_bytes_ = place_;
  return CheckPlaces();
}

StatusOr<std::optional<GgufHeader>> ParseGguf(std::span<const std::byte> bytes,
                                              uint64_t file_bytes) {
  QUIRE_CHECK(bytes.size() <= file_bytes);
  GgufParser parser(bytes, file_bytes);
  const Status status = parser.Parse();
  if (parser.starved() && bytes.size() < kMaxGgufHeaderBytes) return std::optional<GgufHeader>();
  if (parser.starved())
    return InvalidFile("the header is longer than {} bytes", GroupDigits(kMaxGgufHeaderBytes));
  if (!status.ok()) return status;
  return std::optional<GgufHeader>(std::move(parser).header());
}

}  // namespace quire
