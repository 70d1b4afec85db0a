#include "cli/http_client.h"

#include <algorithm>
#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>
#include <charconv>
#include <optional>

#include "base/errors.h"

namespace quire {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using boost::system::error_code;
using tcp = asio::ip::tcp;

struct Address {
  std::string host, port = "80", path;
};

StatusOr<Address> ParseBaseUrl(const std::string& url) {
  constexpr std::string_view kScheme = "http://";
  const auto wrong = [&] {
    return InvalidArgument(
        "address '{}': need http://HOST[:PORT][/PATH]; for https put a proxy that ends TLS between",
        url);
  };
  if (url.compare(0, kScheme.size(), kScheme) != 0) return wrong();
  std::string_view rest = std::string_view(url).substr(kScheme.size());
  Address address;
  const size_t slash = std::min(rest.find('/'), rest.size());
  address.path = rest.substr(slash);
  while (!address.path.empty() && address.path.back() == '/') address.path.pop_back();
  rest = rest.substr(0, slash);
  const size_t bracket = rest.find(']');  // of [::1]
  const size_t colon = rest.find(':', bracket == std::string_view::npos ? 0 : bracket);
  if (colon != std::string_view::npos) {
    address.port = rest.substr(colon + 1);
    uint16_t number = 0;
    const char* end = address.port.data() + address.port.size();
    const auto parsed = std::from_chars(address.port.data(), end, number);
    if (parsed.ec != std::errc() || parsed.ptr != end || number == 0) return wrong();
    rest = rest.substr(0, colon);
  }
  if (rest.size() > 2 && rest.front() == '[' && rest.back() == ']')
    rest = rest.substr(1, rest.size() - 2);
  if (rest.empty()) return wrong();
  address.host = rest;
  return address;
}

constexpr size_t kReadBytes = 64 << 10;

}  // namespace

class HttpClient::Impl {
 public:
  Address address;
  std::chrono::seconds silence{0};
  asio::io_context context{1};
  tcp::resolver::results_type endpoints;

  class Connection;
  std::vector<std::shared_ptr<Connection>> idle;

  void Start(HttpCall call);
};

// One socket and the call that it serves now. Owned by the operation under way, or by `idle`.
class HttpClient::Impl::Connection : public std::enable_shared_from_this<Connection> {
 public:
  explicit Connection(Impl& client) : client_(client), stream_(client.context) {}

  void Serve(HttpCall call) {
    call_ = std::move(call);
    is_first_ = !is_open_;
    has_answer_ = false;
    request_ = {};
    request_.version(11);
    request_.method_string(call_.method);
    request_.target(client_.address.path + call_.path);
    request_.set(http::field::host, client_.address.host + ":" + client_.address.port);
    request_.set(http::field::user_agent, "quire-bench");
    for (const auto& [name, value] : call_.headers) request_.set(name, value);
    if (!call_.body.empty()) request_.set(http::field::content_type, "application/json");
    request_.body() = std::move(call_.body);
    if (!request_.body().empty() || call_.method != "GET") request_.prepare_payload();
    parser_.emplace();
    parser_->body_limit(boost::none);
    parser_->eager(true);
    if (is_open_)
      Write();
    else
      Connect();
  }

 private:
  void Connect() {
    stream_.expires_after(client_.silence);
    stream_.async_connect(client_.endpoints, [self = shared_from_this()](
                                                 error_code error, const tcp::endpoint& /*peer*/) {
      if (error) return self->Fail(error);
      self->is_open_ = true;
      error_code ignored;
      self->stream_.socket().set_option(tcp::no_delay(true), ignored);
      self->Write();
    });
  }

  void Write() {
    stream_.expires_after(client_.silence);
    http::async_write(stream_, request_, [self = shared_from_this()](error_code error, size_t) {
      if (error) return self->Fail(error);
      if (self->call_.on_sent) self->call_.on_sent();
      self->Read();
    });
  }

  // Whatever comes is parsed at once: a reader that waits for the line end behind a chunk would
  // hold the chunk until the next one comes.
  void Read() {
    stream_.expires_after(client_.silence);
    stream_.async_read_some(
        buffer_.prepare(kReadBytes), [self = shared_from_this()](error_code error, size_t count) {
          self->buffer_.commit(count);
          self->has_answer_ = self->has_answer_ || count > 0;
          if (error == asio::error::eof && self->parser_->got_some()) {
            error = {};
            self->parser_->put_eof(error);  // the end of a body without a length
            if (!error && !self->parser_->is_done()) error = asio::error::eof;
          } else if (!error) {
            self->Parse(error);
          }
          if (error) return self->Fail(error);
          self->GiveBody();
          if (self->parser_->is_done()) return self->Finish();
          self->Read();
        });
  }

  void Parse(error_code& error) {
    while (buffer_.size() > 0 && !parser_->is_done()) {
      const size_t used = parser_->put(buffer_.data(), error);
      buffer_.consume(used);
      if (error == http::error::need_more) {
        error = {};
        return;
      }
      if (error) return;
    }
  }

  void GiveBody() {
    auto& answer = parser_->get();
    if (answer.body().empty()) return;
    if (call_.on_body) call_.on_body(static_cast<int>(answer.result_int()), answer.body());
    answer.body().clear();
  }

  void Finish() {
    const int status = static_cast<int>(parser_->get().result_int());
    const auto on_end = std::move(call_.on_end);
    if (parser_->keep_alive())
      client_.idle.push_back(shared_from_this());
    else
      Close();
    if (on_end) on_end(status);
  }

  void Fail(error_code error) {
    Close();
    // A kept connection that the server closed in the meantime: the call is made anew, once.
    if (!is_first_ && !has_answer_) {
      call_.body = std::move(request_.body());
      return Serve(std::move(call_));
    }
    if (!call_.on_end) return;
    const auto on_end = std::move(call_.on_end);
    if (error == beast::error::timeout)
      on_end(Internal("no byte came or went for {} s", client_.silence.count()));
    else
      on_end(Internal("{}:{}: {}{}", client_.address.host, client_.address.port, error.message(),
                      has_answer_ ? " in the middle of the answer" : ""));
  }

  void Close() {
    is_open_ = false;
    error_code ignored;
    stream_.socket().close(ignored);
    buffer_.clear();
  }

  Impl& client_;
  beast::tcp_stream stream_;
  beast::flat_buffer buffer_;
  http::request<http::string_body> request_;
  std::optional<http::response_parser<http::string_body>> parser_;
  HttpCall call_;
  bool is_open_ = false;
  bool is_first_ = true;     // the call that opened the connection
  bool has_answer_ = false;  // a byte of it
};

void HttpClient::Impl::Start(HttpCall call) {
  std::shared_ptr<Connection> connection;
  if (idle.empty()) {
    connection = std::make_shared<Connection>(*this);
  } else {
    connection = std::move(idle.back());
    idle.pop_back();
  }
  connection->Serve(std::move(call));
}

HttpClient::HttpClient(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
HttpClient::~HttpClient() { impl_->idle.clear(); }

StatusOr<std::unique_ptr<HttpClient>> HttpClient::Create(const std::string& base_url,
                                                         std::chrono::seconds silence) {
  auto impl = std::make_unique<Impl>();
  QUIRE_ASSIGN_OR_RETURN(impl->address, ParseBaseUrl(base_url));
  impl->silence = silence;
  tcp::resolver resolver(impl->context);
  error_code error;
  impl->endpoints = resolver.resolve(impl->address.host, impl->address.port, error);
  if (error) return NotFound("host '{}': {}", impl->address.host, error.message());
  return std::unique_ptr<HttpClient>(new HttpClient(std::move(impl)));
}

void HttpClient::Start(HttpCall call) { impl_->Start(std::move(call)); }

void HttpClient::At(std::chrono::steady_clock::time_point time, std::function<void()> hook) {
  auto timer = std::make_shared<asio::steady_timer>(impl_->context, time);
  timer->async_wait([timer, hook = std::move(hook)](error_code error) {
    if (!error) hook();
  });
}

void HttpClient::Run() {
  impl_->context.restart();
  impl_->context.run();
}

StatusOr<HttpAnswer> HttpClient::Call(HttpCall call) {
  HttpAnswer answer;
  Status end;
  call.on_body = [&](int, std::string_view piece) { answer.body += piece; };
  call.on_end = [&](const StatusOr<int>& status) {
    if (status.ok())
      answer.status = status.value();
    else
      end = status.status();
  };
  Start(std::move(call));
  Run();
  QUIRE_RETURN_IF_ERROR(end);
  return answer;
}

}  // namespace quire
