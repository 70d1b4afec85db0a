#include "server/key_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

namespace quire {
namespace {

using ::testing::HasSubstr;

const std::string kOne(64, '1'), kTwo(64, '2'), kThree(64, '3');

std::string ErrorOf(const std::string& text) {
  const auto file = ParseKeyFile(text, "keys");
  return file.ok() ? "" : file.status().message();
}

TEST(KeyFile, DigestIsSha256) {
  // FIPS 180-2, appendix B.1.
  const auto file = ParseKeyFile(
      "a t user BA7816BF8F01CFEA414140DE5DAE2223B00361A396177A9CB410FF61F20015AD\n", "keys");
  ASSERT_TRUE(file.ok()) << file.status().message();
  EXPECT_EQ(file.value().keys[0].digest, DigestOf("abc"));
}

TEST(KeyFile, LinesGiveKeysTenantsRightsAndLimits) {
  const auto file = ParseKeyFile("# a comment\n\nann  shop\tuser " + kOne +
                                     " concurrency=4 rpm=60 tpm=25k retained=2GiB share=2.5\r\n"
                                     "ops shop user,admin,priority " +
                                     kTwo + "\n" + "bob bank priority " + kThree,
                                 "keys");
  ASSERT_TRUE(file.ok()) << file.status().message();
  const auto& keys = file.value().keys;
  ASSERT_EQ(keys.size(), 3u);
  EXPECT_EQ(keys[0].client.key_name, "ann");
  EXPECT_EQ(keys[0].client.tenant, "shop");
  EXPECT_FALSE(keys[0].client.is_admin || keys[0].client.may_prioritise);
  EXPECT_TRUE(keys[1].client.is_admin && keys[1].client.may_prioritise);
  EXPECT_TRUE(!keys[2].client.is_admin && keys[2].client.may_prioritise);
  const auto& tenants = file.value().tenants;
  ASSERT_EQ(tenants.size(), 2u);
  EXPECT_EQ(tenants[0].tenant, "shop");
  EXPECT_EQ(tenants[0].quota, (TenantQuota{.concurrency = 4,
                                           .requests_per_minute = 60,
                                           .tokens_per_minute = 25'000,
                                           .retained_bytes = uint64_t{2} << 30,
                                           .share = 2.5}));
  EXPECT_EQ(tenants[1].quota, TenantQuota());
}

TEST(KeyFile, AWrongLineIsNamedByItsNumber) {
  EXPECT_THAT(ErrorOf("# x\nann shop user\n"), HasSubstr("keys:2: need NAME TENANT RIGHTS SHA256"));
  EXPECT_THAT(ErrorOf("a b/c user " + kOne), HasSubstr("'b/c' is no name"));
  EXPECT_THAT(ErrorOf("a b root " + kOne), HasSubstr("'root' is no right"));
  EXPECT_THAT(ErrorOf("a b user, " + kOne), HasSubstr("'' is no right"));
  EXPECT_THAT(ErrorOf("a b user " + kOne + "\na c user " + kTwo), HasSubstr("keys:2: a key named"));
  EXPECT_THAT(ErrorOf("a b user " + kOne + "\nc c user " + kOne), HasSubstr("the same key"));
  EXPECT_THAT(ErrorOf("# only this"), HasSubstr("no key in it"));
  for (const std::string limit :
       {"rpm", "rpm=", "rpm=-1", "rpm=1.5", "rpm=9999999999", "share=0", "share=nan", "share=1x",
        "retained=5", "retained=0", "retained=2kB", "concurrency=2k2"})
    EXPECT_THAT(ErrorOf("a b user " + kOne + " " + limit), HasSubstr("need a whole number"))
        << limit;
  EXPECT_THAT(ErrorOf("a b user " + kOne + " speed=1"), HasSubstr("'speed=1' is no limit"));
}

TEST(KeyFile, SizesAndCountsAreThoseOfFlags) {
  const auto file = ParseKeyFile("a b user " + kOne + " retained=1.5G tpm=1.5M rpm=2k", "keys");
  ASSERT_TRUE(file.ok()) << file.status().message();
  const TenantQuota& quota = file->tenants.at(0).quota;
  EXPECT_EQ(quota.retained_bytes, uint64_t{3} << 29);
  EXPECT_EQ(quota.tokens_per_minute, 1'500'000u);
  EXPECT_EQ(quota.requests_per_minute, 2000u);
}

TEST(KeyFile, LimitsOfOneTenantMustAgree) {
  EXPECT_EQ(ErrorOf("a b user " + kOne + " rpm=1\nc b user " + kTwo + " rpm=1"), "");
  EXPECT_EQ(ErrorOf("a b user " + kOne + "\nc b user " + kTwo + " rpm=1"), "");
  EXPECT_THAT(ErrorOf("a b user " + kOne + " rpm=1\nc b user " + kTwo + " rpm=2"),
              HasSubstr("other limits"));
}

// SEC-18: someone puts the key itself where its digest belongs.
TEST(KeyFile, AKeyInPlaceOfADigestIsNotShown) {
  const std::string error = ErrorOf("a b user sk-very-secret");
  EXPECT_THAT(error, HasSubstr("no SHA-256"));
  EXPECT_EQ(error.find("secret"), std::string::npos);
}

TEST(KeyFile, OthersMayNotReadIt) {
  const std::string path = ::testing::TempDir() + "/quire_key_file_test";
  std::ofstream(path) << "a b user " << kOne << "\n";
  for (const mode_t mode : {0644, 0640, 0604, 0602}) {
    ASSERT_EQ(chmod(path.c_str(), mode), 0);
    const auto file = ReadKeyFile(path);
    ASSERT_FALSE(file.ok()) << mode;
    EXPECT_THAT(file.status().message(), HasSubstr("chmod 600"));
  }
  ASSERT_EQ(chmod(path.c_str(), 0600), 0);
  EXPECT_TRUE(ReadKeyFile(path).ok());
  EXPECT_EQ(ReadKeyFile(::testing::TempDir() + "/no_such_file").status().code(),
            StatusCode::kNotFound);
  EXPECT_FALSE(ReadKeyFile(::testing::TempDir()).ok());
}

}  // namespace
}  // namespace quire
