// BenchEngine: engines for measurements, one after another over a model that is loaded once.
//
// Threading: one thread at a time.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "base/status.h"
#include "cli/engine_flags.h"
#include "cli/exact_requests.h"
#include "engine/engine.h"

namespace quire {

class BenchEngine {
 public:
  static StatusOr<BenchEngine> Load(const EngineFlags& flags);

  // Ends the engine before, if any. The new one has an empty cache, and has run once.
  Status Restart();

  // Requires: Restart() was called.
  Engine& engine() { return *engine_; }
  const EngineOptions& options() const { return options_; }
  uint32_t num_tokens() const { return static_cast<uint32_t>(model_->shape().num_tokens); }

  // The machine and the options, for the head of a report; as JSON and as a line.
  nlohmann::ordered_json Report() const;
  std::string Line() const;

 private:
  std::string path_;
  std::shared_ptr<const Model> model_;
  EngineOptions options_;                // with every 0 resolved
  std::unique_ptr<ModelRunner> runner_;  // of the first engine, until it starts
  std::unique_ptr<Engine> engine_;
};

}  // namespace quire
