#include "server/http/request_reader.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace quire {
namespace {

using Step = RequestReader::Step;

// All that a reader makes of `bytes` when they come in pieces of `piece`: "METHOD path body" a
// request, then "status" if it refused.
std::vector<std::string> ReadAll(std::string_view bytes, size_t piece,
                                 const HttpLimits& limits = {}) {
  RequestReader reader(limits);
  std::vector<std::string> read;
  std::string in, head;
  for (size_t at = 0; at < bytes.size();) {
    in += bytes.substr(at, piece);
    at += piece;
    for (bool goes_on = true; goes_on;) {
      const RequestReader::Result result = reader.Read(in);
      EXPECT_LE(result.num_taken, in.size());
      in.erase(0, result.num_taken);
      switch (result.step) {
        case Step::kMore:
          goes_on = false;
          break;
        case Step::kHead:
          head = reader.head().method + " " + reader.head().Path();
          break;
        case Step::kWhole:
          read.push_back(head + " " + reader.TakeBody());
          reader.Reset();
          break;
        case Step::kRefused:
          read.push_back(std::to_string(reader.refusal().status));
          return read;
      }
    }
  }
  return read;
}

int StatusOf(std::string_view bytes, const HttpLimits& limits = {}) {
  const auto read = ReadAll(bytes, bytes.size(), limits);
  EXPECT_EQ(ReadAll(bytes, 1, limits), read) << bytes;
  if (read.empty()) return 0;  // waits
  return read.back().size() == 3 ? std::stoi(read.back()) : 200;
}

TEST(RequestReader, ReadsTheSameWhereverTheBytesAreCut) {
  const std::string bytes =
      "POST /a?b=c HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello"
      "\r\nPOST /chunks HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: Chunked\r\n\r\n"
      "5\r\nhello\r\n00a;ext=1\r\n, you all!\r\n0\r\nTrailer: dropped\r\n\r\n"
      "GET / HTTP/1.0\r\n\r\n";
  const std::vector<std::string> expected = {"POST /a hello", "POST /chunks hello, you all!",
                                             "GET / "};
  for (size_t piece = 1; piece <= bytes.size(); ++piece)
    ASSERT_EQ(ReadAll(bytes, piece), expected) << piece;
  for (size_t cut = 0; cut <= bytes.size(); ++cut) {
    RequestReader reader{HttpLimits{}};
    const auto first = ReadAll(std::string_view(bytes).substr(0, cut), cut + 1);
    ASSERT_LE(first.size(), expected.size());
    for (size_t i = 0; i < first.size(); ++i) ASSERT_EQ(first[i], expected[i]) << cut;
  }
}

TEST(RequestReader, FieldNamesAreLowerCaseAndInOrder) {
  RequestReader reader{HttpLimits{}};
  const HttpLimits limits;
  RequestReader with(limits);
  const std::string head =
      "GET / HTTP/1.1\r\nHOST: a\r\nX-Two: 1\r\nx-two:  2 \r\nUser-Agent: \xc3\xa9 \tb\r\n\r\n";
  ASSERT_EQ(with.Read(head).step, Step::kHead);
  const HttpFields expected = {
      {"host", "a"}, {"x-two", "1"}, {"x-two", "2"}, {"user-agent", "\xc3\xa9 \tb"}};
  EXPECT_EQ(with.head().fields, expected);
  EXPECT_TRUE(with.keeps_alive());
}

// SEC-10.
TEST(RequestReader, FramingThatIsNotPlainIsRefused) {
  const std::string post = "POST /a HTTP/1.1\r\nHost: x\r\n", rest = "\r\n0\r\n\r\n";
  for (const char* fields : {"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
                             "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
                             "Content-Length: 5\r\nContent-Length: 5\r\n",
                             "Content-Length: 5\r\nContent-Length: 6\r\n",
                             "Content-Length: 5, 5\r\n",
                             "Content-Length: +5\r\n",
                             "Content-Length: -5\r\n",
                             "Content-Length: 0x5\r\n",
                             "Content-Length: 5 5\r\n",
                             "Content-Length:\r\n",
                             "Content-Length: 5.0\r\n",
                             "Content-Length: 99999999999999999999\r\n",
                             "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
                             "Transfer-Encoding: gzip, chunked\r\n",
                             "Transfer-Encoding: chunked, chunked\r\n",
                             "Transfer-Encoding: identity\r\n",
                             "Transfer-Encoding: xchunked\r\n",
                             "Transfer-Encoding: \x0b"
                             "chunked\r\n",
                             "Transfer-Encoding: chunked,\r\n",
                             "Transfer-Encoding : chunked\r\n",
                             "Transfer-Encoding\r\n",
                             " Transfer-Encoding: chunked\r\n",
                             "X: a\r\n Transfer-Encoding: chunked\r\n",
                             "X: a\r\n\tb\r\n",
                             "X: a\nY: b\r\n",
                             "X: a\rY: b\r\n",
                             "X: a\r\r\n",
                             "X: \x01\r\n",
                             "X: \x7f\r\n",
                             "X Y: a\r\n",
                             ": a\r\n",
                             "Host: y\r\n",
                             "X\xc3: a\r\n",
                             "Content-Length\x20: 5\r\n"})
    EXPECT_EQ(StatusOf(post + fields + rest), 400) << fields;
  EXPECT_EQ(StatusOf(post + std::string("X: a\0b\r\n", 8) + rest), 400);
  EXPECT_EQ(StatusOf(post + "Expect: 200-ok\r\nContent-Length: 2\r\n" + rest), 417);
}

TEST(RequestReader, RequestLinesThatAreNotPlainAreRefused) {
  const std::string rest = "\r\nHost: x\r\n\r\n";
  for (const char* line : {"GET  / HTTP/1.1",    "GET / HTTP/1.1 ",        "GET /",
                           "GET / HTTP/2.0",     "GET / HTTP/1.2",         "GET / HTTP/0.9",
                           "GET / http/1.1",     "GET / HTTP/1.10",        "G@T / HTTP/1.1",
                           "GET\t/ HTTP/1.1",    "(GET) / HTTP/1.1",       " GET / HTTP/1.1",
                           "GET / / HTTP/1.1",   "GET http://x/ HTTP/1.1", "CONNECT x:80 HTTP/1.1",
                           "OPTIONS * HTTP/1.1", "GET //v1 HTTP/1.1",      "GET /a/../b HTTP/1.1",
                           "GET /\x01 HTTP/1.1", "GET \xc3\xa9 HTTP/1.1",  "\x16\x03\x01\x02"})
    EXPECT_EQ(StatusOf(line + rest), 400) << line;
  EXPECT_EQ(StatusOf("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), 400);
  EXPECT_EQ(StatusOf("GET / HTTP/1.1\r\n\r\n"), 400) << "no host";
  EXPECT_EQ(StatusOf("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"), 400);
  EXPECT_EQ(StatusOf("\nGET / HTTP/1.1" + rest), 400);
  EXPECT_EQ(StatusOf("\r\nGET / HTTP/1.1" + rest), 200);
  EXPECT_EQ(StatusOf("\r\n\r\nGET / HTTP/1.1" + rest), 400) << "one empty line, not two";
}

TEST(RequestReader, ChunksThatAreNotPlainAreRefused) {
  const std::string head = "POST /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (const char* chunks :
       {"x\r\n", "-1\r\n", "5\nhello", "5\r\nhello!\r\n0\r\n\r\n", "5\r\nhelloXX0\r\n\r\n",
        "ffffffffffffffffff\r\n", " 5\r\nhello\r\n", "0x5\r\nhello\r\n", "\r\n",
        "5\r\nhello\n0\r\n\r\n", "0\r\nX Y: a\r\n\r\n"})
    EXPECT_EQ(StatusOf(head + chunks + "\r\n\r\n"), 400) << chunks;
}

TEST(RequestReader, LimitsOfHeadAndBody) {
  HttpLimits limits;
  limits.head_bytes = 200;
  limits.head_fields = 3;
  limits.body_bytes = 10;
  const std::string get = "GET / HTTP/1.1\r\nHost: x\r\n";
  EXPECT_EQ(StatusOf(get + "A: " + std::string(200 - get.size() - 7, 'a') + "\r\n\r\n", limits),
            200);
  EXPECT_EQ(StatusOf(get + "A: " + std::string(200 - get.size() - 6, 'a') + "\r\n\r\n", limits),
            431);
  EXPECT_EQ(StatusOf(std::string(201, 'G'), limits), 431);
  EXPECT_EQ(StatusOf(get + "A: 1\r\nB: 1\r\n\r\n", limits), 200);
  EXPECT_EQ(StatusOf(get + "A: 1\r\nB: 1\r\nC: 1\r\n\r\n", limits), 431);
  EXPECT_EQ(StatusOf(get + "Content-Length: 10\r\n\r\n0123456789", limits), 200);
  EXPECT_EQ(StatusOf(get + "Content-Length: 11\r\n\r\n", limits), 413);
  const std::string chunked = get + "Transfer-Encoding: chunked\r\n\r\n";
  EXPECT_EQ(StatusOf(chunked + "5\r\nhello\r\n5\r\nhello\r\n0\r\n\r\n", limits), 200);
  EXPECT_EQ(StatusOf(chunked + "5\r\nhello\r\n6\r\n", limits), 413) << "told before it is sent";
  EXPECT_EQ(StatusOf(chunked + "1;" + std::string(300, 'x'), limits), 400);
  EXPECT_EQ(StatusOf(chunked + "0\r\nA: " + std::string(300, 'x'), limits), 400);
  // The same when the whole of it comes at once.
  const std::string end = "0\r\n\r\n";
  EXPECT_EQ(StatusOf(chunked + "1;" + std::string(196, 'x') + "\r\na\r\n" + end, limits), 200);
  EXPECT_EQ(StatusOf(chunked + "1;" + std::string(197, 'x') + "\r\na\r\n" + end, limits), 400);
  EXPECT_EQ(StatusOf(chunked + "0\r\nA: " + std::string(190, 'x') + "\r\n\r\n", limits), 200);
  EXPECT_EQ(StatusOf(chunked + "0\r\nA: " + std::string(191, 'x') + "\r\n\r\n", limits), 400);
}

}  // namespace
}  // namespace quire
