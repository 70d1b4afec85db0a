// Every key that an architecture reads, missing, zero, huge and of the wrong type: the file loads
// by the key's default, or the error names the key.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "model/architecture.h"
#include "model/gguf_writer.h"

namespace quire {
namespace {

using ::testing::HasSubstr;

enum class Kind {
  kRequiredInteger,
  kRequiredNumber,
  kInteger,       // 0 or absent: the default
  kPositive,      // absent: the default; 0 is wrong
  kNumber,        // 0 or absent: the default
  kRefusedNumber  // only 0 or absent
};

struct Key {
  const char* name;
  Kind kind;
};

constexpr Key kCommonKeys[] = {
    {"context_length", Kind::kRequiredInteger},
    {"embedding_length", Kind::kRequiredInteger},
    {"block_count", Kind::kRequiredInteger},
    {"feed_forward_length", Kind::kRequiredInteger},
    {"attention.head_count", Kind::kRequiredInteger},
    {"attention.head_count_kv", Kind::kPositive},
    {"attention.key_length", Kind::kInteger},
    {"attention.value_length", Kind::kInteger},
    {"attention.layer_norm_rms_epsilon", Kind::kRequiredNumber},
    {"nextn_predict_layers", Kind::kInteger},
    {"vocab_size", Kind::kInteger},
    {"rope.dimension_count", Kind::kInteger},
    {"rope.freq_base", Kind::kNumber},
    {"rope.scale_linear", Kind::kNumber},
    {"rope.scaling.factor", Kind::kNumber},
    {"rope.scaling.original_context_length", Kind::kInteger},
    {"rope.scaling.attn_factor", Kind::kNumber},
    {"rope.scaling.yarn_beta_fast", Kind::kNumber},
    {"rope.scaling.yarn_beta_slow", Kind::kNumber},
};

std::vector<Key> KeysOf(std::string_view architecture) {
  std::vector<Key> keys(std::begin(kCommonKeys), std::end(kCommonKeys));
  if (architecture == "llama" || architecture == "gemma3")
    keys.push_back({"attention.sliding_window", Kind::kInteger});
  if (architecture == "llama") keys.push_back({"expert_count", Kind::kInteger});
  if (architecture == "gemma3") {
    keys.push_back({"attention.sliding_window_pattern", Kind::kInteger});
    keys.push_back({"rope.freq_base_swa", Kind::kNumber});
    keys.push_back({"attn_logit_softcapping", Kind::kRefusedNumber});
    keys.push_back({"final_logit_softcapping", Kind::kRefusedNumber});
  }
  return keys;
}

Status Check(const GgufWriter& writer) {
  const Bytes file = writer.File();
  const auto header = ParseGguf(file, file.size());
  if (!header.ok()) return header.status();
  const auto shape = ReadShape(**header);
  if (!shape.ok()) return shape.status();
  return CheckTensors(**header, *shape).status();
}

using Change = std::function<void(GgufWriter&, const std::string& key)>;

class Malformed : public ::testing::TestWithParam<std::string_view> {
 protected:
  // Each key of the architecture, of any of `kinds`, changed.
  void ForEachKey(std::initializer_list<Kind> kinds, const char* what, const Change& change,
                  const std::function<void(const Status&, const std::string& key)>& expect) {
    int num_keys = 0;
    for (const Key& key : KeysOf(GetParam())) {
      if (std::find(kinds.begin(), kinds.end(), key.kind) == kinds.end()) continue;
      const std::string name = std::string(GetParam()) + "." + key.name;
      SCOPED_TRACE(name + " " + what);
      GgufWriter writer = TinyOf(GetParam());
      change(writer, name);
      expect(Check(writer), name);
      ++num_keys;
    }
    EXPECT_GT(num_keys, 0);
  }

  static void ExpectNamed(const Status& status, const std::string& key) {
    ASSERT_FALSE(status.ok());
    EXPECT_THAT(status.message(), HasSubstr(key));
    EXPECT_TRUE(status.code() == StatusCode::kInvalidFile ||
                status.code() == StatusCode::kUnsupported);
  }
  static void ExpectLoads(const Status& status, const std::string&) {
    EXPECT_TRUE(status.ok()) << status.message();
  }
};

TEST_P(Malformed, RequiredKeysAreNamedWhenMissingOrZero) {
  ForEachKey(
      {Kind::kRequiredInteger, Kind::kRequiredNumber}, "missing",
      [](GgufWriter& writer, const std::string& key) { writer.Remove(key); }, ExpectNamed);
  ForEachKey(
      {Kind::kRequiredInteger, Kind::kPositive}, "zero",
      [](GgufWriter& writer, const std::string& key) { writer.Set<uint32_t>(key, 0); },
      ExpectNamed);
  ForEachKey(
      {Kind::kRequiredNumber}, "zero",
      [](GgufWriter& writer, const std::string& key) { writer.Set<float>(key, 0); }, ExpectNamed);
}

TEST_P(Malformed, OthersHaveTheirDefaultWhenMissingOrZero) {
  ForEachKey(
      {Kind::kInteger, Kind::kPositive, Kind::kNumber, Kind::kRefusedNumber}, "missing",
      [](GgufWriter& writer, const std::string& key) {
        writer.Remove(key);
        if (!key.ends_with("head_count_kv")) return;
        for (const std::string layer : {"blk.0.", "blk.1."}) {  // every head has its own
          for (const std::string name : {"attn_k", "attn_v"}) {
            writer.SetTensor(layer + name + ".weight", {16, 16});
            if (writer.FindTensor(layer + name + ".bias") != nullptr)
              writer.SetTensor(layer + name + ".bias", {16});
          }
        }
      },
      ExpectLoads);
  ForEachKey(
      {Kind::kInteger}, "zero",
      [](GgufWriter& writer, const std::string& key) { writer.Set<uint32_t>(key, 0); },
      ExpectLoads);
  ForEachKey(
      {Kind::kNumber, Kind::kRefusedNumber}, "zero",
      [](GgufWriter& writer, const std::string& key) { writer.Set<float>(key, 0); }, ExpectLoads);
}

TEST_P(Malformed, HugeAndNegativeValuesAreNamed) {
  for (const uint64_t huge : {uint64_t{0xFFFFFFFF}, uint64_t{1} << 40, ~uint64_t{0}})
    ForEachKey(
        {Kind::kRequiredInteger, Kind::kInteger, Kind::kPositive}, "huge",
        [=](GgufWriter& writer, const std::string& key) { writer.Set(key, huge); }, ExpectNamed);
  ForEachKey(
      {Kind::kRequiredInteger, Kind::kInteger, Kind::kPositive}, "negative",
      [](GgufWriter& writer, const std::string& key) { writer.Set<int32_t>(key, -1); },
      ExpectNamed);
  for (const float bad : {1e30f, -1.0f, INFINITY, -INFINITY, NAN})
    ForEachKey(
        {Kind::kRequiredNumber, Kind::kNumber, Kind::kRefusedNumber}, "out of range",
        [=](GgufWriter& writer, const std::string& key) { writer.Set(key, bad); }, ExpectNamed);
}

TEST_P(Malformed, WrongTypesAreNamed) {
  const auto all = {Kind::kRequiredInteger, Kind::kRequiredNumber, Kind::kInteger,
                    Kind::kPositive,        Kind::kNumber,         Kind::kRefusedNumber};
  ForEachKey(
      all, "a string",
      [](GgufWriter& writer, const std::string& key) { writer.SetString(key, "2"); }, ExpectNamed);
  ForEachKey(
      all, "a bool",
      [](GgufWriter& writer, const std::string& key) { writer.Set<bool>(key, true); }, ExpectNamed);
  ForEachKey(
      all, "a list of strings",
      [](GgufWriter& writer, const std::string& key) {
        writer.SetStrings(key, {"2", "2"});
      },
      ExpectNamed);
  ForEachKey(
      all, "an empty list",
      [](GgufWriter& writer, const std::string& key) { writer.SetArray<int32_t>(key, {}); },
      ExpectNamed);
  ForEachKey(
      {Kind::kRequiredInteger, Kind::kInteger, Kind::kPositive}, "a float",
      [](GgufWriter& writer, const std::string& key) { writer.Set<float>(key, 2); }, ExpectNamed);
  ForEachKey(
      {Kind::kRequiredNumber, Kind::kNumber}, "an integer",
      [](GgufWriter& writer, const std::string& key) { writer.Set<uint32_t>(key, 2); },
      ExpectNamed);
}

INSTANTIATE_TEST_SUITE_P(Keys, Malformed, ::testing::ValuesIn(kTinyArchitectures),
                         [](const auto& architecture) { return std::string(architecture.param); });

TEST(MalformedPattern, ListsMustHaveOneBoolALayer) {
  constexpr char kPattern[] = "gemma3.attention.sliding_window_pattern";
  GgufWriter writer = TinyOf("gemma3");
  EXPECT_TRUE(Check(writer.SetArray<bool>(kPattern, {true, false})).ok());
  EXPECT_EQ(Check(writer.SetArray<bool>(kPattern, {true})).message(),
            std::string("key ") + kPattern + " has 1 values for 2 layers");
  EXPECT_EQ(Check(writer.SetArray<int32_t>(kPattern, {1, 0})).message(),
            std::string("key ") + kPattern + ": found array of 2 i32, need an array of bool");
  EXPECT_FALSE(Check(writer.SetRawArray(kPattern, static_cast<uint32_t>(GgufType::kBool), 2,
                                        {std::byte{1}, std::byte{2}}))
                   .ok())
      << "2 is no bool";
}

}  // namespace
}  // namespace quire
