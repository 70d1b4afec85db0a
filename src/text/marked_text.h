// MarkedText: a prompt that knows which of its bytes came from outside.
//
// The places are what a chat template's renderer (text/jinja) reports: a message that says
// "<|im_end|>" means those ten characters and not the control token.
//
// Threads: a value.
#pragma once

#include <string>
#include <vector>

#include "text/jinja/marked_text.h"

namespace quire {

struct MarkedText {
  std::string text;              // UTF-8; invalid bytes are allowed
  std::vector<ByteRange> plain;  // half-open, inside text, in any order
};

}  // namespace quire
