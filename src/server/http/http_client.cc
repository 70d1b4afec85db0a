#include "server/http/http_client.h"

#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <charconv>
#include <optional>
#include <utility>
#include <variant>

#include "base/errors.h"
#include "base/message_text.h"

namespace quire {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using boost::system::error_code;
using TcpStream = beast::tcp_stream;
using UnixStream =
    beast::basic_stream<asio::local::stream_protocol, asio::io_context::executor_type>;

Status BadUrl(std::string_view text, std::string_view why) {
  return InvalidArgument(
      "'{}' {}: write http://HOST:PORT, http://[ADDRESS]:PORT or unix:/PATH of a socket",
      Printable(text), why);
}

std::string LowerCase(std::string_view text) {
  std::string lower(text);
  for (char& c : lower)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return lower;
}

}  // namespace

StatusOr<HttpUrl> HttpUrl::Parse(std::string_view text) {
  HttpUrl url;
  std::string_view rest = text;
  if (rest.starts_with("unix:")) {
    url.unix_path = rest.substr(5);
    if (url.unix_path.empty()) return BadUrl(text, "names no socket");
    return url;
  }
  if (rest.starts_with("https://"))
    return BadUrl(text, "asks for TLS, which this client doesn't speak");
  constexpr std::string_view kScheme = "http://";
  if (rest.starts_with(kScheme)) rest.remove_prefix(kScheme.size());
  const size_t host_end = std::min(rest.find('/'), rest.size());
  url.base = rest.substr(host_end);
  while (url.base.ends_with('/')) url.base.pop_back();
  std::string_view address = rest.substr(0, host_end);
  const size_t bracket = address.starts_with('[') ? address.find(']') : 0;
  if (bracket == std::string_view::npos) return BadUrl(text, "has no end of its address");
  const size_t colon = address.find(':', bracket);
  if (colon != std::string_view::npos) {
    const std::string_view port = address.substr(colon + 1);
    const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), url.port);
    if (error != std::errc() || end != port.data() + port.size() || url.port == 0)
      return BadUrl(text, "has no port from 1 to 65535");
    address = address.substr(0, colon);
  }
  if (bracket > 0) address = address.substr(1, bracket - 1);
  if (address.empty()) return BadUrl(text, "names no host");
  url.host = address;
  return url;
}

struct HttpClient::Impl {
  Impl(HttpUrl its_url, std::chrono::milliseconds its_limit, HttpFields its_fields)
      : url(std::move(its_url)), limit(its_limit), fields(std::move(its_fields)) {}

  // Runs what was started on `io` to its end.
  void Run() {
    io.restart();
    io.run();
  }

  Status ErrorOf(const error_code& error, const char* doing) const {
    if (error == beast::error::timeout)
      return {StatusCode::kCancelled,
              fmt::format("no answer from {} within {} ms", Name(), limit.count())};
    return Internal("{}, {} broke: {}", Name(), doing, error.message());
  }
  std::string Name() const {
    if (!url.unix_path.empty()) return url.unix_path;
    const bool is_v6 = url.host.find(':') != std::string::npos;
    return fmt::format(is_v6 ? "[{}]:{}" : "{}:{}", url.host, url.port);
  }

  Status Connect() {
    error_code error;
    if (!url.unix_path.empty()) {
      auto& unix = stream.emplace<UnixStream>(io);
      unix.expires_after(limit);
      unix.async_connect(asio::local::stream_protocol::endpoint(url.unix_path),
                         [&](error_code result) { error = result; });
    } else {
      asio::ip::tcp::resolver resolver(io);
      const auto found = resolver.resolve(url.host, std::to_string(url.port), error);
      if (error) return {StatusCode::kUnavailable, fmt::format("{}: {}", Name(), error.message())};
      auto& tcp = stream.emplace<TcpStream>(io);
      tcp.expires_after(limit);
      tcp.async_connect(found, [&](error_code result, const auto&) { error = result; });
    }
    Run();
    buffer.clear();
    if (!error) return OkStatus();
    Close();
    return {StatusCode::kUnavailable, fmt::format("{}: {}", Name(), error.message())};
  }

  void Close() { stream.emplace<std::monostate>(); }

  template <class Stream>
  Status Exchange(Stream& socket, const http::request<http::string_body>& request,
                  http::response_parser<http::string_body>& parser) {
    error_code error;
    const char* doing = "the request";
    socket.expires_after(limit);
    http::async_write(socket, request, [&](error_code result, size_t) {
      error = result;
      if (error) return;
      doing = "its answer";
      http::async_read(socket, buffer, parser,
                       [&](error_code read_result, size_t) { error = read_result; });
    });
    Run();
    return error ? ErrorOf(error, doing) : OkStatus();
  }

  Status Exchange(const http::request<http::string_body>& request,
                  http::response_parser<http::string_body>& parser) {
    if (auto* tcp = std::get_if<TcpStream>(&stream)) return Exchange(*tcp, request, parser);
    return Exchange(std::get<UnixStream>(stream), request, parser);
  }

  const HttpUrl url;
  const std::chrono::milliseconds limit;
  const HttpFields fields;
  asio::io_context io{1};
  std::variant<std::monostate, TcpStream, UnixStream> stream;
  beast::flat_buffer buffer;
};

HttpClient::HttpClient(HttpUrl url, std::chrono::milliseconds limit, HttpFields fields)
    : impl_(std::make_unique<Impl>(std::move(url), limit, std::move(fields))) {}
HttpClient::~HttpClient() = default;
HttpClient::HttpClient(HttpClient&&) noexcept = default;

StatusOr<HttpResponse> HttpClient::Send(std::string_view method, std::string_view path,
                                        std::string_view body) {
  Impl& m = *impl_;
  http::request<http::string_body> request;
  request.version(11);
  request.method_string(beast::string_view(method.data(), method.size()));
  request.target(m.url.base + std::string(path));
  request.set(http::field::host, m.url.unix_path.empty() ? m.Name() : "localhost");
  for (const auto& [name, value] : m.fields) request.set(name, value);
  if (!body.empty()) {
    request.set(http::field::content_type, "application/json");
    request.body() = body;
  }
  request.prepare_payload();

  // A connection that was kept may have been closed meanwhile: then once more, on a new one.
  Status status;
  for (bool is_new = false; !is_new;) {
    is_new = std::holds_alternative<std::monostate>(m.stream);
    if (is_new) QUIRE_RETURN_IF_ERROR(m.Connect());
    http::response_parser<http::string_body> parser;
    parser.body_limit(kMaxBodyBytes);
    status = m.Exchange(request, parser);
    if (!status.ok()) {
      m.Close();
      if (parser.got_some() || status.code() == StatusCode::kCancelled) return status;
      continue;
    }
    auto answer = parser.release();
    if (answer.need_eof() || !answer.keep_alive()) m.Close();
    HttpResponse response = {.status = static_cast<int>(answer.result_int())};
    response.content_type.clear();
    for (const auto& field : answer) {
      const auto value = std::string(field.value());
      if (field.name() == http::field::content_type) response.content_type = value;
      response.fields.emplace_back(LowerCase(std::string(field.name_string())), value);
    }
    response.body = std::move(answer.body());
    return response;
  }
  return status;
}

}  // namespace quire
