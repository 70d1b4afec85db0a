// HttpServer behind TLS, with a certificate that the test signs itself.
#include <gtest/gtest.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <cstdio>
#include <filesystem>
#include <thread>

#include "server/http/http_server.h"
#include "server/http/http_test_client.h"

namespace quire {
namespace {

using std::chrono::milliseconds;

// A key and its own certificate, as PEM files.
void WriteCertificate(const std::string& certificate_file, const std::string& key_file) {
  EVP_PKEY* key = EVP_EC_gen("P-256");
  X509* certificate = X509_new();
  X509_set_version(certificate, 2);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1);
  X509_gmtime_adj(X509_getm_notBefore(certificate), -60);
  X509_gmtime_adj(X509_getm_notAfter(certificate), 3600);
  X509_set_pubkey(certificate, key);
  X509_NAME* name = X509_get_subject_name(certificate);
  X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>("localhost"), -1, -1, 0);
  X509_set_issuer_name(certificate, name);
  X509_sign(certificate, key, EVP_sha256());
  FILE* file = std::fopen(certificate_file.c_str(), "w");
  PEM_write_X509(file, certificate);
  std::fclose(file);
  file = std::fopen(key_file.c_str(), "w");
  PEM_write_PrivateKey(file, key, nullptr, nullptr, 0, nullptr, nullptr);
  std::fclose(file);
  X509_free(certificate);
  EVP_PKEY_free(key);
}

// TLS over a TestClient's socket.
class TlsClient {
 public:
  explicit TlsClient(uint16_t port, int highest_version = 0)
      : socket_(port), context_(SSL_CTX_new(TLS_client_method())), ssl_(SSL_new(context_)) {
    if (highest_version != 0) SSL_set_max_proto_version(ssl_, highest_version);
    SSL_set_fd(ssl_, socket_.descriptor());
    is_connected_ = SSL_connect(ssl_) == 1;
  }
  ~TlsClient() {
    SSL_free(ssl_);
    SSL_CTX_free(context_);
    ERR_clear_error();
  }
  TlsClient(const TlsClient&) = delete;
  TlsClient& operator=(const TlsClient&) = delete;

  bool is_connected() const { return is_connected_; }
  bool Write(std::string_view text) {
    return SSL_write(ssl_, text.data(), static_cast<int>(text.size())) > 0;
  }
  // Until `text` has come; false at the end.
  bool ReadTo(std::string_view text) {
    while (unread.find(text) == std::string::npos)
      if (!Fill()) return false;
    return true;
  }
  bool Fill() {
    char bytes[16384];
    const int num = SSL_read(ssl_, bytes, sizeof(bytes));
    if (num <= 0) return false;
    unread.append(bytes, num);
    return true;
  }
  // The server has said goodbye as TLS wants it: what came was not cut.
  bool WasShut() const { return (SSL_get_shutdown(ssl_) & SSL_RECEIVED_SHUTDOWN) != 0; }
  void Shut() { SSL_shutdown(ssl_); }
  TestClient& socket() { return socket_; }

  std::string unread;

 private:
  TestClient socket_;
  SSL_CTX* context_;
  SSL* ssl_;
  bool is_connected_ = false;
};

class HttpTls : public testing::Test {
 protected:
  void SetUp() override {
    std::string text = (std::filesystem::temp_directory_path() / "quire_tls_XXXXXX").string();
    ASSERT_NE(mkdtemp(text.data()), nullptr);
    folder_ = text;
    options_.port = 0;
    options_.certificate_file = folder_ / "cert.pem";
    options_.key_file = folder_ / "key.pem";
    WriteCertificate(options_.certificate_file, options_.key_file);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::unique_ptr<HttpServer> Start() {
    auto server = HttpServer::Create(options_, &handler_);
    EXPECT_TRUE(server.ok()) << server.status().message();
    (*server)->Run();
    return std::move(*server);
  }

  std::filesystem::path folder_;
  HttpOptions options_;
  TestHandler handler_;
};

TEST_F(HttpTls, AnswersAndKeepsTheConnection) {
  const auto server = Start();
  TlsClient client(server->port());
  ASSERT_TRUE(client.is_connected());
  client.Write(Get("/hello"));
  ASSERT_TRUE(client.ReadTo("\r\n\r\nhello"));
  client.unread.clear();
  client.Write(Post("/echo", std::string(1 << 20, 'x') + "end"));
  ASSERT_TRUE(client.ReadTo("xend"));
  client.unread.clear();
  client.Write(Get("/hello", "Connection: close\r\n"));
  ASSERT_TRUE(client.ReadTo("\r\n\r\nhello"));
  EXPECT_FALSE(client.Fill());
  EXPECT_TRUE(client.WasShut());
}

TEST_F(HttpTls, StreamsAndNoticesWhoLeaves) {
  std::optional<HttpReply> kept;
  std::atomic<int> num_gone{0}, num_started{0};
  handler_.on_request = [&](const HttpRequest&, HttpReply reply) {
    reply.Watch(nullptr, [&](GoneReason) { ++num_gone; });
    reply.Start({.body = "first"});
    kept = std::move(reply);
    ++num_started;
  };
  const auto server = Start();
  {
    TlsClient client(server->port());
    client.Write(Get("/stream"));
    ASSERT_TRUE(client.ReadTo("first"));
    server->Post([&] {
      kept->Write("second");
      kept->Write("third");
    });
    ASSERT_TRUE(client.ReadTo("third"));
    EXPECT_EQ(num_gone, 0);
  }
  EXPECT_TRUE(WaitFor([&] { return num_gone == 1; }, milliseconds(50)));
  TlsClient client(server->port());
  client.Write(Get("/stream"));
  ASSERT_TRUE(client.ReadTo("first"));
  server->Post([&] { kept->Finish("last"); });
  ASSERT_TRUE(client.ReadTo("0\r\n\r\n"));
  client.Shut();
  EXPECT_TRUE(WaitFor([&] { return server->num_connections() == 0; }));
  EXPECT_EQ(num_gone, 1);
}

TEST_F(HttpTls, RefusalsReachTheClient) {
  options_.limits.head_time = milliseconds(1'500);
  const auto server = Start();
  TlsClient client(server->port());
  client.Write("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 2147483648\r\n\r\n" +
               std::string(100'000, 'x'));
  EXPECT_TRUE(client.ReadTo("request_too_large"));
  // Who never speaks TLS is closed by the time of the head.
  TestClient silent(server->port()), plain(server->port());
  EXPECT_TRUE(silent.WaitClosed());
  plain.Write(Get("/hello"));
  EXPECT_TRUE(plain.WaitClosed());
  EXPECT_TRUE(WaitFor([&] { return server->num_connections() <= 1; }));
}

TEST_F(HttpTls, OldVersionsAreNotSpoken) {
  const auto server = Start();
  EXPECT_FALSE(TlsClient(server->port(), TLS1_1_VERSION).is_connected());
  EXPECT_TRUE(TlsClient(server->port(), TLS1_2_VERSION).is_connected());
  EXPECT_TRUE(TlsClient(server->port(), TLS1_3_VERSION).is_connected());
}

TEST_F(HttpTls, FilesThatAreWrongAreNamed) {
  HttpOptions options = options_;
  options.key_file = {};
  EXPECT_EQ(HttpServer::Create(options, &handler_).status().code(), StatusCode::kInvalidArgument);
  options.key_file = folder_ / "none.pem";
  const Status missing = HttpServer::Create(options, &handler_).status();
  EXPECT_EQ(missing.code(), StatusCode::kNotFound);
  EXPECT_NE(missing.message().find("none.pem"), std::string::npos);
  WriteCertificate(folder_ / "other.pem", folder_ / "other_key.pem");
  options.key_file = folder_ / "other_key.pem";
  EXPECT_EQ(HttpServer::Create(options, &handler_).status().code(), StatusCode::kInvalidFile);
  options.certificate_file = options.key_file;
  EXPECT_EQ(HttpServer::Create(options, &handler_).status().code(), StatusCode::kInvalidFile);
}

}  // namespace
}  // namespace quire
