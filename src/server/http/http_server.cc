#include "server/http/http_server.h"

#include <netinet/in.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cerrno>
#include <csignal>
#include <ctime>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "server/http/connection.h"
#include "server/http/listener.h"
#include "server/http/serving_thread.h"
#include "server/http/tls_context.h"

namespace quire {
namespace {

using Clock = std::chrono::steady_clock;
using Descriptor = boost::asio::posix::stream_descriptor;

constexpr std::chrono::milliseconds kTick{1000 / HttpHandler::kTicksPerSecond};
constexpr std::chrono::milliseconds kAcceptPause{100};
constexpr int kAcceptsAtOnce = 64;
// Clients that are told "too many connections" at a time; above, a close without a word.
constexpr uint32_t kMaxRefused = 128;

double SecondsOf(clockid_t clock) {
  timespec time{};
  return clock_gettime(clock, &time) == 0 ? time.tv_sec + time.tv_nsec * 1e-9 : -1;
}

}  // namespace

struct HttpServer::Impl final : ConnectionOwner {
  Impl(const HttpOptions& options, HttpHandler* of)
      : ConnectionOwner(of, options.limits),
        accepting(io),
        accept_pause(io),
        ringing(io),
        tick(io),
        cut(io) {}
  ~Impl() override {
    if (accepting.is_open()) accepting.release();
  }

  // One client: who it is, and whether it was refused from the start.
  struct Entry {
    std::shared_ptr<Connection> connection;
    std::string group;
    bool is_refused;
  };

  void OnClosed(Connection* connection) override {
    const auto found = entries.find(connection);
    if (found == entries.end()) return;
    if (found->second.is_refused) {
      --num_refused;
    } else {
      --num_open;
      if (!found->second.group.empty()) {
        const auto group = by_group.find(found->second.group);
        if (--group->second == 0) by_group.erase(group);
      }
    }
    entries.erase(found);
    if (is_stopping && entries.empty()) io.stop();
  }

  std::string_view Date() override {
    const std::time_t now = std::time(nullptr);
    if (now != date_at) {
      std::tm parts{};
      gmtime_r(&now, &parts);
      date_len = std::strftime(date, sizeof(date), "%a, %d %b %Y %H:%M:%S GMT", &parts);
      date_at = now;
    }
    return {date, date_len};
  }

  void WaitForClients() {
    accepting.async_wait(Descriptor::wait_read, [this](const ErrorCode& error) {
      if (error || is_stopping) return;
      AcceptSome();
    });
  }

  void AcceptSome() {
    for (int i = 0; i < kAcceptsAtOnce; ++i) {
      AcceptedSocket accepted = listener->Accept();
      if (accepted.descriptor >= 0) {
        Welcome(std::move(accepted));
      } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
        // They stay in the queue of the kernel; some descriptor will be closed.
        if (!std::exchange(has_told_no_files, true))
          handler->OnTrouble(
              "no file descriptor is left for a client: new ones wait. Raise the limit of open "
              "files (ulimit -n)");
        accept_pause.expires_after(kAcceptPause);
        accept_pause.async_wait([this](const ErrorCode& error) {
          if (!error && !is_stopping) AcceptSome();
        });
        return;
      } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
        break;
      }
    }
    WaitForClients();
  }

  void Welcome(AcceptedSocket accepted) {
    StreamSocket socket(io);
    ErrorCode error;
    socket.assign(boost::asio::generic::stream_protocol(accepted.family, 0), accepted.descriptor,
                  error);
    if (error) {
      close(accepted.descriptor);
      return;
    }
    const bool is_refused =
        num_open >= limits.connections ||
        (!accepted.group.empty() && by_group[accepted.group] >= limits.connections_per_address);
    // A refusal inside TLS would cost a handshake, which is what the limit is to save.
    if (is_refused && (tls != nullptr || num_refused >= kMaxRefused)) return;
    auto stream = tls != nullptr ? MakeTlsStream(std::move(socket), tls.get())
                                 : MakePlainStream(std::move(socket), &scratch);
    auto connection =
        std::make_shared<Connection>(this, std::move(stream), std::move(accepted.address));
    if (is_refused) {
      ++num_refused;
    } else {
      ++num_open;
      if (!accepted.group.empty()) ++by_group[accepted.group];
    }
    entries.emplace(connection.get(), Entry{connection, std::move(accepted.group), is_refused});
    is_refused ? connection->StartRefused() : connection->Start();
  }

  void WaitForRing() {
    ringing.async_wait(Descriptor::wait_read, [this](const ErrorCode& error) {
      if (error) return;
      uint64_t count;
      (void)!read(ringing.native_handle(), &count, sizeof(count));
      // Before the handler looks for news: a ring after this is a new one, and what was written
      // before one that this takes is seen (so an exchange, not a store).
      has_rung.exchange(false);
      WaitForRing();  // first, so that an exception of the handler ends nothing
      handler->OnRing();
    });
  }

  void WaitForTick() {
    tick.expires_after(kTick);
    tick.async_wait([this](const ErrorCode& error) {
      if (error) return;
      WaitForTick();  // as above
      for (const auto& connection : All()) connection->CheckPaused();
      handler->OnTick();
    });
  }

  // Those of now: what is done to them may close them.
  std::vector<std::shared_ptr<Connection>> All() const {
    std::vector<std::shared_ptr<Connection>> all;
    all.reserve(entries.size());
    for (const auto& [key, entry] : entries) all.push_back(entry.connection);
    return all;
  }

  void Main() {
    clock_ok.store(pthread_getcpuclockid(pthread_self(), &clock) == 0);
    BeServingThread("quire-http");
    RunUntilStopped();
    // What was posted before the stop: clients that have gone are still told of.
    io.restart();
    for (bool is_done = false; !is_done;) is_done = Guarded([this] { io.poll(); });
    final_seconds.store(std::max(0.0, SecondsOf(CLOCK_THREAD_CPUTIME_ID)));
    clock_ok.store(false);
  }

  void RunUntilStopped() {
    for (bool is_done = false; !is_done;) is_done = Guarded([this] { io.run(); });
  }

  // The only exception to expect is that of an allocation that failed: the connection that it hit
  // stays without an operation and is closed by its deadline; the others go on.
  template <class Work>
  bool Guarded(Work work) {
    try {
      work();
      return true;
    } catch (const std::exception& error) {
      if (!std::exchange(has_told_exception, true)) handler->OnTrouble(error.what());
      return false;
    }
  }

  void BeginStop(std::chrono::milliseconds most) {
    is_stopping = true;
    accepting.release();
    listener->Close();
    accept_pause.cancel();
    for (const auto& connection : All()) connection->CloseIfIdle();
    if (entries.empty()) return io.stop();
    cut.expires_after(most);
    cut.async_wait([this](const ErrorCode& error) {
      if (error) return;
      for (const auto& connection : All()) connection->Drop(GoneReason::kShutDown);
      io.stop();
    });
  }

  std::unique_ptr<Listener> listener;
  std::unique_ptr<boost::asio::ssl::context> tls;
  Descriptor accepting;  // the listener's
  boost::asio::steady_timer accept_pause;
  Descriptor ringing;  // an eventfd
  int ring_descriptor = -1;
  boost::asio::steady_timer tick, cut;
  std::unordered_map<Connection*, Entry> entries;
  std::unordered_map<std::string, uint32_t> by_group;
  std::atomic<uint32_t> num_open{0};
  uint32_t num_refused = 0;
  bool has_told_no_files = false, has_told_exception = false;
  std::atomic<bool> has_rung{false};

  char date[40] = "";
  size_t date_len = 0;
  std::time_t date_at = -1;

  std::thread thread;
  clockid_t clock = {};
  std::atomic<bool> clock_ok{false};
  std::atomic<double> final_seconds{0};
};

HttpServer::HttpServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

HttpServer::~HttpServer() { Stop(std::chrono::milliseconds(0)); }

StatusOr<std::unique_ptr<HttpServer>> HttpServer::Create(HttpOptions options,
                                                         HttpHandler* handler) {
  auto impl = std::make_unique<Impl>(options, handler);
  QUIRE_ASSIGN_OR_RETURN(impl->listener,
                         Listener::Create(options.host, options.port, options.unix_path));
  if (!options.certificate_file.empty() || !options.key_file.empty()) {
    QUIRE_ASSIGN_OR_RETURN(impl->tls, MakeTlsContext(options.certificate_file, options.key_file));
  }
  impl->ring_descriptor = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (impl->ring_descriptor < 0) return Status(StatusCode::kInternal, "eventfd was refused");
  ErrorCode error;
  impl->ringing.assign(impl->ring_descriptor, error);
  if (!error) impl->accepting.assign(impl->listener->descriptor(), error);
  if (error) return Status(StatusCode::kInternal, "epoll was refused: " + error.message());
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(impl)));
}

void HttpServer::Run() {
  impl_->WaitForClients();
  impl_->WaitForRing();
  impl_->WaitForTick();
  // Signals are for the thread that waits for them.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  impl_->thread = std::thread([this] { impl_->Main(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void HttpServer::Stop(std::chrono::milliseconds most) {
  if (!impl_->thread.joinable()) return;
  Post([this, most] { impl_->BeginStop(most); });
  impl_->thread.join();
}

const std::string& HttpServer::address() const { return impl_->listener->address(); }

uint16_t HttpServer::port() const { return impl_->listener->port(); }

uint32_t HttpServer::num_connections() const { return impl_->num_open.load(); }

double HttpServer::cpu_seconds() const {
  const double now = impl_->clock_ok.load() ? SecondsOf(impl_->clock) : -1;
  return now >= 0 ? now : impl_->final_seconds.load();
}

void HttpServer::Post(std::function<void()> work) { boost::asio::post(impl_->io, std::move(work)); }

void HttpServer::Ring() {
  if (impl_->has_rung.exchange(true)) return;
  const uint64_t one = 1;
  (void)!write(impl_->ring_descriptor, &one, sizeof(one));
}

}  // namespace quire
