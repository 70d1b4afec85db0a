// SlotMeter: looks, again and again while an engine works, at how much of the KV pages is used.
//
// Threading: a thread of its own that asks the engine between steps.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <stop_token>
#include <thread>
#include <vector>

#include "engine/engine.h"

namespace quire {

// Of the pages of running sequences in the full layer group, each page once.
struct SlotSample {
  double seconds = 0;  // since the meter's start
  uint64_t used_slots = 0, held_slots = 0;
};

class SlotMeter {
 public:
  explicit SlotMeter(Engine& engine);
  ~SlotMeter();
  // Ends the looking.
  void Stop();

  // The rest requires Stop().
  const std::vector<SlotSample>& samples() const { return samples_; }  // with held_slots > 0
  // Of used / held; 1 without samples.
  double mean_share() const;
  double least_share() const;
  uint64_t most_held_bytes() const { return most_held_bytes_; }
  nlohmann::ordered_json Report() const;

 private:
  void Run(const std::stop_token& stop);

  Engine& engine_;
  std::vector<SlotSample> samples_;
  uint64_t most_held_bytes_ = 0;
  std::jthread thread_;
};

}  // namespace quire
