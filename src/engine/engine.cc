#include "engine/engine.h"

#include <algorithm>
#include <chrono>
#include <future>
#include <utility>

#include "base/errors.h"
#include "base/message_text.h"
#include "base/seconds.h"
#include "cache/kv_need.h"

namespace quire {
namespace {

// The longest that a sequence can become within the context, alone in the whole budget.
uint32_t LongestAlone(const ModelRunner& runner) {
  uint32_t longest = 0, too_long = runner.options().context_len + 1;
  while (too_long - longest > 1) {
    const uint32_t middle = longest + (too_long - longest) / 2;
    const bool fits = LeastBytes(runner.cache().shape(), middle) <= runner.kv_budget_bytes();
    (fits ? longest : too_long) = middle;
  }
  return longest;
}

}  // namespace

StatusOr<std::unique_ptr<Engine>> Engine::Load(
    const std::string& path, const EngineOptions& options,
    const std::function<void(uint64_t, uint64_t)>& progress) {
  QUIRE_ASSIGN_OR_RETURN(auto runner, ModelRunner::Load(path, options, progress));
  return Create(std::move(runner));
}

StatusOr<std::unique_ptr<Engine>> Engine::Create(std::unique_ptr<ModelRunner> runner) {
  QUIRE_ASSIGN_OR_RETURN(Tokenizer tokenizer, Tokenizer::Create(runner->model().vocabulary()));
  return std::unique_ptr<Engine>(new Engine(std::move(runner), std::move(tokenizer)));
}

Engine::Engine(std::unique_ptr<ModelRunner> runner, Tokenizer tokenizer)
    : runner_(std::move(runner)),
      tokenizer_(std::move(tokenizer)),
      longest_(LongestAlone(*runner_)),
      queue_(runner_->options().max_queue, runner_->options().max_queue_tokens),
      loop_(runner_.get(), &tokenizer_, &queue_),
      thread_([this] { Run(); }) {}

Engine::~Engine() {
  ends_.store(true);
  Post([](StepLoop&) {});  // wakes it; ~StepLoop ends what runs
  thread_.join();
}

void Engine::Run() {
  for (;;) {
    if (mail_waits_.load(std::memory_order_acquire)) EmptyMailbox();
    if (ends_.load(std::memory_order_acquire)) break;
    NoteProgress(loop_.has_work());
    if (loop_.has_work()) {
      if (!loop_.Step()) WaitForMail(std::chrono::milliseconds(5));
    } else {
      WaitForMail(std::chrono::seconds(1));
      loop_.TickIfDue();  // also when mail comes all the time
    }
  }
  EmptyMailbox();
}

bool Engine::WaitForMail(std::chrono::milliseconds most) {
  std::unique_lock lock(mutex_);
  return has_mail_.wait_for(lock, most, [&] { return !mailbox_.empty(); });
}

void Engine::PutIntoMailbox(std::function<void(StepLoop&)> mail) {
  mailbox_.push_back(std::move(mail));
  mail_waits_.store(true, std::memory_order_release);
}

void Engine::Post(std::function<void(StepLoop&)> mail) {
  {
    const std::lock_guard lock(mutex_);
    PutIntoMailbox(std::move(mail));
  }
  has_mail_.notify_one();
}

Status Engine::PostRequest(uint64_t prompt_len, std::function<void(StepLoop&)> mail) {
  {
    const std::lock_guard lock(mutex_);
    if (drains_)
      return Status(StatusCode::kCancelled, "the engine drains: it takes no new requests");
    switch (queue_.Enter(prompt_len)) {
      case QueueLimit::Verdict::kTooManyRequests:
        return Unavailable("{} requests are waiting, as many as --max-queue allows: try again",
                           queue_.num_requests());
      case QueueLimit::Verdict::kTooManyTokens:
        return Unavailable(
            "{} prompt tokens are waiting and this prompt has {}; --max-queue-tokens allows {}: "
            "try again",
            queue_.num_tokens(), prompt_len, options().max_queue_tokens);
      case QueueLimit::Verdict::kEntered:
        break;
    }
    PutIntoMailbox(std::move(mail));
  }
  has_mail_.notify_one();
  return OkStatus();
}

void Engine::EmptyMailbox() {
  std::vector<std::function<void(StepLoop&)>> mails;
  {
    const std::lock_guard lock(mutex_);
    mails.swap(mailbox_);
    mail_waits_.store(false, std::memory_order_relaxed);
  }
  for (const auto& mail : mails) {
    NoteProgress(/*has_more=*/true);
    mail(loop_);
  }
}

void Engine::NoteProgress(bool has_more) {
  const auto now = has_more ? std::chrono::steady_clock::now().time_since_epoch().count() : 0;
  busy_since_.store(now, std::memory_order_relaxed);
}

double Engine::stalled_seconds() const {
  const auto since = busy_since_.load(std::memory_order_relaxed);
  if (since == 0) return 0;
  using Clock = std::chrono::steady_clock;
  return SecondsSince(Clock::time_point(Clock::duration(since)));
}

void Engine::Ask(const std::function<void(StepLoop&)>& work) {
  std::promise<void> done;
  Post([&](StepLoop& loop) {
    work(loop);
    done.set_value();
  });
  done.get_future().wait();
}

EngineStats Engine::stats() {
  EngineStats stats;
  Ask([&](StepLoop& loop) { stats = loop.stats(); });
  return stats;
}

std::vector<RequestInfo> Engine::requests() {
  std::vector<RequestInfo> requests;
  Ask([&](StepLoop& loop) { requests = loop.requests(); });
  return requests;
}

bool Engine::Abort(uint64_t id) {
  bool is_there = false;
  Ask([&](StepLoop& loop) { is_there = loop.Abort(id); });
  return is_there;
}

StatusOr<uint32_t> Engine::MostTokens(const Request& request) const {
  const auto prompt_len = static_cast<uint32_t>(request.prompt.size());
  const uint32_t context_len = options().context_len;
  if (request.prompt.size() > context_len)
    return ResourceExhausted("{} tokens do not fit the context of {}: shorten the prompt",
                             request.prompt.size(), context_len);
  // The last token of an answer is not computed.
  const uint32_t asked = request.max_tokens.value_or(1);
  const uint64_t asked_len = uint64_t{prompt_len} + (asked > 0 ? asked - 1 : 0);
  const auto needed_len = static_cast<uint32_t>(std::min<uint64_t>(asked_len, context_len));
  if (needed_len > longest_) {
    const KvShape& shape = runner_->cache().shape();
    const size_t budget = kv_budget_bytes();
    return ResourceExhausted(
        "{} tokens of prompt and answer need {} KV pages, {} bytes; the budget has {} pages, {} "
        "bytes: shorten the prompt, lower max_tokens or raise --kv-memory",
        asked_len, shape.NumPages(needed_len), GroupDigits(LeastBytes(shape, needed_len)),
        budget / HeldBytes(shape, shape.page_size), GroupDigits(budget));
  }
  const uint32_t possible = MostAnswer(prompt_len);
  return std::min(request.max_tokens.value_or(possible), possible);
}

StatusOr<std::shared_ptr<Answer>> Engine::Submit(Request request) {
  if (request.prompt.empty()) return InvalidArgument("the prompt has no tokens: give some text");
  const auto vocab_size = model().shape().vocab_size;
  for (const TokenId token : request.prompt)
    if (token < 0 || token >= vocab_size)
      return InvalidArgument("token id {} is outside the vocabulary: 0 to {}", token,
                             vocab_size - 1);
  if (request.num_choices == 0 || request.num_choices > Request::kMaxChoices)
    return InvalidArgument("num_choices {}: need 1 to {}", request.num_choices,
                           Request::kMaxChoices);
  if (request.max_tokens.has_value() && request.sampling.min_tokens > *request.max_tokens)
    return InvalidArgument("min_tokens {}: need at most max_tokens, {}",
                           request.sampling.min_tokens, *request.max_tokens);
  if (request.prompt_logprobs.value_or(0) > SamplingParams::kMaxTopLogprobs)
    return InvalidArgument("prompt_logprobs {}: need 0 to {}", *request.prompt_logprobs,
                           SamplingParams::kMaxTopLogprobs);
  if (!tokenizer_.has_text() && !request.sampling.stop_strings.empty())
    return InvalidArgument("stop strings need a model with text: give stop token ids");
  QUIRE_RETURN_IF_ERROR(request.sampling.Prepare(
      static_cast<uint32_t>(model().shape().num_tokens),
      tokenizer_.has_text() ? tokenizer_.end_of_generation() : std::span<const TokenId>()));
  QUIRE_ASSIGN_OR_RETURN(const uint32_t most_tokens, MostTokens(request));
  if (request.sampling.min_tokens > most_tokens)
    return InvalidArgument("min_tokens {}: the context and the KV memory hold an answer of {}",
                           request.sampling.min_tokens, most_tokens);
  auto answer = std::make_shared<Answer>(next_id_.fetch_add(1), request, most_tokens);
  const uint64_t prompt_len = request.prompt.size();
  QUIRE_RETURN_IF_ERROR(PostRequest(
      prompt_len, [request = std::make_shared<Request>(std::move(request)), answer, most_tokens](
                      StepLoop& loop) { loop.Add(std::move(*request), answer, most_tokens); }));
  return answer;
}

void Engine::Abort(const std::shared_ptr<Answer>& answer) { answer->Abort(); }

void Engine::Drain() {
  {
    const std::lock_guard lock(mutex_);
    drains_ = true;
  }
  for (;;) {
    bool has_work = true;
    Ask([&](StepLoop& loop) { has_work = loop.has_work(); });
    if (!has_work) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

}  // namespace quire
