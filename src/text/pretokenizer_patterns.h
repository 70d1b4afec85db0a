// The regular expressions that cut a text into the pieces of byte-pair encoding, by the name that
// a model file gives (tokenizer.ggml.pre).
//
// Only names whose rule was checked against another implementation stand here: a wrong split
// silently degrades a model, so an unknown name is refused.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace quire {

struct PretokenizerRule {
  // PCRE2 with UTF and UCP, but \s and \S mean Unicode's White_Space (text/pretokenizer.h). To be
  // run one after another, each over the pieces that the one before left.
  std::span<const char* const> stages;
  // A piece that is a token is that token, whatever the merges make of it.
  bool whole_tokens = false;
  // Where the file does not say: does a text begin with BOS?
  bool adds_bos = false;
};

// Null if the name is not known. No name is the name `default`.
const PretokenizerRule* FindPretokenizerRule(std::string_view name);

// The known names, separated by ", ".
std::string PretokenizerNames();

}  // namespace quire
