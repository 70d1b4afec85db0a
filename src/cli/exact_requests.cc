#include "cli/exact_requests.h"

#include <utility>

namespace quire {

Request ExactRequest(std::vector<TokenId> prompt, uint32_t output_len) {
  Request request;
  request.prompt = std::move(prompt);
  request.max_tokens = output_len;
  request.sampling.temperature = 0;
  request.sampling.ignore_eos = true;
  request.keeps_times = true;
  return request;
}

StatusOr<std::vector<std::shared_ptr<Answer>>> SubmitAtOnce(Engine& engine,
                                                            std::vector<Request> requests) {
  std::vector<std::shared_ptr<Answer>> answers;
  Status status = OkStatus();
  engine.Ask([&](StepLoop&) {
    for (Request& request : requests) {
      auto answer = engine.Submit(std::move(request));
      if (!answer.ok()) {
        status = answer.status();
        break;
      }
      answers.push_back(std::move(answer).value());
    }
  });
  if (status.ok()) return answers;
  for (const auto& answer : answers) answer->Abort();
  return status;
}

}  // namespace quire
