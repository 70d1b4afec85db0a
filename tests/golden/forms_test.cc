// Forms of the architectures that no golden of another program has, against the double reference:
// changes of tiny models.
#include <gtest/gtest.h>

#include <functional>

#include "reference/engine_fixture.h"
#include "reference/golden_data.h"
#include "reference/reference_forward.h"

namespace quire {
namespace {

constexpr char kTied[] = "llama-bias-linear-tied";

struct Form {
  std::string name;
  std::function<void(GgufWriter&)> change;
  std::string model = kTied;
  bool changes_nothing = false;
};
void PrintTo(const Form& form, std::ostream* out) { *out << form.name; }

void SetFactor(GgufWriter& writer, const std::string& name, float factor) {
  writer.SetTensor(name + ".scale", {1}, WeightType::kF32, GgufWriter::Encode(factor));
}

std::string Layer(int layer, const std::string& name) {
  return "blk." + std::to_string(layer) + "." + name;
}

// Every linear layer of layer 0, each with another factor.
void SetFactors(GgufWriter& writer) {
  float factor = 0.5f;
  for (const std::string name :
       {"attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down"})
    SetFactor(writer, Layer(0, name), factor += 0.125f);
}

void SetFeedForwardFactors(GgufWriter& writer) {
  for (const std::string name : {"ffn_gate", "ffn_up", "ffn_down"})
    SetFactor(writer, Layer(0, name), 0.5f);
}

void SetYarn(GgufWriter& writer, const std::string& prefix) {
  writer.SetString(prefix + "rope.scaling.type", "yarn");
  writer.Set(prefix + "rope.scaling.factor", 4.0f);
  writer.Set(prefix + "rope.scaling.original_context_length", 32u);
}

// gemma3 with as many layers as its largest size.
void SetLayers62(GgufWriter& writer) {
  writer.Set("gemma3.block_count", 62u);
  for (const char* name :
       {"attn_norm", "attn_q", "attn_k", "attn_v", "attn_q_norm", "attn_k_norm", "attn_output",
        "post_attention_norm", "ffn_norm", "ffn_gate", "ffn_up", "ffn_down", "post_ffw_norm"})
    for (int layer = 7; layer < 62; ++layer) {
      const std::string weight = std::string(name) + ".weight";
      SetTinyTensor(writer, Layer(layer, weight), writer.FindTensor(Layer(0, weight))->dims);
    }
}

const std::vector<Form> kForms = {
    {"FusedQkv", [](GgufWriter& writer) { FuseQkv(writer, 1); }, kTied, true},
    {"Factors", SetFactors},
    {"FactorOfFusedQkv",
     [](GgufWriter& writer) {
       FuseQkv(writer, 0);
       SetFactor(writer, "blk.0.attn_qkv", 0.75f);
     }},
    {"Window", [](GgufWriter& writer) { writer.Set("llama.attention.sliding_window", 8u); }},
    {"WindowOfOneKey",
     [](GgufWriter& writer) { writer.Set("llama.attention.sliding_window", 1u); }},
    {"WindowOfAll", [](GgufWriter& writer) { writer.Set("llama.attention.sliding_window", 48u); },
     kTied, true},
    {"RopeOnAPartOfTheHead",
     [](GgufWriter& writer) { writer.Set("llama.rope.dimension_count", 8u); }},
    {"ShortValueHeads",  // K heads of 16, V heads of 12
     [](GgufWriter& writer) {
       writer.Set("llama.attention.key_length", 16u).Set("llama.attention.value_length", 12u);
       for (int layer = 0; layer < 2; ++layer) {
         SetTinyTensor(writer, Layer(layer, "attn_v.weight"), {64, 24});
         SetTinyTensor(writer, Layer(layer, "attn_v.bias"), {24});
         SetTinyTensor(writer, Layer(layer, "attn_output.weight"), {48, 64});
       }
     }},
    {"Untied",
     [](GgufWriter& writer) {
       SetTinyTensor(writer, "output.weight", {64, 128});
     }},
    {"RopeFactors", [](GgufWriter& writer) { SetTinyTensor(writer, "rope_freqs.weight", {8}); }},
    {"OldNameOfTheRopeFactor",
     [](GgufWriter& writer) {
       writer.Remove("llama.rope.scaling.factor").Remove("llama.rope.scaling.type");
       writer.Set("llama.rope.scale_linear", 2.0f);
     }},
    {"RopeScalingNone",
     [](GgufWriter& writer) { writer.SetString("llama.rope.scaling.type", "none"); }},
    {"YarnWithOwnBetas",
     [](GgufWriter& writer) {
       writer.SetString("llama.rope.scaling.type", "yarn");
       writer.Set("llama.rope.scaling.original_context_length", 16u);
       writer.Set("llama.rope.scaling.yarn_beta_fast", 4.0f);
       writer.Set("llama.rope.scaling.yarn_beta_slow", 0.5f);
       writer.Set("llama.rope.scaling.attn_factor", 1.25f);
     }},

    {"Qwen2FusedQkv", [](GgufWriter& writer) { FuseQkv(writer, 1); }, "qwen2", true},
    {"Qwen2Factors", SetFactors, "qwen2"},
    {"Qwen2FactorsOfTheFeedForward", SetFeedForwardFactors, "qwen2", true},
    {"Qwen2Yarn", [](GgufWriter& writer) { SetYarn(writer, "qwen2."); }, "qwen2"},
    {"Qwen2TiedWithOutputBias",
     [](GgufWriter& writer) { SetTinyTensor(writer, "output.bias", {128}); }, "qwen2"},
    {"Qwen2UntiedWithOutputBias",
     [](GgufWriter& writer) {
       SetTinyTensor(writer, "output.weight", {56, 128});
       SetTinyTensor(writer, "output.bias", {128});
     },
     "qwen2"},

    {"Qwen3FusedQkv", [](GgufWriter& writer) { FuseQkv(writer, 1); }, "qwen3", true},
    {"Qwen3Factors", SetFactors, "qwen3"},
    {"Qwen3FactorsOfTheFeedForward", SetFeedForwardFactors, "qwen3"},
    {"Qwen3RopeOnAPartOfTheHead",
     [](GgufWriter& writer) { writer.Set("qwen3.rope.dimension_count", 16u); }, "qwen3"},
    {"Qwen3HasNoWindow",
     [](GgufWriter& writer) { writer.Set("qwen3.attention.sliding_window", 8u); }, "qwen3", true},
    {"Qwen3Tied", [](GgufWriter& writer) { writer.RemoveTensor("output.weight"); }, "qwen3"},

    // Factors of its attention would be taken back by the norms behind them.
    {"Gemma3FactorsOfTheFeedForward", SetFeedForwardFactors, "gemma3", true},
    {"Gemma3PatternOfThree",
     [](GgufWriter& writer) { writer.Set("gemma3.attention.sliding_window_pattern", 3u); },
     "gemma3"},
    {"Gemma3PatternOfBools",
     [](GgufWriter& writer) {
       writer.SetArray<bool>("gemma3.attention.sliding_window_pattern",
                             {false, true, true, false, false, true, false});
     },
     "gemma3"},
    {"Gemma3WithoutWindow",
     [](GgufWriter& writer) { writer.Remove("gemma3.attention.sliding_window"); }, "gemma3"},
    {"Gemma3OwnBaseOfWindowedLayers",
     [](GgufWriter& writer) { writer.Set("gemma3.rope.freq_base_swa", 500.0f); }, "gemma3"},
    {"Gemma3Untied",
     [](GgufWriter& writer) {
       SetTinyTensor(writer, "output.weight", {64, 128});
     },
     "gemma3"},
    {"Gemma3Of62Layers", SetLayers62, "gemma3"},
};

class Forms : public ::testing::TestWithParam<Form> {};

// Bound: as for the tiny models (random_models_test.cc).
TEST_P(Forms, AgreeWithTheDoubleReference) {
  TinyModel tiny = FindTinyModel(GetParam().model);
  const TemporaryFile plain(tiny.writer);
  GetParam().change(tiny.writer);
  const TemporaryFile file(tiny.writer);
  const auto reference = ReferenceModel::Load(file.path());
  const auto plain_reference = ReferenceModel::Load(plain.path());
  ASSERT_TRUE(reference.ok() && plain_reference.ok()) << reference.status().message();
  const std::vector<double> want = reference->Logits(tiny.tokens);

  const auto engine = LoadRunner(file.path(), ExactOptions());
  const Difference difference = Compare(ToDouble(ComputeLogits(*engine, tiny.tokens)), want);
  EXPECT_LE(difference.nmse, 1e-10) << difference;

  // The form is seen: without the change the logits are others, or it must change nothing.
  const double change = Compare(plain_reference->Logits(tiny.tokens), want).nmse;
  if (GetParam().changes_nothing) {
    EXPECT_EQ(change, 0);
  } else {
    EXPECT_GT(change, 1e-6);
  }
}

INSTANTIATE_TEST_SUITE_P(Tiny, Forms, ::testing::ValuesIn(kForms),
                         [](const auto& form) { return form.param.name; });

}  // namespace
}  // namespace quire
