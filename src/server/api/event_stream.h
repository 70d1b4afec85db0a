// EventStream: one call's answers as server-sent events, pulled one after the other.
//
// While the prompts are computed, if asked: their progress, at most each 500 ms. Of each choice:
// (chat) the role with the first token; what the new tokens gave, if their text is out; the finish.
// Then, if asked, the usage; [DONE] is part of the last event's string. An error takes the place of
// all the rest, and ends the other choices.
//
// Threading: none of its own. Cost: linear in the new tokens; an event of one choice costs nothing
// for the others, but for a look at those that have no news.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "server/api/answer_json.h"

namespace quire {

class EventStream {
 public:
  static constexpr std::chrono::milliseconds kProgressInterval{500};

  // `json` must outlive it. Requires: as many choices are told as are sampled.
  explicit EventStream(const AnswerJson* json,
                       std::chrono::milliseconds progress_interval = kProgressInterval);

  bool has_news() const;
  std::string NextEvent(const AnswerNotes& notes);
  std::string ErrorEvent(const ApiError& error);
  bool is_finished() const { return is_finished_; }

 private:
  bool HasNews(const ToldChoice& told, const AnswerNotes& notes) const;
  // May the end of a choice that goes on be told?
  bool MayEnd(const AnswerNotes& notes) const;
  // A choice gave so many tokens more, and has ended or not.
  void CountTaken(const ToldChoice& told, uint64_t num_tokens);
  // Appends nothing if the news are all held back.
  void AppendNews(std::string& event, ToldChoice& told, const AnswerNotes& notes);
  void AppendRole(std::string& event, const ToldChoice& told, const AnswerNotes& notes) const;
  // The tokens [told.num_told, end) with their text, if there is something to tell.
  void AppendChatDelta(std::string& event, const ToldChoice& told, std::string_view text,
                       uint32_t end, const AnswerNotes& notes) const;
  void AppendChatFinish(std::string& event, const ToldChoice& told, const AnswerNotes& notes) const;
  // The finish is part of the last.
  void AppendCompletionDelta(std::string& event, const ToldChoice& told, std::string_view text,
                             uint32_t end, bool has_finish, const AnswerNotes& notes) const;
  void AppendChoiceHead(std::string& event, const ToldChoice& told) const;
  // Closes the choices and the chunk. `has_costs`: it is the last chunk.
  void AppendChunkEnd(std::string& event, const AnswerNotes& notes, bool has_costs) const;
  bool is_last_chunk() const;
  // Is a prompt under way that has come further than the last event said?
  bool HasProgress() const;
  void AppendProgress(std::string& event, const AnswerNotes& notes);
  void AppendError(std::string& event, const ApiError& error);
  void AppendEnd(std::string& event, const AnswerNotes& notes);

  const AnswerJson* json_;
  std::vector<ToldChoice> choices_;
  uint32_t next_ = 0;  // the choice to look at first: none waits behind a busy one
  uint32_t num_ended_ = 0;
  // What continuous usage tells: of the tokens that the stream has taken so far.
  CallCosts taken_;
  std::vector<bool> has_report_;  // of each prompt: it is in taken_
  bool has_begun_ = false;        // a choice has
  bool is_finished_ = false;
  const std::chrono::milliseconds progress_interval_;
  std::chrono::steady_clock::time_point progress_told_at_ = std::chrono::steady_clock::now();
  uint64_t progress_told_ = 0;  // tokens
};

}  // namespace quire
