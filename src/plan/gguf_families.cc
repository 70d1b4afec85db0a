#include "plan/gguf_families.h"

#include <array>

namespace quire {
namespace {

constexpr std::array<GgufFamily, 25> kFamilies = {{
    {.name = "cohere2", .window = GgufWindow::kPattern, .default_period = 4, .needs_window = true},
    {.name = "command-r"},
    {.name = "deepseek2", .is_latent = true},
    {.name = "exaone4",
     .window = GgufWindow::kPatternOf64,
     .default_period = 4,
     .default_window = 4096},
    {.name = "falcon"},
    {.name = "gemma"},
    {.name = "gemma2", .window = GgufWindow::kPattern, .default_period = 2, .default_window = 4096},
    {.name = "gemma3", .window = GgufWindow::kPattern, .default_period = 6},
    {.name = "glm4"},
    {.name = "gpt-oss", .window = GgufWindow::kPattern, .default_period = 2, .needs_window = true},
    {.name = "gpt2"},
    {.name = "granite"},
    {.name = "granitemoe"},
    {.name = "llama", .window = GgufWindow::kEveryLayer},
    {.name = "minicpm3", .is_latent = true},
    {.name = "mistral3", .window = GgufWindow::kEveryLayer},
    {.name = "mistral4", .is_latent = true},
    {.name = "olmo2", .window = GgufWindow::kPattern, .default_period = 4},
    {.name = "phi3", .window = GgufWindow::kIgnored},
    {.name = "qwen2"},
    {.name = "qwen2moe"},
    {.name = "qwen3"},
    {.name = "qwen3moe"},
    {.name = "smollm3"},
    {.name = "stablelm"},
}};

}  // namespace

std::span<const GgufFamily> GgufFamilies() { return kFamilies; }

const GgufFamily* FindGgufFamily(std::string_view name) {
  for (const GgufFamily& family : kFamilies)
    if (family.name == name) return &family;
  return nullptr;
}

}  // namespace quire
