#include "server/http/http_target.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace quire {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

TEST(HttpTarget, IsCutAtSlashesAndDecodedOnce) {
  EXPECT_THAT(ParseTarget("/")->segments, IsEmpty());
  EXPECT_THAT(ParseTarget("/v1/models")->segments, ElementsAre("v1", "models"));
  EXPECT_THAT(ParseTarget("/v1/models/org%2Fname")->segments,
              ElementsAre("v1", "models", "org/name"));
  EXPECT_THAT(ParseTarget("/a%252F+b;x")->segments, ElementsAre("a%2F+b;x"));
  EXPECT_THAT(ParseTarget("/%C3%A9")->segments, ElementsAre("\xc3\xa9"));
}

TEST(HttpTarget, QueryKeepsOrderAndRepeats) {
  EXPECT_THAT(ParseTarget("/a?sort=hits&limit=&sort=age&flag&&x%3Dy=1+2%2B&z=a=b?c/../d")->query,
              ElementsAre(Pair("sort", "hits"), Pair("limit", ""), Pair("sort", "age"),
                          Pair("flag", ""), Pair("x=y", "1 2+"), Pair("z", "a=b?c/../d")));
  EXPECT_THAT(ParseTarget("/?")->query, IsEmpty());
}

// SEC-05.
TEST(HttpTarget, WhatHasTwoReadingsIsRefused) {
  for (const char* target : {"",
                             "*",
                             "v1",
                             "//",
                             "//v1/models",
                             "/v1//models",
                             "/v1/models/",
                             "/v1/../metrics",
                             "/..",
                             "/.",
                             "/v1/./x",
                             "/%2e%2E/x",
                             "/%2e",
                             "/a/.%2e",
                             "http://a/v1",
                             "a:443",
                             "/a\\b",
                             "/a#b",
                             "/a b",
                             "/a\x01",
                             "/a%00",
                             "/a%0a",
                             "/a%7f",
                             "/a%",
                             "/a%2",
                             "/a%zz",
                             "/a%2x",
                             "/\xc3\xa9",
                             "/%c3",
                             "/%c0%ae",
                             "/%ff",
                             "/%ed%a0%80",
                             "/%e0%80%af",
                             "/%f4%90%80%80",
                             "/a?x=%",
                             "/a?%00",
                             "/a?x=%ff"})
    EXPECT_FALSE(ParseTarget(target).ok()) << target;
}

}  // namespace
}  // namespace quire
