// Engine: many requests at once on one model: submit, stream, abort, drain, look.
//
// One engine thread owns the scheduler's and the cache's state, without locks, and runs step after
// step: schedule, forward, sample, commit (step_loop.h). Other threads talk to it by a mailbox that
// it empties between two steps, and read tokens from Answers as they come.
//
// Not here: HTTP, text of answers (the reader makes it), the choice of tokens (sampler.h).
//
// Threading: every function may be called by any thread.
// Cost: a decode step takes no lock (the mailbox has a flag) and allocates nothing after warm-up.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/status.h"
#include "engine/answer.h"
#include "engine/model_runner.h"
#include "engine/queue_limit.h"
#include "engine/request.h"
#include "engine/step_loop.h"
#include "text/tokenizer.h"

namespace quire {

class Engine {
 public:
  // As ModelRunner::Load; a model without text is fine.
  static StatusOr<std::unique_ptr<Engine>> Load(
      const std::string& path, const EngineOptions& options,
      const std::function<void(uint64_t, uint64_t)>& progress);
  // Takes a runner that nobody else uses from now on.
  static StatusOr<std::unique_ptr<Engine>> Create(std::unique_ptr<ModelRunner> runner);
  // Aborts what runs.
  ~Engine();

  const Model& model() const { return runner_->model(); }
  const Tokenizer& tokenizer() const { return tokenizer_; }
  const EngineOptions& options() const { return runner_->options(); }
  uint64_t weight_bytes() const { return runner_->weight_bytes(); }
  uint64_t kv_budget_bytes() const { return runner_->kv_budget_bytes(); }
  const std::string& kv_budget_source() const { return runner_->kv_budget_source(); }
  // Tokens that a sequence can have computed, alone in the whole budget.
  uint32_t longest_sequence() const { return longest_; }
  // Most tokens of an answer to a prompt of this length; 0: the prompt is too long for one.
  uint32_t MostAnswer(size_t prompt_len) const {
    return prompt_len > longest_ ? 0 : longest_ - static_cast<uint32_t>(prompt_len) + 1;
  }
  // Of the arithmetic: equal ones give equal bits.
  const std::string& identity() const { return runner_->identity(); }

  // Refuses what can never be answered: kInvalidArgument for a bad field or id, kResourceExhausted
  // for a prompt (and max_tokens) that the context or the whole KV memory can't hold, with the
  // numbers; kUnavailable if too many requests or tokens wait (max_queue, max_queue_tokens);
  // kCancelled while it drains.
  StatusOr<std::shared_ptr<Answer>> Submit(Request request);

  // Ends an answer before the next step; what is computed of its prompt stays cached. The choices
  // end with kCancelled, unless they have ended.
  void Abort(const std::shared_ptr<Answer>& answer);

  // No new requests from now on; returns when those that are there have ended.
  void Drain();

  EngineStats stats();
  std::vector<RequestInfo> requests();
  // By the id of its Answer; false: it waits or runs no more.
  bool Abort(uint64_t id);

  // Since the engine thread last finished a step or a piece of mail, while it has something to do;
  // 0 if it has not. For health checks: takes no lock, and answers while the thread hangs.
  double stalled_seconds() const;

  // Runs `work` on the engine thread between two steps, and waits for it: for looks at the cache
  // and changes to it (pin, drop, namespaces).
  void Ask(const std::function<void(StepLoop&)>& work);
  // The same without waiting: for those who have other things to do while a long step goes on.
  // What was not run when the engine ends is run then.
  void AskLater(std::function<void(StepLoop&)> work) { Post(std::move(work)); }

 private:
  explicit Engine(std::unique_ptr<ModelRunner> runner, Tokenizer tokenizer);
  void Run();
  void Post(std::function<void(StepLoop&)> mail);
  // Nothing is posted if the engine drains or too many wait.
  Status PostRequest(uint64_t prompt_len, std::function<void(StepLoop&)> mail);
  void PutIntoMailbox(std::function<void(StepLoop&)> mail);  // requires: mutex_ is held
  void EmptyMailbox();
  void NoteProgress(bool has_more);
  // While there is nothing to compute; false: there is no mail.
  bool WaitForMail(std::chrono::milliseconds most);
  // The most tokens that the answer to this request may have.
  StatusOr<uint32_t> MostTokens(const Request& request) const;

  std::unique_ptr<ModelRunner> runner_;
  Tokenizer tokenizer_;
  const uint32_t longest_;  // tokens that a sequence can have computed, alone in the whole budget
  QueueLimit queue_;        // Enter: under mutex_
  StepLoop loop_;

  std::mutex mutex_;  // of the next three
  std::condition_variable has_mail_;
  std::vector<std::function<void(StepLoop&)>> mailbox_;
  bool drains_ = false;
  std::atomic<bool> mail_waits_{false};
  std::atomic<bool> ends_{false};
  std::atomic<uint64_t> next_id_{1};
  // Steady clock, in its own ticks; 0: nothing to do.
  std::atomic<std::chrono::steady_clock::rep> busy_since_{0};
  std::thread thread_;
};

}  // namespace quire
