// ForwardRunner: a forward pass over pages of its own, for tests that look below the engine: forms
// of pages, layer groups, several sequences in one step.
//
// A load or a step that fails ends the test program.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/threads.h"
#include "codec/kv_forms.h"
#include "model/forward.h"
#include "model/layer_groups.h"
#include "model/model.h"
#include "model/test_kv.h"

namespace quire {

// A model with its own weights in memory; several runners may use it.
std::unique_ptr<Model> LoadModel(const std::string& path);

struct RunnerOptions {
  KvFormOptions kv;
  uint32_t page_size = 64;
  int num_threads = 1;
  ActivationForm activations = ActivationForm::kF32;
  InstructionSet instruction_set = AvailableInstructionSets().back();
  uint32_t max_rows = 512;
  bool cascade = true;
};

class ForwardRunner {
 public:
  // `model` must outlive it.
  ForwardRunner(const Model& model, const RunnerOptions& options);

  size_t vocab_size() const { return static_cast<size_t>(model_.shape().vocab_size); }
  const LayerGroups& groups() const { return groups_; }
  std::span<const KvForms> forms() const { return forms_; }
  const ForwardPass& forward() const { return *forward_; }

  TestKv MakeKv(uint32_t max_len) const { return TestKv(groups_, forms_, max_len); }

  // One step; returns the logits that it asks for.
  std::vector<float> Step(std::span<const ForwardSequence> sequences);

  // Logits of all tokens from `position` on, in steps of `chunk` tokens.
  std::vector<float> Compute(TestKv& kv, std::span<const TokenId> tokens, uint32_t position,
                             uint32_t chunk);

 private:
  const Model& model_;
  ThreadTeam team_;
  LayerGroups groups_;
  std::vector<KvForms> forms_;
  std::unique_ptr<ForwardPass> forward_;
};

}  // namespace quire
