#include "server/api/answer_writer.h"

#include <algorithm>
#include <chrono>
#include <random>
#include <span>
#include <utility>

#include "base/check.h"
#include "server/api/choice_text.h"
#include "server/api/json_text.h"
#include "server/api/logprobs_json.h"
#include "server/api/usage_json.h"

namespace quire {
namespace {

// One event holds at most so much, so that a slow reader's backlog is sent in parts: the socket's
// buffer stays small however long the answer is.
constexpr size_t kMaxEventTextBytes = 4096;
constexpr uint32_t kMaxEventTokens = 512;
constexpr uint32_t kMaxEventTokensWithLogprobs = 16;

constexpr std::string_view kEventStart = "data: ";
constexpr std::string_view kEventEnd = "\n\n";
constexpr std::string_view kDone = "data: [DONE]\n\n";

// "chatcmpl-" and 24 hexadecimal digits.
std::string NewId(ApiForm form) {
  std::random_device random;
  std::string id = form == ApiForm::kChat ? "chatcmpl-" : "cmpl-";
  constexpr char kDigits[] = "0123456789abcdef";
  for (int word = 0; word < 3; ++word) {
    uint32_t bits = random();
    for (int i = 0; i < 8; ++i, bits >>= 4) id += kDigits[bits & 15];
  }
  return id;
}

std::string_view FinishWord(FinishReason reason) {
  switch (reason) {
    case FinishReason::kEndOfAnswer:
    case FinishReason::kStopToken:
    case FinishReason::kStopString:
      return "stop";
    default:
      return "length";
  }
}

// What ended the choice, if it was no end of an answer.
std::optional<ApiError> ErrorOf(const Answer& answer, uint32_t choice) {
  if (!answer.status(choice).ok()) return FromStatus(answer.status(choice));
  switch (answer.finish_reason(choice)) {
    case FinishReason::kCancelled:
      // Not of the 5xx, at which clients try again.
      return ApiError{.code = "aborted", .message = "The request was ended by this server."};
    case FinishReason::kError:
      return InternalError();
    default:
      return {};
  }
}

}  // namespace

struct AnswerWriter::Impl {
  // A choice that is told: number `choice` of answers[prompt].
  struct Told {
    uint32_t prompt = 0;
    uint32_t choice = 0;
    ChoiceText text;
    uint32_t num_told = 0;  // tokens that events have told
    bool has_begun = false;
    bool has_ended = false;
  };

  Impl(const ServedModel* served, GenerationCall asked,
       std::vector<std::shared_ptr<Answer>> engine_answers)
      : model(served), call(std::move(asked)), answers(std::move(engine_answers)) {
    QUIRE_CHECK(answers.size() == call.prompts.size());
    QUIRE_CHECK(call.num_sampled >= call.num_choices);
    QUIRE_CHECK(!call.stream || call.num_sampled == call.num_choices);
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    AppendHead(std::chrono::duration_cast<std::chrono::seconds>(now).count());
    if (!call.stream) return;
    told.reserve(answers.size() * call.num_choices);
    for (uint32_t prompt = 0; prompt < answers.size(); ++prompt)
      for (uint32_t choice = 0; choice < call.num_choices; ++choice)
        told.push_back(MakeTold(prompt, choice));
  }

  bool is_chat() const { return call.form == ApiForm::kChat; }
  uint32_t num_told() const { return static_cast<uint32_t>(answers.size()) * call.num_choices; }

  Told MakeTold(uint32_t prompt, uint32_t choice) const {
    ChoiceText::Options options = {.shows_special = !call.skips_special_tokens,
                                   .keeps_offsets = !is_chat() && call.logprobs.has_value()};
    if (call.echo) options.offset = static_cast<uint32_t>(NumCodePoints(EchoOf(prompt)));
    return {.prompt = prompt,
            .choice = choice,
            .text = ChoiceText(model->tokenizer, call.sampling, options)};
  }

  std::string_view EchoOf(uint32_t prompt) const {
    return call.echo ? std::string_view(call.prompt_texts[prompt]) : std::string_view();
  }

  // The same in all chunks, so written once.
  void AppendHead(int64_t created) {
    head = call.stream ? kEventStart : std::string_view();
    head += "{\"id\":";
    AppendJsonString(head, NewId(call.form));
    head += ",\"object\":\"";
    head += !is_chat()    ? "text_completion"
            : call.stream ? "chat.completion.chunk"
                          : "chat.completion";
    head += "\",\"created\":";
    AppendJsonInteger(head, created);
    head += ",\"model\":";
    AppendJsonString(head, call.model);
    head += ",\"system_fingerprint\":";
    AppendJsonString(head, model->system_fingerprint);
    head += ",\"choices\":[";
  }

  void AppendFinish(std::string& json, const Told& choice) const {
    const Answer& answer = *answers[choice.prompt];
    const auto stop_index = choice.text.stop_index();
    const FinishReason reason =
        stop_index ? FinishReason::kStopString : answer.finish_reason(choice.choice);
    json += ",\"finish_reason\":\"";
    json += FinishWord(reason);
    json += "\",\"stop_reason\":";
    if (stop_index.has_value()) {
      AppendJsonString(json, call.sampling.stop_strings[*stop_index]);
    } else if (reason == FinishReason::kStopToken) {
      AppendJsonInteger(json, *answer.stop_token(choice.choice));
    } else {
      json += "null";
    }
  }

  // Of the tokens [begin, end) of a choice.
  void AppendLogprobs(std::string& json, const Told& choice, uint32_t begin, uint32_t end) const {
    json += ",\"logprobs\":";
    if (!call.logprobs.has_value()) {
      json += "null";
      return;
    }
    const Answer& answer = *answers[choice.prompt];
    std::vector<ToldToken> tokens;
    for (uint32_t i = begin; i < end; ++i) {
      tokens.push_back({.id = answer.tokens(choice.choice)[i],
                        .logprobs = &answer.logprobs(choice.choice, i),
                        .offset = is_chat() ? 0 : choice.text.offset(i)});
    }
    const LogprobsForm form = {.tokenizer = model->tokenizer,
                               .num_top = *call.logprobs,
                               .tokens_as_ids = call.tokens_as_token_ids};
    if (is_chat()) {
      AppendChatLogprobs(json, tokens, form);
    } else {
      AppendCompletionLogprobs(json, tokens, form);
    }
  }

  void AppendIds(std::string& json, std::string_view key, std::span<const TokenId> ids) const {
    if (!call.return_token_ids) return;
    json += ",\"";
    json += key;
    json += "\":[";
    for (const TokenId id : ids) {
      AppendJsonComma(json);
      AppendJsonInteger(json, id);
    }
    json += ']';
  }

  uint32_t IndexOf(const Told& choice) const {
    return choice.prompt * call.num_choices + choice.choice;
  }

  CallCosts Costs(const AnswerNotes& notes) const {
    CallCosts costs = CostsOf(answers);
    costs.cache_write_tokens = notes.cache_write_tokens;
    return costs;
  }

  void AppendCosts(std::string& json, const AnswerNotes& notes, bool has_usage) const {
    const CallCosts costs = Costs(notes);
    if (has_usage) {
      json += ",\"usage\":";
      AppendUsage(json, costs);
    }
    json += ",\"timings\":";
    AppendTimings(json, costs);
    json += ",\"quire\":";
    AppendQuire(json, costs, notes.retained_until);
  }

  // Streams.
  bool HasNews(const Told& choice) const {
    if (choice.has_ended) return false;
    const Answer& answer = *answers[choice.prompt];
    return answer.ended(choice.choice) ||
           answer.tokens(choice.choice).size() > choice.text.num_pushed();
  }
  void AppendNews(std::string& event, Told& choice, const AnswerNotes& notes);
  void AppendRole(std::string& event, const Told& choice, const AnswerNotes& notes) const;
  void AppendDelta(std::string& event, const Told& choice, std::string_view text, uint32_t end,
                   bool is_last, const AnswerNotes& notes) const;
  void AppendChunkEnd(std::string& event, const AnswerNotes& notes, bool is_last) const;
  void AppendEnd(std::string& event, const AnswerNotes& notes);

  // Whole answers.
  std::vector<uint32_t> BestChoices(const Answer& answer) const;
  void AppendWholeChoice(std::string& json, Told& choice, uint32_t index) const;

  const ServedModel* model;
  GenerationCall call;
  std::vector<std::shared_ptr<Answer>> answers;
  std::string head;  // of every event, or of the whole answer: up to the first choice
  std::vector<Told> told;
  uint32_t next = 0;  // the choice to look at first: none waits for ever behind a busy one
  uint32_t num_ended = 0;
  bool is_finished = false;
};

// Closes the choices and the chunk. `is_last`: the last one before [DONE].
void AnswerWriter::Impl::AppendChunkEnd(std::string& event, const AnswerNotes& notes,
                                        bool is_last) const {
  event += ']';
  if (call.continuous_usage) {
    event += ",\"usage\":";
    AppendUsage(event, Costs(notes));
  } else if (call.include_usage) {
    event += ",\"usage\":null";
  }
  if (is_last) AppendCosts(event, notes, /*has_usage=*/false);
  event += '}';
  event += kEventEnd;
}

void AnswerWriter::Impl::AppendRole(std::string& event, const Told& choice,
                                    const AnswerNotes& notes) const {
  event += head;
  event += "{\"index\":";
  AppendJsonInteger(event, IndexOf(choice));
  event += ",\"delta\":{\"role\":\"assistant\",\"content\":\"\"},\"logprobs\":null";
  event += ",\"finish_reason\":null}";
  AppendChunkEnd(event, notes, /*is_last=*/false);
  if (!call.return_token_ids) return;
  event.resize(event.size() - 1 - kEventEnd.size());
  AppendIds(event, "prompt_token_ids", call.prompts[choice.prompt]);
  event += '}';
  event += kEventEnd;
}

// Text and tokens up to `end`; with the finish if `is_last` of the choice.
void AnswerWriter::Impl::AppendDelta(std::string& event, const Told& choice, std::string_view text,
                                     uint32_t end, bool is_last, const AnswerNotes& notes) const {
  const std::span<const TokenId> ids =
      answers[choice.prompt]->tokens(choice.choice).subspan(choice.num_told, end - choice.num_told);
  const bool has_parts =
      !text.empty() || (!ids.empty() && (call.logprobs || call.return_token_ids));
  if (is_chat()) {
    if (has_parts) {
      event += head;
      event += "{\"index\":";
      AppendJsonInteger(event, IndexOf(choice));
      event += ",\"delta\":{\"content\":";
      AppendJsonString(event, text);
      event += '}';
      AppendLogprobs(event, choice, choice.num_told, end);
      event += ",\"finish_reason\":null";
      AppendIds(event, "token_ids", ids);
      event += '}';
      AppendChunkEnd(event, notes, /*is_last=*/false);
    }
    if (!is_last) return;
    event += head;
    event += "{\"index\":";
    AppendJsonInteger(event, IndexOf(choice));
    event += ",\"delta\":{},\"logprobs\":null";
    AppendFinish(event, choice);
    event += '}';
  } else {
    if (!has_parts && !is_last && choice.has_begun) return;
    event += head;
    event += "{\"index\":";
    AppendJsonInteger(event, IndexOf(choice));
    event += ",\"text\":\"";
    if (!choice.has_begun) AppendJsonCharacters(event, EchoOf(choice.prompt));
    AppendJsonCharacters(event, text);
    event += '"';
    AppendLogprobs(event, choice, choice.num_told, end);
    if (is_last) {
      AppendFinish(event, choice);
    } else {
      event += ",\"finish_reason\":null";
    }
    if (!choice.has_begun) AppendIds(event, "prompt_token_ids", call.prompts[choice.prompt]);
    AppendIds(event, "token_ids", ids);
    event += '}';
  }
  AppendChunkEnd(event, notes, is_last && !call.include_usage && num_ended == told.size());
}

// Appends nothing if the news are all held back.
void AnswerWriter::Impl::AppendNews(std::string& event, Told& choice, const AnswerNotes& notes) {
  const Answer& answer = *answers[choice.prompt];
  // In this order: after the end come no tokens.
  const bool has_ended = answer.ended(choice.choice);
  const std::span<const TokenId> tokens = answer.tokens(choice.choice);
  const uint32_t most = call.logprobs.has_value() ? kMaxEventTokensWithLogprobs : kMaxEventTokens;
  std::string text;
  const uint32_t begin = choice.text.num_pushed();
  const auto size = static_cast<uint32_t>(tokens.size());
  while (choice.text.num_pushed() < std::min(size, begin + most) &&
         text.size() < kMaxEventTextBytes)
    choice.text.Push(tokens[choice.text.num_pushed()], text);
  const bool is_last = has_ended && choice.text.num_pushed() == size;
  const std::optional<ApiError> error = is_last ? ErrorOf(answer, choice.choice) : std::nullopt;
  if (is_last && !error) {
    choice.text.Finish(text);
    choice.has_ended = true;
    ++num_ended;
  }
  if (is_chat() && !choice.has_begun && !error) AppendRole(event, choice, notes);
  const uint32_t end = choice.text.num_told();
  if (!error || end > choice.num_told)
    AppendDelta(event, choice, text, end, is_last && !error, notes);
  choice.has_begun = true;
  choice.num_told = end;
  if (error) {
    event += kEventStart;
    event += ToJson(*error);
    event += kEventEnd;
    event += kDone;
    is_finished = true;
    for (const auto& other : answers) other->Abort();
  }
}

// All choices have ended.
void AnswerWriter::Impl::AppendEnd(std::string& event, const AnswerNotes& notes) {
  if (call.include_usage) {
    event += head;
    event += ']';
    AppendCosts(event, notes, /*has_usage=*/true);
    event += '}';
    event += kEventEnd;
  }
  event += kDone;
  is_finished = true;
}

// The choices to tell, the best first if there are more than that.
std::vector<uint32_t> AnswerWriter::Impl::BestChoices(const Answer& answer) const {
  std::vector<uint32_t> choices;
  for (uint32_t i = 0; i < call.num_sampled; ++i) choices.push_back(i);
  if (call.num_sampled == call.num_choices) return choices;
  std::ranges::stable_sort(choices, [&](uint32_t a, uint32_t b) {
    return answer.mean_logprob(a) > answer.mean_logprob(b);
  });
  choices.resize(call.num_choices);
  return choices;
}

void AnswerWriter::Impl::AppendWholeChoice(std::string& json, Told& choice, uint32_t index) const {
  std::string text(EchoOf(choice.prompt));
  const std::span<const TokenId> tokens = answers[choice.prompt]->tokens(choice.choice);
  for (const TokenId id : tokens) choice.text.Push(id, text);
  choice.text.Finish(text);
  const uint32_t end = choice.text.num_told();
  AppendJsonComma(json);
  json += "{\"index\":";
  AppendJsonInteger(json, index);
  if (is_chat()) {
    json += ",\"message\":{\"role\":\"assistant\",\"content\":";
    AppendJsonString(json, text);
    json += '}';
  } else {
    json += ",\"text\":";
    AppendJsonString(json, text);
  }
  AppendLogprobs(json, choice, 0, end);
  AppendFinish(json, choice);
  if (!is_chat()) AppendIds(json, "prompt_token_ids", call.prompts[choice.prompt]);
  AppendIds(json, "token_ids", tokens.first(end));
  json += '}';
}

AnswerWriter::AnswerWriter(const ServedModel* model, GenerationCall call,
                           std::vector<std::shared_ptr<Answer>> answers)
    : impl_(std::make_unique<Impl>(model, std::move(call), std::move(answers))) {}
AnswerWriter::~AnswerWriter() = default;

bool AnswerWriter::has_news() const {
  if (impl_->is_finished) return false;
  return std::ranges::any_of(impl_->told, [&](const auto& told) { return impl_->HasNews(told); });
}

std::string AnswerWriter::NextEvent(const AnswerNotes& notes) {
  Impl& impl = *impl_;
  QUIRE_CHECK(impl.call.stream);
  std::string event;
  const auto count = static_cast<uint32_t>(impl.told.size());
  for (uint32_t i = 0; i < count && event.empty() && !impl.is_finished; ++i) {
    auto& choice = impl.told[(impl.next + i) % count];
    while (event.empty() && !impl.is_finished && impl.HasNews(choice))
      impl.AppendNews(event, choice, notes);
    if (!event.empty()) impl.next = (impl.next + i + 1) % count;
  }
  if (!impl.is_finished && impl.num_ended == count) impl.AppendEnd(event, notes);
  return event;
}

std::string AnswerWriter::ErrorEvent(const ApiError& error) {
  impl_->is_finished = true;
  std::string event(kEventStart);
  event += ToJson(error);
  event += kEventEnd;
  event += kDone;
  return event;
}

bool AnswerWriter::is_finished() const { return impl_->is_finished; }

bool AnswerWriter::all_ended() const {
  for (const auto& answer : impl_->answers)
    for (uint32_t i = 0; i < answer->num_choices(); ++i)
      if (!answer->ended(i)) return false;
  return true;
}

ApiResult<std::string> AnswerWriter::WholeAnswer(const AnswerNotes& notes) {
  Impl& impl = *impl_;
  QUIRE_CHECK(!impl.call.stream && all_ended());
  for (const auto& answer : impl.answers)
    for (uint32_t i = 0; i < answer->num_choices(); ++i)
      if (const auto error = ErrorOf(*answer, i)) return *error;
  std::string json = impl.head;
  uint32_t index = 0;
  for (uint32_t prompt = 0; prompt < impl.answers.size(); ++prompt) {
    for (const uint32_t choice : impl.BestChoices(*impl.answers[prompt])) {
      Impl::Told told = impl.MakeTold(prompt, choice);
      impl.AppendWholeChoice(json, told, index++);
    }
  }
  json += ']';
  if (impl.is_chat()) impl.AppendIds(json, "prompt_token_ids", impl.call.prompts[0]);
  impl.AppendCosts(json, notes, /*has_usage=*/true);
  json += '}';
  impl.is_finished = true;
  return json;
}

uint64_t AnswerWriter::num_generated() const {
  uint64_t count = 0;
  for (const auto& answer : impl_->answers) count += NumSampled(*answer);
  return count;
}

const GenerationCall& AnswerWriter::call() const { return impl_->call; }
const std::vector<std::shared_ptr<Answer>>& AnswerWriter::answers() const { return impl_->answers; }

}  // namespace quire
