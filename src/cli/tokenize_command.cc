// `quire tokenize`: text to token ids and back, with the model's own vocabulary.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/errors.h"
#include "cli/command.h"
#include "cli/engine_flags.h"
#include "cli/input.h"
#include "model/gguf_file.h"
#include "model/vocabulary_reader.h"
#include "text/detokenizer.h"
#include "text/tokenizer.h"

namespace quire {
namespace {

using Json = nlohmann::ordered_json;

struct TokenizeFlags {
  EngineFlags engine;
  std::optional<std::string> text;
  std::optional<std::string> decode_ids;
  bool special = false;
  bool no_add_special = false;
  bool count = false;
  bool json = false;
};

std::string Dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

StatusOr<int> PrintDecoded(const Tokenizer& tokenizer, const TokenizeFlags& flags) {
  QUIRE_ASSIGN_OR_RETURN(const std::vector<TokenId> ids, ParseTokenIds(*flags.decode_ids));
  QUIRE_ASSIGN_OR_RETURN(const std::string text,
                         Decode(tokenizer, ids, {.show_special = flags.special}));
  fmt::print("{}\n", flags.json ? Dump({{"ids", ids}, {"text", text}}) : text);
  return 0;
}

StatusOr<int> PrintEncoded(const Tokenizer& tokenizer, const TokenizeFlags& flags) {
  const std::string text = flags.text.has_value() ? *flags.text : ReadAll(stdin);
  QUIRE_ASSIGN_OR_RETURN(const std::vector<TokenId> ids,
                         tokenizer.Encode(text, {.add_special = !flags.no_add_special,
                                                 .parse_special = flags.special}));
  if (flags.json) {
    Json pieces = Json::array();
    for (const TokenId id : ids) pieces.push_back(tokenizer.Text(id));
    fmt::print("{}\n", Dump({{"num_tokens", ids.size()}, {"ids", ids}, {"pieces", pieces}}));
  } else if (flags.count) {
    fmt::print("{}\n", ids.size());
  } else {
    fmt::print("{}\n", fmt::join(ids, " "));
  }
  return 0;
}

}  // namespace

CommandBody AddTokenizeCommand(CLI::App& app) {
  auto flags = std::make_shared<TokenizeFlags>();
  CLI::App* command = app.add_subcommand("tokenize", "Token ids of a text, or the text of ids");
  AddModelArgument(*command, flags->engine);
  command->add_option("-p,--prompt", flags->text, "The text (default: read stdin)");
  command->add_option("-d,--decode", flags->decode_ids, "Ids to turn into text, such as \"1 403\"");
  command->add_flag("--special", flags->special,
                    "Read names of special tokens in the text as those tokens; print them back");
  command->add_flag("--no-bos", flags->no_add_special, "Add no BOS or EOS");
  command->add_flag("--count", flags->count, "Print the number of tokens only");
  command->add_flag("--json", flags->json, "Print one JSON object");
  return [flags]() -> StatusOr<int> {
    QUIRE_ASSIGN_OR_RETURN(const GgufFile file, GgufFile::Open(flags->engine.model_path));
    QUIRE_ASSIGN_OR_RETURN(Vocabulary vocabulary,
                           ReadVocabulary(file.header(), file.header_memory()));
    if (vocabulary.kind == VocabularyKind::kNone)
      return InvalidArgument("{}: the model has no tokenizer", file.path());
    QUIRE_ASSIGN_OR_RETURN(const Tokenizer tokenizer, Tokenizer::Create(std::move(vocabulary)));
    return flags->decode_ids.has_value() ? PrintDecoded(tokenizer, *flags)
                                         : PrintEncoded(tokenizer, *flags);
  };
}

}  // namespace quire
