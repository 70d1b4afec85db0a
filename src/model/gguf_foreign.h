// What a file that is not GGUF looks like, for a kind error message.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace quire {

// "a safetensors file: convert it to GGUF first" for the first bytes of a known other format;
// empty if the bytes look like nothing we know. A few dozen bytes are enough.
std::string_view DescribeForeignFormat(std::span<const std::byte> first_bytes);

}  // namespace quire
