#include "cli/answer_checks.h"

#include <algorithm>
#include <utility>

#include "base/errors.h"
#include "base/message_text.h"
#include "cli/exact_requests.h"
#include "cli/workload.h"

namespace quire {
namespace {

constexpr uint64_t kSeed = 20261130;
constexpr uint32_t kNumMates = 5;

AnswerBits BitsOf(const Answer& answer, uint32_t choice) {
  AnswerBits bits;
  const auto tokens = answer.tokens(choice);
  bits.ids.assign(tokens.begin(), tokens.end());
  for (uint32_t i = 0; i < tokens.size(); ++i) {
    bits.logprobs.push_back(answer.logprobs(choice, i).sampled);
    bits.hashes.push_back(answer.logits_hash(choice, i));
  }
  return bits;
}

}  // namespace

AnswerChecks::AnswerChecks(std::shared_ptr<const Model> model, const EngineOptions& options,
                           const PurityLengths& lengths, size_t sequence_bytes, CheckList& list)
    : model_(std::move(model)),
      options_(options),
      lengths_(lengths),
      sequence_bytes_(sequence_bytes),
      list_(list) {
  const auto num_tokens = static_cast<uint32_t>(model_->shape().num_tokens);
  const uint32_t page = lengths.page_size;
  // The ends of the prompts: inside a page, at its end, one token into the next.
  for (const uint32_t own : {page + page / 2, page, 1u, page / 2})
    prompts_.push_back(
        MakePrompt({{{.row = 0, .length = lengths.shared_len()}, OwnPiece(prompts_.size(), own)}},
                   kSeed, num_tokens));
  for (uint32_t i = 0; i < kNumMates; ++i)
    mates_.push_back(MakePrompt({{OwnPiece(100 + i, 1 + i * page / 3)}}, kSeed, num_tokens));
}

void AnswerChecks::Run() {
  list_.Run("answers, each alone", [&](std::string& detail) { return ComputeAlone(detail); });
  if (want_.size() != prompts_.size()) return;  // it failed: nothing to compare with
  list_.Run("the same positions outside the engine",
            [&](std::string&) { return CompareWithPositions(); });
  const uint32_t page = lengths_.page_size, shared = lengths_.shared_len();
  list_.Run("prompt cached whole", [&](std::string& detail) { return CachedWhole(detail); });
  list_.Run("prompt cached up to the end of a page",
            [&](std::string& detail) { return CachedUpTo(shared, detail); });
  list_.Run("prompt cached up to inside a page",
            [&](std::string& detail) { return CachedUpTo(shared + page / 4, detail); });
  list_.Run("several choices of one prompt", [&](std::string&) { return Choices(); });

  EngineStats with_cascade, without_cascade;
  list_.Run("together, with random neighbours",
            [&](std::string&) { return Together({}, kNumMates, &with_cascade); });
  list_.Run("together, without cascade", [&](std::string& detail) {
    const Status status = Together([](EngineOptions& options) { options.cascade = false; },
                                   kNumMates, &without_cascade);
    detail = fmt::format("{} chunks of pages read, {} with cascade",
                         without_cascade.num_chunks_read, with_cascade.num_chunks_read);
    return status;
  });
  list_.Run("together, 7 tokens a step", [&](std::string&) {
    return Together([](EngineOptions& options) { options.token_budget = 7; }, kNumMates, nullptr);
  });
  list_.Run("together, without a prefix cache", [&](std::string&) {
    return Together([](EngineOptions& options) { options.keeps_prefixes = false; }, 0, nullptr);
  });
  if (options_.num_threads > 1)
    list_.Run("together, 1 thread", [&](std::string&) {
      return Together([](EngineOptions& options) { options.num_threads = 1; }, 0, nullptr);
    });
  list_.Run("preempted by a full memory", [&](std::string& detail) { return Preempted(detail); });
}

StatusOr<std::unique_ptr<Engine>> AnswerChecks::NewEngine(const Change& change) const {
  EngineOptions options = options_;
  if (change) change(options);
  QUIRE_ASSIGN_OR_RETURN(auto runner, ModelRunner::Create(model_, options));
  return Engine::Create(std::move(runner));
}

Request AnswerChecks::MakeRequest(size_t prompt, const std::string& salt) const {
  Request request = ExactRequest(prompts_[prompt], lengths_.answer_len);
  request.sampling.top_logprobs = 0;
  request.keeps_logits_hashes = true;
  request.salt = salt;
  return request;
}

Status AnswerChecks::LookAt(Engine& engine, bool at_rest) const {
  Status status = OkStatus();
  engine.Ask([&](StepLoop& loop) { status = list_.LookAt(loop.cache(), at_rest); });
  return status;
}

Status AnswerChecks::Empty(Engine& engine) const {
  QUIRE_RETURN_IF_ERROR(LookAt(engine, /*at_rest=*/true));
  Status status = OkStatus();
  engine.Ask([&](StepLoop& loop) {
    loop.cache().DropAll();
    status = list_.LookAt(loop.cache(), /*at_rest=*/true);
    const PagePool& pool = loop.cache().pool();
    if (status.ok() && pool.free_bytes() != pool.budget_bytes())
      status = Internal("{} of {} bytes are free in an empty cache", pool.free_bytes(),
                        pool.budget_bytes());
  });
  return status;
}

StatusOr<std::shared_ptr<Answer>> AnswerChecks::RunOne(Engine& engine, Request request) const {
  QUIRE_ASSIGN_OR_RETURN(auto answer, engine.Submit(std::move(request)));
  QUIRE_RETURN_IF_ERROR(answer->WaitForAll());
  QUIRE_RETURN_IF_ERROR(LookAt(engine, /*at_rest=*/true));
  return answer;
}

Status AnswerChecks::Compare(const Answer& answer, size_t prompt, uint32_t choice) const {
  QUIRE_RETURN_IF_ERROR(answer.status(choice));
  return CheckList::NoDifference(FirstDifference(want_[prompt], BitsOf(answer, choice)))
      .WithContext(fmt::format("prompt {}", prompt));
}

Status AnswerChecks::ComputeAlone(std::string& detail) {
  QUIRE_ASSIGN_OR_RETURN(const auto engine, NewEngine({}));
  std::vector<AnswerBits> want;
  for (size_t i = 0; i < prompts_.size(); ++i) {
    QUIRE_ASSIGN_OR_RETURN(const auto answer, RunOne(*engine, MakeRequest(i, std::to_string(i))));
    if (answer->prompt().num_cached > 0)
      return Internal("an empty namespace gave {} tokens", answer->prompt().num_cached);
    want.push_back(BitsOf(*answer, 0));
  }
  want_ = std::move(want);
  detail = fmt::format("{} prompts of up to {} tokens, answers of {}", prompts_.size(),
                       prompts_.front().size(), lengths_.answer_len);
  return Empty(*engine);
}

Status AnswerChecks::CompareWithPositions() const {
  QUIRE_ASSIGN_OR_RETURN(const auto runner, ModelRunner::Create(model_, options_));
  const auto vocab_size = static_cast<size_t>(model_->shape().vocab_size);
  const auto num_tokens = static_cast<uint32_t>(model_->shape().num_tokens);
  for (size_t prompt = 0; prompt < prompts_.size(); ++prompt) {
    const AnswerBits& want = want_[prompt];
    const auto num_logits = static_cast<uint32_t>(want.ids.size());
    std::vector<TokenId> tokens = prompts_[prompt];
    tokens.insert(tokens.end(), want.ids.begin(), want.ids.end() - 1);
    Sequence sequence = runner->NewSequence();
    QUIRE_ASSIGN_OR_RETURN(const auto logits, runner->Compute(sequence, tokens, num_logits));
    AnswerBits got;
    for (uint32_t i = 0; i < num_logits; ++i) {
      const auto row = logits.subspan(i * vocab_size, vocab_size);
      const auto best = std::max_element(row.begin(), row.begin() + num_tokens) - row.begin();
      got.ids.push_back(static_cast<TokenId>(best));
      const PositionBits bits = quire::BitsOf(i, row, num_tokens, got.ids.back());
      got.logprobs.push_back(bits.logprob);
      got.hashes.push_back(bits.hash);
    }
    QUIRE_RETURN_IF_ERROR(CheckList::NoDifference(FirstDifference(want, got)));
  }
  return list_.LookAt(runner->cache(), /*at_rest=*/true);
}

Status AnswerChecks::CachedWhole(std::string& detail) const {
  QUIRE_ASSIGN_OR_RETURN(const auto engine, NewEngine({}));
  uint64_t cached = 0, total = 0;
  for (size_t i = 0; i < prompts_.size(); ++i) {
    QUIRE_RETURN_IF_ERROR(RunOne(*engine, MakeRequest(i, "")).status());
    QUIRE_ASSIGN_OR_RETURN(const auto again, RunOne(*engine, MakeRequest(i, "")));
    QUIRE_RETURN_IF_ERROR(Compare(*again, i));
    if (again->prompt().num_cached == 0) return Internal("nothing was cached");
    cached += again->prompt().num_cached;
    total += prompts_[i].size();
  }
  detail = fmt::format("{} of {} tokens cached", cached, total);
  return Empty(*engine);
}

Status AnswerChecks::CachedUpTo(uint32_t length, std::string& detail) const {
  QUIRE_ASSIGN_OR_RETURN(const auto engine, NewEngine({}));
  Request beginning = MakeRequest(0, "");
  beginning.prompt.resize(length);
  beginning.max_tokens = 0;
  QUIRE_RETURN_IF_ERROR(RunOne(*engine, std::move(beginning)).status());
  QUIRE_ASSIGN_OR_RETURN(const auto answer, RunOne(*engine, MakeRequest(0, "")));
  QUIRE_RETURN_IF_ERROR(Compare(*answer, 0));
  if (answer->prompt().num_cached != length)
    return Internal("{} tokens were cached, not {}", answer->prompt().num_cached, length);
  detail = fmt::format("{} of {} tokens cached", length, prompts_[0].size());
  return Empty(*engine);
}

Status AnswerChecks::Choices() const {
  QUIRE_ASSIGN_OR_RETURN(const auto engine, NewEngine({}));
  Request request = MakeRequest(0, "");
  request.num_choices = 4;
  QUIRE_ASSIGN_OR_RETURN(const auto answer, RunOne(*engine, std::move(request)));
  for (uint32_t choice = 0; choice < 4; ++choice)
    QUIRE_RETURN_IF_ERROR(Compare(*answer, 0, choice));
  return Empty(*engine);
}

Status AnswerChecks::Together(const Change& change, uint32_t num_mates, EngineStats* stats) const {
  QUIRE_ASSIGN_OR_RETURN(const auto engine, NewEngine(change));
  std::vector<Request> requests;
  for (size_t i = 0; i < prompts_.size(); ++i) requests.push_back(MakeRequest(i, ""));
  for (uint32_t i = 0; i < num_mates; ++i)  // in front of them
    requests.insert(requests.begin() + i, ExactRequest(mates_[i], lengths_.answer_len / 2));
  QUIRE_ASSIGN_OR_RETURN(const auto answers, SubmitAtOnce(*engine, std::move(requests)));
  QUIRE_RETURN_IF_ERROR(LookAt(*engine, /*at_rest=*/false));
  for (const auto& answer : answers) QUIRE_RETURN_IF_ERROR(answer->WaitForAll());
  for (size_t i = 0; i < prompts_.size(); ++i)
    QUIRE_RETURN_IF_ERROR(Compare(*answers[num_mates + i], i));
  if (stats != nullptr) *stats = engine->stats();
  return Empty(*engine);
}

// Step by step, without the engine's thread: the memory is enough for one, and the first has half
// of its answer when others come that go before it.
Status AnswerChecks::Preempted(std::string& detail) const {
  EngineOptions options = options_;
  options.kv_memory_bytes = sequence_bytes_ + sequence_bytes_ / 8;  // the scheduler keeps some free
  QUIRE_ASSIGN_OR_RETURN(const auto runner, ModelRunner::Create(model_, options));
  QUIRE_ASSIGN_OR_RETURN(const Tokenizer tokenizer, Tokenizer::Create(model_->vocabulary()));
  StepLoop loop(runner.get(), &tokenizer);
  std::vector<std::shared_ptr<Answer>> answers;
  const auto add = [&](size_t prompt, int32_t priority) -> Status {
    Request request = MakeRequest(prompt, std::to_string(prompt));
    request.priority = priority;
    QUIRE_RETURN_IF_ERROR(
        request.sampling.Prepare(static_cast<uint32_t>(model_->shape().num_tokens), {}));
    answers.push_back(std::make_shared<Answer>(prompt + 1, request, lengths_.answer_len));
    loop.Add(std::move(request), answers.back(), lengths_.answer_len);
    return OkStatus();
  };
  QUIRE_RETURN_IF_ERROR(add(0, 1));
  while (loop.has_work()) {
    loop.Step();
    QUIRE_RETURN_IF_ERROR(list_.LookAt(loop.cache(), /*at_rest=*/!loop.has_work()));
    if (answers.size() == 1 && answers[0]->tokens(0).size() >= lengths_.answer_len / 2)
      for (size_t i = 1; i < prompts_.size(); ++i) QUIRE_RETURN_IF_ERROR(add(i, 0));
  }
  for (size_t i = 0; i < answers.size(); ++i) QUIRE_RETURN_IF_ERROR(Compare(*answers[i], i));
  if (answers[0]->num_preemptions() == 0)
    return Internal("nothing was preempted, so this shows nothing: please report it");
  detail = fmt::format("{} preemptions in {} bytes", loop.stats().num_preemptions,
                       GroupDigits(options.kv_memory_bytes));
  return OkStatus();
}

}  // namespace quire
