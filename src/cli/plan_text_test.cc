#include "cli/plan_text.h"

#include <gtest/gtest.h>

#include <sstream>
#include <string>

#include "plan/test_models.h"

namespace quire {
namespace {

Plan PlanOf(KvModel model, uint32_t users, uint32_t context, std::string_view codec = "f16") {
  PlanRequest request{.model = std::move(model), .num_users = users, .context_len = context};
  request.memory.gpus = ParseAccelerators("8xH100").value();
  request.shared_prefix = 1000;
  EXPECT_TRUE(ParseKvChoice(codec, &request.kv).ok());
  auto plan = MakePlan(std::move(request));
  EXPECT_TRUE(plan.ok()) << plan.status().message();
  return std::move(plan).value();
}

void ExpectOneScreen(const std::string& text, size_t most_lines) {
  std::istringstream lines(text);
  size_t count = 0;
  for (std::string line; std::getline(lines, line); ++count) EXPECT_LE(line.size(), 80u) << line;
  EXPECT_LE(count, most_lines) << text;
}

TEST(PlanText, IsOneScreenOf80Columns) {
  ExpectOneScreen(PlanText(PlanOf(Llama70B(), 100, 32'000), {}), 54);
  ExpectOneScreen(PlanText(PlanOf(Gemma27B(), 100, 131'072, "tile4"), {}), 54);
  ExpectOneScreen(PlanText(PlanOf(DeepSeekV3(), 1000, 163'840), {}), 54);
  ExpectOneScreen(PlanText(PlanOf(Llama70BAsMha(), 10'000, 1 << 20), {}), 60);
}

TEST(PlanText, HasTheAnswersAndTheirMarks) {
  const std::string text = PlanText(PlanOf(Llama70B(), 100, 32'000), {});
  for (const char* part :
       {"8 x H100, data sheet [estimated]", "DOES NOT FIT", "would fit", "--kv kivi4", "planned",
        "GQA: 8 of 64 heads", "to the first token", "users of 32,000 tokens", "[exact]"})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
}

TEST(PlanText, MarksCodecsThatDoNotRun) {
  std::istringstream lines(PlanText(PlanOf(Llama70B(), 1, 32'000), {}));
  size_t num_planned = 0, num_running = 0;
  for (std::string line; std::getline(lines, line);) {
    const KvFormat* format = FindKvFormat(line.substr(0, line.find(' ')));
    if (format == nullptr) continue;
    EXPECT_EQ(line.find("planned") == std::string::npos, format->runs()) << line;
    ++(format->runs() ? num_running : num_planned);
  }
  EXPECT_EQ(num_running, 3u);
  EXPECT_EQ(num_planned, KvFormats().size() - 3);
}

TEST(PlanText, ColoursTheVerdictOnly) {
  const Plan plan = PlanOf(Llama70B(), 1, 32'000);
  EXPECT_EQ(PlanText(plan, {}).find('\033'), std::string::npos);
  const std::string text = PlanText(plan, {.has_colour = true});
  EXPECT_NE(text.find("\033[32mFITS\033[0m"), std::string::npos);
}

TEST(PlanText, ExplainsOnDemand) {
  const Plan plan = PlanOf(Llama70B(), 1, 32'000);
  EXPECT_EQ(PlanText(plan, {}).find("80 x 8 x (128 + 128) x 2"), std::string::npos);
  EXPECT_NE(PlanText(plan, {.explains = true}).find("80 x 8 x (128 + 128) x 2 = 327,680 B"),
            std::string::npos);
}

TEST(PlanText, NamesOfFilesAreSafeOnATerminal) {
  KvModel model = Llama8B();
  model.name = "\033[2Jevil\n";
  EXPECT_EQ(PlanText(PlanOf(model, 1, 2000), {}).find('\033'), std::string::npos);
}

}  // namespace
}  // namespace quire
