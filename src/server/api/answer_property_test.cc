// Random answers: however the tokens come, a stream joined is the whole answer.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "server/api/answer_test_support.h"
#include "text/detokenizer.h"

namespace quire {
namespace {

constexpr int kNumRounds = 400;

// What one client got of one choice.
struct Got {
  std::string text;
  std::vector<std::string> tokens;
  std::string bytes;
  std::vector<TokenId> ids;
  std::vector<uint32_t> offsets;
  Json finish, stop;

  void Add(const Json& choice) {
    if (choice.contains("text")) text += choice["text"].get<std::string>();
    for (const char* part : {"delta", "message"})
      if (choice.contains(part) && choice[part].contains("content"))
        text += choice[part]["content"].get<std::string>();
    if (const Json& logprobs = choice["logprobs"]; logprobs.contains("content")) {
      for (const Json& token : logprobs["content"]) {
        tokens.push_back(token["token"]);
        for (const Json& byte : token["bytes"]) bytes += static_cast<char>(byte.get<int>());
      }
    } else if (logprobs.is_object()) {
      for (const Json& token : logprobs["tokens"]) tokens.push_back(token);
      for (const Json& offset : logprobs["text_offset"]) offsets.push_back(offset);
    }
    if (choice.contains("token_ids"))
      for (const Json& id : choice["token_ids"]) ids.push_back(id);
    if (choice["finish_reason"].is_null()) return;
    EXPECT_TRUE(finish.is_null());
    finish = choice["finish_reason"];
    stop = choice["stop_reason"];
  }
  bool operator==(const Got&) const = default;
};

std::string Mended(std::string bytes) {
  return nlohmann::json::parse(
      nlohmann::json(bytes).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace));
}

class Rounds {
 public:
  Rounds(const Tokenizer& tokenizer, uint32_t seed) : tokenizer_(tokenizer), random_(seed) {
    for (const char byte : std::string_view("abo \xC3\xA9\xF0\x9F\xA6"))
      bytes_.push_back(tokenizer.Encode(std::string(1, byte), {}).value().back());
  }

  void Run() {
    GenerationCall call =
        CallOf(Below(2) == 0 ? ApiForm::kChat : ApiForm::kCompletions, /*stream=*/false);
    call.prompts.assign(1 + Below(2), {1, 4});
    call.num_choices = 1 + Below(2);
    call.return_token_ids = true;
    call.skips_special_tokens = Below(2) == 0;
    if (Below(4) > 0) call.logprobs = Below(3);
    if (call.form == ApiForm::kCompletions && Below(2) == 0) {
      call.echo = true;
      call.prompt_texts.assign(call.prompts.size(), "\u00e9 echo");
      call.logprobs.reset();  // that of prompts: answer_writer_test.cc
    }
    std::vector<std::vector<TokenId>> answers(call.prompts.size() * call.num_choices);
    for (auto& ids : answers)
      for (uint32_t length = Below(60); ids.size() < length;) ids.push_back(AnyId());
    for (uint32_t i = Below(3); i > 0; --i) call.sampling.stop_strings.push_back(AnyStop(answers));
    call.sampling.include_stop_string = Below(3) == 0;

    Asked whole(call, &tokenizer_);
    call.stream = true;
    call.include_usage = Below(2) == 0;
    Asked stream(call, &tokenizer_);
    std::string events = Feed(call, answers, whole, stream);
    Compare(call, answers, Json::parse(whole.Whole()), EventsOf(events));
  }

 private:
  uint32_t Below(uint32_t limit) { return random_() % limit; }

  TokenId AnyId() {
    // Bytes often, so that characters are cut and broken.
    if (Below(2) == 0)
      return static_cast<TokenId>(Below(static_cast<uint32_t>(tokenizer_.num_tokens())));
    return bytes_[Below(static_cast<uint32_t>(bytes_.size()))];
  }

  std::string AnyStop(const std::vector<std::vector<TokenId>>& answers) {
    const auto& ids = answers[Below(static_cast<uint32_t>(answers.size()))];
    const std::string text = Decode(tokenizer_, ids, {.starts_text = false}).value();
    std::string stop = "ab";
    if (!text.empty()) {
      size_t begin = Below(static_cast<uint32_t>(text.size())), end = begin + 1 + Below(6);
      const auto inside = [&](size_t at) {
        return at < text.size() && (static_cast<uint8_t>(text[at]) & 0xC0) == 0x80;
      };
      while (inside(begin)) --begin;
      while (inside(end)) ++end;
      stop = text.substr(begin, end - begin);
    }
    return stop;
  }

  // Pushes all to both, in random parts to the stream; its events.
  std::string Feed(const GenerationCall& call, const std::vector<std::vector<TokenId>>& answers,
                   Asked& whole, Asked& stream) {
    std::string events;
    std::vector<size_t> fed(answers.size());
    std::vector<bool> ended(answers.size());
    for (size_t num_ended = 0; num_ended < answers.size();) {
      const uint32_t i = Below(static_cast<uint32_t>(answers.size()));
      const uint32_t prompt = i / call.num_choices, choice = i % call.num_choices;
      for (uint32_t k = Below(6); k > 0 && fed[i] < answers[i].size(); --k) {
        const TokenId id = answers[i][fed[i]++];
        const Logprobs logprobs = LogprobsOf(-1, {{id, -1}, {4, -2}});
        whole.Push(prompt, choice, id, Cut(logprobs, call));
        stream.Push(prompt, choice, id, Cut(logprobs, call));
      }
      if (Below(2) == 0) events += stream.Drain();
      if (fed[i] < answers[i].size() || ended[i]) continue;
      ended[i] = true;
      ++num_ended;
      for (Asked* asked : {&whole, &stream})
        asked->answers[prompt]->Finish(choice, FinishReason::kMaxTokens, OkStatus());
      if (Below(2) == 0) events += stream.Drain();
    }
    return events + stream.Drain();
  }

  static Logprobs Cut(Logprobs logprobs, const GenerationCall& call) {
    logprobs.num_top = std::min(logprobs.num_top, call.logprobs.value_or(0));
    return logprobs;
  }

  void Compare(const GenerationCall& call, const std::vector<std::vector<TokenId>>& answers,
               const Json& whole, const std::vector<Json>& events) {
    ASSERT_EQ(events.back(), "[DONE]");
    std::vector<Got> streamed(answers.size());
    Json usage;
    for (const Json& event : events) {
      if (!event.is_object()) continue;
      for (const Json& choice : event["choices"]) streamed[choice["index"]].Add(choice);
      if (event.contains("usage") && !event["usage"].is_null()) usage = event["usage"];
    }
    uint64_t num_tokens = 0;
    for (size_t i = 0; i < answers.size(); ++i) {
      num_tokens += answers[i].size();
      Got got;
      got.Add(whole["choices"][i]);
      EXPECT_EQ(got, streamed[i]) << got.text << "\n" << streamed[i].text;
      CheckTokens(call, answers[i], got);
    }
    EXPECT_EQ(whole["usage"]["completion_tokens"], num_tokens);
    EXPECT_EQ(whole["usage"]["total_tokens"], num_tokens + 2 * call.prompts.size());
    EXPECT_EQ(usage, call.include_usage ? whole["usage"] : Json());
  }

  // The told tokens are the first ones, and their bytes are the text (a token that a stop string
  // cuts in its middle has more).
  void CheckTokens(const GenerationCall& call, const std::vector<TokenId>& answer, const Got& got) {
    ASSERT_LE(got.ids.size(), answer.size());
    EXPECT_TRUE(std::equal(got.ids.begin(), got.ids.end(), answer.begin()));
    if (!call.logprobs.has_value()) return;
    EXPECT_EQ(got.tokens.size(), got.ids.size());
    std::string bytes;
    for (const TokenId id : got.ids) {
      const TokenType type = tokenizer_.Type(id);
      const bool is_special = type == TokenType::kControl || type == TokenType::kUnknown;
      if (!is_special) bytes += tokenizer_.Piece(id);
      if (is_special && !call.skips_special_tokens) bytes += tokenizer_.Text(id);
    }
    const std::string text = Mended(bytes);
    EXPECT_TRUE(text.starts_with(got.text)) << text << "\n" << got.text;
    if (got.finish == "length") {
      EXPECT_EQ(text, got.text);
    }
    EXPECT_TRUE(std::ranges::is_sorted(got.offsets));
  }

  const Tokenizer& tokenizer_;
  std::mt19937 random_;
  std::vector<TokenId> bytes_;  // of characters and of their parts
};

TEST(AnswerProperty, AStreamJoinedIsTheWholeAnswerWithSpmTokens) {  // STR-12
  for (int seed = 0; seed < kNumRounds && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    Rounds(StoriesTokenizer(), static_cast<uint32_t>(seed)).Run();
  }
}

TEST(AnswerProperty, AStreamJoinedIsTheWholeAnswerWithBytePairs) {  // STR-12
  auto tokenizer = Tokenizer::Create(SmallBpeVocabulary());
  ASSERT_TRUE(tokenizer.ok());
  for (int seed = 0; seed < kNumRounds && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    Rounds(tokenizer.value(), static_cast<uint32_t>(seed)).Run();
  }
}

}  // namespace
}  // namespace quire
