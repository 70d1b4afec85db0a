// Client: who sent a request, as its key says. Nothing in it comes from the request's body.
//
// Threading: a plain value.
#pragma once

#include <string>

namespace quire {

struct Client {
  std::string key_name;         // for logs; empty without keys
  std::string tenant;           // whose prefixes it shares
  bool is_admin = false;        // sees all tenants, resets the cache
  bool may_prioritise = false;  // may ask for a priority below 0
};

}  // namespace quire
