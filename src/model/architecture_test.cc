#include "model/architecture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "model/gguf_writer.h"

namespace quire {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct Checked {
  Status status;
  std::vector<std::string> unknown;
};

Checked Check(const GgufWriter& writer) {
  const Bytes file = writer.File();
  const auto header = ParseGguf(file, file.size());
  if (!header.ok()) return {header.status(), {}};
  const auto shape = ReadShape(**header);
  if (!shape.ok()) return {shape.status(), {}};
  const auto unknown = CheckTensors(**header, *shape);
  if (!unknown.ok()) return {unknown.status(), {}};
  return {OkStatus(), {unknown->begin(), unknown->end()}};
}

std::string Message(const GgufWriter& writer) { return Check(writer).status.message(); }

TEST(Architecture, UnknownOnesAreNamedWithTheKnown) {
  const Status status = Check(TinyLlama().SetString("general.architecture", "mamba")).status;
  EXPECT_EQ(status.code(), StatusCode::kUnsupported);
  EXPECT_THAT(status.message(), AllOf(HasSubstr("mamba"), HasSubstr("llama")));
  for (const Architecture* architecture : AllArchitectures())
    EXPECT_EQ(*FindArchitecture(architecture->name), architecture);
}

TEST(Architecture, AdaptersAreNoModels) {
  EXPECT_THAT(Message(TinyLlama().SetString("general.type", "adapter")), HasSubstr("adapter"));
  EXPECT_TRUE(Check(TinyLlama().SetString("general.type", "model")).status.ok());
}

TEST(Architecture, TensorNamesAreMadeFromRules) {
  EXPECT_EQ(TensorName("blk.N.attn_q", 17, ".weight"), "blk.17.attn_q.weight");
  EXPECT_EQ(TensorName("output_norm", 17, ".bias"), "output_norm.bias");
}

TEST(Architecture, AWholeModelPasses) {
  for (const std::string_view architecture : kTinyArchitectures) {
    const Checked checked = Check(TinyOf(architecture));
    EXPECT_TRUE(checked.status.ok()) << checked.status.message();
    EXPECT_THAT(checked.unknown, IsEmpty());
  }
  EXPECT_EQ(std::size(kTinyArchitectures), AllArchitectures().size());
}

TEST(Architecture, EachRequiredTensorIsNamedWhenMissing) {
  for (const std::string_view architecture : kTinyArchitectures) {
    const Bytes file = TinyOf(architecture).File();
    const auto header = ParseGguf(file, file.size());
    for (const GgufTensor& tensor : (*header)->tensors()) {
      const std::string name(tensor.name);
      GgufWriter writer = TinyOf(architecture);
      writer.RemoveTensor(name);
      EXPECT_THAT(Message(writer), HasSubstr("tensor " + name + " is missing"));
    }
  }
}

TEST(Architecture, EachWrongShapeIsNamedWithBothShapes) {
  for (const std::string_view architecture : kTinyArchitectures) {
    const Bytes file = TinyOf(architecture).File();
    const auto header = ParseGguf(file, file.size());
    for (const GgufTensor& tensor : (*header)->tensors()) {
      const std::string name(tensor.name);
      if (name == "token_embd.weight") continue;  // shape_test.cc
      const auto with_dims = [&](std::vector<uint64_t> dims) {
        return TinyOf(architecture).SetTensor(name, std::move(dims));
      };
      const std::vector<uint64_t> dims(tensor.dims.begin(), tensor.dims.begin() + tensor.num_dims);
      std::vector<uint64_t> longer = dims, more = dims, transposed = dims, padded = dims;
      longer.back() += 1;
      more.push_back(2);
      transposed.insert(transposed.begin(), 1);
      padded.resize(4, 1);
      for (const auto& wrong : {longer, more, transposed})
        EXPECT_THAT(Message(with_dims(wrong)), AllOf(HasSubstr("tensor " + name + " has dims"),
                                                     HasSubstr("need " + DimsText(tensor))));
      EXPECT_TRUE(Check(with_dims(padded)).status.ok()) << "trailing ones say nothing";
    }
  }
}

TEST(Architecture, OptionalTensorsAreCheckedWhereTheyAre) {
  GgufWriter writer = TinyLlama();
  writer.SetTensor("output.weight", {16, 12})
      .SetTensor("rope_freqs.weight", {2})
      .SetTensor("blk.0.attn_q.bias", {16})
      .SetTensor("blk.0.attn_k.bias", {8})
      .SetTensor("blk.1.attn_output.bias", {16})
      .SetTensor("blk.1.ffn_gate.bias", {24})
      .SetTensor("blk.1.ffn_down.bias", {16})
      .SetTensor("blk.0.attn_q.scale", {1})
      .SetTensor("blk.0.attn_q.input_scale", {1})
      .SetTensor("blk.1.ffn_down.scale", {1});
  EXPECT_TRUE(Check(writer).status.ok()) << Message(writer);
  EXPECT_THAT(Check(writer).unknown, IsEmpty());
  EXPECT_EQ(Message(TinyLlama().SetTensor("blk.0.attn_k.bias", {16})),
            "tensor blk.0.attn_k.bias has dims [16]: need [8]");
  EXPECT_EQ(Message(TinyLlama().SetTensor("blk.0.attn_k.scale", {2})),
            "tensor blk.0.attn_k.scale has dims [2]: need [1]");
  EXPECT_EQ(Message(TinyLlama().SetTensor("output.weight", {16, 13})),
            "tensor output.weight has dims [16, 13]: need [16, 12]");
  EXPECT_EQ(Message(TinyLlama().SetTensor("rope_freqs.weight", {4})),
            "tensor rope_freqs.weight has dims [4]: need [2]");
}

TEST(Architecture, OneFusedTensorMayStandForThree) {
  GgufWriter writer = TinyLlama();
  for (const char* name : {"attn_q", "attn_k", "attn_v"})
    writer.RemoveTensor(std::string("blk.1.") + name + ".weight");
  writer.SetTensor("blk.1.attn_qkv.weight", {16, 32}).SetTensor("blk.1.attn_qkv.bias", {32});
  EXPECT_TRUE(Check(writer).status.ok()) << Message(writer);
  writer.SetTensor("blk.1.attn_k.weight", {16, 8});
  EXPECT_EQ(
      Message(writer),
      "the file has both tensor blk.1.attn_k.weight and blk.1.attn_qkv.weight: one of the two "
      "forms is needed");
  writer.RemoveTensor("blk.1.attn_k.weight").SetTensor("blk.1.attn_qkv.weight", {16, 48});
  EXPECT_EQ(Message(writer), "tensor blk.1.attn_qkv.weight has dims [16, 48]: need [16, 32]");
}

TEST(Architecture, UnknownTensorsAreListed) {
  GgufWriter writer = TinyLlama();
  writer.SetTensor("cls.output.weight", {16, 2}).SetTensor("blk.0.attn_q_norm.weight", {4});
  const Checked checked = Check(writer);
  EXPECT_TRUE(checked.status.ok());
  EXPECT_THAT(checked.unknown, ElementsAre("cls.output.weight", "blk.0.attn_q_norm.weight"));
}

TEST(Architecture, LayersThatPredictFurtherTokensAreSkipped) {
  GgufWriter writer = TinyLlama();
  writer.Set<uint32_t>("llama.block_count", 3).Set<uint32_t>("llama.nextn_predict_layers", 1);
  writer.SetTensor("blk.2.attn_q.weight", {3, 3}).SetTensor("blk.2.nextn.eh_proj.weight", {3});
  const Checked checked = Check(writer);
  EXPECT_TRUE(checked.status.ok()) << checked.status.message();
  EXPECT_THAT(checked.unknown, IsEmpty());
}

TEST(Architecture, TypesThatAVectorCannotHaveAreNamed) {
  GgufWriter norm = TinyLlama();
  norm.SetTensor("output_norm.weight", {16}, WeightType::kF16);
  EXPECT_TRUE(Check(norm).status.ok()) << Message(norm);
  norm = TinyLlama();
  norm.Set<uint32_t>("llama.rope.dimension_count", 64)
      .Set<uint32_t>("llama.attention.key_length", 64)
      .SetTensor("rope_freqs.weight", {32}, WeightType::kQ8_0);
  for (const char* layer : {"blk.0.", "blk.1."}) {
    norm.SetTensor(std::string(layer) + "attn_q.weight", {16, 256});
    norm.SetTensor(std::string(layer) + "attn_k.weight", {16, 128});
    norm.SetTensor(std::string(layer) + "attn_v.weight", {16, 8});
  }
  EXPECT_EQ(Message(norm), "tensor rope_freqs.weight: type Q8_0, need F32, F16 or BF16");
}

TEST(Architecture, MixturesOfExpertsAreRefusedByName) {
  EXPECT_EQ(Message(TinyLlama().Set<uint32_t>("llama.expert_count", 8)),
            "key llama.expert_count is 8: mixtures of experts come in a later version");
  for (const char* name : {"blk.0.ffn_gate_exps.weight", "blk.1.ffn_gate_inp.weight",
                           "blk.0.ffn_up_shexp.weight", "blk.0.ffn_gate.3.weight"})
    EXPECT_THAT(Message(TinyLlama().SetTensor(name, {16})),
                HasSubstr(std::string("tensor ") + name + ": mixtures of experts"));
}

TEST(Architecture, BiasesThatAreRequiredFollowTheFormOfTheirWeights) {
  GgufWriter writer = TinyOf("qwen2");
  for (const char* name : {"attn_q", "attn_k", "attn_v"})
    for (const char* suffix : {".weight", ".bias"})
      writer.RemoveTensor(std::string("blk.1.") + name + suffix);
  writer.SetTensor("blk.1.attn_qkv.weight", {16, 32});
  EXPECT_THAT(Message(writer), HasSubstr("tensor blk.1.attn_qkv.bias is missing"));
  writer.SetTensor("blk.1.attn_qkv.bias", {32});
  EXPECT_TRUE(Check(writer).status.ok()) << Message(writer);
  writer.SetTensor("output.bias", {12});
  EXPECT_TRUE(Check(writer).status.ok()) << "also where token_embd is the output matrix";
  EXPECT_THAT(Check(writer).unknown, IsEmpty());
}

TEST(Architecture, FactorsThatAreNotAppliedAreKnown) {
  for (const std::string_view architecture : {"qwen2", "gemma3"}) {
    GgufWriter writer = TinyOf(architecture);
    writer.SetTensor("blk.0.ffn_down.scale", {1}).SetTensor("blk.0.ffn_down.input_scale", {1});
    EXPECT_TRUE(Check(writer).status.ok()) << Message(writer);
    EXPECT_THAT(Check(writer).unknown, IsEmpty());
  }
}

TEST(Architecture, LlamaHeedsAWindowOnAllLayers) {
  GgufWriter writer = TinyLlama();
  writer.Set<uint32_t>("llama.attention.sliding_window", 16);
  const Bytes file = writer.File();
  const auto shape = ReadShape(**ParseGguf(file, file.size()));
  EXPECT_EQ(shape->sliding_window, 16);
  EXPECT_EQ(shape->num_windowed_layers(), 2);
  EXPECT_EQ(shape->ropes.size(), 1u);
}

// The windows of gemma3's layers.
std::vector<int> Windows(const GgufWriter& writer) {
  const Bytes file = writer.File();
  const auto shape = ReadShape(**ParseGguf(file, file.size()));
  EXPECT_TRUE(shape.ok()) << shape.status().message();
  std::vector<int> windows;
  for (const LayerShape& layer : shape->layers) {
    windows.push_back(layer.window);
    EXPECT_EQ(layer.rope, layer.window > 0 ? 1 : 0);
  }
  return windows;
}

TEST(Architecture, Gemma3HasTheWindowWhereThePatternSays) {
  constexpr char kPattern[] = "gemma3.attention.sliding_window_pattern";
  GgufWriter writer = TinyOf("gemma3");
  writer.Set<uint32_t>("gemma3.block_count", 7);
  EXPECT_THAT(Windows(writer), ElementsAre(8, 0, 8, 0, 8, 0, 8));
  writer.Set<uint32_t>(kPattern, 3);
  EXPECT_THAT(Windows(writer), ElementsAre(8, 8, 0, 8, 8, 0, 8));
  writer.Set<uint32_t>(kPattern, 1);
  EXPECT_THAT(Windows(writer), ElementsAre(0, 0, 0, 0, 0, 0, 0));
  for (const bool zero : {false, true}) {
    writer.Remove(kPattern);
    if (zero) writer.Set<uint32_t>(kPattern, 0);
    EXPECT_THAT(Windows(writer), ElementsAre(8, 8, 8, 8, 8, 0, 8));
  }
  writer.SetArray<bool>(kPattern, {true, false, false, true, false, false, false});
  EXPECT_THAT(Windows(writer), ElementsAre(8, 0, 0, 8, 0, 0, 0));
  writer.Set<uint32_t>("gemma3.nextn_predict_layers", 2);
  EXPECT_THAT(Windows(writer), ElementsAre(8, 0, 0, 8, 0)) << "the list has the extra layers too";
  writer.Remove("gemma3.attention.sliding_window");
  EXPECT_THAT(Windows(writer), ElementsAre(0, 0, 0, 0, 0)) << "no window, whatever the pattern";
}

TEST(Architecture, Gemma3TurnsWindowedLayersByTheirOwnBaseUnscaled) {
  GgufWriter writer = TinyOf("gemma3");
  writer.Set<float>("gemma3.rope.scaling.factor", 8)
      .SetString("gemma3.rope.scaling.type", "linear");
  const Bytes file = writer.File();
  const auto shape = ReadShape(**ParseGguf(file, file.size()));
  ASSERT_EQ(shape->ropes.size(), 2u);
  EXPECT_EQ(shape->ropes[0].freq_base, 1e6f);
  EXPECT_EQ(shape->ropes[0].factor, 8);
  EXPECT_EQ(shape->ropes[1].freq_base, 20000);
  EXPECT_EQ(shape->ropes[1].factor, 1);
  EXPECT_EQ(shape->ropes[1].scaling, RopeScaling::kNone);
  const Bytes plain = writer.Remove("gemma3.rope.freq_base_swa").File();
  EXPECT_EQ(ReadShape(**ParseGguf(plain, plain.size()))->ropes[1].freq_base, 10000);
}

TEST(Architecture, Gemma3ScalesTheEmbeddingAndInItsLargestSizeTheScoresByWidth) {
  GgufWriter writer = TinyOf("gemma3");
  writer.Set<uint32_t>("gemma3.attention.key_length", 64);
  for (const uint32_t num_layers : {2u, 62u}) {
    const Bytes file = writer.Set<uint32_t>("gemma3.block_count", num_layers).File();
    const auto shape = ReadShape(**ParseGguf(file, file.size()));
    EXPECT_EQ(shape->embedding_scale, 4);  // sqrt(16)
    EXPECT_EQ(shape->attention_scale, num_layers == 62 ? 1 / std::sqrt(16 / 4.0) : 1 / 8.0);
  }
}

}  // namespace
}  // namespace quire
