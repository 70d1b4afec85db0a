#include "server/admin.h"

#include <gtest/gtest.h>

#include <future>
#include <nlohmann/json.hpp>
#include <numeric>
#include <thread>

#include "base/test_data.h"

namespace quire {
namespace {

using Json = nlohmann::json;

const Client kOperator = {
    .key_name = "op", .tenant = "ops", .is_admin = true, .may_prioritise = true};
const Client kAda = {.key_name = "a", .tenant = "ada"};
const Client kBob = {.key_name = "b", .tenant = "bob"};

constexpr uint32_t kPageSize = 16;

// A server's parts over a small model, without HTTP. The model has no text: prompts are ids.
class AdminTest : public testing::Test {
 protected:
  AdminTest() {
    EngineOptions options;
    options.num_threads = 1;
    options.page_size = kPageSize;
    options.kv_memory_bytes = uint64_t{16} << 20;
    engine_ = Engine::Load(TestData("models/llama-gqa.gguf"), options, {}).value();
    model_.names = {"small"};
    model_.tokenizer = &engine_->tokenizer();
    model_.context_len = engine_->options().context_len;
    model_.vocab_size = 250;
    admin_.emplace(engine_.get(), &model_, &metrics_);
  }

  static Json Ids(size_t count, int first = 1) {
    std::vector<int> ids(count);
    std::iota(ids.begin(), ids.end(), first);
    return ids;
  }
  // The engine's part, then the rest.
  ApiResult<std::string> Run(const ApiResult<AdminWork>& work) {
    if (!work.ok()) return work.error();
    AdminAnswer answer;
    engine_->Ask([&](StepLoop& loop) { answer = work.value()(loop); });
    return answer();
  }
  static Json Parsed(const ApiResult<std::string>& result) {
    EXPECT_TRUE(result.ok()) << ToJson(result.error());
    return result.ok() ? Json::parse(result.value()) : Json();
  }
  ApiResult<std::string> Add(const Client& client, const Json& body) {
    auto pending = admin_->prefixes().Start(client, body.dump(), {});
    if (!pending.ok()) return pending.error();
    (void)pending.value().answer->WaitForAll();
    return Run(admin_->prefixes().Finish(pending.value()));
  }
  Json List(const Client& client, const std::string& sort = "") {
    return Parsed(Run(admin_->prefixes().List(client, sort, "")))["prefixes"];
  }
  Json Match(const Client& client, const Json& ids) {
    return Parsed(Run(admin_->prefixes().Match(client, Json{{"token_ids", ids}}.dump())));
  }
  ApiError MatchError(const Json& body) {
    const auto match = admin_->prefixes().Match(kAda, body.dump());
    EXPECT_FALSE(match.ok()) << body;
    return match.ok() ? ApiError() : match.error();
  }
  std::shared_ptr<Answer> Submit(const std::string& tenant, const std::string& label,
                                 size_t prompt_len, uint32_t max_tokens) {
    Request request{.prompt = Ids(prompt_len).get<std::vector<TokenId>>(),
                    .max_tokens = max_tokens};
    request.tenant = tenant;
    request.label = label;
    request.sampling.ignore_eos = true;
    return engine_->Submit(std::move(request)).value();
  }

  void NotePages() {
    KvReport report;
    engine_->Ask([&](StepLoop& loop) { report = ReadKvReport(*engine_, loop, loop.stats()); });
    admin_->NotePages(std::move(report));
  }

  std::unique_ptr<Engine> engine_;
  ServedModel model_;
  Metrics metrics_{{.model_name = "small",
                    .version = "1",
                    .instruction_set = "avx2",
                    .kv_codec = "f16",
                    .context_len = 2048}};
  std::optional<Admin> admin_;
};

TEST_F(AdminTest, AnAddedPrefixIsComputedKeptAndListed) {
  const Json added =
      Parsed(Add(kAda, {{"token_ids", Ids(50)}, {"label", "system"}, {"pin", true}}));
  EXPECT_EQ(added["tokens"], 48);  // whole pages
  EXPECT_EQ(added["computed_tokens"], 48);
  EXPECT_EQ(added["pinned"], true);
  EXPECT_EQ(added["expires_at"], nullptr);
  EXPECT_GT(added["bytes"], 0);
  const Json listed = List(kAda);
  ASSERT_EQ(listed.size(), 1u);
  EXPECT_EQ(listed[0]["id"], added["id"]);
  EXPECT_EQ(listed[0]["label"], "system");
  EXPECT_EQ(listed[0]["tokens"], 48);
  EXPECT_EQ(Match(kAda, Ids(50))["matched_tokens"], 48);
  // What is there already is not computed again, but for the last token.
  const Json again = Parsed(Add(kAda, {{"token_ids", Ids(50)}, {"ttl_s", 60}}));
  EXPECT_EQ(again["computed_tokens"], 1);
  EXPECT_EQ(again["id"], added["id"]);
}

TEST_F(AdminTest, ARetainedPrefixHasATimeAndAChangedOneTheNewTime) {
  const int64_t now = std::time(nullptr);
  const Json added = Parsed(Add(kAda, {{"token_ids", Ids(32)}, {"ttl_s", 100}}));
  EXPECT_EQ(added["pinned"], false);
  EXPECT_NEAR(added["expires_at"].get<double>(), now + 100, 2);
  const std::string id = added["id"];
  const Json changed = Parsed(Run(admin_->prefixes().Change(kAda, id, R"({"ttl_s": 500})")));
  EXPECT_NEAR(changed["retained_until"].get<double>(), now + 500, 2);
  const Json freed =
      Parsed(Run(admin_->prefixes().Change(kAda, id, R"({"pin": false, "ttl_s": 0})")));
  EXPECT_EQ(freed["retained_until"], nullptr);
  EXPECT_EQ(freed["pinned"], false);
  EXPECT_EQ(engine_->stats().kv_pinned_bytes, 0u);
}

TEST_F(AdminTest, ARetainedPrefixGoesAtItsTimeHoweverOftenTheEngineIsAsked) {
  (void)Parsed(Add(kAda, {{"token_ids", Ids(32)}, {"ttl_s", 1}}));
  EXPECT_GT(engine_->stats().kv_pinned_bytes, 0u);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (engine_->stats().kv_pinned_bytes > 0 && std::chrono::steady_clock::now() < end) continue;
  EXPECT_EQ(engine_->stats().kv_pinned_bytes, 0u);
}

TEST_F(AdminTest, AnEventTellsThatTheTimeOfAPrefixIsOver) {
  const Json added = Parsed(Add(kAda, {{"token_ids", Ids(32)}, {"ttl_s", 1}, {"label", "short"}}));
  uint64_t seen = admin_->events().last_id(kAda);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  std::string events;
  while (events.empty() && std::chrono::steady_clock::now() < end) {
    events = admin_->events().Next(kAda, &seen, 1 << 16);
    std::this_thread::yield();
  }
  EXPECT_NE(events.find("event: prefix"), std::string::npos);
  const Json event = Json::parse(events.substr(events.find('{')));
  EXPECT_EQ(event["action"], "expired");
  EXPECT_EQ(event["id"], added["id"]);
  EXPECT_EQ(event["label"], "short");
  EXPECT_EQ(event["tokens"], 32);
  EXPECT_EQ(event["pinned"], false);
  EXPECT_EQ(admin_->events().last_id(kBob), 0u);
}

TEST_F(AdminTest, ADroppedPrefixIsGone) {
  const std::string id = Parsed(Add(kAda, {{"token_ids", Ids(48)}}))["id"];
  EXPECT_EQ(Match(kAda, Ids(48))["id"], id);
  EXPECT_EQ(Parsed(Run(admin_->prefixes().Drop(kAda, id)))["dropped_pages"], 3);
  EXPECT_EQ(Match(kAda, Ids(48))["matched_tokens"], 0);
  EXPECT_EQ(Match(kAda, Ids(48))["id"], nullptr);
  const auto again = Run(admin_->prefixes().Drop(kAda, id));
  ASSERT_FALSE(again.ok());
  EXPECT_EQ(again.error().status, 404);
}

// SEC: nothing of another tenant can be seen or changed; an admin sees all.
TEST_F(AdminTest, ATenantSeesOnlyItsOwn) {
  const std::string id = Parsed(Add(kAda, {{"token_ids", Ids(48)}}))["id"];
  EXPECT_TRUE(List(kBob).empty());
  EXPECT_EQ(Match(kBob, Ids(48))["matched_tokens"], 0);
  for (const auto& result : {Run(admin_->prefixes().Drop(kBob, id)),
                             Run(admin_->prefixes().Change(kBob, id, R"({"pin":false})"))}) {
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.error().status, 404);
  }
  EXPECT_EQ(admin_->DropTenant(kBob, "ada").error().status, 403);
  EXPECT_EQ(admin_->ResetPrefixCache(kBob, false).error().status, 403);
  const Json own = Parsed(Run(admin_->Cache(kBob)));
  EXPECT_FALSE(own.contains("held_bytes"));
  EXPECT_TRUE(own["tenants"].empty());
  EXPECT_EQ(Parsed(Run(admin_->Cache(kAda)))["tenants"][0]["name"], "ada");
  EXPECT_EQ(List(kOperator).size(), 1u);
  EXPECT_EQ(Parsed(Run(admin_->DropTenant(kOperator, "ada")))["dropped_pages"], 3);
  EXPECT_TRUE(List(kAda).empty());
}

TEST_F(AdminTest, RetainedBytesOfATenantAreLimited) {
  admin_->prefixes().SetRetainedLimits({{"ada", 1}, {"bob", 0}});
  const auto result = Add(kAda, {{"token_ids", Ids(48)}});
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, "retained_budget_exceeded");
  EXPECT_TRUE(Add(kBob, {{"token_ids", Ids(48)}, {"ttl_s", 0}, {"pin", true}}).ok());
  EXPECT_TRUE(Run(admin_->DropTenant(kBob, "bob")).ok());
  EXPECT_EQ(engine_->stats().kv_pinned_bytes, 0u);
}

TEST_F(AdminTest, BadBodiesNameTheirField) {
  const auto error = [&](const Json& body) {
    const auto result = Add(kAda, body);
    EXPECT_FALSE(result.ok()) << body;
    return result.ok() ? ApiError{} : result.error();
  };
  EXPECT_EQ(error({{"token_ids", Ids(48)}, {"pin", 1}}).param, "pin");
  EXPECT_EQ(error({{"token_ids", Ids(48)}, {"ttl_s", -1}}).param, "ttl_s");
  EXPECT_EQ(error({{"token_ids", Ids(48)}, {"ttl_s", 1.5}}).param, "ttl_s");
  EXPECT_EQ(error({{"token_ids", Ids(48)}, {"ttl_s", 1e30}}).param, "ttl_s");
  EXPECT_EQ(error({{"token_ids", Ids(48)}, {"pin", false}}).param, "ttl_s");
  EXPECT_EQ(error({{"token_ids", Ids(48)}, {"label", std::string(129, 'x')}}).param, "label");
  EXPECT_EQ(error({{"token_ids", Ids(48)}, {"label", "a\nb"}}).param, "label");
  EXPECT_EQ(error({{"token_ids", Ids(kPageSize - 1)}}).status, 400);
  for (const Json& salt : {Json(""), Json("a@b"), Json("a/b"), Json("a\\b"),
                           Json(std::string("a\0b", 3)), Json(std::string(129, 'x')), Json(1)}) {
    EXPECT_EQ(error({{"token_ids", Ids(48)}, {"cache_salt", salt}}).param, "cache_salt") << salt;
    EXPECT_EQ(MatchError({{"token_ids", Ids(48)}, {"cache_salt", salt}}).param, "cache_salt");
  }
  EXPECT_EQ(error({{"token_ids", Ids(48)}, {"tll_s", 5}}).param, "tll_s");
  EXPECT_EQ(error({{"token_ids", Ids(48)}, {"model", "other"}}).status, 404);
  EXPECT_EQ(MatchError({{"token_ids", Ids(48)}, {"pin", true}}).param, "pin");
  EXPECT_EQ(admin_->prefixes().Change(kAda, "1", R"({"pin":true,"ttl":5})").error().param, "ttl");
  EXPECT_TRUE(Add(kAda, {{"token_ids", Ids(48)}, {"model", "small"}, {"cache_salt", "s"}}).ok());
  EXPECT_EQ(error(Json::object()).status, 400);
  EXPECT_EQ(admin_->prefixes().List(kAda, "size", "").error().param, "sort");
  EXPECT_EQ(admin_->prefixes().List(kAda, "", "0").error().param, "limit");
  EXPECT_EQ(admin_->prefixes().Change(kAda, "xyz", R"({"pin":true})").error().status, 404);
  EXPECT_EQ(admin_->prefixes().Change(kAda, "1", "{}").error().status, 400);
}

TEST_F(AdminTest, LiveRequestsAreListedAndCanBeEnded) {
  const auto answer = Submit("ada", "req-1", 40, 1900);
  answer->Wait(0, 1);
  const Json requests = Parsed(Run(admin_->Requests(kAda)))["requests"];
  ASSERT_EQ(requests.size(), 1u);
  EXPECT_EQ(requests[0]["request_id"], "req-1");
  EXPECT_EQ(requests[0]["phase"], "decode");
  EXPECT_EQ(requests[0]["prompt_tokens"], 40);
  EXPECT_GT(requests[0]["pages"], 2);
  EXPECT_TRUE(Parsed(Run(admin_->Requests(kBob)))["requests"].empty());
  EXPECT_EQ(Run(admin_->AbortRequest(kBob, "req-1")).error().status, 404);
  EXPECT_EQ(Parsed(Run(admin_->AbortRequest(kAda, "req-1")))["aborted"], 1);
  (void)answer->WaitForAll();
  EXPECT_EQ(answer->finish_reason(0), FinishReason::kCancelled);
  EXPECT_TRUE(Parsed(Run(admin_->Requests(kOperator)))["requests"].empty());
}

TEST_F(AdminTest, ANumberIsOurIdAndNoClientsName) {
  const auto first = Submit("ada", "req-1", 40, 1900);
  const auto named = Submit("ada", std::to_string(first->id()), 40, 1900);
  const auto other = Submit("ada", "1000000", 40, 1900);
  named->Wait(0, 1);
  EXPECT_EQ(Parsed(Run(admin_->AbortRequest(kAda, std::to_string(first->id()))))["aborted"], 1);
  (void)first->WaitForAll();
  EXPECT_FALSE(named->aborted());
  EXPECT_EQ(Run(admin_->AbortRequest(kAda, "1000000")).error().status, 404);
  EXPECT_EQ(Parsed(Run(admin_->AbortRequest(kAda, std::to_string(named->id()))))["aborted"], 1);
  EXPECT_EQ(Parsed(Run(admin_->AbortRequest(kAda, std::to_string(other->id()))))["aborted"], 1);
  (void)named->WaitForAll();
  (void)other->WaitForAll();
}

TEST_F(AdminTest, AResetIsRefusedWhilePagesAreHeld) {
  const auto answer = Submit("ada", "req-1", 40, 1900);
  answer->Wait(0, 1);
  EXPECT_EQ(Parsed(Run(admin_->ResetPrefixCache(kOperator, false)))["success"], false);
  EXPECT_EQ(Parsed(Run(admin_->ResetPrefixCache(kOperator, true)))["success"], true);
  engine_->Abort(answer);
  (void)answer->WaitForAll();
  engine_->Drain();
  EXPECT_EQ(Parsed(Run(admin_->ResetPrefixCache(kOperator, false)))["success"], true);
  EXPECT_EQ(engine_->stats().kv_cached_bytes, 0u);
}

// The engine is in a long step: whoever asks for something goes on with other things.
TEST_F(AdminTest, NothingWaitsForTheEngine) {
  std::promise<void> end_of_step;
  engine_->AskLater([end = end_of_step.get_future().share()](StepLoop&) { end.wait(); });
  const auto begin = std::chrono::steady_clock::now();
  PrefixAdmin& prefixes = admin_->prefixes();
  EXPECT_TRUE(prefixes.List(kAda, "", "").ok());
  EXPECT_TRUE(prefixes.Match(kAda, Json{{"token_ids", Ids(20)}}.dump()).ok());
  EXPECT_TRUE(prefixes.Change(kAda, "1", R"({"pin":true})").ok());
  EXPECT_TRUE(prefixes.Drop(kAda, "1").ok());
  EXPECT_TRUE(prefixes.Start(kAda, Json{{"token_ids", Ids(20)}}.dump(), {}).ok());
  EXPECT_TRUE(admin_->DropTenant(kAda, "ada").ok());
  EXPECT_TRUE(admin_->ResetPrefixCache(kOperator, true).ok());
  (void)admin_->Requests(kAda);
  (void)admin_->AbortRequest(kAda, "1");
  (void)admin_->Cache(kAda);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
  end_of_step.set_value();
}

TEST_F(AdminTest, EventsTellOfPrefixesRequestsAndPages) {
  NotePages();
  const std::string id = Parsed(Add(kAda, {{"token_ids", Ids(48)}}))["id"];
  (void)Parsed(Run(admin_->prefixes().Drop(kAda, id)));
  admin_->NoteStart("req-1", "bob", "/v1/completions");
  admin_->NoteEnd({.request_id = "req-1", .tenant = "bob", .status = 200, .num_prompts = 1});
  NotePages();
  NotePages();  // nothing new
  uint64_t seen = 0;
  const std::string all = admin_->events().Next(kOperator, &seen, 1 << 16);
  for (const char* part :
       {"\"action\":\"added\"", "\"action\":\"dropped\"", "\"action\":\"started\"",
        "\"action\":\"ended\"", "event: page", "\"dropped\":3"})
    EXPECT_NE(all.find(part), std::string::npos) << part << " in " << all;
  EXPECT_EQ(seen, 5u);
  seen = 0;
  const std::string ada = admin_->events().Next(kAda, &seen, 1 << 16);
  EXPECT_EQ(ada.find("req-1"), std::string::npos);
  EXPECT_EQ(seen, 2u);
}

}  // namespace
}  // namespace quire
