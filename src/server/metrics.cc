#include "server/metrics.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <iterator>
#include <mutex>
#include <utility>

#include "server/engine_metrics.h"
#include "server/metric_families.h"

namespace quire {
namespace {

using prometheus::Counter;
using prometheus::Family;
using prometheus::Gauge;
using Samples = prometheus::Histogram;
using Buckets = Samples::BucketBoundaries;
using Labels = prometheus::Labels;

const Buckets kFirstTokenBuckets = {.001, .005, .01, .02, .04, .06, .08, .1, .25, .5,  .75,
                                    1,    2.5,  5,   7.5, 10,  20,  40,  80, 160, 640, 2560};
const Buckets kTokenBuckets = {.01, .025, .05, .075, .1,  .15, .2, .3, .4, .5,
                               .75, 1,    2.5, 5,    7.5, 10,  20, 40, 80};
const Buckets kRequestBuckets = {.3, .5, .8, 1,  1.5, 2,   2.5, 5,   10,   15,  20,
                                 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680};
const Buckets kChoiceBuckets = {1, 2, 5, 10, 20};
const Buckets kPreemptionBuckets = {1, 2, 3, 4, 5, 10, 20};
const Buckets kHttpBuckets = {.01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120, 600};

// 1, 2, 5 x 10^k up to `most`.
Buckets CountBuckets(uint32_t most) {
  Buckets buckets;
  for (double power = 1;; power *= 10)
    for (const double digit : {1., 2., 5.}) {
      if (digit * power > most) return buckets;
      buckets.push_back(digit * power);
    }
}

constexpr std::string_view kRequestEnds[] = {"stop", "length", "abort", "error"};
constexpr size_t kStop = 0, kLength = 1, kAbort = 2, kError = 3;
constexpr double kStallSeconds = 10;
constexpr std::string_view kMethods[] = {"GET", "POST", "PATCH", "DELETE", "HEAD", "OPTIONS"};

// The index of the end of a call: the last in the order of kRequestEnds of those of its choices.
size_t EndOf(const CallSummary& call) {
  const auto has = [&](std::string_view reason) {
    return std::ranges::find(call.finish_reasons, reason) != call.finish_reasons.end();
  };
  if (call.status == 499 || has("abort")) return kAbort;  // by its client or by somebody's order
  if (!call.error_code.empty() || has("error")) return kError;
  return has("length") ? kLength : kStop;
}

}  // namespace

struct Metrics::Impl {
  explicit Impl(const MetricsOptions& all_options)
      : options(all_options), vllm{{"model_name", options.model_name}, {"engine", "0"}} {}

  Samples& AddHistogram(const std::string& name, const std::string& help, const Buckets& buckets) {
    return prometheus::BuildHistogram().Name(name).Help(help).Register(registry).Add(vllm, buckets);
  }
  Family<Counter>& AddCounters(const std::string& name, const std::string& help) {
    return prometheus::BuildCounter().Name(name).Help(help).Register(registry);
  }
  Labels Vllm(const std::string& label, std::string_view value) const {
    Labels labels = vllm;
    labels.emplace(label, value);
    return labels;
  }

  const MetricsOptions options;
  const Labels vllm;  // of each name of vLLM's
  prometheus::Registry registry;
  const Buckets counts = CountBuckets(options.context_len);

  Samples& first_token =
      AddHistogram("vllm:time_to_first_token_seconds",
                   "From a request's whole body to its first token.", kFirstTokenBuckets);
  Samples& token_gap = AddHistogram("vllm:inter_token_latency_seconds",
                                    "Between two tokens of an answer.", kTokenBuckets);
  Samples& token_time =
      AddHistogram("vllm:request_time_per_output_token_seconds",
                   "Mean time of the tokens after the first, of a request.", kTokenBuckets);
  Samples& old_token_time =
      AddHistogram("vllm:time_per_output_token_seconds", "Old name of the same.", kTokenBuckets);
  Samples& whole = AddHistogram("vllm:e2e_request_latency_seconds",
                                "From a request's whole body to its end.", kRequestBuckets);
  Samples& queue = AddHistogram("vllm:request_queue_time_seconds",
                                "From a request's arrival to its start.", kRequestBuckets);
  Samples& prefill = AddHistogram("vllm:request_prefill_time_seconds",
                                  "From a request's start to its first token.", kRequestBuckets);
  Samples& decode = AddHistogram("vllm:request_decode_time_seconds",
                                 "From a request's first token to its end.", kRequestBuckets);
  Samples& inference = AddHistogram("vllm:request_inference_time_seconds",
                                    "From a request's start to its end.", kRequestBuckets);
  Samples& prompt_tokens =
      AddHistogram("vllm:request_prompt_tokens", "Tokens of a request's prompt.", counts);
  Samples& generated_tokens =
      AddHistogram("vllm:request_generation_tokens", "Tokens generated for a request.", counts);
  Samples& longest_choice = AddHistogram("vllm:request_max_num_generation_tokens",
                                         "Tokens of a request's longest choice.", counts);
  Samples& max_tokens = AddHistogram("vllm:request_params_max_tokens",
                                     "max_tokens of requests that name it.", counts);
  Samples& computed_tokens = AddHistogram("vllm:request_prefill_kv_computed_tokens",
                                          "Prompt tokens of a request that no cache had.", counts);
  Samples& num_choices =
      AddHistogram("vllm:request_params_n", "Choices that a request asks for.", kChoiceBuckets);
  Samples& num_preemptions = AddHistogram("vllm:request_num_preemptions",
                                          "How often a request was preempted.", kPreemptionBuckets);

  Family<Counter>& ends = AddCounters("vllm:request_success_total", "Requests that have ended.");
  std::array<Counter*, std::size(kRequestEnds)> end_counters = {};
  Family<Counter>& http = AddCounters("http_requests_total", "Answered HTTP requests.");
  Family<Samples>& http_seconds = prometheus::BuildHistogram()
                                      .Name("http_request_duration_seconds")
                                      .Help("From an HTTP request's head to its answer's end.")
                                      .Register(registry);
  Family<Counter>& rejections =
      AddCounters("quire_rejections_total", "Refusals, by the code of the error.");
  Family<Counter>& disconnects =
      AddCounters("quire_disconnects_total", "Clients that left before their answer's end.");
  Counter& engine_stalls = AddCounters("quire_engine_stalls_total",
                                       "Times that the engine had work and made no step for 10 s.")
                               .Add({});
  std::atomic<bool> is_stalled{false};

  // Of the last calls: each weighs kOlderCalls of the one after it.
  static constexpr double kOlderCalls = 0.9;
  mutable std::mutex prefill_mutex;
  double recent_prefill_tokens = 0, recent_prefill_seconds = 0;

  Gauge& stalled_streams = prometheus::BuildGauge()
                               .Name("quire_stalled_streams")
                               .Help("Streams whose client does not take what is there.")
                               .Register(registry)
                               .Add({});
};

Metrics::Metrics(const MetricsOptions& options) : impl_(std::make_unique<Impl>(options)) {
  for (size_t i = 0; i < std::size(kRequestEnds); ++i)
    impl_->end_counters[i] = &impl_->ends.Add(impl_->Vllm("finished_reason", kRequestEnds[i]));
  impl_->ends.Add(impl_->Vllm("finished_reason", "repetition"));  // vLLM's; we have no such end
  for (const char* phase : {"queued", "prefill", "decode"})
    impl_->disconnects.Add({{"phase", phase}});
}

Metrics::~Metrics() = default;

const MetricsOptions& Metrics::options() const { return impl_->options; }

std::optional<double> Metrics::prefill_tokens_per_second() const {
  const std::lock_guard lock(impl_->prefill_mutex);
  if (impl_->recent_prefill_seconds <= 0) return {};
  return impl_->recent_prefill_tokens / impl_->recent_prefill_seconds;
}

void Metrics::ObserveCall(const CallSummary& call) {
  Impl& m = *impl_;
  if (call.status == 499)
    m.disconnects.Add({{"phase", call.phase}}).Increment();
  else if (!call.error_code.empty())
    CountRejection(call.error_code);
  if (call.num_prompts == 0) return;  // it never reached the engine
  m.end_counters[EndOf(call)]->Increment();
  const double engine_seconds = call.total_seconds - call.read_seconds;
  m.whole.Observe(call.total_seconds);
  m.queue.Observe(call.queue_seconds);
  m.inference.Observe(std::max(0.0, engine_seconds - call.queue_seconds));
  if (call.first_token_seconds >= 0) {
    m.first_token.Observe(call.read_seconds + call.first_token_seconds);
    const double prefill_seconds = call.first_token_seconds - call.queue_seconds;
    m.prefill.Observe(prefill_seconds);
    {
      const std::lock_guard lock(m.prefill_mutex);
      m.recent_prefill_tokens = m.recent_prefill_tokens * Impl::kOlderCalls +
                                static_cast<double>(call.prompt_tokens - call.cached_tokens);
      m.recent_prefill_seconds = m.recent_prefill_seconds * Impl::kOlderCalls + prefill_seconds;
    }
    m.decode.Observe(call.decode_seconds);
    if (call.longest_answer > 1) {
      const double token_seconds =
          call.decode_seconds / static_cast<double>(call.longest_answer - 1);
      m.token_time.Observe(token_seconds);
      m.old_token_time.Observe(token_seconds);
    }
  }
  for (const float gap : call.token_gaps_s) m.token_gap.Observe(gap);
  m.prompt_tokens.Observe(static_cast<double>(call.prompt_tokens));
  m.computed_tokens.Observe(static_cast<double>(call.prompt_tokens - call.cached_tokens));
  m.generated_tokens.Observe(static_cast<double>(call.generated_tokens));
  m.longest_choice.Observe(static_cast<double>(call.longest_answer));
  if (call.max_tokens.has_value()) m.max_tokens.Observe(*call.max_tokens);
  m.num_choices.Observe(call.num_choices);
  m.num_preemptions.Observe(call.num_preemptions);
}

void Metrics::ObserveHttp(std::string_view method, int status, std::string_view handler,
                          double seconds) {
  if (std::ranges::find(kMethods, method) == std::end(kMethods)) method = "other";
  const Labels route = {{"method", std::string(method)}, {"handler", std::string(handler)}};
  Labels answer = route;
  answer.emplace("status", std::to_string(status));
  impl_->http.Add(answer).Increment();
  impl_->http_seconds.Add(route, kHttpBuckets).Observe(seconds);
}

void Metrics::CountRejection(std::string_view code) {
  impl_->rejections.Add({{"code", std::string(code)}}).Increment();
}

void Metrics::NoteStall(double stalled_seconds) {
  const bool is_stalled = stalled_seconds > kStallSeconds;
  if (is_stalled && !impl_->is_stalled.exchange(true)) impl_->engine_stalls.Increment();
  if (!is_stalled) impl_->is_stalled.store(false);
}
void Metrics::SetStalledStreams(uint32_t count) { impl_->stalled_streams.Set(count); }

namespace {

std::string Serialise(std::vector<prometheus::MetricFamily> families,
                      std::vector<prometheus::MetricFamily> observed) {
  std::move(observed.begin(), observed.end(), std::back_inserter(families));
  std::erase_if(families, [](const auto& family) { return family.metric.empty(); });
  return prometheus::TextSerializer().Serialize(families);
}

}  // namespace

std::string Metrics::Text(Engine* engine) const {
  if (engine != nullptr) {
    EngineStats stats;
    KvReport report;
    engine->Ask([&](StepLoop& loop) {
      stats = loop.stats();
      report = ReadKvReport(*engine, loop, stats);
    });
    return Text(stats, report);
  }
  MetricFamilies families;
  AddProcessFamilies(&families);
  return Serialise(std::move(families.families()), impl_->registry.Collect());
}

std::string Metrics::Text(const EngineStats& stats, const KvReport& report) const {
  MetricFamilies families;
  AddEngineFamilies(impl_->options, stats, report, &families);
  AddProcessFamilies(&families);
  return Serialise(std::move(families.families()), impl_->registry.Collect());
}

}  // namespace quire
