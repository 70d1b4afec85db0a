// GgufFamilies: how architectures keep their KV, by the keys of their GGUF files: also those that
// this engine does not run.
//
// Threads: constants.
// Source: the key names and defaults of llama.cpp's loader.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace quire {

// Which layers heed attention.sliding_window.
enum class GgufWindow {
  kNone,         // no such layers
  kIgnored,      // the key may be there, but its value is not to be trusted
  kEveryLayer,   // those of a file that has the key
  kPattern,      // some, by attention.sliding_window_pattern; without the key: default_window
  kPatternOf64,  // kPattern in a model of 64 layers, kIgnored in others
};

struct GgufFamily {
  std::string_view name;  // value of general.architecture
  GgufWindow window = GgufWindow::kNone;
  int default_period = 1;       // of a pattern: all but the last of so many layers are windowed
  uint32_t default_window = 0;  // 0: without the key no layer is windowed
  bool needs_window = false;    // a file without the key is broken
  bool is_latent = false;       // latent attention (MLA)
};

// In the order of the alphabet.
std::span<const GgufFamily> GgufFamilies();
const GgufFamily* FindGgufFamily(std::string_view name);  // nullptr if there is none

}  // namespace quire
