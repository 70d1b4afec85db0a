// AnswerWriter: from the tokens of a call's Answers to the bytes of its HTTP answer: one JSON
// object, or server-sent events.
//
// It pulls: the engine's Answers keep token ids, and text is made only when it is asked for, so a
// client that does not read costs 4 bytes a token and no text. Text never has half a character or a
// part of a stop string; what a stream gives joined is what the whole answer has, byte for byte.
//
// Threading: none of its own; one for each call. Cost: linear in the new tokens.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/answer.h"
#include "server/api/answer_notes.h"
#include "server/api/api_error.h"
#include "server/api/generation_call.h"
#include "server/api/served_model.h"

namespace quire {

class AnswerWriter {
 public:
  // answers[p] is of prompt p and has call.num_sampled choices. The model must outlive it.
  AnswerWriter(const ServedModel* model, GenerationCall call,
               std::vector<std::shared_ptr<Answer>> answers);
  ~AnswerWriter();

  // Are there tokens or ends that NextEvent has not looked at? It may still tell nothing of them,
  // if their text is held back. Cheap.
  bool has_news() const;

  // The next event of a stream ("data: {...}\n\n"), or empty if there is nothing to tell now.
  // The last one ends with "data: [DONE]\n\n", and is_finished() afterwards. Requires: call.stream.
  std::string NextEvent(const AnswerNotes& notes);
  // An error in place of the rest: an error event and [DONE]. It is finished then.
  std::string ErrorEvent(const ApiError& error);
  bool is_finished() const;
  // The error that ended a choice, if one did: as long as nothing was sent it can be the status of
  // the answer. NextEvent would give it as an event.
  std::optional<ApiError> error() const;

  // Without a stream: have all choices ended? Then the whole JSON, or the error that ended one.
  bool all_ended() const;
  ApiResult<std::string> WholeAnswer(const AnswerNotes& notes);

  // What the access log and the metrics tell: tokens sampled so far over all choices.
  uint64_t num_generated() const;
  const GenerationCall& call() const;
  const std::vector<std::shared_ptr<Answer>>& answers() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Sent after seconds of silence.
constexpr char kKeepAliveEvent[] = ": keep-alive\n\n";

}  // namespace quire
