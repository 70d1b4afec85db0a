// A model's chat template: messages in, prompt text out.
//
// The template is a program in Jinja's language that came with the model file or from
// --chat-template; text/jinja runs it. The prompt says which of its bytes are a caller's words, so
// that the tokenizer reads no control token there: a message that says "<|im_end|>" stays ten
// characters. What the template itself writes is never marked.
//
// Which variables a request may set is the server's to decide; names_read() says which the template
// looks at.
//
// Threading: immutable; any thread may render. Rendering takes up to 2 MiB of stack.
// Errors: see Parse and Render.
#pragma once

#include <ctime>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "base/status.h"
#include "text/jinja/runtime.h"
#include "text/marked_text.h"

namespace quire {

// The prompt's text and the byte ranges of it, ascending, that came from a caller.
using RenderedChat = MarkedText;

using jinja::RenderLimits;

class ChatTemplate {
 public:
  // kNotFound for an empty source; kInvalidFile with the line for bad syntax; kUnsupported for
  // syntax, filters or tests that are not there; kResourceExhausted for too deep nesting.
  static StatusOr<ChatTemplate> Parse(std::string source);

  // messages  a list of {"role", "content", ...} as the OpenAI API has them. Content that is a list
  //           of text parts becomes one text, joined by newlines; arguments of a tool call that are
  //           the text of a JSON object become that object.
  // extra     an object: add_generation_prompt, tools, bos_token, eos_token, enable_thinking, ...
  //           Texts of bos_token, eos_token, pad_token and unk_token are the model's own; all
  //           others are a caller's.
  // now       local time for strftime_now.
  //
  // Errors: kInvalidArgument with the template's own message if it raises one, and for messages it
  // cannot take; kUnsupported for parts other than text; kResourceExhausted past the limits.
  StatusOr<RenderedChat> Render(const nlohmann::ordered_json& messages,
                                const nlohmann::ordered_json& extra, const std::tm& now,
                                const RenderLimits& limits = RenderLimits()) const;

  const std::string& source() const { return source_; }
  // Every name an expression of the template reads.
  const std::set<std::string>& names_read() const;

 private:
  struct Program;
  ChatTemplate(std::string source, std::shared_ptr<const Program> program);

  std::string source_;
  std::shared_ptr<const Program> program_;
};

// The local time now, for Render.
std::tm LocalTimeNow();

}  // namespace quire
