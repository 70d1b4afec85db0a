#include "server/access.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <random>

#include "base/test_data.h"

namespace quire {
namespace {

using ::testing::HasSubstr;

std::string Hex(const KeyDigest& digest) {
  std::string hex;
  for (const uint8_t byte : digest) {
    hex += "0123456789abcdef"[byte / 16];
    hex += "0123456789abcdef"[byte % 16];
  }
  return hex;
}

std::string WriteKeyFile(const std::string& text) {
  const std::string path = ::testing::TempDir() + "/quire_access_test";
  std::ofstream(path) << text;
  chmod(path.c_str(), 0600);
  return path;
}

HttpRequest Get(std::vector<std::string> segments, HttpFields fields = {}) {
  HttpRequest request;
  request.method = "GET";
  request.segments = std::move(segments);
  request.fields = std::move(fields);
  return request;
}

HttpFields Bearer(const std::string& key) { return {{"authorization", "Bearer " + key}}; }

Access Make(AccessOptions options, HttpOptions http = {}) {
  auto access = Access::Create(std::move(options), http);
  EXPECT_TRUE(access.ok()) << access.status().message();
  return std::move(access).value();
}

// Two tenants, three keys.
Access MakeWithFile() {
  return Make({.key_file = WriteKeyFile("ann shop user " + Hex(DigestOf("key of ann")) + "\n" +
                                        "bob bank user " + Hex(DigestOf("key of bob")) + "\n" +
                                        "ops bank admin " + Hex(DigestOf("key of ops")) + "\n")});
}

int StatusOfGet(const Access& access, std::vector<std::string> segments, HttpFields fields = {}) {
  const auto client = access.Identify(Get(std::move(segments), std::move(fields)));
  return client.ok() ? 200 : client.error().status;
}

// [server.access.2], SEC-03.
TEST(Access, TheTenantComesFromTheKeyAlone) {
  const Access access = MakeWithFile();
  for (const auto& [key, tenant, is_admin] :
       {std::tuple("key of ann", "shop", false), std::tuple("key of bob", "bank", false),
        std::tuple("key of ops", "bank", true)}) {
    HttpRequest request = Get({"v1", "chat", "completions"}, Bearer(key));
    request.fields.emplace_back("x-tenant", "other");
    request.query.emplace_back("tenant", "other");
    request.body = R"({"tenant": "other", "user": "other", "cache_salt": "other"})";
    const auto client = access.Identify(request);
    ASSERT_TRUE(client.ok());
    EXPECT_EQ(client.value().tenant, tenant);
    EXPECT_EQ(client.value().is_admin, is_admin);
  }
}

TEST(Access, AMissingOrWrongKeyIs401) {
  const Access access = MakeWithFile();
  for (const HttpFields& fields :
       {HttpFields{}, Bearer("key of nobody"), Bearer(""), Bearer("key of an"),
        Bearer("key of annn"), HttpFields{{"authorization", "Basic key of ann"}},
        HttpFields{{"authorization", "key of ann"}}, HttpFields{{"x-api-key", "key of ann"}},
        HttpFields{{"authorization", "Bearer key of ann"}, {"authorization", "Bearer x"}},
        HttpFields{{"authorization", "Bearer x"}, {"authorization", "Bearer key of ann"}}}) {
    const auto client = access.Identify(Get({"v1", "models"}, fields));
    ASSERT_FALSE(client.ok());
    EXPECT_EQ(client.error().status, 401);
    EXPECT_EQ(client.error().code, "invalid_api_key");
    EXPECT_EQ(client.error().message.find("key of"), std::string::npos);
  }
  EXPECT_EQ(StatusOfGet(access, {"v1", "models"}, {{"authorization", "bEARER  key of ann "}}), 200);
}

// [server.access.1], SEC-05: decided on the decoded segments, so that no spelling gets around it.
TEST(Access, OnlyProbesAreOpenWithoutAKey) {
  const Access access = MakeWithFile();
  for (const auto& path : std::vector<std::vector<std::string>>{{"health"},
                                                                {"health", "live"},
                                                                {"health", "ready"},
                                                                {"health", "progress"},
                                                                {"ping"},
                                                                {"version"},
                                                                {"metrics"}})
    EXPECT_EQ(StatusOfGet(access, path), 200) << path[0];
  for (const auto& path : std::vector<std::vector<std::string>>{{},
                                                                {"v1", "models"},
                                                                {"V1", "models"},
                                                                {"v1", "models/"},
                                                                {"v1", "models;x"},
                                                                {"Health"},
                                                                {"health/"},
                                                                {"health", "x"},
                                                                {"health", "live", "x"},
                                                                {"metrics", "x"},
                                                                {"metrics;"},
                                                                {"version/../v1"},
                                                                {"quire", "v1", "cache"},
                                                                {"reset_prefix_cache"},
                                                                {"tokenize"},
                                                                {"load"},
                                                                {"kv_event_sources"},
                                                                {std::string("health\0x", 8)},
                                                                {"health?x"}})
    EXPECT_EQ(StatusOfGet(access, path), 401) << ::testing::PrintToString(path);
  // A wrong key on an open path is no client with rights.
  EXPECT_FALSE(access.Identify(Get({"health"}, Bearer("wrong"))).value().is_admin);
}

TEST(Access, MetricsNeedAKeyWhereOthersReachThem) {
  const HttpOptions open{.host = "0.0.0.0"};
  EXPECT_EQ(StatusOfGet(Make({.keys = {"k"}}, open), {"metrics"}), 401);
  EXPECT_EQ(StatusOfGet(Make({.keys = {"k"}}, open), {"metrics"}, Bearer("k")), 200);
  EXPECT_EQ(StatusOfGet(Make({.keys = {"k"}, .open_metrics = true}, open), {"metrics"}), 200);
}

TEST(Access, AnOpenAddressWithoutKeysIsRefusedAtStart) {
  for (const char* host : {"0.0.0.0", "::", "[::]", "192.0.2.1", "example.org", ""}) {
    const auto access = Access::Create({}, {.host = host});
    ASSERT_FALSE(access.ok()) << host;
    EXPECT_THAT(access.status().message(), HasSubstr("--no-auth"));
    const Access open = Make({.no_auth = true}, {.host = host});
    EXPECT_EQ(open.Warnings().size(), 1u);
    const auto client = open.Identify(Get({"v1", "models"}, Bearer("any")));
    ASSERT_TRUE(client.ok());
    EXPECT_FALSE(client.value().is_admin);
  }
  for (const char* host : {"127.0.0.1", "127.1.2.3", "::1", "[::1]", "localhost", "LocalHost"}) {
    const Access access = Make({}, {.host = host});
    EXPECT_TRUE(access.Identify(Get({"v1", "models"})).value().is_admin) << host;
    EXPECT_TRUE(access.Warnings().empty());
  }
  EXPECT_TRUE(Access::IsLoopback({.host = "0.0.0.0", .unix_path = "/run/quire.sock"}));
  EXPECT_FALSE(Access::Create({.keys = {"k"}, .no_auth = true}, {}).ok());
  EXPECT_FALSE(Access::Create({.keys = {""}}, {}).ok());
}

// SEC-06: DNS rebinding.
TEST(Access, AForeignHostIsRefusedOnLoopback) {
  const Access access = Make({.allowed_hosts = {"Chat.Example"}}, {.host = "127.0.0.2"});
  const auto status_of = [](const Access& of, const std::string& host) {
    const auto refusal = of.RefuseHost(Get({"health"}, {{"host", host}}));
    return refusal.has_value() ? refusal->status : 200;
  };
  for (const char* host :
       {"localhost", "localhost:8000", "LOCALHOST", "localhost.", "127.0.0.1:80",
        "localhost:", "[::1]:8000", "127.0.0.2:8000", "chat.example", "CHAT.example:1"})
    EXPECT_EQ(status_of(access, host), 200) << host;
  for (const char* host :
       {"evil.example:8080", "", "localhost.evil.example", "evil.localhost", "127.0.0.3",
        "localhost:80x", "localhost:8000:1", "[::1", "[::1]evil", "localhost/..", "user@localhost",
        "xlocalhost", "localhost, evil.example"})
    EXPECT_EQ(status_of(access, host), 403) << host;
  // Two Host fields: each must be known.
  EXPECT_TRUE(
      access.RefuseHost(Get({"health"}, {{"host", "localhost"}, {"host", "evil"}})).has_value());
  EXPECT_FALSE(access.RefuseHost(Get({"health"})).has_value());
  EXPECT_EQ(status_of(Make({.allowed_hosts = {"*"}}), "evil.example"), 200);
  EXPECT_EQ(status_of(Make({}, {.unix_path = "/run/quire.sock"}), "evil.example"), 200);
  const HttpOptions open{.host = "0.0.0.0"};
  EXPECT_EQ(status_of(Make({.keys = {"k"}}, open), "any.example"), 200);
  EXPECT_EQ(status_of(Make({.keys = {"k"}, .allowed_hosts = {"a.example"}}, open), "b"), 403);
  EXPECT_EQ(status_of(Make({.keys = {"k"}, .allowed_hosts = {"a.example"}}, open), "a.example"),
            200);
}

// SEC-06: no CORS unless asked for, and then for those origins only.
TEST(Access, PagesOfOtherOriginsGetNothing) {
  HttpRequest preflight =
      Get({"v1", "chat", "completions"}, {{"host", "localhost"},
                                          {"origin", "http://evil.example"},
                                          {"access-control-request-method", "POST"},
                                          {"access-control-request-headers", "authorization,x-a"}});
  preflight.method = "OPTIONS";
  HttpFields fields;
  Make({}).AddCorsFields(preflight, &fields);
  EXPECT_TRUE(fields.empty());
  EXPECT_FALSE(Make({}).AnswerPreflight(preflight).has_value());

  const Access access = Make({.keys = {"k"}, .cors_origins = {"https://chat.example"}});
  EXPECT_FALSE(access.AnswerPreflight(preflight).has_value());
  EXPECT_FALSE(access.Identify(preflight).ok());
  preflight.fields[1].second = "https://chat.example";
  const auto answer = access.AnswerPreflight(preflight);
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ(answer->status, 204);
  access.AddCorsFields(preflight, &fields);
  EXPECT_THAT(fields, ::testing::Contains(std::pair<std::string, std::string>(
                          "access-control-allow-origin", "https://chat.example")));
  EXPECT_THAT(answer->fields, ::testing::Contains(std::pair<std::string, std::string>(
                                  "access-control-allow-headers", "authorization,x-a")));
  preflight.fields[0].second = "evil.example";
  EXPECT_EQ(access.RefuseHost(preflight)->status, 403);
}

TEST(Access, ReloadTakesNewKeysAndKeepsTheOldOnAnError) {
  Access access = MakeWithFile();
  WriteKeyFile("eve shop user " + Hex(DigestOf("key of eve")) + " rpm=5\n");
  ASSERT_TRUE(access.Reload().ok());
  EXPECT_EQ(StatusOfGet(access, {"v1", "models"}, Bearer("key of eve")), 200);
  EXPECT_EQ(StatusOfGet(access, {"v1", "models"}, Bearer("key of ann")), 401);
  EXPECT_EQ(access.tenants()[0].quota.requests_per_minute, 5u);
  WriteKeyFile("eve shop user\n");
  EXPECT_FALSE(access.Reload().ok());
  EXPECT_EQ(StatusOfGet(access, {"v1", "models"}, Bearer("key of eve")), 200);
}

// [server.access.3], SEC-04, by review: the comparison has one loop over all keys, without a way
// out, and nothing in it asks what was found.
TEST(Access, TheComparisonHasNoEarlyExit) {
  const std::string source = ReadTestFile(TestData("../../src/server/access.cc"));
  const size_t begin = source.find("Access::Find(");
  const size_t loop = source.find("for (", begin), end = source.find("\n  }\n", loop);
  ASSERT_NE(begin, std::string::npos);
  ASSERT_NE(end, std::string::npos);
  const std::string body = source.substr(loop, end - loop);
  EXPECT_THAT(body, HasSubstr("CRYPTO_memcmp"));
  for (const char* exit : {"if (", "break", "return", "goto", "continue", "while", "&&", "||", "?"})
    EXPECT_EQ(body.find(exit), std::string::npos) << exit << " in " << body;
}

// SEC-04, by the clock: 10^5 tries each of a digest with 0, 1 and 31 right bytes (in the digest
// itself: nobody finds such keys, so that the file's digests are made to agree with the key's).
TEST(AccessSlow, TimeTellsNothingAboutHowMuchIsRight) {
  const std::string guess = "a guess";
  const KeyDigest digest = DigestOf(guess);
  struct Case {
    Access access;
    std::vector<double> ns = {};
  };
  std::vector<Case> cases;
  std::mt19937_64 random(1);
  for (const size_t num_right : {0, 1, 31}) {
    std::string text;
    for (int key = 0; key < 64; ++key) {  // only the first agrees: an exit there would be seen
      KeyDigest other;
      for (uint8_t& byte : other) byte = static_cast<uint8_t>(random());
      if (key == 0) {
        for (size_t i = 0; i < other.size(); ++i)
          other[i] = i < num_right ? digest[i] : static_cast<uint8_t>(~digest[i]);
      }
      text += "k" + std::to_string(key) + " t user " + Hex(other) + "\n";
    }
    cases.push_back({Make({.key_file = WriteKeyFile(text)})});
  }
  const HttpRequest request = Get({"v1", "models"}, Bearer(guess));
  constexpr int kRounds = 1000, kTries = 100;
  for (int round = 0; round < kRounds; ++round) {
    for (size_t i = 0; i < cases.size(); ++i) {  // in turn: noise meets all alike
      Case& now = cases[(i + static_cast<size_t>(round)) % cases.size()];
      const auto start = std::chrono::steady_clock::now();
      for (int i_try = 0; i_try < kTries; ++i_try) ASSERT_FALSE(now.access.Identify(request).ok());
      now.ns.push_back(
          std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start)
              .count() /
          kTries);
    }
  }
  const auto median = [](std::vector<double> values) {
    std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
    return values[values.size() / 2];
  };
  // An exit at the first differing byte or key changes some ns of about 2000: below what is left
  // here of noise; so the bound is what an exit after the first key would show, and
  // TheComparisonHasNoEarlyExit does the rest.
  const double none = median(cases[0].ns), one = median(cases[1].ns), most = median(cases[2].ns);
  EXPECT_NEAR(one / none, 1, 0.05 + 50 / none);
  EXPECT_NEAR(most / none, 1, 0.05 + 50 / none);
}

}  // namespace
}  // namespace quire
