// LineWriter: whole lines to a file descriptor that may stop taking them.
//
// A thread writes; those who hand over lines never wait. At most kMaxWaitingBytes wait; a line that
// finds no room is dropped and counted, and when there is room again the count is written as a line
// of its own ("3 lines were dropped here").
//
// Threading: Write and Flush may be called by any thread.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

namespace quire {

class LineWriter {
 public:
  static constexpr size_t kMaxWaitingBytes = size_t{256} << 10;

  // `dropped_line` makes the line that tells how many are missing.
  LineWriter(int fd, std::function<std::string(uint64_t)> dropped_line);
  // Tries for a second to write what waits, and gives up then.
  ~LineWriter();

  // `line` has no line end.
  void Write(std::string_view line);
  // True: all is written.
  bool Flush(std::chrono::milliseconds most);
  uint64_t num_dropped_lines() const;

 private:
  void Run();
  // True: the descriptor took it all; false: stopping, or the descriptor is broken.
  bool WriteAll(std::string_view bytes);

  const int fd_;
  const std::function<std::string(uint64_t)> dropped_line_;
  mutable std::mutex mutex_;
  std::condition_variable has_work_, has_written_;
  std::string waiting_;            // lines with their ends
  uint64_t num_dropped_ = 0;       // in all
  uint64_t num_told_dropped_ = 0;  // of them, told in a line
  bool is_writing_ = false, stops_ = false;
  std::chrono::steady_clock::time_point give_up_{};
  std::thread thread_;
};

}  // namespace quire
