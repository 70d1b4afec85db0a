// The regular expressions that cut a text into the pieces of byte-pair encoding, by the name that
// a model file gives (tokenizer.ggml.pre).
//
// Only names whose rule was checked against another implementation's ids stand here: a wrong split
// silently degrades a model, so an unknown name is refused.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace quire {

// The expressions (PCRE2 with UTF and UCP), to be run one after another, each over the pieces that
// the one before left; nothing if the name is not known.
std::span<const char* const> PretokenizerPatterns(std::string_view name);

// The known names, separated by ", ".
std::string PretokenizerNames();

}  // namespace quire
