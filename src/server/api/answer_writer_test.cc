// Whole answers: choices, usage, log-probabilities; cases API of the catalogue.
#include "server/api/answer_writer.h"

#include <gtest/gtest.h>

#include <limits>

#include "server/api/answer_test_support.h"
#include "server/api/usage_json.h"

namespace quire {
namespace {

constexpr double kNever = -std::numeric_limits<double>::infinity();

TEST(AnswerWriter, TheIndexOfAChoiceIsThePromptsTimesNPlusItsOwn) {
  GenerationCall call = CallOf(ApiForm::kCompletions, /*stream=*/false);
  call.prompts = {{1, 403}, {1, 407, 261}};
  call.num_choices = 2;
  Asked asked(call);
  const std::vector<std::string> words = {" a", " b", " c", " d"};
  for (uint32_t i = 0; i < 4; ++i)
    for (const TokenId id : EncodeStories(words[i].substr(1))) asked.Push(i / 2, i % 2, id);
  EXPECT_FALSE(asked.writer->all_ended());
  asked.End();
  EXPECT_TRUE(asked.writer->all_ended());
  const Json answer = Json::parse(asked.Whole());
  ASSERT_EQ(answer["choices"].size(), 4u);
  for (uint32_t i = 0; i < 4; ++i) {
    EXPECT_EQ(answer["choices"][i]["index"], i);
    EXPECT_EQ(answer["choices"][i]["text"], words[i]);
  }
  EXPECT_EQ(answer["usage"]["prompt_tokens"], 5);  // each once
}

// API-11
TEST(AnswerWriter, UsageCountsAllThatWasSampledOfAllChoices) {
  GenerationCall call = CallOf(ApiForm::kChat, /*stream=*/false);
  call.num_choices = 3;
  call.sampling.stop_strings = {" cat"};
  Asked asked(call);
  asked.answers[0]->mutable_prompt().num_cached = 2;
  asked.answers[0]->mutable_prompt().num_inserted = 1;
  const std::vector<TokenId> ids = EncodeStories("a cat");
  for (const TokenId id : ids) asked.Push(0, 0, id);
  asked.answers[0]->Finish(0, FinishReason::kStopString, OkStatus());
  asked.Push(0, 1, ids[0]);
  asked.answers[0]->Finish(1, FinishReason::kEndOfAnswer, OkStatus(), 2);  // the end token too
  asked.answers[0]->Finish(2, FinishReason::kStopToken, OkStatus(), 403);  // nothing but that
  const Json answer = Json::parse(asked.Whole());
  EXPECT_EQ(answer["usage"]["completion_tokens"], ids.size() + 2 + 1);
  EXPECT_EQ(answer["usage"]["prompt_tokens"], 3);
  EXPECT_EQ(answer["usage"]["total_tokens"], 3 + ids.size() + 3);
  EXPECT_EQ(answer["usage"]["prompt_tokens_details"],
            Json::parse(R"({"cached_tokens":2,"cache_write_tokens":1})"));
  EXPECT_EQ(answer["timings"]["cache_n"], 2);
  EXPECT_EQ(answer["timings"]["prompt_n"], 1);
  EXPECT_EQ(asked.writer->num_generated(), ids.size() + 3);
  EXPECT_EQ(answer["choices"][0]["message"]["content"], " a");
  EXPECT_EQ(answer["choices"][0]["stop_reason"], " cat");
  EXPECT_EQ(answer["choices"][1]["stop_reason"], nullptr);
  EXPECT_EQ(answer["choices"][2]["stop_reason"], 403);
  EXPECT_EQ(answer["choices"][2]["message"]["content"], "");
  for (const Json& choice : answer["choices"]) EXPECT_EQ(choice["finish_reason"], "stop");
}

TEST(AnswerWriter, EachEndHasOneOfTheWordsThatClientsKnow) {
  for (const FinishReason reason : {FinishReason::kEndOfAnswer, FinishReason::kMaxTokens,
                                    FinishReason::kContextFull, FinishReason::kMemoryFull}) {
    Asked asked(CallOf(ApiForm::kChat, /*stream=*/false));
    asked.End(reason);
    EXPECT_EQ(Json::parse(asked.Whole())["choices"][0]["finish_reason"],
              reason == FinishReason::kEndOfAnswer ? "stop" : "length");
  }
}

TEST(AnswerWriter, BestOfTellsTheChoicesOfTheHighestMean) {
  GenerationCall call = CallOf(ApiForm::kCompletions, /*stream=*/false);
  call.num_choices = 2;
  call.num_sampled = 4;
  Asked asked(call);
  const std::vector<double> means = {-3, -1, -2, -1};
  for (uint32_t i = 0; i < 4; ++i)
    for (uint32_t k = 0; k <= i; ++k)
      asked.Push(0, i, kFirstByteToken + 'a' + static_cast<TokenId>(i), LogprobsOf(means[i], {}));
  asked.End();
  const Json answer = Json::parse(asked.Whole());
  ASSERT_EQ(answer["choices"].size(), 2u);
  EXPECT_EQ(answer["choices"][0]["text"], "bb");  // of equals the first
  EXPECT_EQ(answer["choices"][1]["text"], "dddd");
  EXPECT_EQ(answer["choices"][0]["index"], 0);
  EXPECT_EQ(answer["choices"][0]["logprobs"], nullptr);
  EXPECT_EQ(answer["usage"]["completion_tokens"], 1 + 2 + 3 + 4);
}

// API-07
TEST(AnswerWriter, BytesOfATokenAreItsOwnEvenInsideACharacter) {
  GenerationCall call = CallOf(ApiForm::kChat, /*stream=*/false);
  call.logprobs = 2;
  Asked asked(call);
  asked.Push(0, 0, kFirstByteToken + 0xF0,
             LogprobsOf(-0.5, {{kFirstByteToken + 0xF0, -0.5}, {kFirstByteToken + 0xE2, -1}}));
  asked.End(FinishReason::kMaxTokens);
  const Json token = Json::parse(asked.Whole())["choices"][0]["logprobs"]["content"][0];
  EXPECT_EQ(token["bytes"], Json::parse("[240]"));
  EXPECT_EQ(token["token"], "\uFFFD");
  EXPECT_EQ(token["top_logprobs"][1]["bytes"], Json::parse("[226]"));
}

// API-06
TEST(AnswerWriter, MinusInfinityIsANumber) {
  for (const ApiForm form : {ApiForm::kChat, ApiForm::kCompletions}) {
    GenerationCall call = CallOf(form, /*stream=*/false);
    call.logprobs = 2;
    Asked asked(call);
    asked.Push(0, 0, 403, LogprobsOf(kNever, {{407, 0}, {261, kNever}}));
    asked.End();
    const Json logprobs = Json::parse(asked.Whole())["choices"][0]["logprobs"];
    if (form == ApiForm::kChat) {
      EXPECT_EQ(logprobs["content"][0]["logprob"], -9999.0);
      EXPECT_EQ(logprobs["content"][0]["top_logprobs"][1]["logprob"], -9999.0);
    } else {
      EXPECT_EQ(logprobs["token_logprobs"][0], -9999.0);
      EXPECT_EQ(logprobs["top_logprobs"][0].size(), 3u);  // k + 1: the sampled one is there
    }
  }
}

TEST(AnswerWriter, OfTwoIdsWithOneTextTheLargerValueIsTold) {
  GenerationCall call = CallOf(ApiForm::kCompletions, /*stream=*/false);
  call.logprobs = 2;
  Asked asked(call);
  asked.Push(0, 0, kFirstByteToken + 0xF0,
             LogprobsOf(-7, {{kFirstByteToken + 0xE2, -1}, {kFirstByteToken + 0xF1, -2}}));
  asked.End();
  EXPECT_EQ(Json::parse(asked.Whole())["choices"][0]["logprobs"]["top_logprobs"][0],
            Json::parse("{\"\uFFFD\":-1.0}"));
}

// STR-14
TEST(AnswerWriter, TokensThatAStopStringCutsOffAreNotTold) {
  for (const bool stream : {false, true}) {
    GenerationCall call = CallOf(ApiForm::kCompletions, stream);
    call.logprobs = 1;
    call.return_token_ids = true;
    call.sampling.stop_strings = {"outside"};
    Asked asked(call);
    const std::vector<TokenId> before = EncodeStories("to play ");
    std::string events;
    for (const TokenId id : EncodeStories("to play outside")) {
      asked.Push(0, 0, id, LogprobsOf(-1, {{id, -1}}));
      if (stream) events += asked.Drain();
    }
    asked.End(FinishReason::kStopString);
    std::string text, tokens;
    std::vector<TokenId> ids;
    std::vector<Json> parts;
    if (stream) {
      for (const Json& event : EventsOf(events + asked.Drain()))
        if (event.is_object()) parts.push_back(event["choices"][0]);
    } else {
      parts.push_back(Json::parse(asked.Whole())["choices"][0]);
    }
    for (const Json& part : parts) {
      text += part["text"].get<std::string>();
      for (const Json& token : part["logprobs"]["tokens"]) tokens += token.get<std::string>();
      for (const Json& id : part["token_ids"]) ids.push_back(id);
      EXPECT_EQ(part["logprobs"]["token_logprobs"].size(), part["logprobs"]["tokens"].size());
      EXPECT_EQ(part["token_ids"].size(), part["logprobs"]["tokens"].size());
    }
    EXPECT_EQ(text, " to play ");
    EXPECT_EQ(tokens, text);
    EXPECT_EQ(parts[0]["prompt_token_ids"], Json::parse("[1,403,407]"));
  }
}

// API-20
TEST(AnswerWriter, AnEchoedPromptIsScoredFromItsSecondToken) {
  for (const bool stream : {false, true}) {
    GenerationCall call = CallOf(ApiForm::kCompletions, stream);
    call.echo = true;
    call.logprobs = 1;
    call.max_tokens = 0;
    call.prompts = {EncodeStories("Once upon a time", /*add_special=*/true)};
    call.prompt_texts = {"Once upon a time"};
    Asked asked(call);
    ASSERT_EQ(call.prompts[0].size(), 5u);
    for (size_t i = 1; i < 5; ++i) {
      const TokenId id = call.prompts[0][i];
      asked.answers[0]->PushPromptLogprob(LogprobsOf(-0.25, {{id, -0.25}}));
    }
    asked.End(FinishReason::kMaxTokens);
    const Json choice = stream ? EventsOf(asked.Drain())[0]["choices"][0]
                               : Json::parse(asked.Whole())["choices"][0];
    EXPECT_EQ(choice["text"], "Once upon a time");
    EXPECT_EQ(choice["finish_reason"], "length");
    const Json& logprobs = choice["logprobs"];
    EXPECT_EQ(logprobs["tokens"].size(), 5u);
    EXPECT_EQ(logprobs["token_logprobs"], Json::parse("[null,-0.25,-0.25,-0.25,-0.25]"));
    EXPECT_EQ(logprobs["top_logprobs"][0], nullptr);
    EXPECT_EQ(logprobs["text_offset"], Json::parse("[0,0,4,9,11]"));
  }
}

TEST(AnswerWriter, OffsetsCountCodePointsAndGoOnAfterTheEcho) {
  GenerationCall call = CallOf(ApiForm::kCompletions, /*stream=*/false);
  call.echo = true;
  call.logprobs = 0;
  call.prompts = {{1, 403}};
  call.prompt_texts = {"\u00e9\u00e9"};
  Asked asked(call);
  asked.answers[0]->PushPromptLogprob(LogprobsOf(-1, {}));
  for (const int byte : {0x61, 0xC3, 0xA9, 0x62})
    asked.Push(0, 0, kFirstByteToken + byte, LogprobsOf(-1, {}));
  asked.End();
  const Json choice = Json::parse(asked.Whole())["choices"][0];
  EXPECT_EQ(choice["text"], "\u00e9\u00e9a\u00e9b");
  EXPECT_EQ(choice["logprobs"]["text_offset"], Json::parse("[0,0,2,3,3,4]"));
}

TEST(AnswerWriter, PromptLogprobsAreToldWithRanks) {
  for (const ApiForm form : {ApiForm::kChat, ApiForm::kCompletions}) {
    GenerationCall call = CallOf(form, /*stream=*/false);
    call.prompt_logprobs = 1;
    Asked asked(call);  // {1, 403, 407}
    asked.answers[0]->PushPromptLogprob(LogprobsOf(-2, {{407, -1}}));
    asked.answers[0]->PushPromptLogprob(LogprobsOf(-1, {{407, -1}}));
    asked.End();
    const Json answer = Json::parse(asked.Whole());
    const Json& told = form == ApiForm::kChat ? answer["prompt_logprobs"]
                                              : answer["choices"][0]["prompt_logprobs"];
    ASSERT_EQ(told.size(), 3u);
    EXPECT_EQ(told[0], nullptr);
    EXPECT_EQ(told[1]["403"]["rank"], nullptr);
    EXPECT_EQ(told[1]["407"]["rank"], 1);
    EXPECT_EQ(told[2].size(), 1u);
    EXPECT_EQ(told[2]["407"]["logprob"], -1.0);
  }
}

TEST(AnswerWriter, TokensCanBeToldAsIds) {
  GenerationCall call = CallOf(ApiForm::kCompletions, /*stream=*/false);
  call.logprobs = 1;
  call.tokens_as_token_ids = true;
  Asked asked(call);
  asked.Push(0, 0, 403, LogprobsOf(-1, {{407, -0.5}}));
  asked.End();
  const Json logprobs = Json::parse(asked.Whole())["choices"][0]["logprobs"];
  EXPECT_EQ(logprobs["tokens"], Json::parse(R"(["token_id:403"])"));
  EXPECT_EQ(logprobs["top_logprobs"][0], Json::parse(R"({"token_id:407":-0.5,"token_id:403":-1})"));
}

TEST(AnswerWriter, AnErrorOfAnyChoiceIsTheAnswer) {
  GenerationCall call = CallOf(ApiForm::kChat, /*stream=*/false);
  call.num_choices = 2;
  for (const bool cancelled : {false, true}) {
    Asked asked(call);
    EXPECT_FALSE(asked.writer->error().has_value());
    asked.answers[0]->Finish(1, cancelled ? FinishReason::kCancelled : FinishReason::kError,
                             cancelled ? OkStatus() : Status(StatusCode::kNonFinite, "x"));
    asked.End();
    const auto result = asked.writer->WholeAnswer({});
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.error().code, cancelled ? "aborted" : "numeric_error");
    EXPECT_EQ(asked.writer->error()->code, result.error().code);
  }
}

}  // namespace
}  // namespace quire
