// ArchitectureKeys: the keys of one architecture in a header: names without their prefix "llama.".
//
// A value of 0 in an optional key means "not set", as converters write it. Errors name the key,
// what it holds and what was wanted.
//
// Threads: constant; the header must outlive it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "model/gguf_header.h"

namespace quire {

class ArchitectureKeys {
 public:
  ArchitectureKeys(const GgufHeader& header, std::string_view architecture)
      : header_(header), prefix_(std::string(architecture) + ".") {}

  std::string Name(std::string_view key) const { return prefix_ + std::string(key); }
  const GgufKey* Find(std::string_view key) const { return header_.FindKey(Name(key)); }

  StatusOr<int> Required(std::string_view key, int low, int high) const;
  // `fallback` if the key is absent or 0.
  StatusOr<int> Optional(std::string_view key, int fallback, int high) const;
  // `fallback` if the key is absent or 0; else a number in (0, high].
  StatusOr<double> OptionalNumber(std::string_view key, double fallback, double high) const;
  // A base of rope frequencies: a number above 1; `fallback` if the key is absent or 0.
  StatusOr<double> FrequencyBase(std::string_view key, double fallback) const;
  // An integer, or an array of one for each layer (`num_array_layers`, with the extra ones at the
  // end), which must all be the same.
  StatusOr<int> PerLayer(std::string_view key, int high, int num_array_layers) const;
  // attention.sliding_window_pattern, which says which of `num_layers` layers have the window: an
  // integer P (layer i has it when i mod P < P - 1; absent or 0: `default_period`), or an array of
  // one bool for each layer of block_count.
  StatusOr<std::vector<bool>> WindowedLayers(int default_period, int num_layers) const;
  // kUnsupported if the number is there and not 0; `why` says what it would ask for.
  Status Refuse(std::string_view key, std::string_view why) const;

 private:
  const GgufHeader& header_;
  std::string prefix_;
};

}  // namespace quire
