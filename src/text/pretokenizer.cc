#define PCRE2_CODE_UNIT_WIDTH 8
#include "text/pretokenizer.h"

#include <pcre2.h>

#include <array>
#include <string>

#include "base/errors.h"
#include "text/pretokenizer_patterns.h"

namespace quire {
namespace {

// PCRE2 takes 32 KiB of the machine's stack unless it is given one; this much address space holds
// any match of our expressions, and is committed only as far as it is used.
constexpr size_t kFirstStackBytes = 64 * 1024;
constexpr size_t kMaxStackBytes = 64 * 1024 * 1024;

std::string ErrorText(int code) {
  std::array<PCRE2_UCHAR, 256> buffer{};
  if (pcre2_get_error_message(code, buffer.data(), buffer.size()) < 0) {
    return "error " + std::to_string(code);
  }
  return reinterpret_cast<const char*>(buffer.data());
}

}  // namespace

void Pretokenizer::CodeDeleter::operator()(pcre2_code* code) const { pcre2_code_free(code); }

void Pretokenizer::Matcher::Deleter::operator()(pcre2_match_context* context) const {
  pcre2_match_context_free(context);
}
void Pretokenizer::Matcher::Deleter::operator()(pcre2_match_data* data) const {
  pcre2_match_data_free(data);
}
void Pretokenizer::Matcher::Deleter::operator()(pcre2_jit_stack* stack) const {
  pcre2_jit_stack_free(stack);
}

StatusOr<Pretokenizer::Matcher> Pretokenizer::Matcher::Create() {
  Matcher matcher;
  matcher.context_.reset(pcre2_match_context_create(nullptr));
  matcher.data_.reset(pcre2_match_data_create(1, nullptr));
  if (!matcher.context_ || !matcher.data_) {
    return ResourceExhausted("no memory for the pre-tokenizer");
  }
  // The expressions are ours and none backtracks more than a piece's length, which a fixed limit
  // would turn into an error for long pieces.
  pcre2_set_match_limit(matcher.context_.get(), UINT32_MAX);
  return matcher;
}

StatusOr<Pretokenizer> Pretokenizer::Create(std::string_view name) {
  const auto patterns = PretokenizerPatterns(name);
  if (patterns.empty()) {
    return Unsupported("pre-tokenizer '{}' (tokenizer.ggml.pre) is not known; known are: {}",
                       name.empty() ? "default" : name, PretokenizerNames());
  }
  return Compile(patterns);
}

StatusOr<Pretokenizer> Pretokenizer::Compile(std::span<const char* const> patterns, bool jit) {
  Pretokenizer pretokenizer;
  for (const char* pattern : patterns) {
    int error = 0;
    PCRE2_SIZE offset = 0;
    Stage stage;
    stage.code.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern), PCRE2_ZERO_TERMINATED,
                                   PCRE2_UTF | PCRE2_UCP, &error, &offset, nullptr));
    if (!stage.code) {
      return Internal("pre-tokenizer: {} at {} in {}", ErrorText(error), offset, pattern);
    }
    stage.jit = jit && pcre2_jit_compile(stage.code.get(), PCRE2_JIT_COMPLETE) == 0;
    pretokenizer.stages_.push_back(std::move(stage));
  }
  return pretokenizer;
}

StatusOr<Pretokenizer::Match> Pretokenizer::Find(const Stage& stage, std::string_view text,
                                                 size_t from, Matcher* matcher) {
  const auto match = [&] {
    const auto* subject = reinterpret_cast<PCRE2_SPTR>(text.data());
    pcre2_match_data* data = matcher->data_.get();
    pcre2_match_context* context = matcher->context_.get();
    return stage.jit ? pcre2_jit_match(stage.code.get(), subject, text.size(), from,
                                       PCRE2_NO_UTF_CHECK, data, context)
                     : pcre2_match(stage.code.get(), subject, text.size(), from, PCRE2_NO_UTF_CHECK,
                                   data, context);
  };
  int result = match();
  if (result == PCRE2_ERROR_JIT_STACKLIMIT && !matcher->stack_) {
    matcher->stack_.reset(pcre2_jit_stack_create(kFirstStackBytes, kMaxStackBytes, nullptr));
    if (!matcher->stack_) return ResourceExhausted("no memory for the pre-tokenizer's stack");
    pcre2_jit_stack_assign(matcher->context_.get(), nullptr, matcher->stack_.get());
    result = match();
  }
  if (result == PCRE2_ERROR_NOMATCH) return Match{text.size(), text.size()};
  if (result < 0) {
    return Internal("pre-tokenizer: {} at byte {} of {}", ErrorText(result), from, text.size());
  }
  const PCRE2_SIZE* ends = pcre2_get_ovector_pointer(matcher->data_.get());
  if (ends[1] <= ends[0]) return Internal("pre-tokenizer: an empty match at byte {}", ends[0]);
  return Match{ends[0], ends[1]};
}

}  // namespace quire
