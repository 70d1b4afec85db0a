// `quire run`: one answer to a prompt, or a chat at the terminal.

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "base/errors.h"
#include "base/memory.h"
#include "base/seconds.h"
#include "cli/command.h"
#include "cli/conversation.h"
#include "cli/engine_flags.h"
#include "cli/input.h"
#include "cli/interrupt.h"

namespace quire {
namespace {

constexpr int kExitCancelled = 130;  // as a shell gives for SIGINT

struct RunFlags {
  EngineFlags engine;
  SamplingFlags sampling;
  std::optional<std::string> prompt;
  std::optional<std::string> prompt_ids;
  std::string system;
  std::string chat_template_path;
  uint32_t max_tokens = 0;
  bool raw = false;
  bool ignore_end = false;
  bool json = false;
};

// False if nobody reads any more.
bool PrintToStdout(std::string_view text) {
  return std::fwrite(text.data(), 1, text.size(), stdout) == text.size() &&
         std::fflush(stdout) == 0;
}

double Rate(size_t count, double seconds) {
  return seconds > 0 ? static_cast<double>(count) / seconds : 0.0;
}

void PrintSummary(Engine& engine, const Generation& answer, double load_seconds) {
  const EngineStats stats = engine.stats();
  const size_t computed = answer.prompt_len - answer.num_cached;
  const size_t decoded = answer.ids.empty() ? 0 : answer.ids.size() - 1;
  fmt::print(stderr,
             "\nload {:.2f} s | prompt {} tokens ({} cached), {:.1f} tokens/s | first token after "
             "{:.3f} s | answer {} tokens, {:.1f} tokens/s | KV {:.1f} MB | weights {:.1f} MB\n",
             load_seconds, answer.prompt_len, answer.num_cached,
             Rate(computed, answer.prompt_seconds), answer.first_token_seconds, answer.ids.size(),
             Rate(decoded, answer.decode_seconds),
             static_cast<double>(stats.kv_held_bytes + stats.kv_cached_bytes) / 1e6,
             static_cast<double>(engine.weight_bytes()) / 1e6);
  if (stats.num_kv_saturated > 0)
    fmt::print(stderr, "warning: {} K or V values beyond f16 were cut to 65504: use --kv f32\n",
               stats.num_kv_saturated);
  if (answer.finish_reason == FinishReason::kContextFull)
    fmt::print(stderr, "the answer ends here: the context is full\n");
  if (answer.finish_reason == FinishReason::kMemoryFull)
    fmt::print(stderr, "the answer ends here: no free page, raise --kv-memory\n");
}

nlohmann::ordered_json ToJson(Engine& engine, const std::vector<TokenId>& prompt,
                              const Generation& answer, const SamplingParams& sampling,
                              double load_seconds) {
  const EngineStats stats = engine.stats();
  return {{"prompt_ids", prompt},
          {"ids", answer.ids},
          {"text", answer.text},
          {"finish_reason", FinishReasonName(answer.finish_reason)},
          {"seed", sampling.seed},
          {"timings",
           {{"load_seconds", load_seconds},
            {"prompt_tokens", prompt.size()},
            {"cached_tokens", answer.num_cached},
            {"match_stop", MatchStopName(answer.match_stop)},
            {"prompt_seconds", answer.prompt_seconds},
            {"first_token_seconds", answer.first_token_seconds},
            {"new_tokens", answer.ids.size()},
            {"decode_seconds", answer.decode_seconds}}},
          {"memory",
           {{"weight_bytes", engine.weight_bytes()},
            {"kv_held_bytes", stats.kv_held_bytes},
            {"kv_cached_bytes", stats.kv_cached_bytes},
            {"kv_committed_bytes", stats.kv_committed_bytes},
            {"kv_saturated_values", stats.num_kv_saturated},
            {"peak_resident_bytes", PeakResidentBytes()}}}};
}

class RunCommand {
 public:
  explicit RunCommand(const RunFlags& flags) : flags_(flags) {}

  StatusOr<int> Run() {
    QUIRE_ASSIGN_OR_RETURN(params_.sampling, ToSamplingParams(flags_.sampling));
    params_.max_tokens = flags_.max_tokens;
    params_.sampling.ignore_eos = flags_.ignore_end;
    const auto start = std::chrono::steady_clock::now();
    QUIRE_ASSIGN_OR_RETURN(engine_, LoadEngine(flags_.engine));
    QUIRE_ASSIGN_OR_RETURN(auto template_source, TemplateSource());
    QUIRE_ASSIGN_OR_RETURN(conversation_,
                           Conversation::Create(*engine_, std::move(template_source)));
    conversation_->SetSystem(flags_.system);
    load_seconds_ = SecondsSince(start);
    if (flags_.prompt_ids.has_value()) {
      QUIRE_ASSIGN_OR_RETURN(const std::vector<TokenId> ids, ParseTokenIds(*flags_.prompt_ids));
      return Answer(ids);
    }
    const bool is_chat = !flags_.prompt.has_value() && isatty(STDIN_FILENO) == 1;
    if (is_chat) return Chat();
    const std::string text = flags_.prompt.has_value() ? *flags_.prompt : ReadAll(stdin);
    QUIRE_ASSIGN_OR_RETURN(const std::vector<TokenId> ids, conversation_->PromptIds(text));
    return Answer(ids);
  }

 private:
  // Nothing: raw text. A model without a template can be run with --raw only, and is told so.
  StatusOr<std::optional<std::string>> TemplateSource() const {
    if (flags_.raw || flags_.prompt_ids.has_value()) return std::optional<std::string>();
    if (!flags_.chat_template_path.empty()) {
      QUIRE_ASSIGN_OR_RETURN(std::string text, ReadFile(flags_.chat_template_path));
      return std::optional<std::string>(std::move(text));
    }
    const auto& own = engine_->model().vocabulary().chat_template;
    if (!own.has_value())
      return InvalidArgument(
          "{}: the model has no chat template: give --chat-template FILE, or --raw to continue "
          "plain text",
          flags_.engine.model_path);
    return own;
  }

  StatusOr<int> Answer(const std::vector<TokenId>& prompt) {
    Interrupt interrupt;
    const auto on_text = [&](std::string_view text) {
      if (!flags_.json && !PrintToStdout(text)) interrupt.Set();
    };
    QUIRE_ASSIGN_OR_RETURN(const Generation answer,
                           conversation_->AskIds(prompt, params_, on_text, interrupt.flag()));
    if (flags_.json) {
      const auto json = ToJson(*engine_, prompt, answer, params_.sampling, load_seconds_);
      fmt::print("{}\n", json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
    } else {
      if (!conversation_->tokenizer().has_text()) fmt::print("{}", fmt::join(answer.ids, " "));
      PrintToStdout("\n");
      PrintSummary(*engine_, answer, load_seconds_);
    }
    return answer.finish_reason == FinishReason::kCancelled ? kExitCancelled : 0;
  }

  StatusOr<int> Chat() {
    Interrupt interrupt;
    fmt::print(stderr, "Ctrl-C stops an answer. /clear forgets, /exit or Ctrl-D ends.\n");
    for (;;) {
      fmt::print(stderr, "\n> ");
      const std::optional<std::string> line = ReadLine();
      if (!line.has_value() || *line == "/exit") break;
      if (line->empty()) continue;
      if (*line == "/clear") {
        conversation_->Clear();
        continue;
      }
      interrupt.Clear();
      const auto on_text = [&](std::string_view text) {
        if (!PrintToStdout(text)) interrupt.Set();
      };
      auto answer = conversation_->Ask(*line, params_, on_text, interrupt.flag());
      interrupt.Clear();
      PrintToStdout("\n");
      if (!answer.ok()) {  // too long, most often: the chat itself goes on
        fmt::print(stderr, "error: {} (/clear starts anew)\n", answer.status().message());
        continue;
      }
      PrintSummary(*engine_, answer.value(), load_seconds_);
    }
    fmt::print(stderr, "\n");
    return 0;
  }

  const RunFlags& flags_;
  GenerationParams params_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<Conversation> conversation_;
  double load_seconds_ = 0;
};

}  // namespace

CommandBody AddRunCommand(CLI::App& app) {
  auto flags = std::make_shared<RunFlags>();
  CLI::App* command = app.add_subcommand("run", "Answer a prompt, or chat at the terminal");
  AddEngineFlags(*command, flags->engine, /*with_threads=*/true);
  command->add_option("-p,--prompt", flags->prompt,
                      "Answer this and end (default: read stdin; a chat if it is a terminal)");
  command->add_option("--prompt-ids", flags->prompt_ids,
                      "Token ids instead of text, such as \"1 403 407\"");
  command->add_option("-s,--system", flags->system, "A system message in front of the chat");
  command->add_option("-n,--max-tokens", flags->max_tokens,
                      "Most tokens of an answer; 0: until the model ends it (default 0)");
  command->add_flag("--raw", flags->raw, "Continue the text as it is, without a chat template");
  command->add_option("--chat-template", flags->chat_template_path,
                      "A file with a chat template instead of the model's own");
  command->add_flag("--ignore-end", flags->ignore_end, "Go on past end-of-answer tokens");
  command->add_flag("--json", flags->json,
                    "Print ids, text, timings and memory as one JSON object on stdout");
  AddSamplingFlags(*command, flags->sampling);
  return [flags]() -> StatusOr<int> { return RunCommand(*flags).Run(); };
}

}  // namespace quire
