#include "server/plan_answers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "base/message_text.h"
#include "plan/config_json.h"
#include "plan/plan_json.h"
#include "plan/shape_text.h"
#include "server/admin_fields.h"
#include "server/api/json_reader.h"
#include "server/api/json_text.h"

namespace quire {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMostTextBytes = 512;
constexpr double kMostNumber = 0x1p53;  // an integer in every client

constexpr std::string_view kFields[] = {"shape",
                                        "config",
                                        "users",
                                        "ctx",
                                        "shared_prefix",
                                        "window",
                                        "kv",
                                        "page_size",
                                        "kv_sink_pages",
                                        "kv_recent_pages",
                                        "memory_bytes",
                                        "gpus",
                                        "cache_share",
                                        "kv_memory_bytes",
                                        "weights_dtype",
                                        "bandwidth_bytes_per_second",
                                        "flops",
                                        "ttft_seconds",
                                        "tpot_seconds"};

// A number above 0, or nothing.
ApiResult<std::optional<double>> ReadNumber(const Json& object, const char* name) {
  const auto found = object.find(name);
  if (found == object.end() || found->is_null()) return std::optional<double>();
  const double number = found->is_number() ? found->get<double>() : std::nan("");
  if (number > 0 && number <= kMostNumber) return std::optional<double>(number);
  return InvalidValue(name, fmt::format("{}: need a number above 0, at most 2^53", name));
}

// Reads fields one after the other; keeps the first error.
class BodyReader {
 public:
  explicit BodyReader(const Json& body) : body_(body) {}

  template <class T>
  void Count(const char* name, uint32_t least, uint32_t most, T* to) {
    Take(ReadCount(body_, name, least, most), to);
  }
  template <class T>
  void Number(const char* name, T* to) {
    Take(ReadNumber(body_, name), to);
  }
  // A whole number of bytes.
  void Bytes(const char* name, std::optional<uint64_t>* to) {
    std::optional<double> number;
    Number(name, &number);
    if (!number.has_value()) return;
    if (*number != std::floor(*number))
      return Fail(InvalidValue(name, fmt::format("{}: need a whole number of bytes", name)));
    *to = static_cast<uint64_t>(*number);
  }
  std::optional<std::string> Text(const char* name) {
    std::optional<std::string> text;
    Take(ReadText(body_, name, kMostTextBytes), &text);
    return text;
  }
  void Fail(ApiError error) {
    if (!error_.has_value()) error_ = std::move(error);
  }
  void Check(const char* name, const Status& status) {
    if (!status.ok()) Fail(InvalidValue(name, fmt::format("{}: {}", name, status.message())));
  }
  const std::optional<ApiError>& error() const { return error_; }

 private:
  template <class Value, class T>
  void Take(ApiResult<std::optional<Value>> result, T* to) {
    if (!result.ok()) return Fail(result.error());
    if (result.value().has_value()) *to = std::move(*result.value());
  }

  const Json& body_;
  std::optional<ApiError> error_;
};

void ReadMemory(BodyReader& reader, MemoryRequest* memory) {
  reader.Bytes("memory_bytes", &memory->total_bytes);
  if (const auto text = reader.Text("gpus")) {
    const auto gpus = ParseAccelerators(*text);
    reader.Check("gpus", gpus.status());
    if (gpus.ok()) memory->gpus = *gpus;
  }
  // What is said of the memory goes before the served model's budget.
  std::optional<double> share;
  reader.Number("cache_share", &share);
  if (memory->total_bytes.has_value() || memory->gpus.has_value() || share.has_value())
    memory->kv_bytes = {};
  memory->cache_share = share;
  reader.Bytes("kv_memory_bytes", &memory->kv_bytes);
  memory->weights_dtype = reader.Text("weights_dtype");
}

}  // namespace

PlanAnswers::PlanAnswers(std::optional<KvModel> served, const EngineOptions& options,
                         uint64_t budget_bytes)
    : served_(std::move(served)) {
  defaults_.kv.k = defaults_.kv.v = &KvFormatOf(options.kv_codec);
  defaults_.kv.page_size = options.page_size;
  defaults_.kv.sink_pages = options.sink_pages;
  defaults_.kv.recent_pages = options.recent_pages;
  defaults_.context_len = options.context_len;
  defaults_.memory.kv_bytes = budget_bytes;
  if (!served_.has_value()) return;
  defaults_.model = *served_;
  defaults_.memory.machine_bytes = served_->weight_bytes.value_or(0) + budget_bytes;
  defaults_.memory.machine_source = "weights and KV budget of this server";
}

ApiResult<PlanRequest> PlanAnswers::Read(std::string_view body) const {
  auto object = ReadJsonObject(body);
  if (!object.ok()) return object.error();
  const Json& json = object.value();
  for (const auto& [name, value] : json.items())
    if (std::ranges::find(kFields, name) == std::end(kFields))
      return InvalidValue(Printable(name),
                          fmt::format("unknown field; known are {}", fmt::join(kFields, ", ")));
  BodyReader reader(json);
  const std::optional<std::string> shape = reader.Text("shape");
  const auto config = json.find("config");
  const bool has_config = config != json.end() && !config->is_null();
  if (shape.has_value() && has_config)
    return InvalidValue("config", "shape and config both name a model: give one");
  PlanRequest request;
  if (shape.has_value()) {
    auto model = ReadShapeText(*shape);
    reader.Check("shape", model.status());
    if (model.ok()) request.model = std::move(model).value();
  } else if (has_config) {
    auto model = config->is_object() ? ReadConfigJson(config->dump())
                                     : Status(StatusCode::kInvalidArgument, "need an object");
    reader.Check("config", model.status());
    if (model.ok()) request.model = std::move(model).value();
  } else if (served_.has_value()) {
    request = defaults_;
  } else {
    return InvalidValue("shape",
                        "the served model's header tells too little: give shape or config");
  }
  reader.Count("users", 1, kMostPlannedUsers, &request.num_users);
  reader.Count("ctx", 1, kMostPlannedTokens, &request.context_len);
  reader.Count("shared_prefix", 0, kMostPlannedTokens, &request.shared_prefix);
  reader.Count("window", 0, kMostPlannedTokens, &request.window);
  reader.Count("page_size", 16, 4096, &request.kv.page_size);
  reader.Count("kv_sink_pages", 0, 1, &request.kv.sink_pages);
  reader.Count("kv_recent_pages", 0, 1 << 20, &request.kv.recent_pages);
  if (const auto kv = reader.Text("kv")) reader.Check("kv", ParseKvChoice(*kv, &request.kv));
  ReadMemory(reader, &request.memory);
  reader.Number("bandwidth_bytes_per_second", &request.rates.bytes_per_second);
  reader.Number("flops", &request.rates.flops);
  if (request.rates.bytes_per_second > 0 && request.rates.flops > 0)
    request.rates.source = "as given";
  reader.Number("ttft_seconds", &request.ttft_seconds);
  reader.Number("tpot_seconds", &request.tpot_seconds);
  if (reader.error().has_value()) return *reader.error();
  return request;
}

ApiResult<std::string> PlanAnswers::Answer(std::string_view body) const {
  ApiResult<PlanRequest> request = Read(body);
  if (!request.ok()) return request.error();
  const StatusOr<Plan> plan = MakePlan(std::move(request.value()));
  if (!plan.ok()) return InvalidValue("", plan.status().message());
  return ToText(PlanJson(*plan));
}

}  // namespace quire
