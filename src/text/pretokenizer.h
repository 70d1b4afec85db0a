// Pretokenizer: cuts a text into the pieces in which byte-pair encoding merges.
//
// It knows no tokens. The expressions are in text/pretokenizer_patterns.h; PCRE2 runs them,
// compiled to machine code where the system allows that. \s and \S in them are Unicode's
// White_Space, as in the regular expressions that the vocabularies were made with; PCRE2's own add
// U+180E.
//
// Threads: const access from any thread, each with a Matcher of its own.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"

struct pcre2_real_code_8;
struct pcre2_real_match_context_8;
struct pcre2_real_match_data_8;
struct pcre2_real_jit_stack_8;

namespace quire {

class Pretokenizer {
 public:
  // `name` as in a model file. kUnsupported for a name that is not in the table.
  static StatusOr<Pretokenizer> Create(std::string_view name);
  // `patterns` as in a PretokenizerRule; \s may stand anywhere, \S outside brackets. Without `jit`,
  // PCRE2 interprets them.
  static StatusOr<Pretokenizer> Compile(std::span<const char* const> patterns, bool jit = true);

  // What one match may take; no expression of ours comes near.
  struct Limits {
    uint32_t match = UINT32_MAX;   // steps: a fixed number would make an error of a long piece
    uint32_t depth = 1000;         // nested steps, and
    uint32_t heap_kib = 1 << 16;   // memory, of an interpreted expression
    size_t stack_bytes = 1 << 26;  // of a compiled one
  };

  // PCRE2's working memory for one thread.
  class Matcher {
   public:
    static StatusOr<Matcher> Create() { return Create(Limits()); }
    static StatusOr<Matcher> Create(const Limits& limits);

   private:
    friend class Pretokenizer;
    struct Deleter {
      void operator()(pcre2_real_match_context_8* context) const;
      void operator()(pcre2_real_match_data_8* data) const;
      void operator()(pcre2_real_jit_stack_8* stack) const;
    };
    std::unique_ptr<pcre2_real_match_context_8, Deleter> context_;
    std::unique_ptr<pcre2_real_match_data_8, Deleter> data_;
    std::unique_ptr<pcre2_real_jit_stack_8, Deleter> stack_;  // made when the first is too small
    size_t stack_bytes_ = 0;
  };

  // Calls visit(piece) for each piece of `text`, in order; joined they are the text, none is empty.
  // Errors: kInvalidArgument for a text that is not UTF-8 (nothing was visited then), kInternal if
  // PCRE2 gives up at one of its limits (some pieces were visited then).
  template <class Visit>
  Status Split(std::string_view text, Matcher* matcher, const Visit& visit) const {
    QUIRE_RETURN_IF_ERROR(CheckUtf8(text));
    return SplitFrom(0, text, matcher, visit);
  }

 private:
  struct CodeDeleter {
    void operator()(pcre2_real_code_8* code) const;
  };
  struct Stage {
    std::unique_ptr<pcre2_real_code_8, CodeDeleter> code;
    bool jit = false;
  };
  struct Match {
    size_t begin = 0;
    size_t end = 0;
  };

  static Status CheckUtf8(std::string_view text);

  // The first match at or after `from`; an empty one at the end of the text if there is none.
  static StatusOr<Match> Find(const Stage& stage, std::string_view text, size_t from,
                              Matcher* matcher);

  // Both the matches and the gaps between them go on to the next stage.
  template <class Visit>
  Status SplitFrom(size_t stage, std::string_view text, Matcher* matcher,
                   const Visit& visit) const {
    if (text.empty()) return OkStatus();
    if (stage == stages_.size()) {
      visit(text);
      return OkStatus();
    }
    for (size_t at = 0; at < text.size();) {
      QUIRE_ASSIGN_OR_RETURN(const Match match, Find(stages_[stage], text, at, matcher));
      QUIRE_RETURN_IF_ERROR(
          SplitFrom(stage + 1, text.substr(at, match.begin - at), matcher, visit));
      QUIRE_RETURN_IF_ERROR(
          SplitFrom(stage + 1, text.substr(match.begin, match.end - match.begin), matcher, visit));
      at = match.end;
    }
    return OkStatus();
  }

  std::vector<Stage> stages_;
};

}  // namespace quire
