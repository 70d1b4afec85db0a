#include "plan/plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "plan/explain.h"
#include "plan/test_models.h"

namespace quire {
namespace {

constexpr uint64_t kGiB = uint64_t{1} << 30;

PlanRequest Request(KvModel model) {
  PlanRequest request{.model = std::move(model)};
  request.memory.total_bytes = 64 * kGiB;
  return request;
}

Plan PlanOf(PlanRequest request) {
  auto plan = MakePlan(std::move(request));
  EXPECT_TRUE(plan.ok()) << plan.status().message();
  return std::move(plan).value();
}

bool Has(const std::vector<std::string>& texts, const std::string& part) {
  return std::ranges::any_of(
      texts, [&](const std::string& text) { return text.find(part) != std::string::npos; });
}

// "I have 64 GiB and this model: can 20 people chat with 16k each?"
TEST(Plan, SaysWhetherItFits) {
  PlanRequest request = Request(Llama8B());
  request.model.weight_bytes = 5 * kGiB;
  request.num_users = 20;
  request.context_len = 16'000;
  const Plan plan = PlanOf(request);
  EXPECT_TRUE(plan.fits);
  EXPECT_EQ(plan.memory.budget_bytes, 57 * kGiB);                       // 64 - 5 - 64 / 32
  EXPECT_EQ(plan.total.counted_bytes, uint64_t{20} * 250 * 8'388'608);  // 250 pages of 8 MiB each
  EXPECT_EQ(plan.users_in_budget, 29u);                                 // 57 x 128 / 250
  EXPECT_EQ(plan.needed_memory_bytes, 7 * kGiB + plan.total.counted_bytes);
  EXPECT_EQ(plan.left_bytes(), 64 * kGiB - plan.needed_memory_bytes);
  EXPECT_TRUE(plan.reasons.empty());
}

TEST(Plan, SaysWhatToChange) {
  PlanRequest request = Request(Llama8B());
  request.model.weight_bytes = 5 * kGiB;
  request.num_users = 40;
  request.context_len = 16'000;
  const Plan plan = PlanOf(request);
  EXPECT_FALSE(plan.fits);
  EXPECT_TRUE(Has(plan.reasons, "need 78.12 GiB of KV pages, the budget is 57.00 GiB"));
  EXPECT_TRUE(Has(plan.changes, "29 users of 16,000 tokens"));
  EXPECT_TRUE(Has(plan.changes, "40 users of 11,648 tokens"));  // 182 pages of 64
  EXPECT_TRUE(Has(plan.changes, "--kv kivi4"));
  EXPECT_TRUE(Has(plan.changes, "--kv tile8"));
  // Each of these does fit.
  request.num_users = 29;
  EXPECT_TRUE(PlanOf(request).fits);
  request.num_users = 40;
  request.context_len = 11'648;
  EXPECT_TRUE(PlanOf(request).fits);
  request.context_len = 11'649;
  EXPECT_FALSE(PlanOf(request).fits);
  request.context_len = 16'000;
  ASSERT_TRUE(ParseKvChoice("kivi4", &request.kv).ok());
  EXPECT_TRUE(PlanOf(request).fits);
}

TEST(Plan, WeightsThatDoNotFitAreTheReason) {
  PlanRequest request = Request(Llama70B());  // 131 GiB in 16 bits
  const Plan plan = PlanOf(request);
  EXPECT_FALSE(plan.fits);
  EXPECT_TRUE(Has(plan.reasons, "the weights need 131.42 GiB, the memory is 64.00 GiB"));
  EXPECT_EQ(plan.users_in_budget, 0u);
  // A share of the memory does not make them smaller.
  request.memory.cache_share = 0.5;
  request.context_len = 1000;
  EXPECT_FALSE(PlanOf(request).fits);
}

TEST(Plan, WeightsAndPagesTogetherMustFit) {
  PlanRequest request = Request(Llama8B());
  request.model.weight_bytes = 40 * kGiB;
  request.memory.cache_share = 0.5;
  request.context_len = 32'768;  // 4 GiB
  request.num_users = 8;
  const Plan plan = PlanOf(request);
  EXPECT_FALSE(plan.fits);
  EXPECT_TRUE(Has(plan.reasons, "weights and KV pages need 72.00 GiB"));
}

TEST(Plan, ASharedPrefixLetsMoreIn) {
  PlanRequest request = Request(Llama8B());
  request.memory.kv_bytes = 8 * kGiB;
  request.context_len = 8'192;
  request.shared_prefix = 7'000;  // 109 pages of 64: 6,976 tokens
  const Plan plan = PlanOf(request);
  EXPECT_EQ(plan.shared_tokens, 6'976u);
  EXPECT_EQ(plan.users_in_budget_unshared, 8u);  // 1 GiB each
  EXPECT_EQ(plan.users_in_budget, 48u);          // (1,024 - 109) / 19 pages of 8 MiB
  request.shared_prefix = 8'192;
  EXPECT_FALSE(MakePlan(request).ok());
}

TEST(Plan, TargetsAreHeldAgainstTheEstimate) {
  PlanRequest request{.model = Llama70B()};
  request.memory.gpus = ParseAccelerators("8xH100").value();
  request.context_len = 8'192;
  request.tpot_seconds = 0.02;
  request.ttft_seconds = 1;
  const Plan fast = PlanOf(request);
  ASSERT_TRUE(fast.roofline.has_value());
  EXPECT_TRUE(fast.fits);
  EXPECT_NEAR(fast.roofline->alone_seconds, (141.1e9 + 2.68e9) / (8 * 3.35e12), 1e-4);
  request.tpot_seconds = 0.001;
  EXPECT_TRUE(Has(PlanOf(request).reasons, "token time"));
  EXPECT_FALSE(PlanOf(request).fits);
  request.tpot_seconds = {};
  request.ttft_seconds = 0.01;
  EXPECT_TRUE(Has(PlanOf(request).reasons, "first token"));
}

TEST(Plan, AWindowCanBeSaid) {
  PlanRequest request = Request(Mistral7B());
  request.model.groups.front().window = 0;
  request.window = 4096;
  EXPECT_EQ(PlanOf(request).formula_bytes, 536'870'912u);
  PlanRequest all = Request(Gemma27B());
  all.window = 0;
  const Plan plan = PlanOf(all);
  ASSERT_EQ(plan.shape.groups.size(), 1u);
  EXPECT_EQ(plan.formula_bytes, uint64_t{62} << 30);
  EXPECT_TRUE(Has(plan.request.model.notes, "--window 0"));
  all.window = 512;
  EXPECT_EQ(PlanOf(all).request.model.groups[1].window, 512u);
  EXPECT_EQ(PlanOf(all).request.model.groups[0].window, 0u);
}

TEST(Plan, DefaultsAndLimits) {
  EXPECT_EQ(PlanOf(Request(Stories())).request.context_len, 512u);
  KvModel unknown = Stories();
  unknown.context_length = 0;
  EXPECT_EQ(PlanOf(Request(unknown)).request.context_len, 4096u);
  PlanRequest request = Request(Stories());
  request.context_len = 1000;
  EXPECT_TRUE(Has(PlanOf(request).request.model.notes, "trained for"));
  request.context_len = kMostPlannedTokens + 1;
  EXPECT_FALSE(MakePlan(request).ok());
  request.context_len = 1;
  for (const uint32_t users : {0u, kMostPlannedUsers + 1}) {
    request.num_users = users;
    EXPECT_FALSE(MakePlan(request).ok());
  }
}

TEST(Plan, EachCodecIsThere) {
  const Plan plan = PlanOf(Request(Llama8B()));
  ASSERT_EQ(plan.codecs.size(), KvFormats().size());
  for (const CodecPlan& codec : plan.codecs) {
    EXPECT_TRUE(codec.refused.empty());
    EXPECT_EQ(codec.runs, codec.name == "f32" || codec.name == "f16" || codec.name == "kivi4");
    if (codec.name == "f16") {
      EXPECT_EQ(codec.users, plan.users_in_budget);
      EXPECT_EQ(codec.context_len, plan.context_in_budget);
      EXPECT_EQ(codec.conversation_bytes, plan.conversation.counted_bytes);
    }
  }
  EXPECT_EQ(BestCodec(plan, true)->name, "f16");
  const Plan latent = PlanOf(Request(DeepSeekV3()));
  for (const CodecPlan& codec : latent.codecs) {
    EXPECT_FALSE(codec.runs);
    EXPECT_EQ(codec.refused.empty(), FindKvFormat(codec.name)->is_for_latent) << codec.name;
  }
}

TEST(Plan, ExplanationsHaveTheNumbers) {
  PlanRequest request = Request(Gemma27B());
  request.kv.page_size = 16;
  const auto lines = Explain(PlanOf(request));
  const auto numbers = [&](const std::string& name) {
    const auto found = std::ranges::find(lines, name, &Explanation::name);
    return found == lines.end() ? "" : found->numbers;
  };
  EXPECT_EQ(numbers("KV bytes a token, 16 bits"),
            "10 x 16 x (128 + 128) x 2 + 52 x 16 x (128 + 128) x 2 = 507,904 B");
  EXPECT_EQ(numbers("KV of one conversation, 16 bits"),
            "131,072 x 81,920 B + 1,024 x 425,984 B = 11,173,625,856 B");
  EXPECT_EQ(numbers("pages of one conversation, window(1024)"), "65 x 6,815,744 B = 443,023,360 B");
}

TEST(Plan, OneUserIsNoUsers) {
  EXPECT_EQ(UsersText(0), "0 users");
  EXPECT_EQ(UsersText(1), "1 user");
  EXPECT_EQ(UsersText(1000), "1,000 users");
}

TEST(Plan, BytesAreInPowersOf1024) {
  EXPECT_EQ(BytesText(0), "0 B");
  EXPECT_EQ(BytesText(1023), "1023 B");
  EXPECT_EQ(BytesText(1024), "1.00 KiB");
  EXPECT_EQ(BytesText(640'000'000'000), "596.05 GiB");
  EXPECT_EQ(BytesText((uint64_t{1} << 30) - 1), "1.00 GiB");
}

}  // namespace
}  // namespace quire
