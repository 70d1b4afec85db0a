#include "server/api/answer_writer.h"

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include "base/check.h"
#include "server/api/answer_json.h"
#include "server/api/event_stream.h"
#include "server/api/json_text.h"

namespace quire {
namespace {

// The choices of an answer that are told, the best first if there are more.
std::vector<uint32_t> ToldChoices(const GenerationCall& call, const Answer& answer) {
  std::vector<uint32_t> choices;
  for (uint32_t i = 0; i < call.num_sampled; ++i) choices.push_back(i);
  if (call.num_sampled == call.num_choices) return choices;
  std::ranges::stable_sort(choices, [&](uint32_t a, uint32_t b) {
    return answer.mean_logprob(a) > answer.mean_logprob(b);
  });
  choices.resize(call.num_choices);
  return choices;
}

void AppendWholeChoice(std::string& out, const AnswerJson& json, ToldChoice told) {
  std::string text(json.EchoOf(told.prompt));
  const std::span<const TokenId> tokens = json.AnswerOf(told).tokens(told.choice);
  for (const TokenId id : tokens) told.text.Push(id, text);
  told.text.Finish(text);
  const uint32_t end = told.text.num_told();
  AppendJsonComma(out);
  out += "{\"index\":";
  AppendJsonInteger(out, told.index);
  if (json.is_chat()) {
    out += ",\"message\":{\"role\":\"assistant\",\"content\":";
    AppendJsonString(out, text);
    out += '}';
  } else {
    out += ",\"text\":";
    AppendJsonString(out, text);
  }
  json.AppendLogprobs(out, told, 0, end, /*starts_choice=*/true);
  json.AppendFinish(out, told);
  if (!json.is_chat()) {  // in chat there is one prompt for all
    json.AppendIds(out, "prompt_token_ids", json.call().prompts[told.prompt]);
    json.AppendPromptLogprobs(out, told.prompt);
  }
  json.AppendIds(out, "token_ids", tokens.first(end));
  out += '}';
}

}  // namespace

struct AnswerWriter::Impl {
  Impl(const ServedModel* model, GenerationCall call, std::vector<std::shared_ptr<Answer>> answers)
      : json(model, std::move(call), std::move(answers)) {
    if (json.call().stream) stream.emplace(&json);
  }

  AnswerJson json;
  std::optional<EventStream> stream;
};

AnswerWriter::AnswerWriter(const ServedModel* model, GenerationCall call,
                           std::vector<std::shared_ptr<Answer>> answers)
    : impl_(std::make_unique<Impl>(model, std::move(call), std::move(answers))) {}
AnswerWriter::~AnswerWriter() = default;

bool AnswerWriter::has_news() const {
  return impl_->stream.has_value() ? impl_->stream->has_news() : all_ended();
}

std::string AnswerWriter::NextEvent(const AnswerNotes& notes) {
  QUIRE_CHECK(impl_->stream.has_value());
  return impl_->stream->NextEvent(notes);
}

std::string AnswerWriter::ErrorEvent(const ApiError& error) {
  QUIRE_CHECK(impl_->stream.has_value());
  return impl_->stream->ErrorEvent(error);
}

bool AnswerWriter::is_finished() const {
  return impl_->stream.has_value() && impl_->stream->is_finished();
}

bool AnswerWriter::all_ended() const {
  for (const auto& answer : answers())
    for (uint32_t i = 0; i < answer->num_choices(); ++i)
      if (!answer->ended(i)) return false;
  return true;
}

std::optional<ApiError> AnswerWriter::error() const {
  for (const auto& answer : answers())
    for (uint32_t i = 0; i < answer->num_choices(); ++i)
      if (answer->ended(i))
        if (auto error = AnswerJson::ErrorOf(*answer, i)) return error;
  return {};
}

ApiResult<std::string> AnswerWriter::WholeAnswer(const AnswerNotes& notes) {
  const AnswerJson& json = impl_->json;
  QUIRE_CHECK(!json.call().stream && all_ended());
  if (auto failed = error()) return *std::move(failed);
  std::string out = json.head();
  uint32_t index = 0;
  for (uint32_t prompt = 0; prompt < answers().size(); ++prompt)
    for (const uint32_t choice : ToldChoices(call(), *answers()[prompt]))
      AppendWholeChoice(out, json, json.NewChoice(prompt, choice, index++));
  out += ']';
  if (json.is_chat()) {
    json.AppendIds(out, "prompt_token_ids", call().prompts[0]);
    json.AppendPromptLogprobs(out, 0);
  }
  const CallCosts costs = CostsOf(answers());
  out += ",\"usage\":";
  AppendUsage(out, costs);
  json.AppendCosts(out, costs, notes);
  out += '}';
  return out;
}

uint64_t AnswerWriter::num_generated() const {
  uint64_t count = 0;
  for (const auto& answer : answers()) count += NumSampled(*answer);
  return count;
}

const GenerationCall& AnswerWriter::call() const { return impl_->json.call(); }
const std::vector<std::shared_ptr<Answer>>& AnswerWriter::answers() const {
  return impl_->json.answers();
}

}  // namespace quire
