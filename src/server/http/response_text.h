// The text of an answer on the wire: its head, and pieces as chunks.
//
// Threading: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "server/http/http_message.h"

namespace quire {

struct ResponseForm {
  bool keeps_alive = true;
  bool is_http10 = false;
  std::optional<size_t> length;  // none: chunks, or a raw body up to the close for HTTP/1.0
  std::string_view id;           // x-request-id
  std::string_view date;         // as HTTP writes it
  HttpFields fields = {};        // besides the response's
  double processing_ms = 0;      // for HttpResponse::tells_time
};

// Control bytes in values become blanks: no value, whoever it comes from, makes a line of its own.
void AppendHead(const HttpResponse& response, const ResponseForm& form, std::string* out);
// `piece` must not be empty: an empty chunk is the end mark.
void AppendChunk(std::string_view piece, std::string* out);
void AppendLastChunk(std::string* out);
// 204 and 304 (and 1xx) have no body.
bool HasBody(int status);

}  // namespace quire
