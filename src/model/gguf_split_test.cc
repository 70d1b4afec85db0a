#include "model/gguf_split.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/gguf_writer.h"

namespace quire {
namespace {

using ::testing::HasSubstr;

// The headers of some writers' files; the views in them need the bytes.
struct Headers {
  explicit Headers(const std::vector<GgufWriter>& writers) {
    for (const GgufWriter& writer : writers) files.push_back(writer.File());
    for (const Bytes& file : files) headers.push_back(**ParseGguf(file, file.size()));
    for (const GgufHeader& header : headers) parts.push_back(&header);
  }
  std::vector<Bytes> files;
  std::vector<GgufHeader> headers;
  std::vector<const GgufHeader*> parts;
};

std::string MergeMessage(const std::vector<GgufWriter>& writers) {
  return MergeParts(Headers(writers).parts).status().message();
}

TEST(GgufSplit, NamesHaveTheNumberAndTheCount) {
  EXPECT_EQ(SplitPlaceOfName("/m/a-00002-of-00003.gguf"), (SplitPlace{1, 3}));
  EXPECT_EQ(SplitPlaceOfName("-00001-of-00001.gguf"), (SplitPlace{0, 1}));
  for (const char* name :
       {"", "a.gguf", "a-0002-of-0003.gguf", "a-00002-of-00003.bin", "a-00004-of-00003.gguf",
        "a-00000-of-00003.gguf", "a-0000x-of-00003.gguf", "a-00002_of_00003.gguf",
        "a_00002-of-00003.gguf", "00002-of-00003.gguf"})
    EXPECT_EQ(SplitPlaceOfName(name), std::nullopt) << name;
  EXPECT_EQ(PartPath("/m/a-00002-of-00012.gguf", 11), "/m/a-00012-of-00012.gguf");
  EXPECT_EQ(PartPath("x-00002-of-00003.gguf-00002-of-00003.gguf", 0),
            "x-00002-of-00003.gguf-00001-of-00003.gguf");
}

TEST(GgufSplit, PlaceIsReadFromTheKeys) {
  const auto place = [](const GgufWriter& writer) {
    return ReadSplitPlace(Headers({writer}).headers[0]);
  };
  EXPECT_EQ(*place(TinyLlama()), (SplitPlace{0, 1}));
  EXPECT_EQ(*place(TinyLlama().Set<uint16_t>("split.count", 1)), (SplitPlace{0, 1}));
  GgufWriter writer = TinyLlama();
  writer.Set<uint16_t>("split.count", 3);
  EXPECT_EQ(place(writer).status().message(), "key split.no is missing");
  writer.Set<uint16_t>("split.no", 3);
  EXPECT_EQ(place(writer).status().message(), "key split.no is 3: need 0 to 2");
  EXPECT_EQ(*place(writer.Set<uint64_t>("split.no", 2)), (SplitPlace{2, 3}));
  EXPECT_FALSE(place(writer.Set<uint32_t>("split.count", 0xFFFFFFFF)).ok());
  EXPECT_FALSE(place(writer.SetString("split.count", "3")).ok());
}

TEST(GgufSplit, MergedHeadersHaveTheKeysOfTheFirstAndAllTensors) {
  const Headers whole({TinyLlama()});
  for (const uint16_t count : {1, 2, 3, 20}) {  // 20: one tensor each
    const Headers split(TinyLlama().Split(count));
    const auto merged = MergeParts(split.parts);
    ASSERT_TRUE(merged.ok()) << merged.status().message();
    EXPECT_EQ(*merged->GetString("general.name"), "tiny");
    uint64_t file_bytes = 0;
    for (const GgufHeader& part : split.headers) file_bytes += part.file_bytes();
    EXPECT_EQ(merged->file_bytes(), file_bytes);
    ASSERT_EQ(merged->tensors().size(), whole.headers[0].tensors().size());
    for (const GgufTensor& tensor : whole.headers[0].tensors()) {
      const GgufTensor* found = merged->FindTensor(tensor.name);
      ASSERT_NE(found, nullptr) << tensor.name;
      EXPECT_EQ(found->dims, tensor.dims);
      const GgufTensor* own = split.headers[found->part].FindTensor(tensor.name);
      ASSERT_NE(own, nullptr) << tensor.name;
      EXPECT_EQ(found->file_offset, own->file_offset);
    }
  }
}

TEST(GgufSplit, PartsThatDoNotFitAreRefused) {
  const std::vector<GgufWriter> good = TinyLlama().Split(3);
  EXPECT_EQ(MergeMessage(good), "");
  auto parts = good;
  std::swap(parts[0], parts[1]);
  EXPECT_EQ(MergeMessage(parts), "part 1 of 3 says of itself that it is part 2 of 3");
  parts = good;
  parts[2].Set<uint16_t>("split.count", 4);
  EXPECT_EQ(MergeMessage(parts), "part 3 of 3 says of itself that it is part 3 of 4");
  parts = good;
  parts[1].Remove("split.no").Remove("split.count");
  EXPECT_EQ(MergeMessage(parts), "part 2 of 3 says of itself that it is part 1 of 1");
  parts = good;
  parts[1].RemoveTensor("blk.0.attn_q.weight").RemoveTensor("blk.0.ffn_gate.weight");
  EXPECT_THAT(MergeMessage(parts), HasSubstr("key split.tensors.count of part 1 is 20, but the 3 "
                                             "parts hold 1"));
  parts = good;
  parts[0].Remove("split.tensors.count");
  EXPECT_EQ(MergeMessage(parts), "key split.tensors.count is missing");
  parts = good;
  parts[2].Remove("split.tensors.count");
  EXPECT_EQ(MergeMessage(parts), "") << "one is enough";
  parts[2].Set<int32_t>("split.tensors.count", -1);
  EXPECT_THAT(MergeMessage(parts), HasSubstr("split.tensors.count is -1"));
  parts = good;
  for (GgufWriter& part : parts) part.Set<int32_t>("split.tensors.count", 21);
  parts[2].SetTensor("token_embd.weight", {16, 12});
  EXPECT_EQ(MergeMessage(parts), "tensor token_embd.weight is in part 1 and in part 3");
}

}  // namespace
}  // namespace quire
