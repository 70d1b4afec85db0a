// The logits of whole forward passes over the small models of tests/data, in both activation forms.
#include "base/check.h"
#include "base/test_data.h"
#include "engine/model_runner.h"
#include "property/bits_digest.h"

namespace quire {

void DigestForward(InstructionSet set) {
  for (const char* name :
       {"llama-gqa", "llama-gqa.Q8_0", "llama-gqa.Q4_0", "llama-gqa.Q4_1", "llama-yarn"})
    for (const ActivationForm form : {ActivationForm::kF32, ActivationForm::kInt8}) {
      EngineOptions options;
      options.num_threads = 1;
      options.instruction_set = set;
      options.activations = form;
      auto engine =
          ModelRunner::Load(TestData("models/" + std::string(name) + ".gguf"), options, {});
      QUIRE_CHECK(engine.ok());
      std::vector<TokenId> tokens(90);
      for (size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<TokenId>(i * 37 % 127);
      Sequence sequence = (*engine)->NewSequence();
      const auto logits = (*engine)->Compute(sequence, tokens, 90);
      QUIRE_CHECK(logits.ok());
      Digest digest;
      digest.AddAll(*logits);
      PrintDigest(
          std::string("forward.") + name + (form == ActivationForm::kF32 ? ".f32" : ".int8"), set,
          digest);
    }
}

}  // namespace quire
