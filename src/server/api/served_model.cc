#include "server/api/served_model.h"

#include <algorithm>

namespace quire {

bool ServedModel::IsServed(const std::string& name) const {
  return std::any_of(names.begin(), names.end(),
                     [&](const std::string& known) { return known == name || known == "*"; });
}

uint32_t LongestTokenBytes(const Tokenizer& tokenizer) {
  size_t longest = 1;
  for (size_t id = 0; id < tokenizer.num_tokens(); ++id)
    longest = std::max(longest, tokenizer.Text(static_cast<TokenId>(id)).size());
  return static_cast<uint32_t>(longest);
}

}  // namespace quire
