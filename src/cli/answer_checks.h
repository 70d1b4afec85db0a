// The ways of answers through the engine: scheduler, prefix tree, forks, preemptions (for
// purity_checks.cc).
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cli/check_list.h"
#include "cli/position_bits.h"
#include "cli/purity_checks.h"
#include "engine/engine.h"

namespace quire {

class AnswerChecks {
 public:
  // `sequence_bytes`: the least budget for the longest answer.
  AnswerChecks(std::shared_ptr<const Model> model, const EngineOptions& options,
               const PurityLengths& lengths, size_t sequence_bytes, CheckList& list);
  void Run();

 private:
  using Change = std::function<void(EngineOptions&)>;

  StatusOr<std::unique_ptr<Engine>> NewEngine(const Change& change) const;
  Request MakeRequest(size_t prompt, const std::string& salt) const;
  // Runs the request, and looks at the bytes.
  StatusOr<std::shared_ptr<Answer>> RunOne(Engine& engine, Request request) const;
  Status LookAt(Engine& engine, bool at_rest) const;
  // Forgets all; then every byte must be free.
  Status Empty(Engine& engine) const;
  Status Compare(const Answer& answer, size_t prompt, uint32_t choice = 0) const;

  Status ComputeAlone(std::string& detail);
  Status CompareWithPositions() const;
  Status CachedWhole(std::string& detail) const;
  Status CachedUpTo(uint32_t length, std::string& detail) const;
  Status Choices() const;
  // All prompts at once, with `num_mates` others.
  Status Together(const Change& change, uint32_t num_mates, EngineStats* stats) const;
  Status Preempted(std::string& detail) const;

  const std::shared_ptr<const Model> model_;
  const EngineOptions options_;
  const PurityLengths lengths_;
  const size_t sequence_bytes_;
  CheckList& list_;
  std::vector<std::vector<TokenId>> prompts_;  // all begin with the same pages
  std::vector<std::vector<TokenId>> mates_;
  std::vector<AnswerBits> want_;  // [prompt]
};

}  // namespace quire
