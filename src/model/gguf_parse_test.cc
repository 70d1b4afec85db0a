// The checks of ParseGguf, each with a header made for it. Names in brackets are the cases that
// came from other engines.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/gguf_header.h"
#include "model/gguf_writer.h"

namespace quire {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

Status ParseStatus(const Bytes& bytes) {
  auto result = ParseGguf(bytes, bytes.size());
  if (!result.ok()) return result.status();
  EXPECT_TRUE(result->has_value()) << "the whole file is there";
  return OkStatus();
}

Status ParseStatus(const GgufWriter& writer) { return ParseStatus(writer.File()); }

std::string Message(const GgufWriter& writer) { return ParseStatus(writer).message(); }

GgufWriter::Tensor RawTensor(std::string name, std::vector<uint64_t> dims, uint32_t type_id = 0) {
  GgufWriter::Tensor tensor;
  tensor.name = std::move(name);
  tensor.dims = std::move(dims);
  tensor.type_id = type_id;
  return tensor;
}

TEST(GgufParse, ReadsWhatTheWriterWrote) {
  for (const uint32_t version : {2u, 3u}) {
    GgufWriter writer = TinyLlama();
    writer.version = version;
    const Bytes file = writer.File();
    const auto result = ParseGguf(file, file.size());
    ASSERT_TRUE(result.ok()) << result.status().message();
    const GgufHeader& header = **result;
    EXPECT_EQ(header.version(), version);
    EXPECT_EQ(header.alignment(), 32u);
    EXPECT_EQ(header.header_bytes(), writer.Header().size());
    EXPECT_EQ(*header.GetString("general.architecture"), "llama");
    EXPECT_EQ(header.keys().front().name, "general.architecture");
    EXPECT_EQ(header.tensors().size(), 20u);
    const GgufTensor* tensor = header.FindTensor("blk.1.ffn_down.weight");
    ASSERT_NE(tensor, nullptr);
    EXPECT_EQ(DimsText(*tensor), "[24, 16]");
    EXPECT_EQ(tensor->columns(), 24);
    EXPECT_EQ(tensor->rows(), 16);
    EXPECT_EQ(tensor->size_bytes, 24u * 16 * 4);
    EXPECT_EQ(tensor->file_offset + tensor->size_bytes, file.size());
    EXPECT_EQ(header.FindTensor("blk.2.ffn_down.weight"), nullptr);
    EXPECT_EQ(header.FindKey("llama"), nullptr);
  }
}

TEST(GgufParse, AHeaderOfKeysOnlyIsWhole) {
  GgufWriter writer;
  writer.SetString("general.architecture", "llama");
  EXPECT_TRUE(ParseStatus(writer).ok());
}

TEST(GgufParse, OtherVersionsAreNamed) {  // GGUF-18
  for (const auto& [version, text] : {std::pair{0u, "version 0"},
                                      {1u, "version 1"},
                                      {4u, "version 4"},
                                      {0x03000000u, "big-endian"},
                                      {0x02000000u, "big-endian"}}) {
    GgufWriter writer = TinyLlama();
    writer.version = version;
    const Status status = ParseStatus(writer);
    EXPECT_EQ(status.code(), StatusCode::kUnsupported);
    EXPECT_THAT(status.message(), HasSubstr(text));
  }
}

TEST(GgufParse, CountsBeyondTheFileAreRefused) {
  GgufWriter writer = TinyLlama();
  writer.claimed_keys = uint64_t{1} << 60;
  EXPECT_THAT(Message(writer), HasSubstr("1,152,921,504,606,846,976 keys"));
  writer = TinyLlama();
  writer.claimed_tensors = ~uint64_t{0};
  EXPECT_THAT(Message(writer), HasSubstr("tensors, but only"));
}

TEST(GgufParse, CountsBeyondAllReasonAreRefusedInAnyFile) {
  GgufWriter writer;
  writer.claimed_keys = kMaxGgufKeys + 1;
  const Bytes header = writer.Header();
  EXPECT_FALSE(ParseGguf(header, uint64_t{1} << 50).ok());
  writer.claimed_keys = kMaxGgufKeys;
  const Bytes allowed = writer.Header();
  const auto result = ParseGguf(allowed, uint64_t{1} << 50);
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_FALSE(result->has_value()) << "more bytes are needed";
}

TEST(GgufParse, StringsAndArraysBeyondTheFileAreRefused) {  // GGUF-09
  constexpr auto kString = static_cast<uint32_t>(GgufType::kString);
  GgufWriter writer;
  writer.SetRaw("long", kString, GgufWriter::Encode(uint64_t{1} << 40));
  EXPECT_FALSE(ParseStatus(writer).ok());
  for (const uint32_t element_type : {0u, 4u, 8u, 10u, 12u}) {
    writer = GgufWriter();
    writer.SetRawArray("list", element_type, uint64_t{1} << 60, Bytes(100));
    EXPECT_THAT(Message(writer),
                AllOf(HasSubstr("key list"), HasSubstr("1,152,921,504,606,846,976")))
        << element_type;
  }
  writer = GgufWriter();
  Bytes strings = GgufWriter::EncodeString("fine");
  GgufWriter::Append(strings, GgufWriter::Encode(uint64_t{1} << 40));
  writer.SetRawArray("list", kString, 2, strings);
  EXPECT_THAT(Message(writer), AllOf(HasSubstr("key list"), HasSubstr("string 1")));
}

TEST(GgufParse, BadKeysAreNamed) {
  GgufWriter writer;
  writer.Set<uint32_t>("", 1);
  EXPECT_THAT(Message(writer), HasSubstr("key 0 has an empty name"));
  writer = GgufWriter();
  writer.Set<uint32_t>(std::string(65'536, 'x'), 1);
  EXPECT_THAT(Message(writer), HasSubstr("65,536 bytes long"));
  writer = GgufWriter();
  writer.Set<uint32_t>(std::string(65'535, 'x'), 1);
  EXPECT_TRUE(ParseStatus(writer).ok());
  writer = GgufWriter();
  writer.SetRaw("odd", 13, Bytes(8));
  EXPECT_EQ(Message(writer), "key odd: unknown value type 13");
  writer = GgufWriter();
  writer.SetRawArray("odd", 13, 1, Bytes(8));
  EXPECT_EQ(Message(writer), "key odd: unknown element type 13");
  writer = GgufWriter();
  writer.SetRawArray("nested", 9, 1, Bytes(32));
  EXPECT_THAT(Message(writer), HasSubstr("key nested: an array of arrays"));
  writer = GgufWriter();
  writer.SetRaw("flag", 7, {std::byte{2}});
  EXPECT_EQ(Message(writer), "key flag: a bool is 2: need 0 or 1");
  writer = GgufWriter();
  writer.SetRawArray("flags", 7, 3, {std::byte{1}, std::byte{0}, std::byte{255}});
  EXPECT_EQ(Message(writer), "key flags: a bool is 255: need 0 or 1");
}

TEST(GgufParse, ANameMayOccurOnce) {  // GGUF-14
  GgufWriter writer = TinyLlama();
  writer.AppendRaw("llama.block_count", 4, GgufWriter::Encode(uint32_t{6}));
  EXPECT_EQ(Message(writer), "key llama.block_count is in the header twice");
  writer = TinyLlama();
  writer.AppendTensor(RawTensor("blk.0.attn_q.weight", {16, 16}));
  EXPECT_EQ(Message(writer), "tensor blk.0.attn_q.weight is in the header twice");
}

TEST(GgufParse, AlignmentIsAPowerOfTwo) {  // GGUF-03
  for (const uint32_t alignment : {0u, 3u, 0x80000000u, 0xFFFFFFFFu, 2u << 20}) {
    GgufWriter writer = TinyLlama();
    writer.Set<uint32_t>("general.alignment", alignment);
    EXPECT_THAT(Message(writer),
                AllOf(HasSubstr("key general.alignment is"), HasSubstr(std::to_string(alignment))));
  }
  for (uint32_t alignment = 1; alignment <= 1u << 20; alignment *= 2) {
    GgufWriter writer = TinyLlama();
    writer.alignment = alignment;
    writer.Set<uint32_t>("general.alignment", alignment);
    if (alignment >= 1u << 17) {  // keeps the file small
      writer = GgufWriter();
      writer.Set<uint32_t>("general.alignment", alignment);
    }
    EXPECT_TRUE(ParseStatus(writer).ok()) << alignment << Message(writer);
  }
  GgufWriter writer = TinyLlama();
  writer.Set<int32_t>("general.alignment", 64);
  EXPECT_EQ(Message(writer), "key general.alignment: found i32 64, need u32");
}

TEST(GgufParse, ShapesAreSane) {  // GGUF-08
  const std::pair<GgufWriter::Tensor, const char*> bad[] = {
      {RawTensor("t", {}), "tensor t: 0 dimensions"},
      {RawTensor("t", {1, 1, 1, 1, 1}), "tensor t: 5 dimensions"},
      {RawTensor("t", std::vector<uint64_t>(9, 1)), "tensor t: 9 dimensions"},
      {RawTensor("t", {uint64_t{1} << 33, uint64_t{1} << 33}), "tensor t: dimension 1"},
      {RawTensor("t", {~uint64_t{0}}), "tensor t: dimension 0"},
      {RawTensor("t", {64, 0}), "tensor t: dimension 1 is 0"},
      {RawTensor("t", {48, 2}, 8), "rows of 48 elements, but Q8_0 needs a multiple of 32"},
      {RawTensor("t", {128, 2}, 12), "rows of 128 elements, but Q4_K needs a multiple of 256"},
      {RawTensor("", {1}), "tensor 0 has an empty name"},
      {RawTensor(std::string(64, 'n'), {1}), "64 bytes long"},
  };
  for (const auto& [tensor, message] : bad) {
    GgufWriter writer;
    writer.AppendTensor(tensor);
    EXPECT_THAT(ParseStatus(writer.File()).message(), HasSubstr(message));
  }
  GgufWriter writer;
  GgufWriter::Tensor many = RawTensor("t", {1});
  many.num_dims = 0xFFFFFFFFu;
  writer.AppendTensor(many);
  EXPECT_THAT(Message(writer), HasSubstr("tensor t: 4294967295 dimensions"));
  writer = GgufWriter();
  writer.AppendTensor(RawTensor(std::string(63, 'n'), {1, 1, 1, 1}));
  EXPECT_TRUE(ParseStatus(writer).ok()) << Message(writer);
}

TEST(GgufParse, UnknownWeightTypesAreNamed) {
  for (const auto& [id, name] :
       {std::pair{16u, "IQ2_XXS"}, {4u, "type 4"}, {0x7FFFFFFFu, "type 2"}}) {
    GgufWriter writer;
    writer.AppendTensor(RawTensor("t", {256}, id));
    const Status status = ParseStatus(writer);
    EXPECT_EQ(status.code(), StatusCode::kUnsupported);
    EXPECT_THAT(status.message(), HasSubstr(name));
  }
}

TEST(GgufParse, SizesThatWrapAreRefused) {  // GGUF-01
  GgufWriter writer;
  writer.AppendTensor(RawTensor("a", {uint64_t{1} << 61}));
  EXPECT_THAT(Message(writer), HasSubstr("tensor a: dimension 0"));
  writer = GgufWriter();  // each fits in 64 bits, their sum is 2^64
  for (const char* name : {"a", "b", "c", "d"}) {
    GgufWriter::Tensor tensor = RawTensor(name, {uint64_t{1} << 60});
    tensor.offset = 0;
    writer.AppendTensor(tensor);
  }
  EXPECT_THAT(Message(writer), HasSubstr("tensors need 4,611,686,018,427,388,"));
  writer = GgufWriter();
  GgufWriter::Tensor far = RawTensor("a", {8});
  far.offset = ~uint64_t{0} - 31;
  writer.AppendTensor(far);
  EXPECT_THAT(Message(writer), HasSubstr("tensor a: offset 18446744073709551584 lies far outside"));
}

TEST(GgufParse, TensorsLieInTheFile) {  // GGUF-06
  GgufWriter writer = TinyLlama();
  const Bytes good = writer.File();
  GgufWriter::Tensor* last = writer.FindTensor("blk.1.ffn_down.weight");
  const uint64_t data_start = (writer.Header().size() + 31) / 32 * 32;
  last->offset = good.size() - data_start - 24 * 16 * 4 + 4096;
  const Bytes bad = writer.File();
  ASSERT_EQ(bad.size(), good.size());
  const Status status = ParseStatus(bad);
  EXPECT_EQ(status.code(), StatusCode::kInvalidFile);
  EXPECT_THAT(status.message(),
              HasSubstr("tensor blk.1.ffn_down.weight has 1,536 bytes from byte"));
  last->offset = 4;
  EXPECT_THAT(Message(writer), HasSubstr("offset 4 is not a multiple of the alignment, 32"));
}

TEST(GgufParse, TensorsDoNotOverlap) {
  GgufWriter writer = TinyLlama();
  writer.FindTensor("blk.0.attn_k.weight")->offset = 0;
  EXPECT_THAT(Message(writer), AllOf(HasSubstr("token_embd.weight"), HasSubstr("overlap"),
                                     HasSubstr("blk.0.attn_k.weight")));
}

TEST(GgufParse, TheLastTensorMayLackItsPadding) {
  GgufWriter writer;
  writer.SetTensor("t", {3});
  const Bytes file = writer.File();
  EXPECT_EQ(file.size() % 32, 12u);
  EXPECT_TRUE(ParseStatus(file).ok());
}

TEST(GgufParse, AFileCutAtAnyByteIsRefused) {
  const GgufWriter writer = TinyLlama();
  const Bytes file = writer.File();
  const size_t header_bytes = writer.Header().size();
  // In the data one place is like another; the last one is cut by a single byte.
  for (size_t size = 0; size < file.size();
       size += size <= header_bytes || size + 100 > file.size() ? 1 : 97) {
    const Bytes cut(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(size));
    const Status status = ParseStatus(cut);
    ASSERT_EQ(status.code(), StatusCode::kInvalidFile) << size;
    ASSERT_FALSE(status.message().empty());
  }
}

TEST(GgufParse, APartOfTheHeaderAsksForMoreAndTheWholeDoesNot) {
  const GgufWriter writer = TinyLlama();
  const Bytes file = writer.File();
  const size_t header_bytes = writer.Header().size();
  for (size_t size = 0; size <= header_bytes + 100; ++size) {
    const auto result = ParseGguf(std::span(file).first(size), file.size());
    ASSERT_TRUE(result.ok()) << size << ": " << result.status().message();
    ASSERT_EQ(result->has_value(), size >= header_bytes) << size;
  }
}

TEST(GgufParse, NamesInMessagesArePrintable) {
  GgufWriter writer;
  writer.SetRaw("evil\x1B[2J\n", 13, Bytes(8));
  EXPECT_EQ(Message(writer), "key evil\\x1B[2J\\x0A: unknown value type 13");
}

}  // namespace
}  // namespace quire
