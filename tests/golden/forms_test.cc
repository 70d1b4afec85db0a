// Forms of the llama architecture that no golden of another program has, against the double
// reference: changes of a tiny model.
#include <gtest/gtest.h>

#include <functional>

#include "reference/engine_fixture.h"
#include "reference/golden_data.h"
#include "reference/reference_forward.h"

namespace quire {
namespace {

struct Form {
  std::string name;
  std::function<void(GgufWriter&)> change;
};
void PrintTo(const Form& form, std::ostream* out) { *out << form.name; }

void SetFactor(GgufWriter& writer, const std::string& name, float factor) {
  writer.SetTensor(name + ".scale", {1}, WeightType::kF32, GgufWriter::Encode(factor));
}

std::string Layer(int layer, const std::string& name) {
  return "blk." + std::to_string(layer) + "." + name;
}

const std::vector<Form> kForms = {
    {"FusedQkv", [](GgufWriter& writer) { FuseQkv(writer, 1); }},
    {"Factors",
     [](GgufWriter& writer) {
       float factor = 0.5f;
       for (const std::string name :
            {"attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down"})
         SetFactor(writer, Layer(0, name), factor += 0.125f);
     }},
    {"FactorOfFusedQkv",
     [](GgufWriter& writer) {
       FuseQkv(writer, 0);
       SetFactor(writer, "blk.0.attn_qkv", 0.75f);
     }},
    {"Window", [](GgufWriter& writer) { writer.Set("llama.attention.sliding_window", 8u); }},
    {"WindowOfOneKey",
     [](GgufWriter& writer) { writer.Set("llama.attention.sliding_window", 1u); }},
    {"WindowOfAll", [](GgufWriter& writer) { writer.Set("llama.attention.sliding_window", 48u); }},
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
};

class Forms : public ::testing::TestWithParam<Form> {};

// Bound: as for the tiny models (random_models_test.cc).
TEST_P(Forms, AgreeWithTheDoubleReference) {
  TinyModel tiny = FindTinyModel("llama-bias-linear-tied");
  const TemporaryFile plain(tiny.writer);
  GetParam().change(tiny.writer);
  const TemporaryFile file(tiny.writer);
  const auto reference = ReferenceModel::Load(file.path());
  const auto plain_reference = ReferenceModel::Load(plain.path());
  ASSERT_TRUE(reference.ok() && plain_reference.ok()) << reference.status().message();
  const std::vector<double> want = reference->Logits(tiny.tokens);

  const auto engine = LoadEngine(file.path(), ExactOptions());
  const Difference difference = Compare(ToDouble(ComputeLogits(*engine, tiny.tokens)), want);
  EXPECT_LE(difference.nmse, 1e-10) << difference;

  // The form is seen: without the change the logits are others (but where it must change nothing).
  if (GetParam().name == "FusedQkv" || GetParam().name == "WindowOfAll") return;
  EXPECT_GT(Compare(plain_reference->Logits(tiny.tokens), want).nmse, 1e-6);
}

INSTANTIATE_TEST_SUITE_P(Llama, Forms, ::testing::ValuesIn(kForms),
                         [](const auto& form) { return form.param.name; });

}  // namespace
}  // namespace quire
