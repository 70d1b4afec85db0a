#include "cli/serve_bench/serve_load.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "base/seconds.h"

namespace quire {
namespace {

using Json = nlohmann::json;

constexpr size_t kMaxRefusal = 4096;  // bytes of an error body that are kept

// 0 where there is none.
uint32_t CountAt(const Json& value, const char* pointer) {
  const Json::json_pointer at(pointer);
  if (!value.contains(at) || !value[at].is_number_unsigned()) return 0;
  return value[at].get<uint32_t>();
}

}  // namespace

std::string ErrorMessageOf(const std::string& body) {
  const Json json = Json::parse(body, nullptr, /*allow_exceptions=*/false);
  const Json::json_pointer at("/error/message");
  if (json.is_object() && json.contains(at) && json[at].is_string())
    return json[at].get<std::string>();
  return body.substr(0, 200);
}

ServeLoad::ServeLoad(HttpClient& client, const ServeLoadOptions& options,
                     std::span<const BenchPrompt> prompts)
    : client_(client), options_(options), prompts_(prompts), results_(prompts.size()) {}

void ServeLoad::Run(const std::function<void(size_t, uint64_t)>& on_progress) {
  on_progress_ = on_progress;
  start_ = std::chrono::steady_clock::now();
  for (const BenchPrompt& prompt : prompts_) {
    if (prompt.arrival_seconds == 0) {
      ++num_due_;
      continue;
    }
    client_.At(start_ + std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                            std::chrono::duration<double>(prompt.arrival_seconds)),
               [this] {
                 ++num_due_;
                 StartDue();
               });
  }
  StartDue();
  client_.Run();
  duration_ = SecondsSince(start_);
}

void ServeLoad::StartDue() {
  while (num_started_ < num_due_ &&
         (options_.max_concurrency == 0 || num_started_ - num_ended_ < options_.max_concurrency))
    Start(num_started_++);
}

std::string ServeLoad::BodyOf(const BenchPrompt& prompt) const {
  Json body = {
      {"model", options_.model}, {"stream", true}, {"stream_options", {{"include_usage", true}}}};
  if (options_.is_chat) {
    body["messages"] = Json::array({{{"role", "user"}, {"content", prompt.prompt}}});
    body["max_completion_tokens"] = prompt.output_len;
  } else {
    body["prompt"] = prompt.prompt;
    body["max_tokens"] = prompt.output_len;
  }
  if (options_.ignore_eos) body["ignore_eos"] = true;
  if (options_.extra_body.is_object()) body.update(options_.extra_body);
  return body.dump(-1, ' ', false, Json::error_handler_t::replace);
}

void ServeLoad::Start(size_t index) {
  auto live = std::make_shared<Live>();
  HttpCall call{
      .method = "POST",
      .path = options_.path,
      .body = BodyOf(prompts_[index]),
      .headers = options_.headers,
      .on_sent = nullptr,
      .on_body = [this, index, live](
                     int status, std::string_view piece) { OnBody(index, *live, status, piece); },
      .on_end = [this, index, live](const StatusOr<int>& status) { OnEnd(index, *live, status); }};
  results_[index].started = SecondsSince(start_);
  client_.Start(std::move(call));
}

void ServeLoad::OnBody(size_t index, Live& live, int status, std::string_view piece) {
  if (status != 200) {
    live.refusal += piece.substr(0, kMaxRefusal - std::min(kMaxRefusal, live.refusal.size()));
    return;
  }
  live.scanner.Feed(piece, [&](std::string_view data) { OnData(index, live, data); });
}

void ServeLoad::OnData(size_t index, Live& live, std::string_view data) {
  CallResult& result = results_[index];
  if (data == "[DONE]") {
    live.is_done = true;
    return;
  }
  const ChunkKind kind = KindOfChunk(data);
  if (kind.has_error) {
    result.error = ErrorMessageOf(std::string(data));
    return;
  }
  if (kind.has_choices) {
    result.chunks.push_back(SecondsSince(start_));
    ++num_tokens_;
  }
  if (kind.has_usage) {
    const Json chunk = Json::parse(data, nullptr, /*allow_exceptions=*/false);
    if (!chunk.is_object()) return;
    result.prompt_tokens = CountAt(chunk, "/usage/prompt_tokens");
    result.output_tokens = CountAt(chunk, "/usage/completion_tokens");
    result.cached_tokens = std::max(CountAt(chunk, "/usage/prompt_tokens_details/cached_tokens"),
                                    CountAt(chunk, "/timings/cache_n"));
  }
}

void ServeLoad::OnEnd(size_t index, const Live& live, const StatusOr<int>& status) {
  CallResult& result = results_[index];
  if (!status.ok())
    result.error = status.status().message();
  else if (status.value() != 200)
    result.error = fmt::format("status {}: {}", status.value(), ErrorMessageOf(live.refusal));
  else if (result.error.empty() && !live.is_done)
    result.error = "the stream ended without [DONE]";
  else if (result.error.empty() && result.chunks.empty())
    result.error = "the stream held no chunk with a choice";
  // A server that sends no usage: its chunks are all that can be counted.
  if (result.output_tokens == 0) result.output_tokens = static_cast<uint32_t>(result.chunks.size());
  ++num_ended_;
  on_progress_(num_ended_, num_tokens_);
  StartDue();
}

}  // namespace quire
