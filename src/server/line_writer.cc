#include "server/line_writer.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string_view>
#include <utility>

namespace quire {
namespace {

constexpr std::chrono::milliseconds kLastWords{1000};
// A pipe that polls as ready takes so many bytes without blocking (PIPE_BUF).
constexpr size_t kMaxPiece = 4096;
constexpr int kPollMs = 50;

}  // namespace

LineWriter::LineWriter(int fd, std::function<std::string(uint64_t)> dropped_line)
    : fd_(fd), dropped_line_(std::move(dropped_line)), thread_([this] { Run(); }) {}

LineWriter::~LineWriter() {
  {
    const std::lock_guard lock(mutex_);
    stops_ = true;
    give_up_ = std::chrono::steady_clock::now() + kLastWords;
  }
  has_work_.notify_one();
  thread_.join();
}

void LineWriter::Write(std::string_view line) {
  {
    const std::lock_guard lock(mutex_);
    if (waiting_.size() + line.size() + 1 > kMaxWaitingBytes) {
      ++num_dropped_;
      return;
    }
    waiting_.append(line);
    waiting_.push_back('\n');
  }
  has_work_.notify_one();
}

bool LineWriter::Flush(std::chrono::milliseconds most) {
  std::unique_lock lock(mutex_);
  return has_written_.wait_for(lock, most, [&] {
    return waiting_.empty() && !is_writing_ && num_told_dropped_ == num_dropped_;
  });
}

uint64_t LineWriter::num_dropped_lines() const {
  const std::lock_guard lock(mutex_);
  return num_dropped_;
}

void LineWriter::Run() {
  std::unique_lock lock(mutex_);
  while (true) {
    has_work_.wait(
        lock, [&] { return stops_ || !waiting_.empty() || num_told_dropped_ != num_dropped_; });
    if (waiting_.empty() && num_told_dropped_ == num_dropped_) return;
    std::string bytes = std::exchange(waiting_, {});
    if (num_dropped_ > num_told_dropped_) {
      bytes += dropped_line_(num_dropped_ - num_told_dropped_) + "\n";
      num_told_dropped_ = num_dropped_;
    }
    is_writing_ = true;
    lock.unlock();
    const bool is_written = WriteAll(bytes);
    lock.lock();
    is_writing_ = false;
    has_written_.notify_all();
    if (!is_written && stops_) return;
  }
}

bool LineWriter::WriteAll(std::string_view bytes) {
  if (fd_ < 0) return false;  // poll would wait for ever
  while (!bytes.empty()) {
    pollfd poller{.fd = fd_, .events = POLLOUT, .revents = 0};
    const int ready = poll(&poller, 1, kPollMs);
    if (ready == 0 || (ready < 0 && errno == EINTR)) {
      const std::lock_guard lock(mutex_);
      if (stops_ && std::chrono::steady_clock::now() > give_up_) return false;
      continue;
    }
    const ssize_t count = write(fd_, bytes.data(), std::min(bytes.size(), kMaxPiece));
    if (count < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (count <= 0) return false;  // closed or broken: these lines are lost
    bytes.remove_prefix(static_cast<size_t>(count));
  }
  return true;
}

}  // namespace quire
