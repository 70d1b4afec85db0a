#include "server/api/call_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/api/test_served_model.h"
#include "text/detokenizer.h"

namespace quire {
namespace {

using Json = nlohmann::ordered_json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class CallReader : public ::testing::Test {
 protected:
  GenerationCall Chat(const std::string& body) {
    auto call = ReadChatCall(body, served_.model());
    EXPECT_TRUE(call.ok()) << call.error().message;
    return call.ok() ? call.value() : GenerationCall();
  }
  GenerationCall Completion(const std::string& body) {
    auto call = ReadCompletionCall(body, served_.model());
    EXPECT_TRUE(call.ok()) << call.error().message;
    return call.ok() ? call.value() : GenerationCall();
  }
  ApiError ChatError(const std::string& body) {
    const auto call = ReadChatCall(body, served_.model());
    EXPECT_FALSE(call.ok()) << body;
    return call.ok() ? ApiError() : call.error();
  }
  ApiError CompletionError(const std::string& body) {
    const auto call = ReadCompletionCall(body, served_.model());
    EXPECT_FALSE(call.ok()) << body;
    return call.ok() ? ApiError() : call.error();
  }
  std::string TextOf(const std::vector<TokenId>& tokens) {
    return Decode(served_.tokenizer(), tokens, {.show_special = true}).value();
  }

  TestServedModel served_;
};

TEST_F(CallReader, ChatRendersTheTemplateAndKeepsOpenAiDefaults) {
  const auto call = Chat(R"({"messages":[{"role":"user","content":"hello"}]})");
  ASSERT_EQ(call.prompts.size(), 1U);
  EXPECT_EQ(TextOf(call.prompts[0]), "<|start|>user\nhello<|end|>\n<|start|>assistant\n");
  EXPECT_EQ(call.prompts[0].front(), *served_.tokenizer().bos());
  EXPECT_EQ(call.model, "tiny");
  EXPECT_EQ(call.max_tokens, std::nullopt);
  EXPECT_EQ(call.sampling.temperature, 1);
  EXPECT_EQ(call.sampling.top_k, 0);
  EXPECT_EQ(call.sampling.top_logprobs, std::nullopt);
  EXPECT_TRUE(call.uses_prefixes);
  EXPECT_TRUE(call.skips_special_tokens);
  EXPECT_TRUE(call.retain.empty());
}

TEST_F(CallReader, CompletionsTakeTextsAndIds) {
  EXPECT_EQ(TextOf(Completion(R"({"prompt":"hello"})").prompts[0]), "hello");
  EXPECT_EQ(Completion(R"({"prompt":"hello"})").max_tokens, 16U);
  EXPECT_EQ(Completion(R"({"prompt":["hello","hell","he"]})").prompts.size(), 3U);
  EXPECT_THAT(Completion(R"({"prompt":[1,2.0,3]})").prompts, ElementsAre(ElementsAre(1, 2, 3)));
  EXPECT_THAT(Completion(R"({"prompt":[[1,2],[3]]})").prompts,
              ElementsAre(ElementsAre(1, 2), ElementsAre(3)));
}

TEST_F(CallReader, TwoNamesOfOneFieldMayNotDiffer) {
  const auto call = Completion(R"({"prompt":"a","repeat_penalty":1.5,"repetition_penalty":1.5})");
  EXPECT_FLOAT_EQ(call.sampling.repetition_penalty, 1.5F);
  EXPECT_FLOAT_EQ(Completion(R"({"prompt":"a","repeat_penalty":1.25})").sampling.repetition_penalty,
                  1.25F);
  const ApiError error =
      CompletionError(R"({"prompt":"a","repeat_penalty":1.5,"repetition_penalty":1.0})");
  EXPECT_EQ(error.param, "repeat_penalty");
  EXPECT_THAT(error.message, HasSubstr("repetition_penalty"));
}

TEST_F(CallReader, RefusalsNameTheField) {
  EXPECT_EQ(CompletionError(R"({})").param, "prompt");
  EXPECT_EQ(CompletionError(R"({"prompt":[]})").param, "prompt");
  EXPECT_EQ(CompletionError(R"({"prompt":["a",1]})").param, "prompt[1]");
  EXPECT_EQ(CompletionError(R"({"prompt":[[1],[1,-1]]})").param, "prompt[1][1]");
  EXPECT_EQ(ChatError(R"({})").param, "messages");
  EXPECT_EQ(ChatError(R"({"messages":[{"role":"user","content":"a"},{"role":"x"}]})").param,
            "messages[1].role");
}

}  // namespace
}  // namespace quire
