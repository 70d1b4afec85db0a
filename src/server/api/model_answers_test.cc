// What /v1/models, /tokenize and their kin answer.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/test_data.h"
#include "server/api/call_reader.h"
#include "server/api/test_served_model.h"
#include "text/test_gguf.h"

namespace quire {
namespace {

using Json = nlohmann::ordered_json;

class ModelAnswers : public ::testing::Test {
 protected:
  Json Of(const ApiResult<std::string>& answer) {
    EXPECT_TRUE(answer.ok()) << answer.error().message;
    return answer.ok() ? Json::parse(answer.value()) : Json();
  }
  Json Tokenize(const std::string& body) { return Of(AnswerTokenize(body, served_.model())); }
  std::string ErrorOf(const ApiResult<std::string>& answer) {
    EXPECT_FALSE(answer.ok());
    return answer.ok() ? "" : answer.error().code + " " + answer.error().param;
  }
  TestServedModel served_;
};

TEST_F(ModelAnswers, ModelsHaveWhatClientsAndRoutersRead) {
  served_.model().names = {"org/tiny", "tiny", "*"};
  const Json list = Json::parse(AnswerModels(served_.model()));
  EXPECT_EQ(list["object"], "list");
  ASSERT_EQ(list["data"].size(), 2U);
  const Json& first = list["data"][0];
  EXPECT_EQ(first["id"], "org/tiny");
  EXPECT_EQ(first["object"], "model");
  EXPECT_EQ(first["root"], "tiny.gguf");
  EXPECT_EQ(first["owned_by"], "quire");
  EXPECT_EQ(first["max_model_len"], 512);
  EXPECT_EQ(first["meta"]["n_vocab"], 268);
  EXPECT_TRUE(first["parent"].is_null());
  EXPECT_TRUE(first["permission"].is_array());
}

TEST_F(ModelAnswers, AModelIsFoundByItsNameWithASlash) {
  served_.model().names = {"org/tiny"};
  EXPECT_EQ(Of(AnswerModel("org/tiny", served_.model()))["id"], "org/tiny");
  EXPECT_EQ(ErrorOf(AnswerModel("tiny", served_.model())), "model_not_found model");
  EXPECT_EQ(AnswerModel("tiny", served_.model()).error().status, 404);
}

TEST_F(ModelAnswers, TokenizeTakesBothSpellings) {
  const Json ours = Tokenize(R"({"prompt":"hello he","return_token_strs":true})");
  EXPECT_EQ(ours["count"], ours["tokens"].size());
  EXPECT_EQ(ours["max_model_len"], 512);
  EXPECT_EQ(ours["token_strs"][0], "hello");
  EXPECT_TRUE(Tokenize(R"({"prompt":"he"})")["token_strs"].is_null());
  const Json theirs = Tokenize(R"({"content":"hello he"})");
  EXPECT_EQ(theirs["tokens"], ours["tokens"]);
  EXPECT_EQ(theirs.size(), 1U);
  const Json pieces = Tokenize(R"({"content":"hello\u4e2d","with_pieces":true})")["tokens"];
  EXPECT_EQ(pieces[0]["piece"], "hello");
  EXPECT_EQ(pieces[1]["piece"], Json({0xE4})) << "a part of a character is its bytes";
}

TEST_F(ModelAnswers, TokenizeOfMessagesIsTheChatsPrompt) {
  const std::string body = R"({"messages":[{"role":"user","content":"he"}]})";
  const auto call = ReadChatCall(body, served_.model());
  ASSERT_TRUE(call.ok());
  EXPECT_EQ(Tokenize(body)["tokens"], Json(call.value().prompts[0]));
  EXPECT_EQ(Of(AnswerRender(ApiForm::kChat, body, served_.model()))["token_ids"],
            Json(call.value().prompts[0]));
  EXPECT_EQ(Of(AnswerApplyTemplate(body, served_.model()))["prompt"],
            "<|start|>user\nhe<|end|>\n<|start|>assistant\n");
  const Json list =
      Of(AnswerRender(ApiForm::kCompletions, R"({"prompt":[[1,2],[3]]})", served_.model()));
  EXPECT_EQ(list, Json::parse(R"([{"token_ids":[1,2]},{"token_ids":[3]}])"));
}

TEST_F(ModelAnswers, SpecialTokensAreAsAsked) {
  served_ = TestServedModel(VocabularyOfGguf(TestData("tokenizer/stories260K.gguf")), "");
  const TokenId bos = *served_.tokenizer().bos();
  EXPECT_EQ(Tokenize(R"({"prompt":"a"})")["tokens"][0], bos);
  EXPECT_NE(Tokenize(R"({"prompt":"a","add_special_tokens":false})")["tokens"][0], bos);
  EXPECT_NE(Tokenize(R"({"content":"a"})")["tokens"][0], bos);
  EXPECT_EQ(Tokenize(R"({"content":"a","add_special":true})")["tokens"][0], bos);
  const Json plain = Tokenize(R"({"content":"<s>a","parse_special":false})")["tokens"];
  EXPECT_EQ(std::count(plain.begin(), plain.end(), Json(bos)), 0);
}

TEST_F(ModelAnswers, DetokenizeIsTheWayBack) {
  const Json tokens = Tokenize(R"({"prompt":"hello \u00e9<|end|>"})")["tokens"];
  const Json text = Of(AnswerDetokenize(Json({{"tokens", tokens}}).dump(), served_.model()));
  EXPECT_EQ(text["prompt"], "hello \xC3\xA9<|end|>");
  EXPECT_EQ(text["content"], text["prompt"]);
}

TEST_F(ModelAnswers, RefusalsNameTheField) {
  const ServedModel& model = served_.model();
  EXPECT_EQ(ErrorOf(AnswerTokenize("{}", model)), "invalid_value prompt");
  EXPECT_EQ(ErrorOf(AnswerTokenize(R"({"content":1})", model)), "invalid_value content");
  EXPECT_EQ(ErrorOf(AnswerTokenize(R"({"content":"a","prompt":"b"})", model)),
            "invalid_value prompt");
  EXPECT_EQ(ErrorOf(AnswerTokenize(R"({"content":"a","add_special":1})", model)),
            "invalid_value add_special");
  EXPECT_EQ(ErrorOf(AnswerTokenize(R"({"prompt":"a","model":"other"})", model)),
            "model_not_found model");
  EXPECT_EQ(ErrorOf(AnswerDetokenize("{}", model)), "invalid_value tokens");
  EXPECT_EQ(ErrorOf(AnswerDetokenize(R"({"tokens":[268]})", model)), "invalid_value tokens[0]");
  EXPECT_EQ(ErrorOf(AnswerDetokenize(R"({"tokens":"a"})", model)), "invalid_value tokens");
  EXPECT_EQ(ErrorOf(AnswerApplyTemplate("{}", model)), "invalid_value messages");
  EXPECT_EQ(ErrorOf(AnswerApplyTemplate("[]", model)), "invalid_json ");
}

TEST_F(ModelAnswers, TokenizerInfoHasTheTokensOfTheModel) {
  const Json info = Json::parse(AnswerTokenizerInfo(served_.model()));
  EXPECT_EQ(info["bos_token"], "<|start|>");
  EXPECT_EQ(info["eos_token"], "<|end|>");
  EXPECT_TRUE(info["pad_token"].is_null());
  EXPECT_EQ(info["chat_template"], served_.model().chat_template->source());
}

}  // namespace
}  // namespace quire
