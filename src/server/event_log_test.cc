#include "server/event_log.h"

#include <gtest/gtest.h>

namespace quire {
namespace {

const Client kAdmin = {.key_name = {}, .tenant = {}, .is_admin = true, .may_prioritise = false};
const Client kAda = {.key_name = "a", .tenant = "ada"};

TEST(EventLog, AWatcherGetsEachEventOnceInOrder) {
  EventLog log;
  uint64_t seen = 0;
  EXPECT_EQ(log.Next(kAdmin, &seen, 1000), "");
  log.Add("request", "ada", "{\"a\":1}");
  log.Add("page", "", "{\"b\":2}");
  EXPECT_EQ(log.Next(kAdmin, &seen, 1000),
            "id: 1\nevent: request\ndata: {\"a\":1}\n\nid: 2\nevent: page\ndata: {\"b\":2}\n\n");
  EXPECT_EQ(seen, 2u);
  EXPECT_EQ(log.Next(kAdmin, &seen, 1000), "");
}

TEST(EventLog, ATenantSeesItsOwnEventsOnly) {
  EventLog log;
  uint64_t first = 0;
  log.Add("page", "", "{}");  // admins' only, also while there is nothing else
  EXPECT_EQ(log.Next(kAda, &first, 1000), "");
  log.Add("request", "bob", "{}");
  log.Add("request", "ada", "{}");
  uint64_t seen = 0;
  EXPECT_EQ(log.Next(kAda, &seen, 1000), "id: 1\nevent: request\ndata: {}\n\n");
  // A client without a tenant is not everybody.
  seen = 0;
  EXPECT_EQ(log.Next({}, &seen, 1000), "");
}

TEST(EventLog, TheRingGoesRoundAndSaysWhatWasMissed) {
  EventLog log;
  for (size_t i = 0; i < EventLog::kMostEvents + 5; ++i) log.Add("request", "ada", "{}");
  uint64_t seen = 2;
  const std::string text = log.Next(kAda, &seen, 100);
  EXPECT_TRUE(text.starts_with("id: 5\nevent: gap\ndata: {\"missed\":3}\n\nid: 6\n")) << text;
  EXPECT_LT(text.size(), 200u);
  while (!log.Next(kAda, &seen, 1 << 16).empty()) continue;
  EXPECT_EQ(seen, log.last_id(kAda));
}

TEST(EventLog, AnIdOfAnotherRunStartsFromTheBeginning) {
  EventLog log;
  log.Add("request", "ada", "{}");
  uint64_t seen = 700;
  EXPECT_EQ(log.Next(kAda, &seen, 1000), "id: 1\nevent: request\ndata: {}\n\n");
}

}  // namespace
}  // namespace quire
