#include "cli/flag_aliases.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include "base/errors.h"

namespace quire {
namespace {

enum class Kind {
  kSame,     // `ours` is our name of it
  kSeconds,  // ours wants a unit; theirs are seconds
  kBytes,    // ours wants a unit; theirs are bytes
  kWords,    // takes no value; `ours` are the words to put there, none or two
  kOnly,     // its value must be `neutral`, which is what we do; else `ours` tells why not
  kRefused,  // `ours` tells why, and what to use
};

struct Alias {
  std::string_view theirs;
  Kind kind;
  std::string_view ours = {};
  std::string_view neutral = {};
};

constexpr std::string_view kOneMachine = "this server is one process on one machine: leave it out";
constexpr std::string_view kKvCodec = "use --kv f16, f32 or kivi4, for K and V together";
constexpr std::string_view kMemory =
    "KV memory is a number of bytes here: use --kv-memory, such as --kv-memory 8GiB";
constexpr std::string_view kInexact =
    "reuse that changes answers is not offered; equal beginnings are always reused";
constexpr std::string_view kNoShift =
    "an answer ends where its context is full, and no tokens are dropped from a context";
constexpr std::string_view kUnified =
    "all requests share one KV memory anyway: leave it out; --kv-memory is its size";
constexpr std::string_view kOnCpu = "layers run on the CPU in this build: leave it out";
constexpr std::string_view kNoTiers = "tiers below memory are not here yet";

constexpr Alias kAliases[] = {
    // vLLM
    {"--max-num-seqs", Kind::kSame, "--max-seqs"},
    {"--max-num-batched-tokens", Kind::kSame, "--token-budget"},
    {"--block-size", Kind::kSame, "--page-size"},
    {"--kv-cache-memory-bytes", Kind::kBytes, "--kv-memory"},
    {"--enable-prefix-caching", Kind::kWords, "--prefix-cache on"},
    {"--no-enable-prefix-caching", Kind::kWords, "--prefix-cache off"},
    {"--default-chat-template-kwargs", Kind::kSame, "--chat-template-kwargs"},
    {"--max-num-queued-reqs", Kind::kSame, "--max-queue"},
    {"--max-num-queued-tokens", Kind::kSame, "--max-queue-tokens"},
    {"--shutdown-timeout", Kind::kSeconds, "--drain"},
    {"--sse-keep-alive-interval", Kind::kSeconds, "--sse-keep-alive"},
    {"--gpu-memory-utilization", Kind::kRefused, kMemory},
    {"--kv-cache-dtype", Kind::kOnly, kKvCodec, "auto"},
    {"--kv-cache-dtype-skip-layers", Kind::kRefused, "one codec serves all layers: use --kv"},
    {"--allowed-origins", Kind::kRefused, "use --cors-origins https://a.example,https://b.example"},
    {"--tensor-parallel-size", Kind::kOnly, kOneMachine, "1"},
    {"-tp", Kind::kOnly, kOneMachine, "1"},
    {"--pipeline-parallel-size", Kind::kOnly, kOneMachine, "1"},
    {"--data-parallel-size", Kind::kOnly, kOneMachine, "1"},
    {"--quantization", Kind::kRefused, "weights come as the GGUF file has them: leave it out"},
    {"--dtype", Kind::kOnly, "weights come as the GGUF file has them: leave it out", "auto"},
    {"--enforce-eager", Kind::kRefused, "nothing is captured or compiled here: leave it out"},
    {"--kv-offloading-size", Kind::kRefused, kNoTiers},
    {"--kv-events-config", Kind::kRefused, "KV events are not here yet"},
    {"--enable-auto-tool-choice", Kind::kRefused, "tool calls are not here yet"},
    {"--tool-call-parser", Kind::kRefused, "tool calls are not here yet"},
    {"--reasoning-parser", Kind::kRefused, "reasoning is not told apart from content yet"},
    {"--enable-lora", Kind::kRefused, "adapters are not here"},
    {"--trust-remote-code", Kind::kRefused, "no code comes with a GGUF file: leave it out"},
    // llama.cpp
    {"-a", Kind::kSame, "--served-model-name"},
    {"--alias", Kind::kSame, "--served-model-name"},
    {"--ctx-size", Kind::kSame, "--max-model-len"},
    {"-np", Kind::kSame, "--max-seqs"},
    {"--parallel", Kind::kSame, "--max-seqs"},
    {"-b", Kind::kSame, "--token-budget"},
    {"--batch-size", Kind::kSame, "--token-budget"},
    {"-ub", Kind::kRefused, "a step has one budget: use --token-budget"},
    {"--ubatch-size", Kind::kRefused, "a step has one budget: use --token-budget"},
    {"--cache-prompt", Kind::kWords, "--prefix-cache on"},
    {"--no-cache-prompt", Kind::kWords, "--prefix-cache off"},
    {"-ctk", Kind::kOnly, kKvCodec, "f16"},
    {"--cache-type-k", Kind::kOnly, kKvCodec, "f16"},
    {"-ctv", Kind::kOnly, kKvCodec, "f16"},
    {"--cache-type-v", Kind::kOnly, kKvCodec, "f16"},
    {"-kvu", Kind::kRefused, kUnified},
    {"--kv-unified", Kind::kRefused, kUnified},
    {"-cram", Kind::kRefused, kNoTiers},
    {"--cache-ram", Kind::kRefused, kNoTiers},
    {"--slot-save-path", Kind::kRefused, kNoTiers},
    {"-tb", Kind::kRefused, "one pool of threads does all: use --threads"},
    {"--threads-batch", Kind::kRefused, "one pool of threads does all: use --threads"},
    {"--chat-template-file", Kind::kSame, "--chat-template"},
    {"--sse-ping-interval", Kind::kSeconds, "--sse-keep-alive"},
    {"--ssl-cert-file", Kind::kSame, "--ssl-certfile"},
    {"--ssl-key-file", Kind::kSame, "--ssl-keyfile"},
    {"-ngl", Kind::kOnly, kOnCpu, "0"},
    {"--gpu-layers", Kind::kOnly, kOnCpu, "0"},
    {"--n-gpu-layers", Kind::kOnly, kOnCpu, "0"},
    {"--context-shift", Kind::kRefused, kNoShift},
    {"--no-context-shift", Kind::kWords},
    {"--cache-reuse", Kind::kOnly, kInexact, "0"},
    {"--jinja", Kind::kWords},    // always
    {"--metrics", Kind::kWords},  // always
    {"--embedding", Kind::kRefused, "embeddings are not here yet"},
    {"--embeddings", Kind::kRefused, "embeddings are not here yet"},
};

const Alias* Find(std::string_view flag) {
  const auto* alias = std::find_if(std::begin(kAliases), std::end(kAliases),
                                   [&](const Alias& known) { return known.theirs == flag; });
  return alias == std::end(kAliases) ? nullptr : alias;
}

bool IsNumber(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == text.npos;
}

}  // namespace

StatusOr<std::vector<std::string>> TranslateFlags(const std::vector<std::string>& arguments) {
  std::vector<std::string> ours;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (argument == "--") {
      ours.insert(ours.end(), arguments.begin() + static_cast<ptrdiff_t>(i), arguments.end());
      break;
    }
    const size_t equals = argument.find('=');
    const Alias* alias = argument.starts_with('-') ? Find(argument.substr(0, equals)) : nullptr;
    if (alias == nullptr) {
      ours.push_back(argument);
      continue;
    }
    if (alias->kind == Kind::kRefused) return InvalidArgument("{}: {}", alias->theirs, alias->ours);
    if (alias->kind == Kind::kWords) {
      if (const size_t blank = alias->ours.find(' '); blank != std::string_view::npos) {
        ours.emplace_back(alias->ours.substr(0, blank));
        ours.emplace_back(alias->ours.substr(blank + 1));
      }
      continue;
    }
    std::string value;
    if (equals != std::string::npos)
      value = argument.substr(equals + 1);
    else if (i + 1 < arguments.size())
      value = arguments[++i];
    else
      return InvalidArgument("{}: the value is missing", alias->theirs);
    if (alias->kind == Kind::kOnly) {
      if (value != alias->neutral)
        return InvalidArgument("{} {}: {}", alias->theirs, value, alias->ours);
      continue;
    }
    if (alias->kind == Kind::kSeconds && IsNumber(value)) value += "s";
    if (alias->kind == Kind::kBytes && IsNumber(value)) value += "B";
    ours.emplace_back(alias->ours);
    ours.push_back(std::move(value));
  }
  return ours;
}

}  // namespace quire
