// Answers without an engine, for tests of what is told of them.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/test_data.h"
#include "model/gguf_file.h"
#include "model/vocabulary_reader.h"
#include "server/api/answer_writer.h"
#include "text/test_vocabulary.h"
#include "text/tokenizer.h"

namespace quire {

using Json = nlohmann::json;

// The tokenizer of a model file in tests/data.
inline Tokenizer TokenizerOf(const std::string& path) {
  auto file = GgufFile::Open(TestData(path));
  QUIRE_CHECK(file.ok());
  auto vocabulary = ReadVocabulary(file->header(), file->header_memory());
  QUIRE_CHECK(vocabulary.ok());
  auto tokenizer = Tokenizer::Create(std::move(vocabulary).value());
  QUIRE_CHECK(tokenizer.ok());
  return std::move(tokenizer).value();
}

// That of stories260K: SPM with byte tokens ("<0x00>" is 3).
inline const Tokenizer& StoriesTokenizer() {
  static const Tokenizer tokenizer = TokenizerOf("tokenizer/stories260K.gguf");
  return tokenizer;
}

constexpr TokenId kFirstByteToken = 3;  // of SPM vocabularies

inline GenerationCall CallOf(ApiForm form, bool stream) {
  GenerationCall call;
  call.form = form;
  call.stream = stream;
  return call;
}

inline std::vector<TokenId> EncodeStories(std::string_view text, bool add_special = false) {
  return StoriesTokenizer().Encode(text, {.add_special = add_special}).value();
}

inline Logprobs LogprobsOf(double sampled, const std::vector<TokenLogprob>& top) {
  Logprobs logprobs = {.sampled = sampled, .num_top = static_cast<uint32_t>(top.size()), .top = {}};
  std::copy(top.begin(), top.end(), logprobs.top.begin());
  return logprobs;
}

// A call with its writer and the engine's side of its answers.
class Asked {
 public:
  explicit Asked(GenerationCall call, const Tokenizer* tokenizer = &StoriesTokenizer()) {
    model_.tokenizer = tokenizer;
    model_.system_fingerprint = "fp_0123";
    if (call.model.empty()) call.model = "tiny";
    if (call.prompts.empty()) call.prompts = {{1, 403, 407}};
    if (call.num_sampled < call.num_choices) call.num_sampled = call.num_choices;
    uint64_t id = 0;
    for (const Request& request : ToRequests(call, "tenant"))
      answers.push_back(std::make_shared<Answer>(++id, request, kMostTokens));
    writer = std::make_unique<AnswerWriter>(&model_, std::move(call), answers);
  }

  // As the engine: a token of a choice.
  void Push(uint32_t prompt, uint32_t choice, TokenId id, const Logprobs& logprobs = {}) {
    if (answers[prompt]->tokens(choice).empty() && choice == 0)
      answers[prompt]->mutable_prompt().first_token_seconds = answers[prompt]->SecondsSinceSubmit();
    answers[prompt]->Push(choice, id, logprobs, {});
  }
  void Push(const std::vector<TokenId>& ids) {
    for (const TokenId id : ids) Push(0, 0, id);
  }
  void End(FinishReason reason = FinishReason::kEndOfAnswer,
           std::optional<TokenId> stop_token = {}) {
    for (const auto& answer : answers)
      for (uint32_t i = 0; i < answer->num_choices(); ++i)
        if (!answer->ended(i)) answer->Finish(i, reason, OkStatus(), stop_token);
  }

  const ServedModel& model() const { return model_; }

  // What NextEvent gives until it has nothing.
  std::string Drain() {
    std::string events;
    while (writer->has_news()) events += writer->NextEvent(notes);
    return events;
  }
  std::string Whole() {
    auto result = writer->WholeAnswer(notes);
    EXPECT_TRUE(result.ok());
    return result.value();
  }

  static constexpr uint32_t kMostTokens = 4096;

  std::vector<std::shared_ptr<Answer>> answers;
  std::unique_ptr<AnswerWriter> writer;
  AnswerNotes notes;

 private:
  ServedModel model_;
};

// The JSON of each event; the string "[DONE]" for that. Checks the form and that all is ASCII.
inline std::vector<Json> EventsOf(std::string_view text) {
  std::vector<Json> events;
  for (const char c : text)
    EXPECT_TRUE(c == '\n' || (c >= 0x20 && c < 0x7F)) << static_cast<int>(c);
  while (!text.empty()) {
    const size_t end = text.find("\n\n");
    EXPECT_NE(end, std::string_view::npos);
    if (end == std::string_view::npos) break;
    const std::string_view event = text.substr(0, end);
    EXPECT_TRUE(event.starts_with("data: ")) << event;
    EXPECT_EQ(event.find('\n'), std::string_view::npos) << event;
    const std::string_view data = event.substr(std::strlen("data: "));
    if (data == "[DONE]") {
      events.emplace_back("[DONE]");
    } else {
      events.push_back(Json::parse(data, nullptr, /*allow_exceptions=*/false));
      EXPECT_TRUE(events.back().is_object()) << data;
    }
    text.remove_prefix(end + 2);
  }
  return events;
}

// The deltas of one choice, joined.
inline std::string TextOf(const std::vector<Json>& events, uint32_t index = 0) {
  std::string text;
  for (const Json& event : events) {
    if (!event.is_object() || !event.contains("choices")) continue;
    for (const Json& choice : event["choices"]) {
      if (choice["index"] != index) continue;
      if (choice.contains("text")) text += choice["text"].get<std::string>();
      if (choice.contains("delta") && choice["delta"].contains("content"))
        text += choice["delta"]["content"].get<std::string>();
    }
  }
  return text;
}

}  // namespace quire
