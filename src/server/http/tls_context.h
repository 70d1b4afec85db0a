// MakeTlsContext: TLS 1.2 and 1.3 with a certificate and its key from PEM files.
//
// Threading: a pure function.
#pragma once

#include <boost/asio/ssl/context.hpp>
#include <memory>
#include <string>

#include "base/status.h"

namespace quire {

// kInvalidArgument if only one file is named, kNotFound or kInvalidFile with the file's name.
StatusOr<std::unique_ptr<boost::asio::ssl::context>> MakeTlsContext(
    const std::string& certificate_file, const std::string& key_file);

}  // namespace quire
