#include "server/api/chat_prompt.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/api/call_reader.h"
#include "server/api/chat_messages.h"
#include "server/api/test_served_model.h"
#include "text/detokenizer.h"
#include "text/test_vocabulary.h"

namespace quire {
namespace {

using Json = nlohmann::ordered_json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class Chat : public ::testing::Test {
 protected:
  // The rendered prompt, or the error's "code param".
  std::string Prompt(const std::string& members) {
    const auto call = ReadChatCall("{" + members + "}", served_.model());
    if (!call.ok()) return call.error().code + " " + call.error().param;
    return Decode(served_.tokenizer(), call.value().prompts[0], {.show_special = true}).value();
  }
  std::string OfMessage(const std::string& message) {
    return Prompt(R"("messages":[)" + message + "]");
  }
  GenerationCall Call(const std::string& members) {
    const auto call = ReadChatCall("{" + members + "}", served_.model());
    EXPECT_TRUE(call.ok()) << call.error().message;
    return call.ok() ? call.value() : GenerationCall();
  }
  TestServedModel served_;
};

constexpr char kStart[] = "<|start|>assistant\n";

TEST_F(Chat, ContentIsATextOrPartsJoinedByNewlines) {
  const std::string hello = std::string("<|start|>user\nhello\nhe<|end|>\n") + kStart;
  EXPECT_EQ(OfMessage(R"({"role":"user","content":"hello\nhe"})"), hello);
  EXPECT_EQ(OfMessage(R"({"role":"user","content":[{"type":"text","text":"hello"},
                          {"type":"text","text":"he"}]})"),
            hello);
}

TEST_F(Chat, DeveloperIsSystemAndReasoningHasTwoNames) {
  EXPECT_EQ(OfMessage(R"({"role":"developer","content":"a"})"),
            OfMessage(R"({"role":"system","content":"a"})"));
  const std::string thought = OfMessage(R"({"role":"assistant","content":"a","reasoning":"b"})");
  EXPECT_THAT(thought, HasSubstr("<think>b</think>a"));
  EXPECT_EQ(OfMessage(R"({"role":"assistant","content":"a","reasoning_content":"b"})"), thought);
}

TEST_F(Chat, RefusalsNameThePathOfTheMessage) {
  const auto check = [&](const std::string& message, const std::string& want) {
    EXPECT_EQ(OfMessage(message), want) << message;
  };
  check(R"(1)", "invalid_value messages[0]");
  check(R"({"content":"a"})", "invalid_value messages[0].role");
  check(R"({"role":"robot","content":"a"})", "invalid_value messages[0].role");
  check(R"({"role":1,"content":"a"})", "invalid_value messages[0].role");
  check(R"({"role":"user"})", "invalid_value messages[0].content");
  check(R"({"role":"user","content":null})", "invalid_value messages[0].content");
  check(R"({"role":"user","content":7})", "invalid_value messages[0].content");
  check(R"({"role":"user","content":[{"type":"text"}]})",
        "invalid_value messages[0].content[0].text");
  check(R"({"role":"user","content":[{"text":"a"}]})", "invalid_value messages[0].content[0].type");
  check(R"({"role":"user","content":"a","name":1})", "invalid_value messages[0].name");
  check(R"({"role":"tool","content":"a","tool_call_id":1})",
        "invalid_value messages[0].tool_call_id");
  check(R"({"role":"assistant","content":"a","reasoning":"b","reasoning_content":"c"})",
        "invalid_value messages[0].reasoning");
  check(R"({"role":"user","content":"a","tool_calls":[{}]})",
        "invalid_value messages[0].tool_calls");
  check(R"({"role":"assistant","tool_calls":[{"function":{"name":1}}]})",
        "invalid_value messages[0].tool_calls[0].function.name");
  check(R"({"role":"assistant","content":"a","function_call":{"name":"f"}})",
        "unsupported_parameter messages[0].function_call");
}

// SEC-13: nothing is fetched, since nothing but text is taken.
TEST_F(Chat, PartsOtherThanTextAreRefused) {
  for (const char* part : {R"({"type":"image_url","image_url":{"url":"http://127.0.0.1/a.png"}})",
                           R"({"type":"input_audio","input_audio":{"data":"","format":"wav"}})",
                           R"({"type":"file","file":{"file_id":"../../etc/passwd"}})"})
    EXPECT_EQ(OfMessage(std::string(R"({"role":"user","content":[{"type":"text","text":"a"},)") +
                        part + "]}"),
              "unsupported_content messages[0].content[1].type");
}

TEST_F(Chat, UnknownFieldsOfMessagesAreNamed) {
  const auto call = Call(
      R"("messages":[{"role":"user","content":"a","x":1,"refusal":null},{"role":"assistant","x":2}])");
  EXPECT_THAT(call.ignored_fields, ElementsAre("messages[].x"));
}

TEST_F(Chat, AClientsControlTokensStayText) {
  const auto call = Call(R"("messages":[{"role":"user","content":"<|end|>"}])");
  const auto& tokens = call.prompts[0];
  // The template writes one; the message's is characters.
  EXPECT_EQ(std::count(tokens.begin(), tokens.end(), *served_.tokenizer().eos()), 1);
}

TEST_F(Chat, AFinalMessageCanBeContinued) {
  const std::string members =
      R"("messages":[{"role":"user","content":"he"},{"role":"assistant","content":"hello he"}],)";
  const std::string open = "<|start|>user\nhe<|end|>\n<|start|>assistant\nhello he";
  EXPECT_EQ(Prompt(members + R"("continue_final_message":true)"), open);
  EXPECT_EQ(Prompt(members + R"("continue_final_message":true,"add_generation_prompt":false)"),
            open);
  EXPECT_EQ(Prompt(members + R"("continue_final_message":true,"add_generation_prompt":true)"),
            "invalid_value continue_final_message");
  EXPECT_EQ(Prompt(members + R"("add_generation_prompt":false)"), open + "<|end|>\n");
  EXPECT_EQ(Prompt(R"("messages":[{"role":"user","content":"he"}],"continue_final_message":true)"),
            "invalid_value continue_final_message");
}

class ChatVariables : public Chat {
 protected:
  ChatVariables() {
    served_ =
        TestServedModel(SmallBpeVocabulary(),
                        "{{ bos_token }}{{ x }}|{{ reasoning_effort }}|{{ enable_thinking }}");
  }
  std::string With(const std::string& members) {
    return Prompt(R"("messages":[{"role":"user","content":"a"}])" + members);
  }
};

TEST_F(ChatVariables, KwargsAndReasoningEffortReachTheTemplate) {
  EXPECT_EQ(With(""), "<|start|>||");
  EXPECT_EQ(With(R"(,"chat_template_kwargs":{"x":"a"})"), "<|start|>a||");
  EXPECT_EQ(With(R"(,"reasoning_effort":"low")"), "<|start|>|low|True");
  EXPECT_EQ(With(R"(,"reasoning_effort":"none")"), "<|start|>|none|False");
  EXPECT_EQ(With(R"(,"reasoning_effort":"low","chat_template_kwargs":{"enable_thinking":false})"),
            "<|start|>|low|False");
  served_.model().chat_template_kwargs = {{"x", "s"}};
  EXPECT_EQ(With(""), "<|start|>s||");
  EXPECT_EQ(With(R"(,"chat_template_kwargs":{"x":"a"})"), "<|start|>a||");
}

TEST_F(ChatVariables, KwargsAreScalarsAndSetNothingOfTheModel) {
  for (const char* name : {"tokenize", "messages", "tools", "chat_template", "bos_token"})
    EXPECT_EQ(With(std::string(R"(,"chat_template_kwargs":{")") + name + "\":\"a\"}"),
              std::string("invalid_value chat_template_kwargs.") + name);
  EXPECT_EQ(With(R"(,"chat_template_kwargs":{"x":[]})"), "invalid_value chat_template_kwargs.x");
  EXPECT_EQ(With(R"(,"chat_template_kwargs":{"x":")" + std::string(4096, 'a') + "\"}"),
            "invalid_value chat_template_kwargs");
}

TEST_F(ChatVariables, ATemplateInTheRequestNeedsTheServersTrust) {
  const std::string own = R"(,"chat_template":"own {{ messages[0].content }}")";
  EXPECT_EQ(With(own), "unsupported_parameter chat_template");
  served_.model().trusts_request_templates = true;
  EXPECT_EQ(With(own), "own a");
  EXPECT_EQ(With(R"(,"chat_template":"{% if")"), "invalid_value chat_template");
}

// A prompt begins with BOS once, whoever writes it.
TEST_F(ChatVariables, BosIsNeverThereTwice) {
  Vocabulary vocabulary = SmallBpeVocabulary();
  vocabulary.add_bos = true;
  served_ = TestServedModel(vocabulary, "{{ bos_token }}a");
  EXPECT_EQ(With(""), "<|start|>a");
  EXPECT_EQ(With(R"(,"add_special_tokens":true)"), "<|start|>a");
  served_ = TestServedModel(vocabulary, "a");
  EXPECT_EQ(With(""), "a");
  EXPECT_EQ(With(R"(,"add_special_tokens":true)"), "<|start|>a");
}

TEST_F(Chat, ErrorsOfTheTemplateAreTheClients) {
  served_ = TestServedModel(SmallBpeVocabulary(), "{{ raise_exception('roles must alternate') }}");
  const auto call =
      ReadChatCall(R"({"messages":[{"role":"user","content":"a"}]})", served_.model());
  ASSERT_FALSE(call.ok());
  EXPECT_EQ(call.error().param, "messages");
  EXPECT_THAT(call.error().message, HasSubstr("roles must alternate"));
  served_ = TestServedModel(SmallBpeVocabulary(), "");
  EXPECT_EQ(OfMessage(R"({"role":"user","content":"a"})"), "model_not_supported model");
}

TEST_F(Chat, MarkedPartsAreKeptUpToTheirEnd) {
  const auto call = Call(R"("messages":[
    {"role":"system","content":[
      {"type":"text","text":"hello hello","cache_control":{"type":"ephemeral"}},
      {"type":"text","text":"he"}]},
    {"role":"user","content":[
      {"type":"text","text":"abc","prompt_cache_breakpoint":{"mode":"explicit","ttl":"12h"}}]}])");
  ASSERT_EQ(call.retain.size(), 2U);
  const auto start_of = [&](size_t i) {
    const auto& prompt = call.prompts[0];
    return Decode(served_.tokenizer(), std::span(prompt).first(call.retain[i].num_tokens),
                  {.show_special = true})
        .value();
  };
  EXPECT_EQ(start_of(0), "<|start|>system\nhello hello");
  EXPECT_EQ(call.retain[0].ttl_s, 1800U);
  EXPECT_EQ(start_of(1), "<|start|>system\nhello hello\nhe<|end|>\n<|start|>user\nabc<|end|>\n");
  EXPECT_EQ(call.retain[1].ttl_s, 12U * 3600);
}

TEST_F(Chat, CacheOptionsKeepTheWholePrompt) {
  const std::string members = R"("messages":[{"role":"user","content":"he"}],)";
  const auto retain = [&](const std::string& more) { return Call(members + more).retain; };
  const auto size = static_cast<uint32_t>(Call(members + R"("n":1)").prompts[0].size());
  EXPECT_TRUE(retain(R"("prompt_cache_retention":"in_memory")").empty());
  EXPECT_TRUE(retain(R"("prompt_cache_options":{"mode":"explicit"})").empty());
  for (const auto& [more, ttl_s] : std::vector<std::pair<std::string, uint32_t>>{
           {R"("prompt_cache_options":{})", 1800},
           {R"("prompt_cache_options":{"mode":"implicit","ttl":"12h"})", 43200},
           {R"("prompt_cache_retention":"24h")", 86400}}) {
    const auto marks = retain(more);
    ASSERT_EQ(marks.size(), 1U) << more;
    EXPECT_EQ(marks[0].num_tokens, size);
    EXPECT_EQ(marks[0].ttl_s, ttl_s) << more;
  }
  for (const char* more :
       {R"("ttl":"30")", R"("ttl":30)", R"("ttl":"0m")", R"("ttl":"-1m")", R"("ttl":"31d")",
        R"("ttl":"99999999999h")", R"("ttl":"")", R"("ttl":"1 m")", R"("ttl":"NaN")"})
    EXPECT_EQ(Prompt(members + R"("prompt_cache_options":{)" + more + "}"),
              "invalid_value prompt_cache_options.ttl")
        << more;
  EXPECT_EQ(Prompt(members + R"("prompt_cache_options":{"mode":"auto"})"),
            "invalid_value prompt_cache_options.mode");
}

TEST_F(Chat, FiveCacheMarksAreOneTooMany) {
  std::string parts;
  for (int i = 0; i < 5; ++i)
    parts += std::string(i ? "," : "") +
             R"({"type":"text","text":"a","cache_control":{"type":"ephemeral"}})";
  EXPECT_EQ(OfMessage(R"({"role":"user","content":[)" + parts + "]}"),
            "invalid_value messages[0].content[4].cache_control");
}

}  // namespace
}  // namespace quire
