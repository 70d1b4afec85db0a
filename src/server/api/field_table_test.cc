#include "server/api/field_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <set>

#include "base/test_data.h"
#include "server/api/field_document.h"

namespace quire {
namespace {

// What the API promises to know, by hand: a row that is lost from the table fails here.
constexpr const char* kInBothBodies[] = {"model",
                                         "stream",
                                         "stream_options",
                                         "max_tokens",
                                         "max_completion_tokens",
                                         "min_tokens",
                                         "ignore_eos",
                                         "temperature",
                                         "top_p",
                                         "min_p",
                                         "top_k",
                                         "presence_penalty",
                                         "frequency_penalty",
                                         "repetition_penalty",
                                         "repeat_penalty",
                                         "seed",
                                         "stop",
                                         "include_stop_str_in_output",
                                         "stop_token_ids",
                                         "allowed_token_ids",
                                         "logit_bias",
                                         "n",
                                         "logprobs",
                                         "prompt_logprobs",
                                         "add_special_tokens",
                                         "skip_special_tokens",
                                         "response_format",
                                         "structured_outputs",
                                         "guided_json",
                                         "guided_regex",
                                         "guided_choice",
                                         "guided_grammar",
                                         "grammar",
                                         "json_schema",
                                         "cache_salt",
                                         "priority",
                                         "prompt_cache_options",
                                         "prompt_cache_retention",
                                         "cache_prompt",
                                         "return_progress",
                                         "return_token_ids",
                                         "return_tokens_as_token_ids",
                                         "user",
                                         "metadata",
                                         "store",
                                         "service_tier",
                                         "prompt_cache_key",
                                         "safety_identifier",
                                         "prediction",
                                         "verbosity",
                                         "spaces_between_special_tokens",
                                         "id_slot",
                                         "audio",
                                         "modalities",
                                         "suffix",
                                         "use_beam_search",
                                         "bad_words",
                                         "prompt_embeds",
                                         "truncate_prompt_tokens",
                                         "documents",
                                         "logprob_token_ids",
                                         "web_search_options",
                                         "moderation",
                                         "kv_transfer_params",
                                         "mirostat",
                                         "dry_multiplier",
                                         "dry_base",
                                         "dry_allowed_length",
                                         "dry_penalty_last_n",
                                         "dry_sequence_breakers",
                                         "xtc_probability",
                                         "xtc_threshold"};
constexpr const char* kInChatOnly[] = {"messages",
                                       "top_logprobs",
                                       "tools",
                                       "parallel_tool_calls",
                                       "tool_choice",
                                       "add_generation_prompt",
                                       "continue_final_message",
                                       "chat_template_kwargs",
                                       "chat_template",
                                       "reasoning_effort",
                                       "functions",
                                       "function_call"};
constexpr const char* kInCompletionsOnly[] = {"prompt", "best_of", "echo"};

TEST(FieldTable, KnowsEveryFieldOfTheApi) {
  for (const char* name : kInBothBodies)
    for (const ApiForm form : {ApiForm::kChat, ApiForm::kCompletions})
      EXPECT_NE(FindApiField(name, form), nullptr) << name;
  for (const char* name : kInChatOnly) {
    EXPECT_NE(FindApiField(name, ApiForm::kChat), nullptr) << name;
    EXPECT_EQ(FindApiField(name, ApiForm::kCompletions), nullptr) << name;
  }
  for (const char* name : kInCompletionsOnly) {
    EXPECT_NE(FindApiField(name, ApiForm::kCompletions), nullptr) << name;
    EXPECT_EQ(FindApiField(name, ApiForm::kChat), nullptr) << name;
  }
}

// And their ranges.
TEST(FieldTable, HasTheRangesOfTheApi) {
  constexpr double kBillions = 2147483647;
  const struct {
    const char* name;
    double least;
    double most;
  } ranges[] = {{"max_tokens", 0, kBillions},
                {"max_completion_tokens", 0, kBillions},
                {"min_tokens", 0, kBillions},
                {"temperature", 0, 2},
                {"top_p", 0, 1},
                {"min_p", 0, 1},
                {"top_k", -1, kBillions},
                {"presence_penalty", -2, 2},
                {"frequency_penalty", -2, 2},
                {"n", 1, 128},
                {"best_of", 1, 128},
                {"top_logprobs", 0, 20},
                {"prompt_logprobs", 0, 20},
                {"messages", 1, 10000},
                {"prompt", 1, 1024},
                {"cache_salt", 1, 128},
                {"priority", -2147483648.0, kBillions},
                {"id_slot", -1, kBillions}};
  for (const auto& range : ranges)
    for (const ApiField& field : ApiFields()) {
      if (field.name != range.name) continue;
      EXPECT_EQ(field.least, range.least) << range.name;
      EXPECT_EQ(field.most, range.most) << range.name;
    }
  const ApiField* logprobs = FindApiField("logprobs", ApiForm::kCompletions);
  EXPECT_EQ(logprobs->most, 20);
  EXPECT_EQ(FindApiField("logprobs", ApiForm::kChat)->kind, FieldKind::kBool);
  EXPECT_EQ(FindApiField("stop", ApiForm::kChat)->most, 16);
  EXPECT_EQ(FindApiField("logit_bias", ApiForm::kChat)->most, 1024);
  EXPECT_EQ(FindApiField("tools", ApiForm::kChat)->most, 128);
}

TEST(FieldTable, HasANameOnceForEachBodyAndSaysWhatItDoes) {
  for (const ApiForm form : {ApiForm::kChat, ApiForm::kCompletions}) {
    std::set<std::string_view> names;
    for (const ApiField& field : ApiFields()) {
      if (!field.IsIn(form)) continue;
      EXPECT_TRUE(names.insert(field.name).second) << field.name;
      EXPECT_FALSE(field.help.empty()) << field.name;
      EXPECT_LE(field.least, field.most) << field.name;
    }
  }
}

TEST(FieldTable, TheDocumentIsTheTable) {
  const std::string want = FieldDocument();
  const std::string made = ::testing::TempDir() + "api_fields.md";
  const bool is_equal = ReadTestFile(TestData("../../docs/api_fields.md")) == want;
  if (!is_equal) std::ofstream(made) << want;
  EXPECT_TRUE(is_equal) << "docs/api_fields.md is old: copy " << made << " over it";
}

}  // namespace
}  // namespace quire
