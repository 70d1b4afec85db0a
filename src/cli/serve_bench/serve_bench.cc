#include "cli/serve_bench/serve_bench.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <ctime>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/errors.h"
#include "cli/http_client.h"
#include "cli/progress_line.h"
#include "cli/serve_bench/call_result.h"
#include "cli/serve_bench/prompt_set.h"
#include "cli/serve_bench/serve_load.h"

namespace quire {
namespace {

using Json = nlohmann::json;
using Report = nlohmann::ordered_json;

constexpr uint32_t kUsualVocabulary = 32000;  // where the server tells none

double CpuSeconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// 0 for "inf": all at once.
StatusOr<double> ParseRate(const std::string& text) {
  if (text == "inf") return 0.0;
  double rate = 0;
  const char* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, rate);
  if (parsed.ec != std::errc() || parsed.ptr != end || !(rate > 0) || rate > 1e6)
    return InvalidArgument("--request-rate '{}': need requests a second, or inf", text);
  return rate;
}

// Of the measured server: what it serves.
struct Served {
  std::string model;
  uint32_t num_tokens = kUsualVocabulary;
};

class ServeBench {
 public:
  ServeBench(const ServeBenchFlags& flags, HttpClient& client) : flags_(flags), client_(client) {
    if (!flags.api_key.empty()) headers_.emplace_back("Authorization", "Bearer " + flags.api_key);
  }

  StatusOr<int> Run() {
    QUIRE_ASSIGN_OR_RETURN(const double rate, ParseRate(flags_.request_rate));
    SumUpOptions sum_up{.percentiles = flags_.percentiles, .is_detailed = flags_.save_detailed};
    for (const std::string& text : flags_.goodput) {
      QUIRE_ASSIGN_OR_RETURN(Goal goal, ParseGoal(text));
      sum_up.goals.push_back(std::move(goal));
    }
    QUIRE_ASSIGN_OR_RETURN(const ServeLoadOptions options, LoadOptions());
    QUIRE_RETURN_IF_ERROR(WarmUp(options));
    QUIRE_ASSIGN_OR_RETURN(const auto prompts, Prompts(flags_.num_prompts, rate, flags_.seed));
    ServeLoad load(client_, options, prompts);
    const double cpu_before = CpuSeconds();
    {
      ProgressLine progress;
      load.Run([&](size_t ended, uint64_t tokens) {
        progress.Show(fmt::format("{} of {} answers, {} chunks", ended, prompts.size(), tokens));
      });
    }
    sum_up.duration = load.duration();
    Report report = Head(options, prompts.size());
    report["client_cpu_share"] =
        load.duration() > 0 ? (CpuSeconds() - cpu_before) / load.duration() : 0;
    SumUp(load.results(), sum_up, report);
    if (flags_.save_result || flags_.save_detailed) QUIRE_RETURN_IF_ERROR(Save(report));
    fmt::print("{}", flags_.json ? Dump(report) + "\n" : TableOf(report, sum_up));
    return report["failed"] == 0 ? 0 : 1;
  }

 private:
  static std::string Dump(const Report& report) {
    return report.dump(2, ' ', false, Report::error_handler_t::replace);
  }

  bool is_chat() const { return flags_.backend == "openai-chat"; }

  // kNotFound if the server has none such; else its JSON answer.
  StatusOr<Json> Ask(HttpCall call) {
    call.headers.insert(call.headers.end(), headers_.begin(), headers_.end());
    const std::string path = call.path;
    QUIRE_ASSIGN_OR_RETURN(const HttpAnswer answer, client_.Call(std::move(call)));
    if (answer.status != 200)
      return NotFound("{}{}: status {}: {}", flags_.base_url, path, answer.status,
                      ErrorMessageOf(answer.body));
    Json json = Json::parse(answer.body, nullptr, /*allow_exceptions=*/false);
    if (json.is_discarded()) return NotFound("{}{}: no JSON", flags_.base_url, path);
    return json;
  }

  // With a base address that ends in /v1, as clients' do, that part of a path is there already.
  std::string PathOf(std::string path) const {
    std::string base = flags_.base_url;
    while (!base.empty() && base.back() == '/') base.pop_back();
    if (base.ends_with("/v1") && path.starts_with("/v1/")) path.erase(0, 3);
    return path;
  }

  StatusOr<ServeLoadOptions> LoadOptions() {
    QUIRE_ASSIGN_OR_RETURN(const Json models, Ask({.path = PathOf("/v1/models")}));
    const Json::json_pointer first("/data/0"), count("/data/0/meta/n_vocab");
    if (models.contains(first) && models[first].contains("id") && models[first]["id"].is_string())
      served_.model = models[first]["id"].get<std::string>();
    if (models.contains(count) && models[count].is_number_unsigned() && models[count] != 0)
      served_.num_tokens = models[count].get<uint32_t>();
    if (!flags_.model.empty()) served_.model = flags_.model;
    if (served_.model.empty()) return InvalidArgument("the server names no model: give --model");

    ServeLoadOptions options{.path = flags_.endpoint,
                             .is_chat = is_chat(),
                             .model = served_.model,
                             .ignore_eos = flags_.ignore_eos,
                             .extra_body = Json::object(),
                             .headers = headers_,
                             .max_concurrency = flags_.max_concurrency};
    if (options.path.empty()) options.path = is_chat() ? "/v1/chat/completions" : "/v1/completions";
    options.path = PathOf(options.path);
    if (flags_.temperature >= 0) options.extra_body["temperature"] = flags_.temperature;
    if (!flags_.extra_body.empty()) {
      const Json extra = Json::parse(flags_.extra_body, nullptr, /*allow_exceptions=*/false);
      if (!extra.is_object()) return InvalidArgument("--extra-body: need a JSON object");
      options.extra_body.update(extra);
    }
    return options;
  }

  StatusOr<std::vector<BenchPrompt>> Prompts(uint32_t count, double rate, uint64_t seed) {
    if (flags_.dataset == "sharegpt")
      return ShareGptPrompts(
          {.path = flags_.dataset_path,
           .num_requests = count,
           .output_len = flags_.sharegpt_output_len,
           .rate = rate,
           .seed = seed,
           .count_tokens = [this](const std::string& text) { return CountTokens(text); }});
    const bool repeats = flags_.dataset == "prefix_repetition";
    const uint32_t own = repeats ? flags_.suffix_len : flags_.input_len;
    const uint32_t output = repeats ? flags_.repeated_output_len : flags_.output_len;
    return RandomPrompts(
        {.num_requests = count,
         .prompt_len = {own, own},
         .output_len = {output, output},
         .shared_prefix = repeats ? flags_.repeated_prefix_len : flags_.prefix_len,
         .num_groups = repeats ? flags_.num_prefixes : 1,
         .rate = rate,
         .seed = seed},
        served_.num_tokens,
        flags_.prompt_form == "ids" || (flags_.prompt_form == "auto" && !is_chat()));
  }

  // By the server's /tokenize, in its own form and in llama.cpp's.
  StatusOr<uint32_t> CountTokens(const std::string& text) {
    const Json body = {{"prompt", text}, {"content", text}};
    auto answer =
        Ask({.method = "POST",
             .path = "/tokenize",
             .body = Json{{"prompt", text}}.dump(-1, ' ', false, Json::error_handler_t::replace)});
    if (!answer.ok() || !answer->contains("tokens") || (*answer)["tokens"].empty())
      answer = Ask(
          {.method = "POST",
           .path = "/tokenize",
           .body = Json{{"content", text}}.dump(-1, ' ', false, Json::error_handler_t::replace)});
    if (answer.ok() && answer->contains("tokens") && (*answer)["tokens"].is_array())
      return static_cast<uint32_t>((*answer)["tokens"].size());
    return InvalidArgument("the server has no /tokenize: give --sharegpt-output-len");
  }

  // Not measured: brings what the prompts share into the cache, and the machine to speed. Their own
  // parts are not those of the measured prompts.
  Status WarmUp(const ServeLoadOptions& options) {
    if (flags_.num_warmups == 0) return OkStatus();
    QUIRE_ASSIGN_OR_RETURN(auto prompts,
                           Prompts(flags_.num_prompts + flags_.num_warmups, 0, flags_.seed));
    if (prompts.size() <= flags_.num_warmups)
      return InvalidArgument("--num-warmups {}: the data set holds only {} prompts",
                             flags_.num_warmups, prompts.size());
    prompts.erase(prompts.begin(), prompts.end() - flags_.num_warmups);
    ServeLoad load(client_, options, prompts);
    load.Run([](size_t, uint64_t) {});
    for (const CallResult& result : load.results())
      if (!result.error.empty()) return NotFound("the warm-up failed: {}", result.error);
    return OkStatus();
  }

  Report Head(const ServeLoadOptions& options, size_t num_prompts) const {
    Report report;
    report["schema"] = 1;
    report["date"] = fmt::format("{:%Y%m%d-%H%M%S}", fmt::localtime(std::time(nullptr)));
    report["backend"] = flags_.backend;
    report["endpoint_type"] = flags_.backend;
    report["base_url"] = flags_.base_url;
    report["model_id"] = options.model;
    report["dataset_name"] = flags_.dataset;
    report["num_prompts"] = num_prompts;
    report["request_rate"] = flags_.request_rate;
    report["max_concurrency"] =
        flags_.max_concurrency == 0 ? Report(nullptr) : Report(flags_.max_concurrency);
    return report;
  }

  Status Save(const Report& report) const {
    std::string name = flags_.result_filename;
    if (name.empty()) {
      std::string model = report["model_id"].get<std::string>();
      std::replace(model.begin(), model.end(), '/', '_');
      const std::string concurrency =
          flags_.max_concurrency == 0 ? "" : fmt::format("-concurrency{}", flags_.max_concurrency);
      name = fmt::format("{}-{}qps{}-{}-{}.json", flags_.backend, flags_.request_rate, concurrency,
                         model, report["date"].get<std::string>());
    }
    const std::string path = flags_.result_dir.empty() ? name : flags_.result_dir + "/" + name;
    std::ofstream file(path);
    file << Dump(report) << "\n";
    if (!file.flush()) return NotFound("--save-result: {} cannot be written", path);
    return OkStatus();
  }

  const ServeBenchFlags& flags_;
  HttpClient& client_;
  std::vector<std::pair<std::string, std::string>> headers_;
  Served served_;
};

}  // namespace

StatusOr<int> RunServeBench(const ServeBenchFlags& flags) {
  if (flags.dataset == "sharegpt" && flags.dataset_path.empty())
    return InvalidArgument("--dataset-name sharegpt: give --dataset-path");
  for (const double percentile : flags.percentiles)
    if (!(percentile >= 0 && percentile <= 100))
      return InvalidArgument("--metric-percentiles {}: need 0 to 100", percentile);
  QUIRE_ASSIGN_OR_RETURN(const std::unique_ptr<HttpClient> client,
                         HttpClient::Create(flags.base_url, std::chrono::seconds(flags.timeout_s)));
  return ServeBench(flags, *client).Run();
}

}  // namespace quire
