// StopText: the text of an answer on its way out, cut before the first stop string.
//
// Takes the piece of text that each token gave (text/detokenizer.h) and gives back what may be
// shown. The longest tail that begins a stop string is held back until the next bytes decide; so no
// byte of a stop string is ever shown, and no other byte waits for longer than that. Matched are
// bytes, not characters or tokens: the shown text depends on the joined text only, not on how
// tokens cut it. Pieces that are whole characters come out as whole characters, since stop strings
// are UTF-8.
//
// Which one: the stop string that is complete first; of several that end at the same byte the
// longest. The text is cut where it starts (where it ends with include_stop_string).
//
// min_tokens: a stop string that is complete before the answer has so many tokens, those of its own
// included, is plain text.
//
// Tokens belong to text: what is told of a token (its id, its log-probability) goes out with its
// text. Token i is the i-th Push. num_released() says how many tokens are out: those whose text is,
// in whole. A stop string drops the tokens whose text starts at the cut or behind it; a token cut
// in its middle stays. A token without text goes with the text before it. One whose last bytes
// still wait in the detokenizer, as the start of a character, goes with that character.
//
// Threading: none of its own; one for each choice. Cost: linear in the text, times the number of
// stop strings (the matcher of Knuth, Morris, Pratt, SIAM J. Comput. 1977, for each). Memory: its
// buffers grow to one piece and the longest stop string; then nothing is allocated.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/sampling_params.h"

namespace quire {

class StopText {
 public:
  // Requires: params.Validate().ok().
  explicit StopText(const SamplingParams& params);

  // The text of the next token. `inside_character`: bytes of this token wait in the detokenizer.
  // Returns what may be shown now, valid until the next call. Requires: !stopped().
  std::string_view Push(std::string_view text, bool inside_character = false);

  // The answer ends here: `text` is what the detokenizer still had; it belongs to the last token.
  // Returns all that was held back, up to a stop string if `text` completes one. All tokens are
  // out, if none. Requires: !stopped(); nothing is pushed afterwards.
  std::string_view Finish(std::string_view text);

  bool stopped() const { return stop_index_.has_value(); }
  // The place of the stop string in params.stop_strings; nothing if none was found.
  std::optional<uint32_t> stop_index() const { return stop_index_; }

  // Tokens that are out, counted from the first: never falls. After a stop string or Finish: the
  // tokens that belong to the shown text.
  uint64_t num_released() const { return num_released_; }
  uint64_t num_pushed() const { return num_pushed_; }

 private:
  struct Pattern {
    std::string bytes;
    // [bytes.size()]: the longest proper start of `bytes` that ends bytes[0, i].
    std::vector<uint16_t> fallback;
    uint16_t matched = 0;  // bytes of the pattern that the text ends with
  };
  struct HeldToken {
    uint64_t begin;  // of its text, counted from the start of the answer
    uint64_t end;    // it is out when the text up to here is
  };

  // Feeds the matchers; cuts the text at a stop string.
  void Append(std::string_view text);
  // Moves the first text up to `end` (counted from the start of the answer) out.
  std::string_view Release(uint64_t end);
  void ReleaseTokens(uint64_t text_end, bool is_cut);
  uint64_t appended() const { return released_ + (text_.size() - num_shown_); }

  std::vector<Pattern> patterns_;
  uint32_t min_tokens_;
  bool include_stop_string_;

  std::string text_;      // the last call's shown bytes, then the held ones
  size_t num_shown_ = 0;  // bytes at the front of text_ that are out
  uint64_t released_ = 0;
  uint64_t num_pushed_ = 0;
  uint64_t num_released_ = 0;
  std::vector<HeldToken> held_;  // tokens [num_released_, num_pushed_)
  std::optional<uint32_t> stop_index_;
  uint64_t cut_ = 0;  // where the shown text ends; if stopped
};

}  // namespace quire
