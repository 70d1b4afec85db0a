#include "server/model_card.h"

#include <fmt/format.h>

#include <ctime>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <utility>

#include "base/errors.h"
#include "base/fnv.h"
#include "base/instruction_set.h"
#include "model/architecture.h"
#include "model/gguf_file.h"

namespace quire {
namespace {

// OpenAI's: what a request gets that names no sampling field.
constexpr SamplingParams kOpenAiSampling = {.temperature = 1, .top_k = 0, .top_p = 1, .min_p = 0};

StatusOr<std::string> ReadText(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  if (!file) return NotFound("the chat template file '{}' cannot be read", path);
  return text.str();
}

uint64_t HashOfText(std::string_view text) {
  uint64_t hash = kFnvStart;
  for (const char c : text) hash = FnvStep(hash, static_cast<unsigned char>(c));
  return hash;
}

}  // namespace

StatusOr<std::unique_ptr<ModelCard>> ModelCard::Create(const ServeOptions& options,
                                                       const Engine& engine) {
  QUIRE_ASSIGN_OR_RETURN(const GgufFile file, GgufFile::Open(options.model_path));
  auto card = std::unique_ptr<ModelCard>(new ModelCard());
  ServedModel& served = card->served_;
  const std::filesystem::path path(options.model_path);
  served.names = options.served_names;
  if (served.names.empty()) served.names = {path.stem().string()};
  served.root = path.filename().string();
  served.owned_by = options.owned_by;
  served.created = std::time(nullptr);
  served.tokenizer = &engine.tokenizer();
  served.context_len = engine.options().context_len;
  served.vocab_size = static_cast<uint32_t>(engine.model().shape().num_tokens);
  served.longest_token_bytes = LongestTokenBytes(engine.tokenizer());
  served.trained_context_len = static_cast<uint32_t>(engine.model().shape().context_length);
  std::map<std::string_view, uint64_t> bytes_by_type;
  for (const GgufTensor& tensor : file.header().tensors()) {
    served.num_parameters += static_cast<uint64_t>(tensor.columns() * tensor.rows());
    bytes_by_type[WeightTypeName(tensor.type)] += tensor.size_bytes;
  }
  uint64_t most_bytes = 0;
  for (const auto& [type, bytes] : bytes_by_type) {
    if (bytes <= most_bytes) continue;
    most_bytes = bytes;
    card->file_type_ = type;
  }
  served.file_bytes = file.size_bytes();
  served.sampling_defaults = kOpenAiSampling;
  served.trusts_request_templates = options.trust_request_chat_template;
  served.refuses_unknown_fields = options.strict_fields;
  if (!options.chat_template_kwargs.empty())
    served.chat_template_kwargs =
        nlohmann::ordered_json::parse(options.chat_template_kwargs, nullptr, false);
  const std::string arithmetic =
      fmt::format("{} {} {}", options.model_path, engine.identity(), served.file_bytes);
  served.system_fingerprint = fmt::format("fp_{:016x}", HashOfText(arithmetic));
  card->architecture_ = std::string(engine.model().architecture().name);
  QUIRE_RETURN_IF_ERROR(card->TakeTemplate(options, engine));
  return card;
}

Status ModelCard::TakeTemplate(const ServeOptions& options, const Engine& engine) {
  std::string source = engine.tokenizer().chat_template().value_or("");
  if (!options.chat_template_path.empty()) {
    QUIRE_ASSIGN_OR_RETURN(source, ReadText(options.chat_template_path));
  }
  if (source.empty()) {
    chat_problem_ = "the model file has no chat template: give --chat-template FILE";
    return OkStatus();
  }
  StatusOr<ChatTemplate> parsed = ChatTemplate::Parse(std::move(source));
  if (parsed.ok()) {
    chat_template_ = std::move(parsed).value();
    served_.chat_template = &*chat_template_;
    return OkStatus();
  }
  // A file that the user named must work; the model's own template is needed for chat only.
  if (!options.chat_template_path.empty())
    return parsed.status().WithContext(options.chat_template_path);
  chat_problem_ = "the model's chat template: " + parsed.status().message();
  return OkStatus();
}

}  // namespace quire
