#include "model/gguf_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/message_text.h"
#include "base/test_data.h"
#include "model/gguf_writer.h"

namespace quire {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// A folder of its own for each test, removed at its end.
class GgufFileTest : public ::testing::Test {
 protected:
  GgufFileTest() {
    std::string pattern = std::filesystem::temp_directory_path() / "quire-gguf-XXXXXX";
    folder_ = mkdtemp(pattern.data());
  }
  ~GgufFileTest() override { std::filesystem::remove_all(folder_); }

  std::string Path(const std::string& name) const { return folder_ / name; }

  std::string Write(const std::string& name, std::span<const std::byte> bytes) const {
    std::ofstream(Path(name), std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
    return Path(name);
  }
  std::string Write(const std::string& name, std::string_view text) const {
    return Write(name, std::as_bytes(std::span(text)));
  }

  std::filesystem::path folder_;
};

Status OpenStatus(const std::string& path) { return GgufFile::Open(path).status(); }

// A tensor of 256 bytes 0, 1, 2, ...
GgufWriter Counting() {
  GgufWriter writer;
  Bytes data(256);
  for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<std::byte>(i);
  writer.SetString("general.architecture", "llama")
      .SetTensor("first", {3})
      .SetTensor("counting", {64}, WeightType::kF32, data);
  return writer;
}

TEST_F(GgufFileTest, ReadsPartsOfTensors) {
  const std::string path = Write("m.gguf", Counting().File());
  auto file = GgufFile::Open(path);
  ASSERT_TRUE(file.ok()) << file.status().message();
  EXPECT_EQ(file->path(), path);
  EXPECT_EQ(file->size_bytes(), std::filesystem::file_size(path));
  const GgufFile moved = std::move(*file);  // views stay valid
  EXPECT_EQ(*moved.header().GetString("general.architecture"), "llama");
  const GgufTensor* tensor = moved.header().FindTensor("counting");
  ASSERT_NE(tensor, nullptr);
  for (size_t offset = 0; offset <= 256; offset += 51) {
    Bytes bytes(std::min<size_t>(60, 256 - offset));
    ASSERT_TRUE(moved.Read(*tensor, offset, bytes).ok());
    for (size_t i = 0; i < bytes.size(); ++i)
      EXPECT_EQ(bytes[i], static_cast<std::byte>(offset + i));
  }
  EXPECT_TRUE(moved.CheckUnchanged().ok());
}

TEST_F(GgufFileTest, ThreadsMayReadAtOnce) {
  const auto file = GgufFile::Open(Write("m.gguf", Counting().File()));
  const GgufTensor* tensor = file->header().FindTensor("counting");
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&, t] {
      for (size_t i = 0; i < 256; ++i) {
        std::byte byte;
        const size_t offset = (i * 7 + static_cast<size_t>(t)) % 256;
        ASSERT_TRUE(file->Read(*tensor, offset, {&byte, 1}).ok());
        ASSERT_EQ(byte, static_cast<std::byte>(offset));
      }
    });
  for (std::thread& thread : threads) thread.join();
}

TEST_F(GgufFileTest, PathsThatAreNoModelsAreExplained) {
  Status status = OpenStatus(Path("absent.gguf"));
  EXPECT_EQ(status.code(), StatusCode::kNotFound);
  EXPECT_EQ(ExitCode(status.code()), 3);
  EXPECT_EQ(status.message(), Path("absent.gguf") + ": no such file");
  EXPECT_EQ(OpenStatus("").code(), StatusCode::kNotFound);

  status = OpenStatus(folder_);
  EXPECT_EQ(ExitCode(status.code()), 3);
  EXPECT_THAT(status.message(), HasSubstr("is a directory"));

  ASSERT_EQ(mkfifo(Path("pipe").c_str(), 0600), 0);
  EXPECT_THAT(OpenStatus(Path("pipe")).message(), HasSubstr("not a regular file"));

  status = OpenStatus(Write("empty.gguf", ""));
  EXPECT_EQ(ExitCode(status.code()), 3);
  EXPECT_THAT(status.message(), HasSubstr("the file is empty"));
}

TEST_F(GgufFileTest, OtherFormatsAreNamed) {
  using namespace std::string_view_literals;
  const std::pair<std::string_view, const char*> formats[] = {
      {"\x40\x01\0\0\0\0\0\0{\"__metadata__\":{}}"sv, "a safetensors file"},
      {"PK\x03\x04\0\0\0\0archive/data.pkl"sv, "a PyTorch checkpoint"},
      {"\x80\x02}q"sv, "a Python pickle"},
      {"tjgg\x03\0\0\0"sv, "a model of the old ggjt format"},
      {"lmgg\x03\0\0\0"sv, "a model of the old ggml format"},
      {"\x1F\x8B\x08\0"sv, "a gzip file"},
      {"version https://git-lfs.github.com/spec/v1\n"sv, "a Git LFS pointer"},
      {"<!DOCTYPE html>"sv, "a web page"},
      {"\0\0\0\0\0\0\0\0"sv, "zeros"},
      {"hello, world"sv, "it starts with \"hell\""},
      {"GG"sv, "the file ends inside its header"},
  };
  for (const auto& [bytes, text] : formats) {
    const Status status = OpenStatus(Write("other", bytes));
    EXPECT_EQ(status.code(), StatusCode::kInvalidFile);
    EXPECT_THAT(status.message(), AllOf(StartsWith(Path("other")), HasSubstr(text)));
  }
}

// A model in three parts; the tensors count, so that a part read for another is seen.
class SplitTest : public GgufFileTest {
 protected:
  SplitTest() {
    GgufWriter writer;
    writer.SetString("general.architecture", "llama");
    for (int tensor = 0; tensor < 7; ++tensor) {
      Bytes data(64);
      for (size_t i = 0; i < data.size(); ++i)
        data[i] = static_cast<std::byte>(64 * static_cast<size_t>(tensor) + i);
      writer.SetTensor(Name(tensor), {16}, WeightType::kF32, data);
    }
    parts_ = writer.Split(3);
    const char* const names[] = {"m-00001-of-00003.gguf", "m-00002-of-00003.gguf",
                                 "m-00003-of-00003.gguf"};
    for (size_t i = 0; i < parts_.size(); ++i) paths_.push_back(Write(names[i], parts_[i].File()));
  }
  static std::string Name(int tensor) { return {'t', static_cast<char>('0' + tensor)}; }

  std::vector<GgufWriter> parts_;
  std::vector<std::string> paths_;
};

TEST_F(SplitTest, AnyPartOpensTheWholeModel) {  // GGUF-12
  for (const std::string& path : paths_) {
    const auto file = GgufFile::Open(path);
    ASSERT_TRUE(file.ok()) << file.status().message();
    EXPECT_EQ(file->path(), path);
    EXPECT_EQ(file->num_parts(), 3u);
    EXPECT_EQ(*file->header().GetString("general.architecture"), "llama");
    uint64_t size_bytes = 0;
    for (const std::string& part : paths_) size_bytes += std::filesystem::file_size(part);
    EXPECT_EQ(file->size_bytes(), size_bytes);
    for (int tensor = 0; tensor < 7; ++tensor) {
      const GgufTensor* found = file->header().FindTensor(Name(tensor));
      ASSERT_NE(found, nullptr);
      Bytes bytes(10);
      ASSERT_TRUE(file->Read(*found, 50, bytes).ok());
      for (size_t i = 0; i < bytes.size(); ++i)
        EXPECT_EQ(bytes[i], static_cast<std::byte>(64 * static_cast<size_t>(tensor) + 50 + i));
    }
    EXPECT_TRUE(file->CheckUnchanged().ok());
  }
}

TEST_F(SplitTest, AMissingPartIsNamed) {
  std::filesystem::remove(paths_[2]);
  const Status status = OpenStatus(paths_[1]);
  EXPECT_EQ(status.code(), StatusCode::kNotFound);
  EXPECT_EQ(status.message(), paths_[2] + ": no such file: the model that " + paths_[1] +
                                  " is a part of needs all 3 parts");
}

TEST_F(SplitTest, ABrokenPartIsNamed) {
  std::filesystem::resize_file(paths_[2], 40);
  EXPECT_THAT(OpenStatus(paths_[0]).message(), StartsWith(paths_[2] + ": "));
  Write("m-00003-of-00003.gguf", parts_[1].File());
  EXPECT_EQ(OpenStatus(paths_[0]).message(),
            paths_[0] + ": part 3 of 3 says of itself that it is part 2 of 3");
}

TEST_F(SplitTest, APartUnderAnotherNameSaysWhatItShouldBe) {
  for (const char* name : {"m.gguf", "m-00001-of-00003.gguf", "m-00002-of-00004.gguf"}) {
    const Status status = OpenStatus(Write(name, parts_[1].File()));
    EXPECT_EQ(status.code(), StatusCode::kInvalidFile);
    EXPECT_EQ(status.message(),
              Path(name) +
                  ": part 2 of a model that is split into 3 files: its name must end with "
                  "-00002-of-00003.gguf, by which the other parts are found beside it");
  }
}

TEST_F(SplitTest, APartThatChangesWhileOpenIsNoticedAndNamed) {
  const auto file = GgufFile::Open(paths_[0]);
  ASSERT_TRUE(file.ok());
  std::filesystem::resize_file(paths_[2], std::filesystem::file_size(paths_[2]) - 8);
  EXPECT_THAT(file->CheckUnchanged().message(), StartsWith(paths_[2] + ": "));
  Bytes bytes(64);
  EXPECT_THAT(file->Read(*file->header().FindTensor("t6"), 0, bytes).message(),
              StartsWith(paths_[2] + ": tensor t6"));
  EXPECT_TRUE(file->Read(*file->header().FindTensor("t0"), 0, bytes).ok());
}

TEST_F(SplitTest, OnePartIsNoSplit) {
  EXPECT_TRUE(OpenStatus(Write("whole.gguf", TinyLlama().Split(1)[0].File())).ok());
}

TEST_F(GgufFileTest, AHeaderLongerThanTheFirstReadIsReadWhole) {
  GgufWriter writer = TinyLlama();
  std::vector<std::string> texts;
  for (int i = 0; i < 100'000; ++i) texts.push_back("a token of some length " + std::to_string(i));
  writer.SetStrings("long.list", texts);
  const Bytes header = writer.Header();
  ASSERT_GT(header.size(), 3u << 20);
  const auto file = GgufFile::Open(Write("long.gguf", writer.File()));
  ASSERT_TRUE(file.ok()) << file.status().message();
  EXPECT_EQ(file->header().header_bytes(), header.size());
  EXPECT_EQ((*file->header().GetStrings("long.list")).back(), texts.back());
}

TEST_F(GgufFileTest, AHalfFinishedDownloadSaysHowMuchIsMissing) {  // GGUF-13
  const auto path = SharedData("models/stories260K/stories260K-f32.gguf");
  if (!path) GTEST_SKIP() << "no shared data folder";
  std::filesystem::copy_file(*path, Path("cut.gguf"));
  std::filesystem::resize_file(Path("cut.gguf"), 500'000);
  const Status status = OpenStatus(Path("cut.gguf"));
  EXPECT_EQ(status.code(), StatusCode::kInvalidFile);
  EXPECT_THAT(status.message(), HasSubstr("file has 500,000 bytes, tensors need 1,054,432"));
}

TEST_F(GgufFileTest, ARealHeaderCutAtAnyByteIsRefused) {
  const auto path = SharedData("models/stories260K/stories260K-f32.gguf");
  if (!path) GTEST_SKIP() << "no shared data folder";
  std::ifstream in(*path, std::ios::binary);
  std::string bytes(16'000, '\0');
  in.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  const auto all = std::as_bytes(std::span(bytes));
  for (size_t size = 0; size <= all.size(); ++size)
    ASSERT_FALSE(ParseGguf(all.first(size), size).ok()) << size;
}

TEST_F(GgufFileTest, AFileThatChangesWhileOpenGivesErrors) {  // GGUF-17
  const std::string path = Write("m.gguf", Counting().File());
  const auto file = GgufFile::Open(path);
  ASSERT_TRUE(file.ok());
  const GgufTensor* tensor = file->header().FindTensor("counting");
  Bytes bytes(256);
  std::filesystem::resize_file(path, file->size_bytes() - 56);
  const Status cut = file->Read(*tensor, 0, bytes);
  EXPECT_EQ(cut.code(), StatusCode::kInvalidFile);
  EXPECT_THAT(cut.message(),
              AllOf(HasSubstr("tensor counting"), HasSubstr("need 256 bytes"),
                    HasSubstr("now ends at " + GroupDigits(file->size_bytes() - 56))));
  EXPECT_TRUE(file->Read(*tensor, 0, std::span(bytes).first(200)).ok())
      << "what is left is readable";
  EXPECT_THAT(file->CheckUnchanged().message(), HasSubstr("length changed"));
  std::filesystem::resize_file(path, 0);
  EXPECT_EQ(file->header().tensors().size(), 2u) << "the header is ours";
  EXPECT_EQ(*file->header().GetString("general.architecture"), "llama");
}

TEST_F(GgufFileTest, AFileThatIsWrittenToIsNoticed) {
  const std::string path = Write("m.gguf", Counting().File());
  const auto file = GgufFile::Open(path);
  ASSERT_TRUE(file.ok());
  const timespec times[2] = {{1'000'000, 0}, {1'000'000, 0}};  // as a later write would
  ASSERT_EQ(utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
  EXPECT_THAT(file->CheckUnchanged().message(), HasSubstr("was written to"));
}

}  // namespace
}  // namespace quire
