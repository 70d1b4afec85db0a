#include "plan/read_kv_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>

#include "base/test_data.h"
#include "model/gguf_writer.h"
#include "plan/formula_bytes.h"

namespace quire {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

// A folder for one test, removed with it.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (fs::temp_directory_path() / "quire_plan_XXXXXX").string();
    path_ = mkdtemp(name.data());
  }
  ~TemporaryFolder() { fs::remove_all(path_); }
  std::string Write(const std::string& name, std::string_view text) const {
    std::ofstream(path_ / name, std::ios::binary) << text;
    return path_ / name;
  }
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

std::string_view AsText(const Bytes& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string Error(const std::string& path, StatusCode code) {
  const auto model = ReadKvModel(path);
  EXPECT_FALSE(model.ok()) << path;
  if (model.ok()) return "";
  EXPECT_EQ(model.status().code(), code) << model.status().message();
  EXPECT_THAT(model.status().message(), HasSubstr(path));
  return model.status().message();
}

TEST(ReadKvModel, TheFirstBytesSayWhatAFileIs) {
  const TemporaryFolder folder;
  const auto gguf = ReadKvModel(folder.Write("weights.json", AsText(TinyLlama().File())));
  ASSERT_TRUE(gguf.ok()) << gguf.status().message();
  EXPECT_EQ(gguf->source, "GGUF header");
  const std::string text = ReadTestFile(TestData("configs/llama-3-8b.json"));
  const auto config = ReadKvModel(folder.Write("x.gguf", "\xEF\xBB\xBF\n " + text));
  ASSERT_TRUE(config.ok()) << config.status().message();
  EXPECT_EQ(config->source, "config.json");
  EXPECT_EQ(config->name, "x");
}

TEST(ReadKvModel, AFolderIsItsConfig) {
  const TemporaryFolder folder;
  fs::create_directory(folder.path() / "Llama-3-8B");
  fs::copy(TestData("configs/llama-3-8b.json"), folder.path() / "Llama-3-8B" / "config.json");
  for (const char* name : {"Llama-3-8B", "Llama-3-8B/", "Llama-3-8B/config.json"}) {
    const auto model = ReadKvModel((folder.path() / name).string());
    ASSERT_TRUE(model.ok()) << model.status().message();
    EXPECT_EQ(model->name, "Llama-3-8B");
    EXPECT_EQ(FormulaBytes(*model, 1, 16), 131'072u);
  }
}

TEST(ReadKvModel, ANameComesFromTheFileIfItHasOne) {
  const TemporaryFolder folder;
  const auto config = ReadKvModel(folder.Write(
      "config.json", R"({"model_type": "gpt2", "n_embd": 768, "n_layer": 12, "n_head": 12,
                         "_name_or_path": "openai/gpt2"})"));
  ASSERT_TRUE(config.ok()) << config.status().message();
  EXPECT_EQ(config->name, "openai/gpt2");
  GgufWriter writer = TinyLlama();
  writer.Remove("general.name");
  EXPECT_EQ(ReadKvModel(folder.Write("tiny-7b.gguf", AsText(writer.File())))->name, "tiny-7b");
  writer.SetString("general.name", "Tiny");
  EXPECT_EQ(ReadKvModel(folder.Write("tiny-7b.gguf", AsText(writer.File())))->name, "Tiny");
}

TEST(ReadKvModel, WhatIsNoModelIsAnErrorThatNamesThePath) {
  const TemporaryFolder folder;
  Error((folder.path() / "no.gguf").string(), StatusCode::kNotFound);
  EXPECT_THAT(Error(folder.path().string(), StatusCode::kNotFound), HasSubstr("no config.json"));
  EXPECT_THAT(Error("/dev/null", StatusCode::kInvalidArgument), HasSubstr("is no file"));
  const std::string pipe = folder.path() / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  Error(pipe, StatusCode::kInvalidArgument);  // and it does not wait for a writer
  for (const char* text : {"", "GG", "PK\x03\x04 safetensors", "hello", "[1]", "\xEF\xBB\xBF"})
    EXPECT_THAT(Error(folder.Write("a", text), StatusCode::kInvalidFile), HasSubstr("neither"));
  Error(folder.Write("b", "GGUF"), StatusCode::kInvalidFile);
  Error(folder.Write("c", "{\"model_type\": \"bert\"}"), StatusCode::kUnsupported);
  Error(folder.Write("d", "{" + std::string(2'000'000, ' ')), StatusCode::kInvalidFile);
}

uint64_t ResidentBytes() {
  uint64_t size = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> size >> resident;
  return resident * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

TEST(ReadKvModel, OnlyTheHeaderOfAModelIsRead) {  // PLN-14
  const TemporaryFolder folder;
  // 5 GB of one tensor; the file has a hole for them.
  GgufWriter writer = TinyLlama();
  const uint64_t tensor_bytes = uint64_t{5'000'000'000} / 64 * 64;
  GgufWriter::Tensor large;
  large.name = "large.weight";
  large.dims = {tensor_bytes / 4, 1};
  large.data = Bytes(1);
  writer.AppendTensor(large);
  const Bytes file = writer.File();
  const std::string path = folder.Write("large.gguf", AsText(file));
  std::error_code error;
  fs::resize_file(path, file.size() + tensor_bytes, error);
  if (error) GTEST_SKIP() << "no room for a sparse file";
  const uint64_t before = ResidentBytes();
  std::chrono::duration<double, std::milli> least(1e9);  // of three: the machine may be busy
  for (int i = 0; i < 3; ++i) {
    const auto start = std::chrono::steady_clock::now();
    const auto model = ReadKvModel(path);
    const auto end = std::chrono::steady_clock::now();
    least = std::min<std::chrono::duration<double, std::milli>>(least, end - start);
    ASSERT_TRUE(model.ok()) << model.status().message();
    EXPECT_GT(*model->weight_bytes, tensor_bytes);
  }
  EXPECT_LT(ResidentBytes(), before + (uint64_t{50} << 20));
#ifdef NDEBUG
  EXPECT_LT(least.count(), 100);
#endif
}

}  // namespace
}  // namespace quire
