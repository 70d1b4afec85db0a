// Prompts of completions, their lengths and counts, with the tokenizer of a real model.
#include "server/api/prompt_text.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "base/test_data.h"
#include "server/api/call_reader.h"
#include "server/api/test_served_model.h"
#include "text/test_gguf.h"
#include "text/test_vocabulary.h"

namespace quire {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class Prompts : public ::testing::Test {
 protected:
  Prompts() : served_(VocabularyOfGguf(TestData("tokenizer/stories260K.gguf")), "") {}
  ApiResult<GenerationCall> Read(const std::string& members) {
    return ReadCompletionCall("{" + members + "}", served_.model());
  }
  std::string ParamOf(const std::string& members) {
    const auto call = Read(members);
    return call.ok() ? "ok" : call.error().param;
  }
  // A text of that many tokens, BOS among them.
  std::string TextOf(size_t num_tokens) {
    std::string text = "Once";
    while (Encode(text) < num_tokens) text += " a";
    EXPECT_EQ(Encode(text), num_tokens);
    return text;
  }
  size_t Encode(const std::string& text) {
    return served_.tokenizer().Encode(text, {.add_special = true}).value().size();
  }
  TestServedModel served_;
};

// API-03
TEST_F(Prompts, AnEmptyTextIsBosWhereTheTokenizerAddsOne) {
  const auto call = Read(R"("prompt":"")");
  ASSERT_TRUE(call.ok()) << call.error().message;
  EXPECT_THAT(call.value().prompts, ElementsAre(ElementsAre(*served_.tokenizer().bos())));
  EXPECT_EQ(ParamOf(R"("prompt":"","add_special_tokens":false)"), "prompt");
  EXPECT_EQ(ParamOf(R"("prompt":["a",""],"add_special_tokens":false)"), "prompt[1]");
  EXPECT_EQ(ParamOf(R"("prompt":[])"), "prompt");
  served_ = TestServedModel(SmallBpeVocabulary(), "");
  EXPECT_EQ(ParamOf(R"("prompt":"")"), "prompt");
}

TEST_F(Prompts, BosIsAddedOnce) {
  const auto first = Read(R"("prompt":"Once")");
  const auto again = Read(R"("prompt":"<s>Once")");
  const TokenId bos = *served_.tokenizer().bos();
  for (const auto* call : {&first, &again}) {
    ASSERT_TRUE(call->ok());
    EXPECT_EQ(call->value().prompts[0][0], bos);
    EXPECT_NE(call->value().prompts[0][1], bos);
  }
}

// API-05
TEST_F(Prompts, ThatLeaveNoRoomAreRefusedWithBothNumbers) {
  const auto long_call = Read(fmt::format(R"("prompt":"{}")", TextOf(600)));
  ASSERT_FALSE(long_call.ok());
  EXPECT_EQ(long_call.error().code, "context_length_exceeded");
  EXPECT_EQ(long_call.error().param, "prompt");
  EXPECT_THAT(long_call.error().message, HasSubstr("maximum context length is 512 tokens"));
  EXPECT_THAT(long_call.error().message, HasSubstr("has 600 tokens"));

  const std::string whole = TextOf(512);
  EXPECT_EQ(ParamOf(fmt::format(R"("prompt":"{}")", TextOf(511))), "ok");
  EXPECT_EQ(ParamOf(fmt::format(R"("prompt":"{}")", whole)), "prompt");
  EXPECT_EQ(ParamOf(fmt::format(R"("prompt":"{}","max_tokens":0)", whole)), "ok");
  EXPECT_EQ(ParamOf(fmt::format(R"("prompt":"{}","max_tokens":0)", TextOf(513))), "prompt");
  EXPECT_EQ(ParamOf(fmt::format(R"("prompt":["a","{}"])", whole)), "prompt[1]");
}

TEST_F(Prompts, FarTooLongAreRefusedWithoutTokenising) {
  const std::string text(8 << 20, 'a');
  const auto call = Read(fmt::format(R"("prompt":"{}")", text));
  ASSERT_FALSE(call.ok());
  EXPECT_EQ(call.error().code, "context_length_exceeded");
  EXPECT_THAT(call.error().message, HasSubstr("maximum context length is 512 tokens"));
  const uint32_t longest = LongestTokenBytes(served_.tokenizer());
  EXPECT_THAT(call.error().message,
              HasSubstr(fmt::format("at least {} tokens", (text.size() + longest - 1) / longest)));
}

// API-04
TEST_F(Prompts, CountsAreWholeNumbersNotBelowZero) {
  for (const char* count : {"-2", "1.5", "\"16\"", "1e400", "true"})
    EXPECT_EQ(ParamOf(fmt::format(R"("prompt":"a","max_tokens":{})", count)), "max_tokens");
  EXPECT_EQ(Read(R"("prompt":"a","max_tokens":16.0)").value().max_tokens, 16U);
  EXPECT_EQ(Read(R"("prompt":"a","max_tokens":3,"max_completion_tokens":5)").value().max_tokens,
            5U);
}

// API-09: nothing grows before the count is checked.
TEST_F(Prompts, TimesChoicesAreBounded) {
  EXPECT_EQ(ParamOf(R"("prompt":"a","n":1000000000)"), "n");
  EXPECT_EQ(ParamOf(R"("prompt":"a","best_of":1000000)"), "best_of");
  EXPECT_EQ(ParamOf(R"("prompt":"a","n":3,"best_of":2)"), "best_of");
  EXPECT_EQ(ParamOf(R"("prompt":"a","n":2,"best_of":3,"stream":true)"), "best_of");
  EXPECT_EQ(ParamOf(R"("prompt":"a","n":2,"best_of":2,"stream":true)"), "ok");
  const std::string nine = R"("prompt":["a","a","a","a","a","a","a","a","a"],)";
  EXPECT_EQ(ParamOf(nine + R"("n":113)"), "ok");
  EXPECT_EQ(ParamOf(nine + R"("n":114)"), "n");
  EXPECT_EQ(ParamOf(nine + R"("best_of":114)"), "best_of");
  EXPECT_THAT(Read(nine + R"("n":114)").error().message, HasSubstr("at most 1024"));
}

// API-10
TEST_F(Prompts, LogprobsAreBoundedInEverySpelling) {
  for (const char* count : {"-1", "21", "511", "512", "1000000000"}) {
    EXPECT_EQ(ParamOf(fmt::format(R"("prompt":"a","echo":true,"logprobs":{})", count)), "logprobs");
    EXPECT_EQ(ParamOf(fmt::format(R"("prompt":"a","prompt_logprobs":{})", count)),
              "prompt_logprobs");
  }
  EXPECT_EQ(ParamOf(R"("prompt":"a","prompt_logprobs":1,"stream":true)"), "prompt_logprobs");
  const auto call = Read(R"("prompt":"a","n":2,"best_of":3)");
  ASSERT_TRUE(call.ok());
  EXPECT_EQ(call.value().logprobs, std::nullopt);
  EXPECT_EQ(ToRequests(call.value(), "").front().sampling.top_logprobs, 0)
      << "the best are found by it";
}

TEST_F(Prompts, EchoKeepsTheTexts) {
  const auto call = Read(R"("prompt":["Once upon","a"],"echo":true)");
  ASSERT_TRUE(call.ok());
  EXPECT_THAT(call.value().prompt_texts, ElementsAre("Once upon", "a"));
  std::string ids;
  for (const TokenId id : call.value().prompts[0])
    ids += (ids.empty() ? "" : ",") + fmt::format("{}", id);
  const auto of_ids = Read(fmt::format(R"("prompt":[{}],"echo":true)", ids));
  ASSERT_TRUE(of_ids.ok());
  EXPECT_THAT(of_ids.value().prompt_texts, ElementsAre("Once upon"));
  EXPECT_EQ(of_ids.value().prompts.front(), call.value().prompts.front());
}

TEST_F(Prompts, EachBecomesARequestOfItsOwn) {
  const auto call = Read(
      R"("prompt":[[1,2],[3]],"n":2,"best_of":3,"seed":7,"cache_salt":"s","priority":-4,
         "cache_prompt":false,"max_tokens":9)");
  ASSERT_TRUE(call.ok()) << call.error().message;
  const auto requests = ToRequests(call.value(), "team");
  ASSERT_EQ(requests.size(), 2U);
  EXPECT_THAT(requests[1].prompt, ElementsAre(3));
  for (const Request& request : requests) {
    EXPECT_EQ(request.num_choices, 3U);
    EXPECT_EQ(request.tenant, "team");
    EXPECT_EQ(request.salt, "s");
    EXPECT_EQ(request.priority, -4);
    EXPECT_FALSE(request.uses_prefixes);
    EXPECT_EQ(request.max_tokens, 9U);
    EXPECT_EQ(request.sampling.seed, 7U);
  }
}

TEST_F(Prompts, EchoAsksForThePromptsLogprobs) {
  const auto asked = [&](const std::string& members) {
    return ToRequests(Read(R"("prompt":"a")" + members).value(), "").front().prompt_logprobs;
  };
  EXPECT_EQ(asked(R"(,"logprobs":2)"), std::nullopt);
  EXPECT_EQ(asked(R"(,"echo":true)"), std::nullopt);
  EXPECT_EQ(asked(R"(,"echo":true,"logprobs":0)"), 0U);
  EXPECT_EQ(asked(R"(,"echo":true,"logprobs":2,"prompt_logprobs":1)"), 2U);
  EXPECT_EQ(asked(R"(,"prompt_logprobs":1)"), 1U);
}

TEST_F(Prompts, SeedsAreRandomUnlessGiven) {
  const auto seed = [&](const std::string& members) {
    return Read(R"("prompt":"a")" + members).value().sampling.seed;
  };
  EXPECT_NE(seed(""), seed(""));
  EXPECT_NE(seed(R"(,"seed":-1)"), seed(R"(,"seed":-1)"));
  EXPECT_EQ(seed(R"(,"seed":-2)"), static_cast<uint64_t>(-2));
  EXPECT_EQ(seed(R"(,"seed":9223372036854775807)"), static_cast<uint64_t>(INT64_MAX));
}

// SEC-11: names of files mean nothing here.
TEST_F(Prompts, NoFieldNamesAFile) {
  const auto other = Read(R"("prompt":"a","model":"../../etc/passwd")");
  ASSERT_FALSE(other.ok());
  EXPECT_EQ(other.error().status, 404);
  EXPECT_EQ(other.error().code, "model_not_found");
  for (const char* name : {"adapter", "conversation_id", "grammar_file"}) {
    const auto call = Read(fmt::format(R"("prompt":"a","{}":"../../x")", name));
    ASSERT_TRUE(call.ok());
    EXPECT_THAT(call.value().ignored_fields, ElementsAre(name));
  }
  EXPECT_EQ(ParamOf(R"("prompt":"a","cache_salt":"../../x")"), "cache_salt");
  EXPECT_EQ(ParamOf(R"("prompt":"a","cache_salt":"a\u0000b")"), "cache_salt");
  EXPECT_EQ(ParamOf(R"("prompt":"a","cache_salt":"a\\b")"), "cache_salt");
}

TEST_F(Prompts, AnyNameIsTakenWhereAStarIsServed) {
  EXPECT_EQ(Read(R"("prompt":"a","model":"tiny")").value().model, "tiny");
  EXPECT_EQ(Read(R"("prompt":"a","model":null)").value().model, "tiny");
  served_.model().names.push_back("*");
  EXPECT_EQ(Read(R"("prompt":"a","model":"gpt-4o")").value().model, "gpt-4o");
}

TEST_F(Prompts, ReadPromptTakesOneOfThree) {
  const auto read = [&](const std::string& text) {
    return ReadPrompt(nlohmann::ordered_json::parse(text), served_.model());
  };
  EXPECT_THAT(read(R"({"token_ids":[1,2]})").value(), ElementsAre(1, 2));
  EXPECT_THAT(read(R"({"prompt":[1,2],"label":"x"})").value(), ElementsAre(1, 2));
  EXPECT_EQ(read(R"({"prompt":"Once"})").value().size(), Encode("Once"));
  EXPECT_EQ(read(R"({})").error().param, "prompt");
  EXPECT_EQ(read(R"({"prompt":"a","token_ids":[1]})").error().param, "prompt");
  EXPECT_EQ(read(R"({"prompt":["a"]})").error().param, "prompt");
  EXPECT_EQ(read(R"({"token_ids":[]})").error().param, "token_ids");
  EXPECT_EQ(read(R"({"token_ids":[-1]})").error().param, "token_ids[0]");
  EXPECT_EQ(read(R"({"messages":[{"role":"user","content":"a"}]})").error().status, 404)
      << "no template";
}

}  // namespace
}  // namespace quire
