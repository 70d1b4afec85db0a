// Detokenizer: the ids of one sequence to text, as they come.
//
// It only appends, and only whole characters: at most 3 bytes wait for the rest of theirs. Bytes
// that can never become a character turn into U+FFFD, one for each error (text/utf8.h); so does
// what still waits at the end. What a stream gives and what Decode gives whole are the same.
//
// Control and unknown tokens give no text unless `show_special`. No other clean-up is done. A
// vocabulary without text gives none.
//
// Threads: not thread-safe; one for each sequence. Owner: the tokenizer must outlive it.
#pragma once

#include <span>
#include <string>

#include "base/ids.h"
#include "base/status.h"
#include "text/tokenizer.h"

namespace quire {

struct DecodeOptions {
  // The first id is the start of a text, not of an answer that goes on from one: the space that an
  // SPM tokenizer put in front is taken away, once.
  bool starts_text = true;
  bool show_special = false;  // control and unknown tokens as the vocabulary writes them
};

class Detokenizer {
 public:
  Detokenizer(const Tokenizer* tokenizer, DecodeOptions options);

  // The text that `id` completes, often empty. Errors: kInvalidArgument for an id that is not in
  // the vocabulary; nothing has changed then.
  StatusOr<std::string> Push(TokenId id);

  // What still waits. The detokenizer is then as new, within the same text.
  std::string Finish();

  // Does the start of a character wait for the rest?
  bool has_waiting() const { return !waiting_.empty(); }

 private:
  // Moves all of waiting_ that is decided to the result.
  std::string Take(bool at_end);

  const Tokenizer* tokenizer_;
  DecodeOptions options_;
  bool strip_space_;     // the next byte, if it is a space, is the one in front
  std::string waiting_;  // the start of a character; at most 3 bytes between calls
};

// The text of a whole sequence. Errors: as Push.
StatusOr<std::string> Decode(const Tokenizer& tokenizer, std::span<const TokenId> ids,
                             DecodeOptions options = {});

}  // namespace quire
