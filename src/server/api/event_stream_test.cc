// What a client gets event by event; cases STR of the catalogue.
#include "server/api/event_stream.h"

#include <gtest/gtest.h>

#include "server/api/answer_test_support.h"

namespace quire {
namespace {

GenerationCall StreamCall(ApiForm form) { return CallOf(form, /*stream=*/true); }

TEST(EventStream, AChatSendsTheRoleThenDeltasThenTheFinishThenDone) {
  Asked asked(StreamCall(ApiForm::kChat));
  EXPECT_FALSE(asked.writer->has_news());
  EXPECT_EQ(asked.writer->NextEvent({}), "");
  const std::vector<TokenId> ids = EncodeStories("Lily was happy.");
  std::string all;
  for (const TokenId id : ids) {
    asked.Push({id});
    EXPECT_TRUE(asked.writer->has_news());
    all += asked.Drain();
  }
  asked.End();
  all += asked.Drain();
  EXPECT_TRUE(asked.writer->is_finished());
  EXPECT_FALSE(asked.writer->has_news());
  const std::vector<Json> events = EventsOf(all);
  ASSERT_EQ(events.size(), ids.size() + 3);
  EXPECT_EQ(events[0]["choices"][0]["delta"], Json::parse(R"({"role":"assistant","content":""})"));
  EXPECT_EQ(TextOf(events), " Lily was happy.");
  const Json& last = events[events.size() - 2];
  EXPECT_EQ(last["choices"][0]["delta"], Json::object());
  EXPECT_EQ(last["choices"][0]["finish_reason"], "stop");
  EXPECT_EQ(last["timings"]["predicted_n"], ids.size());
  EXPECT_EQ(events.back(), "[DONE]");
  for (size_t i = 0; i + 1 < events.size(); ++i) {
    EXPECT_EQ(events[i]["id"], events[0]["id"]);
    EXPECT_EQ(events[i]["created"], events[0]["created"]);
    EXPECT_EQ(events[i]["model"], "tiny");
    EXPECT_EQ(events[i]["object"], "chat.completion.chunk");
    EXPECT_EQ(events[i]["system_fingerprint"], "fp_0123");
    EXPECT_FALSE(events[i].contains("error"));
    EXPECT_FALSE(events[i].contains("usage"));  // STR-05: nobody asked
    if (i + 2 < events.size()) {
      EXPECT_EQ(events[i]["choices"][0]["finish_reason"], nullptr);
      EXPECT_FALSE(events[i].contains("timings"));
    }
  }
}

// However many choices there are: what the stream has taken so far, and in the last chunk all.
TEST(EventStream, ContinuousUsageAddsUpOverPromptsAndChoices) {
  GenerationCall call = StreamCall(ApiForm::kCompletions);
  call.continuous_usage = call.include_usage = true;
  call.prompts = {{1, 403, 407}, {1, 403}};
  call.num_choices = call.num_sampled = 3;
  Asked asked(call);
  const std::vector<TokenId> ids = EncodeStories("One day");
  for (const auto& answer : asked.answers) {
    answer->mutable_prompt().num_cached = 1;
    answer->mutable_prompt().num_inserted = 1;
  }
  std::string all;
  for (uint32_t prompt = 0; prompt < 2; ++prompt)
    for (uint32_t choice = 0; choice < 3; ++choice) {
      for (const TokenId id : ids) asked.Push(prompt, choice, id);
      all += asked.Drain();
    }
  asked.End(FinishReason::kStopToken, TokenId{2});
  all += asked.Drain();
  const std::vector<Json> events = EventsOf(all);
  uint64_t most = 0;
  for (size_t i = 0; i + 1 < events.size(); ++i) {
    const Json& usage = events[i]["usage"];
    EXPECT_EQ(usage["prompt_tokens"], 5);
    EXPECT_GE(usage["completion_tokens"].get<uint64_t>(), most);
    most = usage["completion_tokens"];
    EXPECT_EQ(usage["prompt_tokens_details"]["cached_tokens"], most <= 3 * ids.size() ? 1 : 2);
  }
  EXPECT_EQ(most, 6 * (ids.size() + 1));
  EXPECT_EQ(events[events.size() - 3]["usage"], events[events.size() - 2]["usage"]);
}

TEST(EventStream, AnEndThatIsHeldIsTheOnlyThingThatWaits) {
  GenerationCall call = StreamCall(ApiForm::kCompletions);
  call.include_usage = true;
  call.num_choices = call.num_sampled = 2;
  Asked asked(call);
  for (const TokenId id : EncodeStories("Lily")) asked.Push(0, 0, id);
  for (const TokenId id : EncodeStories("Tom")) asked.Push(0, 1, id);
  asked.End(FinishReason::kMaxTokens);
  std::string all;
  for (std::string event; !(event = asked.writer->NextEvent({.holds_end = true})).empty();)
    all += event;
  EXPECT_EQ(TextOf(EventsOf(all), 0), " Lily");
  EXPECT_EQ(TextOf(EventsOf(all), 1), " Tom");
  EXPECT_FALSE(asked.writer->is_finished());
  asked.notes.retained_until = 7;
  const std::vector<Json> rest = EventsOf(asked.Drain());
  EXPECT_TRUE(asked.writer->is_finished());
  ASSERT_GE(rest.size(), 2u);
  EXPECT_EQ(rest[rest.size() - 2]["quire"]["retained_until"], 7);
}

TEST(EventStream, TheLastTextTheFinishTheUsageAndDoneAreOneString) {
  GenerationCall call = StreamCall(ApiForm::kChat);
  call.include_usage = true;
  Asked asked(call);
  asked.Push(EncodeStories("a b"));
  asked.End(FinishReason::kMaxTokens);
  const std::string event = asked.writer->NextEvent({});
  EXPECT_TRUE(asked.writer->is_finished());
  const std::vector<Json> events = EventsOf(event);
  ASSERT_EQ(events.size(), 5u);
  EXPECT_EQ(events[2]["choices"][0]["finish_reason"], "length");
}

// STR-05
TEST(EventStream, TheUsageChunkIsTheLastAndHasNoChoices) {
  GenerationCall call = StreamCall(ApiForm::kCompletions);
  call.include_usage = true;
  Asked asked(call);
  asked.Push(EncodeStories("One day"));
  asked.End();
  const std::vector<Json> events = EventsOf(asked.Drain());
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[0]["usage"], nullptr);
  EXPECT_FALSE(events[0].contains("timings"));
  EXPECT_EQ(events[1]["choices"], Json::array());
  EXPECT_EQ(events[1]["usage"]["prompt_tokens"], 3);
  EXPECT_EQ(events[1]["usage"]["completion_tokens"], EncodeStories("One day").size());
  EXPECT_TRUE(events[1].contains("timings"));
  EXPECT_TRUE(events[1].contains("quire"));
}

TEST(EventStream, ContinuousUsageGrowsWithTheTokens) {
  GenerationCall call = StreamCall(ApiForm::kChat);
  call.continuous_usage = true;
  Asked asked(call);
  uint64_t count = 0;
  for (const TokenId id : EncodeStories("One day Tim saw a cat")) {
    asked.Push({id});
    ++count;
    for (const Json& event : EventsOf(asked.Drain()))
      EXPECT_EQ(event["usage"]["total_tokens"], 3 + count);
  }
}

TEST(EventStream, TheFirstTokenOfACompletionMakesAChunkWithoutText) {
  Asked asked(StreamCall(ApiForm::kCompletions));
  asked.Push({kFirstByteToken + 0xF0});
  std::vector<Json> events = EventsOf(asked.Drain());
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0]["choices"][0]["text"], "");
  for (const int byte : {0x9F, 0xA6}) {
    asked.Push({kFirstByteToken + byte});
    EXPECT_EQ(asked.Drain(), "");  // held back: no chunk
  }
  asked.Push({kFirstByteToken + 0x99});
  EXPECT_EQ(TextOf(EventsOf(asked.Drain())), "\U0001F999");
}

TEST(EventStream, ATokenIsToldWithTheCharacterThatItIsPartOf) {
  GenerationCall call = StreamCall(ApiForm::kCompletions);
  call.logprobs = 0;
  Asked asked(call);
  asked.Push({kFirstByteToken + 0xC3});
  const Json first = EventsOf(asked.Drain())[0]["choices"][0];  // the first token makes a chunk
  EXPECT_EQ(first["logprobs"]["tokens"], Json::array());
  asked.Push({kFirstByteToken + 0xA9});
  const Json second = EventsOf(asked.Drain())[0]["choices"][0];
  EXPECT_EQ(second["text"], "\u00e9");
  EXPECT_EQ(second["logprobs"]["tokens"].size(), 2u);
}

TEST(EventStream, ABacklogWithoutTextHidesNothingBehindIt) {
  Asked asked(StreamCall(ApiForm::kCompletions));
  asked.Push(EncodeStories("a"));
  (void)asked.Drain();
  asked.Push(std::vector<TokenId>(1000, 1));  // control tokens
  asked.Push({kFirstByteToken + 'b'});
  EXPECT_EQ(TextOf(EventsOf(asked.writer->NextEvent({}))), "b");
}

// STR-13
TEST(EventStream, ACharacterThatNeverEndsIsReplacedInBothModes) {
  const std::vector<TokenId> ids(3, kFirstByteToken + 0xF0);
  for (const ApiForm form : {ApiForm::kChat, ApiForm::kCompletions}) {
    Asked asked(StreamCall(form));
    asked.Push(ids);
    asked.End(FinishReason::kMaxTokens);
    Asked whole(CallOf(form, /*stream=*/false));
    whole.Push(ids);
    whole.End(FinishReason::kMaxTokens);
    const Json choice = Json::parse(whole.Whole())["choices"][0];
    const std::string text = form == ApiForm::kChat ? choice["message"]["content"] : choice["text"];
    EXPECT_EQ(text, "\uFFFD\uFFFD\uFFFD");
    EXPECT_EQ(TextOf(EventsOf(asked.Drain())), text);
    EXPECT_EQ(choice["finish_reason"], "length");
  }
}

// STR-01
TEST(EventStream, NothingOfAStopStringIsSentAndItIsTheStopReason) {
  GenerationCall call = StreamCall(ApiForm::kChat);
  call.sampling.stop_strings = {"outside"};
  Asked asked(call);
  for (const TokenId id : EncodeStories("She loved to play outside")) {
    asked.Push({id});
    EXPECT_EQ(TextOf(EventsOf(asked.Drain())).find('o' + std::string("u")), std::string::npos);
  }
  asked.End(FinishReason::kStopString);
  const std::vector<Json> events = EventsOf(asked.Drain());
  const Json& last = events[events.size() - 2]["choices"][0];
  EXPECT_EQ(last["finish_reason"], "stop");
  EXPECT_EQ(last["stop_reason"], "outside");
}

// STR-02
TEST(EventStream, WhatWaitedForAStopStringComesAtTheEnd) {
  GenerationCall call = StreamCall(ApiForm::kChat);
  call.sampling.stop_strings = {"outside"};
  Asked asked(call);
  asked.Push(EncodeStories("to play out"));
  std::string all = asked.Drain();
  EXPECT_EQ(TextOf(EventsOf(all)), " to play ");
  asked.End(FinishReason::kMaxTokens);
  all += asked.Drain();
  EXPECT_EQ(TextOf(EventsOf(all)), " to play out");
}

// STR-09
TEST(EventStream, AnErrorEndsTheStreamWithoutAFinish) {
  for (const ApiForm form : {ApiForm::kChat, ApiForm::kCompletions}) {
    GenerationCall call = StreamCall(form);
    call.num_choices = 2;
    Asked asked(call);
    asked.Push(EncodeStories("One day Tim"));
    asked.answers[0]->Finish(0, FinishReason::kError,
                             Status(StatusCode::kNonFinite, "layer 3 at 0x7f00"));
    const std::vector<Json> events = EventsOf(asked.Drain());
    ASSERT_GE(events.size(), 3u);
    EXPECT_EQ(TextOf(events), " One day Tim");
    EXPECT_EQ(events.back(), "[DONE]");
    EXPECT_EQ(events[events.size() - 2]["error"]["code"], "numeric_error");
    for (size_t i = 0; i + 2 < events.size(); ++i) {
      EXPECT_EQ(events[i]["choices"][0]["finish_reason"], nullptr);
      EXPECT_FALSE(events[i].contains("error"));
    }
    EXPECT_TRUE(asked.writer->is_finished());
    EXPECT_TRUE(asked.answers[0]->aborted());
    EXPECT_EQ(asked.writer->error()->code, "numeric_error");
  }
}

TEST(EventStream, TheProgressOfThePromptIsToldUntilTheFirstToken) {
  GenerationCall call = StreamCall(ApiForm::kChat);
  call.return_progress = true;
  call.prompts = {std::vector<TokenId>(300, 403)};
  Asked asked(call);
  const AnswerJson json(&asked.model(), call, asked.answers);
  EventStream often(&json, std::chrono::milliseconds(0));
  EventStream seldom(&json, std::chrono::hours(1));
  Answer& answer = *asked.answers[0];
  EXPECT_FALSE(often.has_news());
  answer.SetCached(64);
  answer.SetPromptComputed(64);
  answer.SetPhase(AnswerPhase::kPrefill);
  for (const uint32_t computed : {128, 256}) {
    answer.SetPromptComputed(computed);
    EXPECT_FALSE(seldom.has_news());
    EXPECT_TRUE(often.has_news());
    const std::vector<Json> events = EventsOf(often.NextEvent({}));
    ASSERT_EQ(events.size(), 1u);
    EXPECT_EQ(events[0]["choices"], Json::array());
    const Json& progress = events[0]["prompt_progress"];
    EXPECT_EQ(progress["total"], 300);
    EXPECT_EQ(progress["cache"], 64);
    EXPECT_EQ(progress["processed"], computed);
    EXPECT_TRUE(progress["time_ms"].is_number_integer());
    EXPECT_FALSE(often.has_news());  // no further since
  }
  asked.Push({403});
  answer.SetPromptComputed(300);
  (void)often.NextEvent({});
  EXPECT_FALSE(often.has_news());
}

TEST(EventStream, ChoicesOfAllPromptsTakeTurns) {
  GenerationCall call = StreamCall(ApiForm::kCompletions);
  call.prompts = {{1, 403}, {1, 407}};
  call.num_choices = 2;
  Asked asked(call);
  const std::vector<TokenId> ids = EncodeStories("One day");
  for (uint32_t i = 0; i < 4; ++i)
    for (const TokenId id : ids) asked.Push(i / 2, i % 2, id);
  for (uint32_t i = 0; i < 4; ++i) {
    const std::vector<Json> events = EventsOf(asked.writer->NextEvent({}));
    ASSERT_EQ(events.size(), 1u);
    EXPECT_EQ(events[0]["choices"][0]["index"], i);
  }
  EXPECT_FALSE(asked.writer->has_news());
  asked.End();
  const std::vector<Json> events = EventsOf(asked.Drain());
  ASSERT_EQ(events.size(), 5u);
  EXPECT_FALSE(events[2].contains("timings"));
  EXPECT_EQ(events[3]["timings"]["predicted_n"], 4 * ids.size());
}

TEST(EventStream, ALongBacklogIsSentInSmallParts) {
  GenerationCall call = StreamCall(ApiForm::kChat);
  Asked asked(call);
  for (int i = 0; i < 2000; ++i) asked.Push({kFirstByteToken + 0x01});  // six bytes each as JSON
  asked.End();
  size_t longest = 0;
  std::string all;
  while (asked.writer->has_news()) {
    const std::string event = asked.writer->NextEvent({});
    longest = std::max(longest, event.size());
    all += event;
  }
  EXPECT_LT(longest, 8u << 10);
  EXPECT_EQ(TextOf(EventsOf(all)), std::string(2000, '\x01'));
}

}  // namespace
}  // namespace quire
