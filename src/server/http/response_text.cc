#include "server/http/response_text.h"

#include <boost/beast/http/status.hpp>
#include <cstdio>
#include <ostream>  // for boost/beast/http/status.hpp, which does not include it

namespace quire {
namespace {

void AppendField(std::string_view name, std::string_view value, std::string* out) {
  out->append(name);
  out->append(": ");
  for (const char c : value)
    out->push_back(static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? ' ' : c);
  out->append("\r\n");
}

}  // namespace

bool HasBody(int status) { return status >= 200 && status != 204 && status != 304; }

void AppendHead(const HttpResponse& response, const ResponseForm& form, std::string* out) {
  const auto reason = boost::beast::http::obsolete_reason(
      boost::beast::http::int_to_status(static_cast<unsigned>(response.status)));
  out->append("HTTP/1.1 ");
  out->append(std::to_string(response.status));
  out->push_back(' ');
  out->append(reason.data(), reason.size());
  out->append("\r\n");
  AppendField("date", form.date, out);
  AppendField("x-request-id", form.id, out);
  if (response.tells_time) {
    char text[32];
    std::snprintf(text, sizeof(text), "%.0f", form.processing_ms);
    AppendField("openai-processing-ms", text, out);
  }
  if (HasBody(response.status)) {
    if (!response.content_type.empty()) AppendField("content-type", response.content_type, out);
    if (form.length.has_value()) {
      AppendField("content-length", std::to_string(*form.length), out);
    } else if (!form.is_http10) {
      AppendField("transfer-encoding", "chunked", out);
    }
  }
  for (const HttpFields* fields : {&response.fields, &form.fields})
    for (const auto& [name, value] : *fields) AppendField(name, value, out);
  if (!form.keeps_alive) {
    AppendField("connection", "close", out);
  } else if (form.is_http10) {
    AppendField("connection", "keep-alive", out);
  }
  out->append("\r\n");
}

void AppendChunk(std::string_view piece, std::string* out) {
  char size[24];
  out->append(size, std::snprintf(size, sizeof(size), "%zx\r\n", piece.size()));
  out->append(piece);
  out->append("\r\n");
}

void AppendLastChunk(std::string* out) { out->append("0\r\n\r\n"); }

}  // namespace quire
