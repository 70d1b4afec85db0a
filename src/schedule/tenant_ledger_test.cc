#include "schedule/tenant_ledger.h"

#include <gtest/gtest.h>

namespace quire {
namespace {

TEST(TenantLedger, CountsByTenant) {
  TenantLedger ledger;
  ledger.Arrive(2);
  ledger.Serve(2, 30);
  ledger.Serve(2, 12);
  ASSERT_EQ(ledger.services().size(), 3u);
  EXPECT_EQ(ledger.services()[2].served_tokens, 42u);
  EXPECT_EQ(ledger.services()[0].served_tokens, 0u);
}

TEST(TenantLedger, ATenantThatComesBackStartsLevelWithTheLeastServed) {
  TenantLedger ledger;
  ledger.SetShare(1, 2);
  for (const TenantId tenant : {0u, 1u}) ledger.Arrive(tenant);
  ledger.Serve(0, 1'000);
  ledger.Serve(1, 3'000);  // 1,500 by its share
  ledger.Arrive(2);
  EXPECT_EQ(ledger.services()[2].served_tokens, 1'000u);
  ledger.SetShare(3, 4);
  ledger.Arrive(3);
  EXPECT_EQ(ledger.services()[3].served_tokens, 4'000u);
}

TEST(TenantLedger, ATenantWithRequestsIsNotLifted) {
  TenantLedger ledger;
  for (const TenantId tenant : {0u, 1u}) ledger.Arrive(tenant);
  ledger.Serve(0, 1'000);
  ledger.Arrive(1);
  EXPECT_EQ(ledger.services()[1].served_tokens, 0u);
}

TEST(TenantLedger, WhoHasGotMoreKeepsIt) {
  TenantLedger ledger;
  for (const TenantId tenant : {0u, 1u}) ledger.Arrive(tenant);
  ledger.Serve(0, 1'000);
  ledger.Serve(1, 10);
  ledger.Leave(0);
  ledger.Arrive(0);
  EXPECT_EQ(ledger.services()[0].served_tokens, 1'000u);
}

TEST(TenantLedger, AnotherShareKeepsThePlaceAmongTenants) {
  TenantLedger ledger;
  ledger.Arrive(0);
  ledger.Serve(0, 1'000);
  ledger.SetShare(0, 4);
  EXPECT_EQ(ledger.services()[0].served_tokens, 4'000u);
}

}  // namespace
}  // namespace quire
