#include "server/api/choice_text.h"

#include "server/api/json_text.h"

namespace quire {

ChoiceText::ChoiceText(const Tokenizer* tokenizer, const SamplingParams& params, Options options)
    : detokenizer_(tokenizer, {.starts_text = false, .show_special = options.shows_special}),
      stop_text_(params),
      options_(options),
      num_code_points_(options.offset) {}

void ChoiceText::Push(TokenId id, std::string& text) {
  ++num_pushed_;
  if (stop_text_.stopped()) return;
  // An id that the vocabulary lacks (the model's last rows may be padding) has no text.
  const StatusOr<std::string> piece = detokenizer_.Push(id);
  const std::string_view shown = piece.ok() ? std::string_view(piece.value()) : std::string_view();
  if (options_.keeps_offsets) {
    offsets_.push_back(num_code_points_);
    num_code_points_ += static_cast<uint32_t>(NumCodePoints(shown));
  }
  text += stop_text_.Push(shown, detokenizer_.has_waiting());
}

void ChoiceText::Finish(std::string& text) {
  if (!stop_text_.stopped()) text += stop_text_.Finish(detokenizer_.Finish());
}

}  // namespace quire
