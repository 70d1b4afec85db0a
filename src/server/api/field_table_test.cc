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
