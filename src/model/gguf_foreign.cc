#include "model/gguf_foreign.h"

namespace quire {
namespace {

struct Magic {
  size_t offset;
  std::string_view bytes;
  std::string_view description;
};

using namespace std::string_view_literals;
constexpr Magic kMagics[] = {
    {8, "{\"", "a safetensors file: convert it to GGUF first"},
    {0, "PK\x03\x04", "a PyTorch checkpoint or another zip archive: convert it to GGUF first"},
    {0, "\x80\x02", "a Python pickle: convert the model to GGUF first"},
    {0, "lmgg", "a model of the old ggml format: convert the model again"},
    {0, "fmgg", "a model of the old ggmf format: convert the model again"},
    {0, "tjgg", "a model of the old ggjt format: convert the model again"},
    {0, "algg", "an adapter of the old ggla format: convert it again"},
    {0, "FUGG", "a GGUF file with swapped bytes"},
    {0, "\x1F\x8B", "a gzip file: unpack it first"},
    {0, "\x28\xB5\x2F\xFD", "a zstd file: unpack it first"},
    {0,
     "\xFD"
     "7zXZ",
     "an xz file: unpack it first"},
    {0, "version https://git-lfs", "a Git LFS pointer, not the model: run git lfs pull"},
    {0, "<!DOCTYPE", "a web page: the download went wrong"},
    {0, "<!doctype", "a web page: the download went wrong"},
    {0, "<html", "a web page: the download went wrong"},
    {0, "{", "a JSON file: name the model's .gguf file"},
    {0, "\0\0\0\0"sv, "zeros: a download that was set up and not filled"},
};

}  // namespace

std::string_view DescribeForeignFormat(std::span<const std::byte> first_bytes) {
  const std::string_view text(reinterpret_cast<const char*>(first_bytes.data()),
                              first_bytes.size());
  for (const Magic& magic : kMagics)
    if (text.size() >= magic.offset && text.substr(magic.offset).starts_with(magic.bytes))
      return magic.description;
  return {};
}

}  // namespace quire
