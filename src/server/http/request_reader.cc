#include "server/http/request_reader.h"

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/parser.hpp>
#include <limits>
#include <utility>

#include "server/http/http_target.h"

namespace quire {
namespace {

namespace http = boost::beast::http;
using ErrorCode = boost::system::error_code;

// A body as text, with a limit. Beast's string_body reserves what the client announces; this takes
// memory as bytes come.
struct LimitedText {
  struct value_type {
    std::string text;
    size_t most = 0;
  };

  class reader {
   public:
    template <bool kIsRequest, class Fields>
    reader(http::header<kIsRequest, Fields>&, value_type& value) : value_(value) {}

    void init(const boost::optional<uint64_t>&, ErrorCode& error) { error = {}; }

    template <class Buffers>
    size_t put(const Buffers& buffers, ErrorCode& error) {
      error = {};
      size_t num = 0;
      for (auto it = boost::asio::buffer_sequence_begin(buffers);
           it != boost::asio::buffer_sequence_end(buffers); ++it) {
        const boost::asio::const_buffer part = *it;
        if (part.size() > value_.most - value_.text.size()) {
          error = http::error::body_limit;
          return num;
        }
        value_.text.append(static_cast<const char*>(part.data()), part.size());
        num += part.size();
      }
      return num;
    }

    void finish(ErrorCode& error) { error = {}; }

   private:
    value_type& value_;
  };
};

std::string Lower(boost::beast::string_view text) {
  std::string lower(text.data(), text.size());
  for (char& c : lower)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return lower;
}

// What is wrong with byte `i` of a head, by itself and its neighbours, or null. Only a CR at the
// end can't be judged yet.
const char* WrongByte(std::string_view head, size_t i) {
  const char c = head[i];
  if (c == '\n') return i > 0 && head[i - 1] == '\r' ? nullptr : "a line that ends with a bare LF";
  if (c == '\r') return i + 1 == head.size() || head[i + 1] == '\n' ? nullptr : "a CR without LF";
  if (c == ' ' || c == '\t') {
    if (i == 0 || head[i - 1] == '\n') return "a line that begins with a blank";
    return nullptr;
  }
  return static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? "a control byte" : nullptr;
}

}  // namespace

struct RequestReader::Parser : http::request_parser<LimitedText> {};

RequestReader::RequestReader(const HttpLimits& limits) : limits_(limits) {}
RequestReader::~RequestReader() = default;

void RequestReader::Reset() {
  parser_.reset();
  stage_ = Stage::kHead;
  num_scanned_ = 0;
  has_skipped_line_ = false;
  head_ = {};
  is_http10_ = keeps_alive_ = expects_continue_ = is_chunked_ = false;
  content_length_ = 0;
  refusal_.reset();
}

size_t RequestReader::body_bytes() const {
  return parser_ != nullptr ? parser_->get().body().text.size() : 0;
}

std::string RequestReader::TakeBody() { return std::move(parser_->get().body().text); }

RequestReader::Result RequestReader::Refuse(int status, std::string_view code,
                                            std::string message) {
  stage_ = Stage::kRefused;
  refusal_ = HttpRefusal{status, code, std::move(message)};
  return {Step::kRefused, 0};
}

RequestReader::Result RequestReader::Read(std::string_view bytes) {
  switch (stage_) {
    case Stage::kHead:
      return ReadHead(bytes);
    case Stage::kBody:
      return ReadBody(bytes);
    case Stage::kWhole:
      return {Step::kWhole, 0};
    case Stage::kRefused:
      break;
  }
  return {Step::kRefused, 0};
}

RequestReader::Result RequestReader::ReadHead(std::string_view bytes) {
  // One empty line before a request: some old clients end their bodies with it (RFC 9112, 2.2). A
  // second one is a request line that is not HTTP.
  size_t num_skipped = 0;
  if (num_scanned_ == 0 && !has_skipped_line_) {
    if (bytes == "\r") return {Step::kMore, 0};
    if (bytes.substr(0, 2) == "\r\n") {
      num_skipped = 2;
      has_skipped_line_ = true;
    }
  }
  const std::string_view head = bytes.substr(num_skipped);

  size_t end = 0;  // past the empty line
  size_t i = num_scanned_;
  for (; i < head.size() && end == 0; ++i) {
    if (i >= limits_.head_bytes)
      return Refuse(431, "headers_too_large",
                    "the head is longer than " + std::to_string(limits_.head_bytes) + " bytes");
    if (const char* wrong = WrongByte(head, i)) {
      return Refuse(400, "bad_request", std::string("the head has ") + wrong);
    }
    if (i >= 3 && head.substr(i - 3, 4) == "\r\n\r\n") end = i + 1;
  }
  if (end == 0) {
    // A CR at the end is judged again with what follows it.
    num_scanned_ = i > 0 && head[i - 1] == '\r' ? i - 1 : i;
    return {Step::kMore, num_skipped};
  }

  parser_ = std::make_unique<Parser>();
  parser_->header_limit(static_cast<uint32_t>(end) + 1);
  // The content-length is checked below. (Boost 1.74 takes boost::none for a limit of nothing.)
  parser_->body_limit(std::numeric_limits<uint64_t>::max());
  parser_->get().body().most = limits_.body_bytes;
  ErrorCode error;
  const size_t num_parsed = parser_->put(boost::asio::buffer(head.data(), end), error);
  if (error || num_parsed != end || !parser_->is_header_done())
    return Refuse(400, "bad_request", "the head is not HTTP: " + error.message());
  if (!CheckFraming()) return {Step::kRefused, 0};
  stage_ = Stage::kBody;
  return {Step::kHead, num_skipped + end};
}

bool RequestReader::CheckFraming() {
  const auto& message = parser_->get();
  const auto refuse = [this](int status, std::string_view code, std::string text) {
    Refuse(status, code, std::move(text));
    return false;
  };
  const auto bad = [&](const char* text) { return refuse(400, "bad_request", text); };

  head_.method.assign(message.method_string().data(), message.method_string().size());
  uint32_t num_lengths = 0, num_encodings = 0, num_hosts = 0;
  for (const auto& field : message) {
    std::string name = Lower(field.name_string());
    std::string value(field.value().data(), field.value().size());
    num_lengths += name == "content-length";
    num_encodings += name == "transfer-encoding";
    num_hosts += name == "host";
    head_.fields.emplace_back(std::move(name), std::move(value));
  }
  auto target = ParseTarget({message.target().data(), message.target().size()});
  if (!target.ok()) return refuse(400, "bad_request", target.status().message());
  head_.segments = std::move(target->segments);
  head_.query = std::move(target->query);

  if (head_.fields.size() > limits_.head_fields)
    return refuse(431, "headers_too_large",
                  "more than " + std::to_string(limits_.head_fields) + " header fields");
  if (message.version() != 10 && message.version() != 11) return bad("HTTP/1.1 or 1.0 is spoken");
  is_http10_ = message.version() == 10;
  keeps_alive_ = message.keep_alive();
  if (num_hosts > 1 || (num_hosts == 0 && !is_http10_)) return bad("one host field is needed");
  if (num_lengths + num_encodings > 1) return bad("more than one length of the body");
  if (num_encodings == 1) {
    if (is_http10_) return bad("transfer-encoding in HTTP/1.0");
    if (Lower(boost::beast::string_view(head_.Field("transfer-encoding")->data(),
                                        head_.Field("transfer-encoding")->size())) != "chunked")
      return bad("a transfer-encoding other than chunked");
    is_chunked_ = true;
    parser_->body_limit(limits_.body_bytes);  // told by the first line of a chunk
  }
  if (num_lengths == 1) {
    const std::string_view digits = *head_.Field("content-length");
    if (digits.empty() || digits.find_first_not_of("0123456789") != std::string_view::npos)
      return bad("a content-length that is not a number");
    content_length_ = parser_->content_length().value_or(0);
    if (content_length_ > limits_.body_bytes)
      return refuse(413, "request_too_large",
                    "the body is longer than " + std::to_string(limits_.body_bytes) + " bytes");
  }
  if (const auto expect = head_.Field("expect"); expect && !is_http10_) {
    if (Lower(boost::beast::string_view(expect->data(), expect->size())) != "100-continue")
      return refuse(417, "bad_request", "an expectation other than 100-continue");
    expects_continue_ = true;
  }
  return true;
}

RequestReader::Result RequestReader::ReadBody(std::string_view bytes) {
  size_t num_taken = 0;
  // Beast 1.74 asserts that it sees 5 bytes of a last chunk. No chunked body ends with fewer.
  const size_t least = is_chunked_ ? 5 : 1;
  // A chunk's first line, or the last one with the trailers, must fit into what a head may be.
  const auto refuse_line = [this] {
    return Refuse(400, "bad_request", "a chunk's line or the trailers are too long");
  };
  while (!parser_->is_done() && bytes.size() - num_taken >= least) {
    ErrorCode error;
    const size_t num_before = body_bytes();
    const size_t num = parser_->put(
        boost::asio::buffer(bytes.data() + num_taken, bytes.size() - num_taken), error);
    num_taken += num;
    if (error == http::error::need_more) break;
    if (error == http::error::body_limit)
      return Refuse(413, "request_too_large",
                    "the body is longer than " + std::to_string(limits_.body_bytes) + " bytes");
    if (error)
      return Refuse(400, "bad_request", "the body's chunks are not HTTP: " + error.message());
    // Beast takes one line, or a part of one chunk, at a time.
    if (num - (body_bytes() - num_before) > limits_.head_bytes) return refuse_line();
    if (num == 0) break;
  }
  if (parser_->is_done()) {
    stage_ = Stage::kWhole;
    return {Step::kWhole, num_taken};
  }
  if (bytes.size() - num_taken > limits_.head_bytes) return refuse_line();
  return {Step::kMore, num_taken};
}

}  // namespace quire
