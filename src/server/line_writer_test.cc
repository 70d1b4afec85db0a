#include "server/line_writer.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace quire {
namespace {

using std::chrono::milliseconds;

std::string Dropped(uint64_t num_lines) { return std::to_string(num_lines) + " dropped"; }

struct Pipe {
  Pipe() { EXPECT_EQ(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0); }
  ~Pipe() {
    close(ends[0]);
    close(ends[1]);
  }
  // What is there now.
  std::string Read() const {
    std::string text(1 << 20, '\0');
    const ssize_t count = read(ends[0], text.data(), text.size());
    text.resize(count < 0 ? 0 : static_cast<size_t>(count));
    return text;
  }
  int ends[2];
};

TEST(LineWriter, LinesComeWholeAndInOrder) {
  const Pipe pipe;
  LineWriter writer(pipe.ends[1], Dropped);
  std::string expected;
  for (int i = 0; i < 1000; ++i) {
    writer.Write("line " + std::to_string(i));
    expected += "line " + std::to_string(i) + "\n";
  }
  ASSERT_TRUE(writer.Flush(milliseconds(20'000)));
  EXPECT_EQ(pipe.Read(), expected);
  EXPECT_EQ(writer.num_dropped_lines(), 0u);
}

TEST(LineWriter, AReaderThatStopsCostsLinesAndNoTime) {
  const Pipe pipe;
  LineWriter writer(pipe.ends[1], Dropped);
  const std::string line(1000, 'x');
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < 10'000; ++i) writer.Write(line);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
  const uint64_t num_dropped = writer.num_dropped_lines();
  // The pipe holds 64 KiB, the queue 256 KiB, and as much again is in the thread's hands.
  EXPECT_GT(num_dropped, 10'000u - 1000);
  EXPECT_FALSE(writer.Flush(milliseconds(1)));

  std::string text;
  while (!writer.Flush(milliseconds(1))) text += pipe.Read();
  writer.Write("last");
  while (!writer.Flush(milliseconds(1))) text += pipe.Read();
  text += pipe.Read();
  uint64_t num_told = 0, num_lines = 0;
  bool is_last_there = false;
  while (!text.empty()) {
    const std::string one = text.substr(0, text.find('\n'));
    text.erase(0, one.size() + 1);
    if (one.ends_with(" dropped"))
      num_told += std::stoull(one);
    else if (one == line)
      ++num_lines;
    else
      is_last_there = one == "last";
  }
  EXPECT_TRUE(is_last_there);
  EXPECT_EQ(num_told, num_dropped);
  EXPECT_EQ(num_lines + num_dropped, 10'000u);
}

TEST(LineWriter, ItsEndWaitsAtMostASecondForAReader) {
  const Pipe pipe;
  const auto start = std::chrono::steady_clock::now();
  {
    LineWriter writer(pipe.ends[1], Dropped);
    for (int i = 0; i < 1000; ++i) writer.Write(std::string(1000, 'x'));
  }
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
}

TEST(LineWriter, ABrokenDescriptorLosesLinesOnly) {
  LineWriter writer(-1, Dropped);
  writer.Write("a");
  EXPECT_TRUE(writer.Flush(milliseconds(20'000)));
}

}  // namespace
}  // namespace quire
