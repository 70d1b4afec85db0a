#include "base/wake_word.h"

#include <gtest/gtest.h>

#include <thread>

namespace quire {
namespace {

using std::chrono::milliseconds;

// Two threads take turns by two words: a lost wake-up would cost ten seconds.
TEST(WakeWord, NoRaiseIsLost) {
  constexpr uint32_t kTurns = 5'000;
  WakeWord ping, pong;
  const auto wait_for = [](const WakeWord& word, uint32_t value) {
    while (word.value() < value) word.Wait(value - 1, milliseconds(10'000));
  };
  const auto begin = std::chrono::steady_clock::now();
  std::thread other([&] {
    for (uint32_t turn = 1; turn <= kTurns; ++turn) {
      wait_for(ping, turn);
      pong.Raise();
    }
  });
  for (uint32_t turn = 1; turn <= kTurns; ++turn) {
    ping.Raise();
    wait_for(pong, turn);
  }
  other.join();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, milliseconds(9'000));
}

TEST(WakeWord, AWaitEndsAtItsLimit) {
  WakeWord word;
  const auto begin = std::chrono::steady_clock::now();
  word.Wait(word.value(), milliseconds(20));
  EXPECT_GE(std::chrono::steady_clock::now() - begin, milliseconds(15));
}

TEST(WakeWord, AnOldValueDoesNotSleep) {
  WakeWord word;
  const uint32_t before = word.value();
  word.Raise();
  const auto begin = std::chrono::steady_clock::now();
  word.Wait(before, milliseconds(10'000));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, milliseconds(5'000));
}

}  // namespace
}  // namespace quire
