#include "text/test_gguf.h"

#include <cstring>
#include <fstream>
#include <functional>
#include <map>
#include <memory>

#include "base/check.h"

namespace quire {
namespace {

constexpr std::streamsize kMaxHeaderBytes = 16 << 20;
constexpr uint32_t kString = 8, kArray = 9;

class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}

  template <class T>
  T Number() {
    QUIRE_CHECK(rest_.size() >= sizeof(T));
    T value;
    std::memcpy(&value, rest_.data(), sizeof(T));
    rest_.remove_prefix(sizeof(T));
    return value;
  }
  std::string_view String() {
    const auto length = Number<uint64_t>();
    QUIRE_CHECK(rest_.size() >= length);
    const std::string_view text = rest_.substr(0, length);
    rest_.remove_prefix(length);
    return text;
  }
  void Skip(uint32_t type) {
    constexpr size_t kBytes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
    if (type == kString) {
      String();
    } else if (type == kArray) {
      const auto of = Number<uint32_t>();
      for (auto left = Number<uint64_t>(); left > 0; --left) Skip(of);
    } else {
      QUIRE_CHECK(type < std::size(kBytes) && rest_.size() >= kBytes[type]);
      rest_.remove_prefix(kBytes[type]);
    }
  }
  // Reads `one` as often as the array has elements.
  template <class Vector, class One>
  void Array(Vector* out, One one) {
    Number<uint32_t>();
    for (auto left = Number<uint64_t>(); left > 0; --left) out->push_back(one());
  }

 private:
  std::string_view rest_;
};

}  // namespace

Vocabulary VocabularyOfGguf(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  QUIRE_CHECK(file.good());
  auto bytes = std::make_shared<std::string>(kMaxHeaderBytes, '\0');
  file.read(bytes->data(), kMaxHeaderBytes);
  bytes->resize(static_cast<size_t>(file.gcount()));

  Reader r(*bytes);
  QUIRE_CHECK(r.Number<uint32_t>() == 0x46554747);  // "GGUF"
  r.Number<uint32_t>();                             // version
  r.Number<uint64_t>();                             // tensors
  Vocabulary v;
  const auto id = [&](std::optional<TokenId>* out) { *out = r.Number<TokenId>(); };
  const auto flag = [&](std::optional<bool>* out) { *out = r.Number<uint8_t>() != 0; };
  const std::map<std::string_view, std::function<void()>> keys = {
      {"model",
       [&] {
         const std::string_view model = r.String();
         if (model == "llama") v.kind = VocabularyKind::kSpm;
         if (model == "gpt2") v.kind = VocabularyKind::kBpe;
       }},
      {"pre", [&] { v.pre = r.String(); }},
      {"tokens", [&] { r.Array(&v.tokens, [&] { return r.String(); }); }},
      {"merges", [&] { r.Array(&v.merges, [&] { return r.String(); }); }},
      {"scores", [&] { r.Array(&v.scores, [&] { return r.Number<float>(); }); }},
      {"token_type",
       [&] { r.Array(&v.types, [&] { return static_cast<TokenType>(r.Number<int32_t>()); }); }},
      {"bos_token_id", [&] { id(&v.bos); }},
      {"eos_token_id", [&] { id(&v.eos); }},
      {"unknown_token_id", [&] { id(&v.unknown); }},
      {"padding_token_id", [&] { id(&v.padding); }},
      {"add_bos_token", [&] { flag(&v.add_bos); }},
      {"add_eos_token", [&] { flag(&v.add_eos); }},
      {"add_space_prefix", [&] { flag(&v.add_space_prefix); }},
  };
  constexpr std::string_view kPrefix = "tokenizer.ggml.";
  for (auto left = r.Number<uint64_t>(); left > 0; --left) {
    std::string_view key = r.String();
    const auto type = r.Number<uint32_t>();
    const bool ours = key.starts_with(kPrefix);
    if (ours) key.remove_prefix(kPrefix.size());
    const auto known = keys.find(key);
    if (ours && known != keys.end()) {
      known->second();
    } else {
      r.Skip(type);
    }
  }
  v.owner = std::move(bytes);
  return v;
}

}  // namespace quire
