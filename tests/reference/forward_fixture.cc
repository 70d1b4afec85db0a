#include "reference/forward_fixture.h"

#include <algorithm>

#include "base/check.h"
#include "model/gguf_file.h"

namespace quire {

std::unique_ptr<Model> LoadModel(const std::string& path) {
  ThreadTeam team(1);
  auto file = GgufFile::Open(path);
  QUIRE_CHECK(file.ok());
  auto model = Model::Load(*file, team, {});
  QUIRE_CHECK(model.ok());
  return std::move(model).value();
}

ForwardRunner::ForwardRunner(const Model& model, const RunnerOptions& options)
    : model_(model), team_(options.num_threads), groups_(model.shape()) {
  auto forms = MakeGroupForms(model.shape(), groups_, options.page_size, options.kv);
  QUIRE_CHECK(forms.ok());
  forms_ = *forms;
  auto forward = ForwardPass::Create(model,
                                     {.kv = forms_,
                                      .activations = options.activations,
                                      .instruction_set = options.instruction_set,
                                      .max_rows = options.max_rows,
                                      .cascade = options.cascade},
                                     options.num_threads);
  QUIRE_CHECK(forward.ok());
  forward_ = std::move(forward).value();
}

std::vector<float> ForwardRunner::Step(std::span<const ForwardSequence> sequences) {
  size_t num_rows = 0;
  for (const ForwardSequence& sequence : sequences)
    num_rows += std::min<size_t>(sequence.num_logits, sequence.tokens.size());
  std::vector<float> logits(num_rows * vocab_size());
  QUIRE_CHECK(forward_->Run(team_, sequences, logits.data()).ok());
  return logits;
}

std::vector<float> ForwardRunner::Compute(TestKv& kv, std::span<const TokenId> tokens,
                                          uint32_t position, uint32_t chunk) {
  std::vector<float> all;
  for (uint32_t done = 0; done < tokens.size(); done += chunk) {
    const auto num = std::min(chunk, static_cast<uint32_t>(tokens.size()) - done);
    kv.Prepare(position + done, position + done + num);
    const ForwardSequence sequence = {.tokens = tokens.subspan(done, num),
                                      .first_position = position + done,
                                      .kv = kv.views(),
                                      .num_logits = num};
    const auto logits = Step({&sequence, 1});
    all.insert(all.end(), logits.begin(), logits.end());
  }
  return all;
}

}  // namespace quire
