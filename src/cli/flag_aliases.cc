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
  kOnly,     // its value must be one of `neutral`, which is what we do; else `ours` tells why not
  kMaybe,    // the same, but it may stand without a value too
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
constexpr std::string_view kPacked =
    "weights are packed into memory of the process when they are loaded: leave it out";
constexpr std::string_view kRequests = "each request says it for itself: leave it out";
constexpr std::string_view kDefaults =
    "each request says it for itself; --sampling-defaults model takes the file's own values";
constexpr std::string_view kFileOnly =
    "nothing is downloaded: name a GGUF file that is here, as quire serve MODEL.gguf";
constexpr std::string_view kDraft = "speculative decoding is not here";
constexpr std::string_view kRope = "positions are as the file has them: leave it out";
constexpr std::string_view kLogLevel = "use --log-level debug, info, warning or error";
constexpr std::string_view kProxy = "leave that to a proxy in front (docs/server.md)";
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
    {"-pp", Kind::kOnly, kOneMachine, "1"},
    {"-dp", Kind::kOnly, kOneMachine, "1"},
    {"--api-server-count", Kind::kOnly, kOneMachine, "1"},
    {"--distributed-executor-backend", Kind::kRefused, kOneMachine},
    {"--enable-expert-parallel", Kind::kRefused, kOneMachine},
    {"--disable-frontend-multiprocessing", Kind::kWords},  // always
    {"--device", Kind::kOnly, kOnCpu, "cpu auto"},
    {"--num-gpu-blocks-override", Kind::kRefused, kMemory},
    {"--swap-space", Kind::kOnly, kNoTiers, "0"},
    {"--cpu-offload-gb", Kind::kOnly, kNoTiers, "0"},
    {"--enable-chunked-prefill", Kind::kWords},  // always
    {"--no-enable-chunked-prefill", Kind::kRefused,
     "long prompts are always computed in parts: use --token-budget"},
    {"--enable-prompt-tokens-details", Kind::kWords},  // always
    {"--prefix-caching-hash-algo", Kind::kRefused,
     "cached pages are compared token by token, without hashes: leave it out"},
    {"--scheduling-policy", Kind::kOnly,
     "requests go by their priority, equal ones in the order in which they came: leave it out",
     "priority"},
    {"--speculative-config", Kind::kRefused, kDraft},
    {"--load-format", Kind::kOnly, kFileOnly, "auto gguf"},
    {"--download-dir", Kind::kRefused, kFileOnly},
    {"--revision", Kind::kRefused, kFileOnly},
    {"--tokenizer", Kind::kRefused, "the tokenizer is the one of the GGUF file: leave it out"},
    {"--tokenizer-mode", Kind::kOnly, "the tokenizer is the one of the GGUF file: leave it out",
     "auto"},
    {"--rope-scaling", Kind::kRefused, kRope},
    {"--rope-theta", Kind::kRefused, kRope},
    {"--seed", Kind::kRefused, kRequests},
    {"--max-logprobs", Kind::kOnly, "requests may ask for at most 20: leave it out", "20"},
    {"--generation-config", Kind::kRefused, "use --sampling-defaults openai or model"},
    {"--override-generation-config", Kind::kRefused, kDefaults},
    {"--return-tokens-as-token-ids", Kind::kRefused, kRequests},
    {"--guided-decoding-backend", Kind::kRefused, "structured output is not here yet"},
    {"--limit-mm-per-prompt", Kind::kRefused, "models of text only are served: leave it out"},
    {"--enable-sleep-mode", Kind::kRefused,
     "an idle server gives the memory of its pages back by itself: leave it out"},
    {"--disable-log-requests", Kind::kRefused, kLogLevel},
    {"--disable-log-stats", Kind::kRefused, kLogLevel},
    {"--disable-uvicorn-access-log", Kind::kRefused, kLogLevel},
    {"--uvicorn-log-level", Kind::kRefused, kLogLevel},
    {"--otlp-traces-endpoint", Kind::kRefused, "traces are not sent: use /metrics and the log"},
    {"--root-path", Kind::kRefused, kProxy},
    {"--middleware", Kind::kRefused, kProxy},
    {"--ssl-ca-certs", Kind::kRefused, "clients are known by their keys: use --api-key-file"},
    {"--ssl-cert-reqs", Kind::kRefused, "clients are known by their keys: use --api-key-file"},
    {"--task", Kind::kOnly, "the server generates text: leave it out", "generate auto"},
    {"--runner", Kind::kOnly, "the server generates text: leave it out", "generate auto"},
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
    {"-fa", Kind::kMaybe, "attention always goes page by page: leave it out", "on auto 1"},
    {"--flash-attn", Kind::kMaybe, "attention always goes page by page: leave it out", "on auto 1"},
    {"-cb", Kind::kWords},              // always
    {"--cont-batching", Kind::kWords},  // always
    {"-nocb", Kind::kRefused, "requests always join the batch as they come: use --max-seqs 1"},
    {"--no-cont-batching", Kind::kRefused,
     "requests always join the batch as they come: use --max-seqs 1"},
    {"--mlock", Kind::kRefused,
     "memory is not locked: forbid swapping for the process instead, as by systemd's "
     "MemorySwapMax=0"},
    {"--no-mmap", Kind::kWords},  // always
    {"--mmap", Kind::kRefused, kPacked},
    {"-nkvo", Kind::kWords},            // always
    {"--no-kv-offload", Kind::kWords},  // always
    {"-sm", Kind::kOnly, kOnCpu, "none"},
    {"--split-mode", Kind::kOnly, kOnCpu, "none"},
    {"-ts", Kind::kRefused, kOnCpu},
    {"--tensor-split", Kind::kRefused, kOnCpu},
    {"-mg", Kind::kRefused, kOnCpu},
    {"--main-gpu", Kind::kRefused, kOnCpu},
    {"-dev", Kind::kOnly, kOnCpu, "none"},
    {"--numa", Kind::kRefused, "use numactl in front of quire"},
    {"-dt", Kind::kRefused, "pages leave no gaps: leave it out"},
    {"--defrag-thold", Kind::kRefused, "pages leave no gaps: leave it out"},
    {"-sps", Kind::kRefused, "any equal beginning is reused, of whichever request: leave it out"},
    {"--slot-prompt-similarity", Kind::kRefused,
     "any equal beginning is reused, of whichever request: leave it out"},
    {"--slots", Kind::kRefused, "there are no slots: GET /quire/v1/requests lists what runs"},
    {"--no-slots", Kind::kWords},  // there are none
    {"--no-webui", Kind::kWords},  // there is none
    {"--threads-http", Kind::kRefused, "one thread does HTTP: leave it out"},
    {"-to", Kind::kRefused, "use --write-stall, --body-timeout and --request-timeout"},
    {"--timeout", Kind::kRefused, "use --write-stall, --body-timeout and --request-timeout"},
    {"--api-prefix", Kind::kRefused, kProxy},
    {"-v", Kind::kRefused, kLogLevel},
    {"--verbose", Kind::kRefused, kLogLevel},
    {"--log-disable", Kind::kRefused, kLogLevel},
    {"--log-file", Kind::kRefused, "lines go to stderr: send that to a file"},
    {"-n", Kind::kRefused, "each request says it for itself, as max_tokens"},
    {"--predict", Kind::kRefused, "each request says it for itself, as max_tokens"},
    {"--n-predict", Kind::kRefused, "each request says it for itself, as max_tokens"},
    {"-s", Kind::kRefused, kRequests},
    {"--temp", Kind::kRefused, kDefaults},
    {"--top-k", Kind::kRefused, kDefaults},
    {"--top-p", Kind::kRefused, kDefaults},
    {"--min-p", Kind::kRefused, kDefaults},
    {"--repeat-penalty", Kind::kRefused, kDefaults},
    {"-hf", Kind::kRefused, kFileOnly},
    {"--hf-repo", Kind::kRefused, kFileOnly},
    {"-hff", Kind::kRefused, kFileOnly},
    {"--hf-file", Kind::kRefused, kFileOnly},
    {"-mu", Kind::kRefused, kFileOnly},
    {"--model-url", Kind::kRefused, kFileOnly},
    {"--lora", Kind::kRefused, "adapters are not here"},
    {"--mmproj", Kind::kRefused, "models of text only are served: leave it out"},
    {"-md", Kind::kRefused, kDraft},
    {"--model-draft", Kind::kRefused, kDraft},
    {"--rope-freq-base", Kind::kRefused, kRope},
    {"--rope-freq-scale", Kind::kRefused, kRope},
    {"--override-kv", Kind::kRefused, "the GGUF file is taken as it is: leave it out"},
    {"--swa-full", Kind::kRefused, "sliding windows keep what they read: leave it out"},
    {"--reasoning-format", Kind::kRefused, "reasoning is not told apart from content yet"},
    {"--pooling", Kind::kRefused, "embeddings are not here yet"},
    {"--reranking", Kind::kRefused, "reranking is not here"},
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

// Is the word one of those that `list` has, with blanks between them?
bool HasWord(std::string_view list, std::string_view word) {
  while (!list.empty()) {
    const size_t end = std::min(list.find(' '), list.size());
    if (list.substr(0, end) == word) return true;
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return false;
}

// A value that may stand behind a flag that needs none.
bool IsSwitchWord(std::string_view word) { return HasWord("on off auto 0 1", word); }

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
    if (alias->kind == Kind::kMaybe && equals == std::string::npos &&
        (i + 1 == arguments.size() || !IsSwitchWord(arguments[i + 1])))
      continue;
    std::string value;
    if (equals != std::string::npos)
      value = argument.substr(equals + 1);
    else if (i + 1 < arguments.size())
      value = arguments[++i];
    else
      return InvalidArgument("{}: the value is missing", alias->theirs);
    if (alias->kind == Kind::kOnly || alias->kind == Kind::kMaybe) {
      if (!HasWord(alias->neutral, value))
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
