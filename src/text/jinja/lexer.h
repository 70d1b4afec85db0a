// Cuts a template into tokens, with the white space rules of trim_blocks and lstrip_blocks.
//
// As Jinja2 3.1 with both options on: a newline behind a block or comment tag goes, white space
// between the start of a line and such a tag goes, `-` removes all white space on its side, `+`
// keeps it; line ends become "\n", and one at the end of the template goes. Comments and raw blocks
// are resolved here.
//
// Errors: kInvalidFile with the line. Threading: a function.
#pragma once

#include <string_view>
#include <vector>

#include "base/status.h"
#include "text/jinja/token.h"

namespace quire::jinja {

// The last token is kEnd.
StatusOr<std::vector<Token>> Tokenize(std::string_view source);

}  // namespace quire::jinja
