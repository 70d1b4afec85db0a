// Client: who sent a request, as its key says. Never as its body says.
//
// Threading: plain values.
#pragma once

#include <string>

namespace quire {

struct Client {
  std::string key_name;            // for logs; empty: no key was needed
  std::string tenant = "default";  // owns pages, shares and limits
  bool is_admin = false;           // sees and changes what other tenants have
  bool may_prioritise = false;     // priority below 0
};

}  // namespace quire
