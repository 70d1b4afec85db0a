#include "plan/read_kv_model.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "base/errors.h"
#include "base/message_text.h"
#include "model/gguf_file.h"
#include "plan/config_json.h"
#include "plan/gguf_model.h"

namespace quire {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kGgufMagic = "GGUF";

// The file that `path` names: itself, or the config.json of a folder.
StatusOr<fs::path> FindFile(const std::string& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status)) return NotFound("there is no such file or folder");
  if (fs::is_regular_file(status)) return fs::path(path);
  if (!fs::is_directory(status))
    return InvalidArgument("is no file: give a GGUF file, a config.json or a folder with one");
  const fs::path config = fs::path(path) / "config.json";
  if (fs::is_regular_file(config, error)) return config;
  return NotFound("the folder has no config.json: give that of a model, or a GGUF file");
}

// The first bytes of a file, one more than a config.json may have.
StatusOr<std::string> ReadStart(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text(kMaxConfigBytes + 1, '\0');
  // A GGUF file is known by its first bytes; the rest of it need not be read.
  file.read(text.data(), static_cast<std::streamsize>(kGgufMagic.size()));
  auto length = static_cast<size_t>(file.gcount());
  if (length == kGgufMagic.size() && !text.starts_with(kGgufMagic)) {
    file.read(text.data() + length, static_cast<std::streamsize>(text.size() - length));
    length += static_cast<size_t>(file.gcount());
  }
  if (file.bad() || !file.is_open()) return NotFound("cannot be read");
  text.resize(length);
  return text;
}

StatusOr<KvModel> ReadText(std::string_view text, const fs::path& path) {
  const size_t first = text.find_first_not_of("\xEF\xBB\xBF \t\r\n");
  if (first == text.npos || text[first] != '{')
    return InvalidFile("is neither a GGUF file nor a config.json");
  QUIRE_ASSIGN_OR_RETURN(KvModel model, ReadConfigJson(text));
  if (model.name.empty()) {
    const fs::path file = fs::absolute(path).lexically_normal();
    // A folder is called as its model, unless the file has another name than all have.
    const bool is_named = file.filename() != "config.json";
    model.name = Printable((is_named ? file.stem() : file.parent_path().filename()).string());
  }
  return model;
}

StatusOr<KvModel> ReadGguf(const fs::path& path) {
  QUIRE_ASSIGN_OR_RETURN(const GgufFile file, GgufFile::Open(path.string()));
  StatusOr<KvModel> model = ReadGgufModel(file.header());
  if (!model.ok()) return model.status().WithContext(path.string());
  if (model->name.empty()) model->name = Printable(path.stem().string());
  return model;
}

}  // namespace

StatusOr<KvModel> ReadKvModel(const std::string& path) {
  const StatusOr<fs::path> file = FindFile(path);
  if (!file.ok()) return file.status().WithContext(path);
  const StatusOr<std::string> start = ReadStart(*file);
  if (!start.ok()) return start.status().WithContext(file->string());
  if (start->starts_with(kGgufMagic)) return ReadGguf(*file);
  StatusOr<KvModel> model = ReadText(*start, *file);
  if (!model.ok()) return model.status().WithContext(file->string());
  return model;
}

}  // namespace quire
