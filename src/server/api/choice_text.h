// ChoiceText: the tokens of one choice to the text that a client may see, and which tokens belong
// to it.
//
// Joins the detokenizer (whole characters only) and StopText (nothing of a stop string). A token is
// told, with its id and log-probabilities, when its text is out; tokens that a stop string cuts off
// never are.
//
// Threading: none of its own. Cost: linear in the tokens.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "engine/sampling_params.h"
#include "engine/stop_text.h"
#include "text/detokenizer.h"
#include "text/tokenizer.h"

namespace quire {

class ChoiceText {
 public:
  struct Options {
    bool shows_special = false;
    bool keeps_offsets = false;
    uint32_t offset = 0;  // code points that stand before the answer (echo)
  };

  // The tokenizer must outlive it. Requires: params.Validate().ok().
  ChoiceText(const Tokenizer* tokenizer, const SamplingParams& params, Options options);

  // The next token; what may be shown now is appended to `text`. After a stop string nothing is.
  void Push(TokenId id, std::string& text);
  // No more tokens come: appends what was held back. Once.
  void Finish(std::string& text);

  uint32_t num_pushed() const { return num_pushed_; }
  // Tokens whose text is out: the first so many.
  uint32_t num_told() const { return static_cast<uint32_t>(stop_text_.num_released()); }
  // The place in params.stop_strings of the one that cut the text.
  std::optional<uint32_t> stop_index() const { return stop_text_.stop_index(); }
  // Code points before token i's text. Requires: keeps_offsets, i < num_told().
  uint32_t offset(uint32_t i) const { return offsets_[i]; }

 private:
  Detokenizer detokenizer_;
  StopText stop_text_;
  Options options_;
  uint32_t num_pushed_ = 0;
  uint32_t num_code_points_;
  std::vector<uint32_t> offsets_;
};

}  // namespace quire
