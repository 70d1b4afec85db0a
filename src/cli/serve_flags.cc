#include "cli/serve_flags.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/errors.h"
#include "base/units.h"
#include "cli/option_sources.h"

namespace quire {
namespace {

void AddAddressFlags(CLI::App& command, ServeFlags& flags) {
  command.add_option("--host", flags.host,
                     "Address to listen at; one that others reach needs keys (default 127.0.0.1)");
  command.add_option("--port", flags.port, "Port; 0: any that is free (default 8000)");
  command.add_option("--uds", flags.unix_path,
                     "Listen at this Unix socket in place of host and port");
  command.add_option("--ssl-certfile", flags.certificate_file,
                     "Certificate chain (PEM): TLS, together with --ssl-keyfile");
  command.add_option("--ssl-keyfile", flags.key_file, "Private key of the certificate (PEM)");
}

// One value each time: the model may follow it.
CLI::Option* AddRepeated(CLI::App& command, const std::string& name, std::vector<std::string>& to,
                         const std::string& help) {
  return command.add_option(name, to, help)
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

void AddAccessFlags(CLI::App& command, ServeFlags& flags) {
  AddRepeated(command, "--api-key", flags.api_keys,
              "A key that clients must send; other users of this machine see it in the process "
              "list: better QUIRE_API_KEY or --api-key-file. May be given again");
  command.add_option("--api-key-file", flags.api_key_file,
                     "File of keys, tenants, rights and limits, mode 0600 (docs/server.md)");
  command.add_flag("--no-auth", flags.no_auth, "Serve without keys even where others can reach it");
  command.add_flag("--open-metrics", flags.open_metrics,
                   "/metrics needs no key at any address (on loopback it never does)");
  AddRepeated(command, "--allowed-hosts", flags.allowed_hosts,
              "Names that the Host field may have, besides localhost and the address; *: any")
      ->delimiter(',');
  AddRepeated(command, "--cors-origins", flags.cors_origins,
              "Origins whose web pages may use this server, such as https://chat.example; *: any "
              "(default: none)")
      ->delimiter(',');
}

void AddModelFlags(CLI::App& command, ServeFlags& flags) {
  AddRepeated(command, "--served-model-name", flags.served_names,
              "Name of the model in the API; *: take any. May be given again (default: the "
              "model's own)");
  command.add_option("--owned-by", flags.owned_by,
                     "owned_by in /v1/models; routers guess the engine from it (default quire)");
  command.add_option("--chat-template", flags.chat_template_path,
                     "A file with a chat template instead of the model's own");
  command.add_option("--chat-template-kwargs", flags.chat_template_kwargs,
                     "Values for the chat template, a JSON object; requests may change them");
  command.add_flag("--trust-request-chat-template", flags.trust_request_chat_template,
                   "Take chat templates from requests");
  command.add_option("--sampling-defaults", flags.sampling_defaults,
                     "Where a request says nothing: openai, or model for the file's own values "
                     "(default openai)");
  command.add_flag("--strict-fields", flags.strict_fields,
                   "Refuse request fields that are not known; else they are named in "
                   "x-quire-ignored");
}

void AddLimitFlags(CLI::App& command, ServeFlags& flags) {
  command.add_option("--max-queue", flags.max_queue,
                     "Most requests that wait; 0: no limit (default: 4 x max-seqs)");
  command.add_option("--max-queue-tokens", flags.max_queue_tokens,
                     "Most prompt tokens that wait, such as 200k; 0: no limit (default 0)");
  command.add_option("--queue-timeout", flags.queue_timeout,
                     "Longest wait in the queue; 0: no limit (default 0)");
  command.add_option("--request-timeout", flags.request_timeout,
                     "Longest time of a whole request; 0: no limit (default 0)");
  command.add_option("--drain", flags.drain,
                     "Time that running requests get after SIGTERM (default 25s)");
  command.add_option("--sse-keep-alive", flags.sse_keep_alive,
                     "Silence of a stream until a comment line is sent; 0: none (default 15s)");
  command.add_option("--max-body", flags.max_body, "Largest body of a request (default 32MiB)");
  command.add_option("--head-timeout", flags.head_time,
                     "Time that a client has to send the head (default 10s)");
  command.add_option("--body-timeout", flags.body_time,
                     "Time for the body; above 10 KiB a second it may take longer (default 60s)");
  command.add_option("--write-stall", flags.write_stall,
                     "A client that takes nothing for so long is cut (default 60s)");
  command.add_option("--idle-timeout", flags.idle_time,
                     "A connection between two requests is kept so long (default 75s)");
  command.add_option("--max-connections", flags.max_connections,
                     "Most connections at once, 1 to 60000 (default 1024)");
  command.add_option("--max-connections-per-address", flags.max_connections_per_address,
                     "Most of one client address, 1 to 60000 (default 256)");
}

void AddLogFlags(CLI::App& command, ServeFlags& flags) {
  command.add_option("--log-format", flags.log_format,
                     "text, or json for one object a line (default text)");
  command.add_option("--log-level", flags.log_level,
                     "trace, debug, info, warning or error (default info)");
  command.add_flag("--log-prompts", flags.log_prompts,
                   "Write the text of prompts into the log; the banner warns of it");
}

// Checks values and collects what is wrong.
class Reader {
 public:
  explicit Reader(std::vector<std::string>* problems) : problems_(*problems) {}

  void Add(std::string problem) { problems_.push_back(std::move(problem)); }

  template <class T>
  T Get(const char* flag, StatusOr<T> value) {
    if (value.ok()) return std::move(value).value();
    Add(value.status().WithContext(flag).message());
    return T{};
  }

  std::chrono::milliseconds Time(const char* flag, const std::string& text, bool may_be_0) {
    const auto time = Get(flag, ParseDuration(text));
    if (!may_be_0 && text == "0") Add(fmt::format("{}: 0 is no limit here: use 1ms or more", flag));
    return time;
  }

  template <class T>
  T Choice(const char* flag, const std::string& word,
           std::initializer_list<std::pair<const char*, T>> choices) {
    std::vector<std::string> names;
    for (const auto& [name, value] : choices) {
      if (word == name) return value;
      names.emplace_back(name);
    }
    Add(fmt::format("{} '{}': use {}", flag, word, fmt::join(names, ", ")));
    return choices.begin()->second;
  }

 private:
  std::vector<std::string>& problems_;
};

HttpOptions ToHttpOptions(const ServeFlags& flags, Reader& reader) {
  HttpOptions http{.host = flags.host,
                   .port = flags.port,
                   .unix_path = flags.unix_path,
                   .certificate_file = flags.certificate_file,
                   .key_file = flags.key_file};
  if (flags.certificate_file.empty() != flags.key_file.empty())
    reader.Add("--ssl-certfile and --ssl-keyfile go together: give both or none");
  http.limits.body_bytes = reader.Get("--max-body", ParseBytes(flags.max_body));
  http.limits.all_body_bytes = std::max(http.limits.all_body_bytes, http.limits.body_bytes);
  http.limits.head_time = reader.Time("--head-timeout", flags.head_time, false);
  http.limits.body_time = reader.Time("--body-timeout", flags.body_time, false);
  http.limits.write_stall = reader.Time("--write-stall", flags.write_stall, false);
  http.limits.idle = reader.Time("--idle-timeout", flags.idle_time, false);
  http.limits.connections = flags.max_connections;
  http.limits.connections_per_address = flags.max_connections_per_address;
  for (const auto& [flag, number] :
       {std::pair("--max-connections", flags.max_connections),
        std::pair("--max-connections-per-address", flags.max_connections_per_address)})
    if (number < 1 || number > 60'000)
      reader.Add(fmt::format("{} {}: need 1 to 60000", flag, number));
  return http;
}

}  // namespace

void AddServeFlags(CLI::App& command, ServeFlags& flags, bool with_check) {
  command.add_option("MODEL,-m,--model", flags.engine.model_path, "A model file (GGUF)");
  command
      .add_option("--config", flags.config_path,
                  "File of options, one NAME = VALUE a line; flags and QUIRE_NAME come first")
      ->configurable(false);
  AddEngineChoices(command, flags.engine, /*with_threads=*/true);
  AddAddressFlags(command, flags);
  AddAccessFlags(command, flags);
  AddModelFlags(command, flags);
  AddLimitFlags(command, flags);
  AddLogFlags(command, flags);
  if (with_check)
    command
        .add_flag("--check", flags.check,
                  "Load everything, print the banner and end: 0 if it would serve")
        ->configurable(false);
}

ServeOptions ToServeOptions(const ServeFlags& flags, bool needs_model,
                            std::vector<std::string>* problems) {
  Reader reader(problems);
  ServeOptions options;
  options.model_path = flags.engine.model_path;
  if (needs_model && options.model_path.empty())
    reader.Add("no model: name a GGUF file, as quire serve MODEL.gguf");
  options.served_names = flags.served_names;
  for (const std::string& name : options.served_names)
    if (name.empty() || name.size() > 256)
      reader.Add(fmt::format("--served-model-name '{}': need 1 to 256 bytes", name));
  options.owned_by = flags.owned_by;
  std::vector<Status> engine_problems;
  options.engine = ReadEngineOptions(flags.engine, &engine_problems);
  for (const Status& problem : engine_problems) reader.Add(problem.message());
  options.http = ToHttpOptions(flags, reader);
  options.access = {.key_file = flags.api_key_file,
                    .keys = flags.api_keys,
                    .no_auth = flags.no_auth,
                    .open_metrics = flags.open_metrics,
                    .allowed_hosts = flags.allowed_hosts,
                    .cors_origins = flags.cors_origins};

  options.engine.max_queue = 4 * flags.engine.max_seqs;
  if (!flags.max_queue.empty()) {
    const uint64_t most = reader.Get("--max-queue", ParseCount(flags.max_queue));
    if (most > 10'000'000) reader.Add(fmt::format("--max-queue {}: at most 10000000", most));
    options.engine.max_queue = static_cast<uint32_t>(most);
  }
  options.engine.max_queue_tokens =
      reader.Get("--max-queue-tokens", ParseCount(flags.max_queue_tokens));
  options.queue_timeout = reader.Time("--queue-timeout", flags.queue_timeout, true);
  options.request_timeout = reader.Time("--request-timeout", flags.request_timeout, true);
  options.drain = reader.Time("--drain", flags.drain, true);
  options.sse_keep_alive = reader.Time("--sse-keep-alive", flags.sse_keep_alive, true);

  options.strict_fields = flags.strict_fields;
  options.trust_request_chat_template = flags.trust_request_chat_template;
  options.chat_template_path = flags.chat_template_path;
  options.chat_template_kwargs = flags.chat_template_kwargs;
  if (!flags.chat_template_kwargs.empty() &&
      !nlohmann::json::parse(flags.chat_template_kwargs, nullptr, false).is_object())
    reader.Add("--chat-template-kwargs: need a JSON object such as {\"enable_thinking\": false}");
  options.sampling_defaults = reader.Choice<SamplingDefaults>(
      "--sampling-defaults", flags.sampling_defaults,
      {{"openai", SamplingDefaults::kOpenAi}, {"model", SamplingDefaults::kModel}});
  options.log.format = reader.Choice<LogFormat>(
      "--log-format", flags.log_format, {{"text", LogFormat::kText}, {"json", LogFormat::kJson}});
  options.log.level = reader.Choice<LogLevel>("--log-level", flags.log_level,
                                              {{"info", LogLevel::kInfo},
                                               {"trace", LogLevel::kTrace},
                                               {"debug", LogLevel::kDebug},
                                               {"warning", LogLevel::kWarning},
                                               {"error", LogLevel::kError}});
  options.log.logs_prompts = flags.log_prompts;
  return options;
}

ServeOptions ReadServeOptions(CLI::App& command, ServeFlags& flags, bool needs_model,
                              std::vector<std::string>* problems) {
  const OptionOrigins origins = ReadOtherSources(command, "config", problems);
  const auto key = origins.find(command.get_option("--api-key"));
  ServeOptions options = ToServeOptions(flags, needs_model, problems);
  options.access.keys_are_visible = key != origins.end() && key->second == "flag";
  return options;
}

}  // namespace quire
