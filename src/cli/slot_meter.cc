#include "cli/slot_meter.h"

#include <algorithm>
#include <chrono>

namespace quire {
namespace {

constexpr size_t kMostSamples = 1024;

double ShareOf(const SlotSample& sample) {
  return static_cast<double>(sample.used_slots) / static_cast<double>(sample.held_slots);
}

}  // namespace

SlotMeter::SlotMeter(Engine& engine)
    : engine_(engine), thread_([this](const std::stop_token& stop) { Run(stop); }) {}

SlotMeter::~SlotMeter() { Stop(); }

void SlotMeter::Stop() {
  thread_.request_stop();
  if (thread_.joinable()) thread_.join();
}

void SlotMeter::Run(const std::stop_token& stop) {
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  auto interval = std::chrono::milliseconds(20);
  while (!stop.stop_requested()) {
    const EngineStats stats = engine_.stats();
    const std::chrono::duration<double> now = Clock::now() - start;
    most_held_bytes_ = std::max(most_held_bytes_, stats.kv_held_bytes);
    if (stats.held_slots > 0) samples_.push_back({now.count(), stats.used_slots, stats.held_slots});
    if (samples_.size() >= kMostSamples) {  // every second one, and half as often from now on
      for (size_t i = 0; i < samples_.size() / 2; ++i) samples_[i] = samples_[2 * i];
      samples_.resize(samples_.size() / 2);
      interval *= 2;
    }
    std::this_thread::sleep_for(interval);
  }
}

double SlotMeter::mean_share() const {
  if (samples_.empty()) return 1;
  double sum = 0;
  for (const SlotSample& sample : samples_) sum += ShareOf(sample);
  return sum / static_cast<double>(samples_.size());
}

double SlotMeter::least_share() const {
  double least = 1;
  for (const SlotSample& sample : samples_) least = std::min(least, ShareOf(sample));
  return least;
}

nlohmann::ordered_json SlotMeter::Report() const {
  auto rows = nlohmann::ordered_json::array();
  for (const SlotSample& sample : samples_)
    rows.push_back({sample.seconds, sample.used_slots, sample.held_slots});
  return {{"mean_used_share", mean_share()},
          {"least_used_share", least_share()},
          {"most_held_bytes", most_held_bytes_},
          {"seconds_used_held", std::move(rows)}};
}

}  // namespace quire
