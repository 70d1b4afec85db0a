#include "server/http/http_mutator.h"

#include <algorithm>
#include <iterator>

namespace quire {
namespace {

constexpr const char* kRequests[] = {
    "GET /hello HTTP/1.1\r\nHost: a\r\n\r\n",
    "HEAD /hello?a=b&c=%20 HTTP/1.1\r\nHost: a\r\nX-Request-Id: abc\r\n\r\n",
    "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 15\r\n"
    "\r\n{\"prompt\":\"Hi\"}",
    "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
    "5\r\nhello\r\na;x=y\r\n0123456789\r\n0\r\nT: v\r\n\r\n",
    "POST /echo HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\nabc",
    "GET /pieces HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer x\r\n\r\n",
    "GET /pieces HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
    "POST /denied HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}",
};

constexpr const char* kWords[] = {
    "\r\n",
    "\n",
    "\r",
    "\r\n\r\n",
    " ",
    "\t",
    ":",
    "%00",
    "%2f",
    "..",
    "//",
    "\r\n ",
    "0",
    "-1",
    "5, 5",
    "chunked",
    "0\r\n\r\n",
    "ffffffffffffffff",
    "99999999999999999999",
    "Content-Length: 4\r\n",
    "Transfer-Encoding: chunked\r\n",
    "Transfer-Encoding: gzip\r\n",
    "Host: b\r\n",
    "Connection: keep-alive, close\r\n",
    "Connection: upgrade\r\nUpgrade: h2c\r\n",
    "Expect: 100-continue\r\n",
    "HTTP/1.0",
    "HTTP/2.0",
    "http://a/",
    "\x00\x01",
    "\xc3\xa9",
    "\xff",
};

}  // namespace

std::string HttpMutator::Requests() {
  std::string bytes;
  for (size_t num = 1 + Below(3); num > 0; --num) bytes += kRequests[Below(std::size(kRequests))];
  return bytes;
}

void HttpMutator::Mutate(std::string* bytes) {
  const size_t at = Below(bytes->size() + 1);
  const size_t len = std::min(bytes->size() - at, 1 + Below(24));
  switch (Below(7)) {
    case 0:
      if (at < bytes->size()) (*bytes)[at] = static_cast<char>(Below(256));
      break;
    case 1:
      if (at < bytes->size()) (*bytes)[at] = static_cast<char>((*bytes)[at] ^ (1 << Below(8)));
      break;
    case 2:
      bytes->erase(at, len);
      break;
    case 3:
      bytes->insert(Below(bytes->size() + 1), bytes->substr(at, len));
      break;
    case 4:
      bytes->insert(at, kWords[Below(std::size(kWords))]);
      break;
    case 5:
      bytes->replace(at, len, kWords[Below(std::size(kWords))]);
      break;
    default:
      if (Below(4) == 0) {
        bytes->resize(at);
      } else {
        bytes->insert(at, Below(64), static_cast<char>(Below(256)));
      }
  }
}

}  // namespace quire
