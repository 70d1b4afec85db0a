// The form of answers: their keys and the types of their values, as clients of OpenAI's API, vLLM
// and llama.cpp know them; and what an event costs.
#include <gtest/gtest.h>

#include <iostream>
#include <set>

#include "base/test_cost.h"
#include "server/api/answer_test_support.h"

namespace quire {
namespace {

// "path:type" of every value; the items of a list as one path.
void AddForm(const Json& json, const std::string& path, std::set<std::string>& form) {
  if (json.is_object()) {
    for (const auto& [key, value] : json.items())
      AddForm(value, path.empty() ? key : path + "." + key, form);
    if (json.empty()) form.insert(path + ":{}");
  } else if (json.is_array()) {
    if (json.empty()) form.insert(path + ":[]");
    for (const Json& value : json) AddForm(value, path + "[]", form);
  } else {
    form.insert(path + ":" +
                (json.is_number_float()     ? "float"
                 : json.is_number_integer() ? "int"
                                            : json.type_name()));
  }
}

std::set<std::string> FormOf(const Json& json) {
  std::set<std::string> form;
  AddForm(json, "", form);
  return form;
}

std::set<std::string> Join(std::initializer_list<std::set<std::string>> parts) {
  std::set<std::string> joined;
  for (const auto& part : parts) joined.insert(part.begin(), part.end());
  return joined;
}

const std::set<std::string> kHead = {"id:string", "object:string", "created:int", "model:string",
                                     "system_fingerprint:string"};
const std::set<std::string> kUsage = {"usage.prompt_tokens:int",
                                      "usage.completion_tokens:int",
                                      "usage.total_tokens:int",
                                      "usage.prompt_tokens_details.cached_tokens:int",
                                      "usage.prompt_tokens_details.cache_write_tokens:int",
                                      "usage.completion_tokens_details.reasoning_tokens:int"};
const std::set<std::string> kCosts = {"timings.cache_n:int",
                                      "timings.prompt_n:int",
                                      "timings.prompt_ms:float",
                                      "timings.prompt_per_second:float",
                                      "timings.predicted_n:int",
                                      "timings.predicted_ms:float",
                                      "timings.predicted_per_second:float",
                                      "quire.match_stop:string",
                                      "quire.restored_tokens.host:int",
                                      "quire.restored_tokens.disk:int",
                                      "quire.restored_tokens.remote:int",
                                      "quire.retained_until:null",
                                      "quire.queue_ms:float",
                                      "quire.preemptions:int"};

Json WholeOf(ApiForm form, bool logprobs) {
  GenerationCall call = CallOf(form, /*stream=*/false);
  if (logprobs) call.logprobs = 1;
  Asked asked(call);
  for (const TokenId id : EncodeStories("One day"))
    asked.Push(0, 0, id, LogprobsOf(-1.25, {{id, -1.25}}));
  asked.End();
  return Json::parse(asked.Whole());
}

TEST(AnswerForm, AWholeChatAnswer) {
  const Json answer = WholeOf(ApiForm::kChat, false);
  EXPECT_EQ(answer["object"], "chat.completion");
  EXPECT_TRUE(answer["id"].get<std::string>().starts_with("chatcmpl-"));
  EXPECT_EQ(FormOf(answer),
            Join({kHead,
                  kUsage,
                  kCosts,
                  {"choices[].index:int", "choices[].message.role:string",
                   "choices[].message.content:string", "choices[].logprobs:null",
                   "choices[].finish_reason:string", "choices[].stop_reason:null"}}));
}

TEST(AnswerForm, AWholeCompletion) {
  const Json answer = WholeOf(ApiForm::kCompletions, false);
  EXPECT_EQ(answer["object"], "text_completion");
  EXPECT_TRUE(answer["id"].get<std::string>().starts_with("cmpl-"));
  EXPECT_EQ(FormOf(answer),
            Join({kHead,
                  kUsage,
                  kCosts,
                  {"choices[].index:int", "choices[].text:string", "choices[].logprobs:null",
                   "choices[].finish_reason:string", "choices[].stop_reason:null"}}));
}

TEST(AnswerForm, LogprobsOfBothForms) {
  EXPECT_EQ(FormOf(WholeOf(ApiForm::kChat, true)["choices"][0]["logprobs"]),
            (std::set<std::string>{"content[].token:string", "content[].logprob:float",
                                   "content[].bytes[]:int", "content[].top_logprobs[].token:string",
                                   "content[].top_logprobs[].logprob:float",
                                   "content[].top_logprobs[].bytes[]:int"}));
  const Json logprobs = WholeOf(ApiForm::kCompletions, true)["choices"][0]["logprobs"];
  std::set<std::string> keys;
  for (const auto& [key, value] : logprobs.items()) keys.insert(key);
  EXPECT_EQ(keys,
            (std::set<std::string>{"tokens", "token_logprobs", "top_logprobs", "text_offset"}));
}

TEST(AnswerForm, TheChunksOfAStream) {
  for (const ApiForm form : {ApiForm::kChat, ApiForm::kCompletions}) {
    GenerationCall call = CallOf(form, /*stream=*/true);
    call.include_usage = true;
    Asked asked(call);
    asked.Push(EncodeStories("One day"));
    std::string text = asked.Drain();
    asked.End();
    const std::vector<Json> events = EventsOf(text + asked.Drain());
    const bool is_chat = form == ApiForm::kChat;
    ASSERT_EQ(events.size(), is_chat ? 5u : 4u);
    const auto chunk = [&](std::set<std::string> choice) {
      return Join(
          {kHead, choice, {"choices[].index:int", "choices[].logprobs:null", "usage:null"}});
    };
    if (is_chat) {
      EXPECT_EQ(FormOf(events[0]),
                chunk({"choices[].delta.role:string", "choices[].delta.content:string",
                       "choices[].finish_reason:null"}));
      EXPECT_EQ(FormOf(events[1]),
                chunk({"choices[].delta.content:string", "choices[].finish_reason:null"}));
      EXPECT_EQ(FormOf(events[2]), chunk({"choices[].delta:{}", "choices[].finish_reason:string",
                                          "choices[].stop_reason:null"}));
    } else {
      EXPECT_EQ(FormOf(events[0]),
                chunk({"choices[].text:string", "choices[].finish_reason:null"}));
      EXPECT_EQ(FormOf(events[1]), chunk({"choices[].text:string", "choices[].finish_reason:string",
                                          "choices[].stop_reason:null"}));
    }
    EXPECT_EQ(FormOf(events[events.size() - 2]), Join({kHead, kUsage, kCosts, {"choices:[]"}}));
  }
}

#ifndef QUIRE_SANITIZED
// 64 streams with 50 tokens a second each are 3,200 events a second: at 10 us each they would be
// 3.2 % of one core, and at least two compute. The claim leaves most of that to the socket.
TEST(AnswerForm, AnEventCostsMicroseconds) {
  constexpr size_t kNumTokens = 4000;
  const std::vector<TokenId> ids = EncodeStories("One day a girl named Lily went to the park.");
  size_t num_bytes = 0;
  const double seconds = LeastSeconds(5, [&] {
    Asked asked(CallOf(ApiForm::kChat, /*stream=*/true));
    num_bytes = 0;
    for (size_t i = 0; i < kNumTokens; ++i) {
      asked.Push({ids[i % ids.size()]});
      if (asked.writer->has_news()) num_bytes += asked.writer->NextEvent({}).size();
    }
  });
  const double event_us = seconds * 1e6 / kNumTokens;
  std::cout << event_us << " us an event of " << num_bytes / kNumTokens << " bytes\n";
  EXPECT_LT(event_us, 10);
}
#endif

}  // namespace
}  // namespace quire
