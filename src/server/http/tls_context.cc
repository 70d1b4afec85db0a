#include "server/http/tls_context.h"

#include <openssl/ssl.h>
#include <unistd.h>

namespace quire {
namespace {

using boost::asio::ssl::context;
using ErrorCode = boost::system::error_code;

Status CheckReadable(const std::string& file) {
  if (access(file.c_str(), R_OK) == 0) return OkStatus();
  return {StatusCode::kNotFound, "cannot read " + file};
}

}  // namespace

StatusOr<std::unique_ptr<context>> MakeTlsContext(const std::string& certificate_file,
                                                  const std::string& key_file) {
  if (certificate_file.empty() || key_file.empty())
    return Status(StatusCode::kInvalidArgument,
                  "TLS needs a certificate and its key: give --ssl-certfile and --ssl-keyfile");
  QUIRE_RETURN_IF_ERROR(CheckReadable(certificate_file));
  QUIRE_RETURN_IF_ERROR(CheckReadable(key_file));
  auto tls = std::make_unique<context>(context::tls_server);
  SSL_CTX* raw = tls->native_handle();
  SSL_CTX_set_min_proto_version(raw, TLS1_2_VERSION);
  SSL_CTX_set_options(raw, SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION);
  // Buffers of idle connections are given back.
  SSL_CTX_set_mode(raw, SSL_MODE_RELEASE_BUFFERS);
  ErrorCode error;
  tls->use_certificate_chain_file(certificate_file, error);
  if (error)
    return Status(StatusCode::kInvalidFile,
                  certificate_file + " is no PEM certificate: " + error.message());
  tls->use_private_key_file(key_file, context::pem, error);
  if (error)
    return Status(StatusCode::kInvalidFile,
                  key_file + " is no PEM key of that certificate: " + error.message());
  return tls;
}

}  // namespace quire
