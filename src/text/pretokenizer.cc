#define PCRE2_CODE_UNIT_WIDTH 8
#include "text/pretokenizer.h"

#include <pcre2.h>

#include <array>
#include <string>

#include "base/errors.h"
#include "base/message_text.h"
#include "text/pretokenizer_patterns.h"
#include "text/utf8.h"

namespace quire {
namespace {

// PCRE2 takes 32 KiB of the machine's stack unless it is given one, which is committed only as far
// as it is used.
constexpr size_t kFirstStackBytes = 64 * 1024;

constexpr std::string_view kWhiteSpace =
    R"(\t-\r \x{85}\x{A0}\x{1680}\x{2000}-\x{200A}\x{2028}\x{2029}\x{202F}\x{205F}\x{3000})";

// `pattern` with \s and \S written out.
std::string WithWhiteSpace(std::string_view pattern) {
  std::string whole;
  bool in_class = false;
  for (size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] == '\\' && i + 1 < pattern.size()) {
      const char escaped = pattern[++i];
      if (escaped != 's' && escaped != 'S') {
        whole += {'\\', escaped};
      } else if (in_class) {
        whole += kWhiteSpace;
      } else {
        whole += escaped == 's' ? "[" : "[^";
        whole += kWhiteSpace;
        whole += ']';
      }
      continue;
    }
    if (pattern[i] == '[') in_class = true;
    if (pattern[i] == ']') in_class = false;
    whole += pattern[i];
  }
  return whole;
}

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

StatusOr<Pretokenizer::Matcher> Pretokenizer::Matcher::Create(const Limits& limits) {
  Matcher matcher;
  matcher.context_.reset(pcre2_match_context_create(nullptr));
  matcher.data_.reset(pcre2_match_data_create(1, nullptr));
  if (!matcher.context_ || !matcher.data_) {
    return ResourceExhausted("no memory for the pre-tokenizer");
  }
  pcre2_set_match_limit(matcher.context_.get(), limits.match);
  pcre2_set_depth_limit(matcher.context_.get(), limits.depth);
  pcre2_set_heap_limit(matcher.context_.get(), limits.heap_kib);
  matcher.stack_bytes_ = limits.stack_bytes;
  return matcher;
}

StatusOr<Pretokenizer> Pretokenizer::Create(std::string_view name) {
  const PretokenizerRule* rule = FindPretokenizerRule(name);
  if (rule == nullptr) {
    return Unsupported("pre-tokenizer '{}' (tokenizer.ggml.pre) is not known; known are: {}",
                       Printable(name), PretokenizerNames());
  }
  return Compile(rule->stages);
}

StatusOr<Pretokenizer> Pretokenizer::Compile(std::span<const char* const> patterns, bool jit) {
  Pretokenizer pretokenizer;
  for (const char* pattern : patterns) {
    int error = 0;
    PCRE2_SIZE offset = 0;
    Stage stage;
    const std::string whole = WithWhiteSpace(pattern);
    stage.code.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(whole.data()), whole.size(),
                                   PCRE2_UTF | PCRE2_UCP, &error, &offset, nullptr));
    if (!stage.code) {
      return Internal("pre-tokenizer: {} at {} in {}", ErrorText(error), offset, whole);
    }
    stage.jit = jit && pcre2_jit_compile(stage.code.get(), PCRE2_JIT_COMPLETE) == 0;
    pretokenizer.stages_.push_back(std::move(stage));
  }
  return pretokenizer;
}

Status Pretokenizer::CheckUtf8(std::string_view text) {
  const size_t valid = ValidUtf8Length(text);
  if (valid == text.size()) return OkStatus();
  return InvalidArgument("pre-tokenizer: byte {} of {} is not UTF-8", valid, text.size());
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
    matcher->stack_.reset(pcre2_jit_stack_create(kFirstStackBytes, matcher->stack_bytes_, nullptr));
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
