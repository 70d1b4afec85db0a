#include "model/architecture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
  const Checked checked = Check(TinyLlama());
  EXPECT_TRUE(checked.status.ok()) << checked.status.message();
  EXPECT_THAT(checked.unknown, IsEmpty());
}

TEST(Architecture, EachRequiredTensorIsNamedWhenMissing) {
  const Bytes file = TinyLlama().File();
  const auto header = ParseGguf(file, file.size());
  for (const GgufTensor& tensor : (*header)->tensors()) {
    const std::string name(tensor.name);
    EXPECT_THAT(Message(TinyLlama().RemoveTensor(name)),
                HasSubstr("tensor " + name + " is missing"));
  }
}

TEST(Architecture, EachWrongShapeIsNamedWithBothShapes) {
  const Bytes file = TinyLlama().File();
  const auto header = ParseGguf(file, file.size());
  for (const GgufTensor& tensor : (*header)->tensors()) {
    const std::string name(tensor.name);
    if (name == "token_embd.weight") continue;  // shape_test.cc
    std::vector<uint64_t> dims(tensor.dims.begin(), tensor.dims.begin() + tensor.num_dims);
    dims.back() += 1;
    EXPECT_THAT(
        Message(TinyLlama().SetTensor(name, dims)),
        AllOf(HasSubstr("tensor " + name + " has dims"), HasSubstr("need " + DimsText(tensor))));
    dims.back() -= 1;
    dims.resize(4, 1);
    EXPECT_TRUE(Check(TinyLlama().SetTensor(name, dims)).status.ok())
        << "trailing ones say nothing";
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

TEST(Architecture, LlamaHeedsAWindowOnAllLayers) {
  GgufWriter writer = TinyLlama();
  writer.Set<uint32_t>("llama.attention.sliding_window", 16);
  const Bytes file = writer.File();
  EXPECT_EQ(ReadShape(**ParseGguf(file, file.size()))->sliding_window, 16);
}

}  // namespace
}  // namespace quire
