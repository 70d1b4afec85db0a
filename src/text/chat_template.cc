#include "text/chat_template.h"

#include <utility>

#include "base/errors.h"
#include "text/jinja/interpreter.h"
#include "text/jinja/json_import.h"
#include "text/jinja/statement_parser.h"

namespace quire {
namespace {

using Json = nlohmann::ordered_json;

// Templates differ in what they make of a list of parts, and many fail on it: all get one text.
Status JoinTextParts(size_t message_index, Json* content) {
  std::string joined;
  for (size_t i = 0; i < content->size(); ++i) {
    const Json& part = (*content)[i];
    if (i > 0) joined.push_back('\n');
    if (part.is_string()) {
      joined += part.get_ref<const std::string&>();
      continue;
    }
    const auto type = part.is_object() ? part.find("type") : part.end();
    if (!part.is_object() || (type != part.end() && *type != "text")) {
      return Unsupported("messages[{}].content[{}]: this server takes text only", message_index, i);
    }
    const auto text = part.find("text");
    if (text == part.end() || !text->is_string()) {
      return InvalidArgument("messages[{}].content[{}] needs a text", message_index, i);
    }
    joined += text->get_ref<const std::string&>();
  }
  *content = std::move(joined);
  return OkStatus();
}

// Clients send the arguments as the text of a JSON object; templates write them with tojson, which
// would encode that text a second time.
void DecodeArguments(Json* tool_call) {
  if (!tool_call->is_object()) return;
  const auto function = tool_call->find("function");
  Json* holder = function != tool_call->end() && function->is_object() ? &*function : tool_call;
  const auto arguments = holder->find("arguments");
  if (arguments == holder->end() || !arguments->is_string()) return;
  Json decoded = Json::parse(arguments->get_ref<const std::string&>(), nullptr, false);
  if (decoded.is_object()) *arguments = std::move(decoded);
}

StatusOr<Json> NormalizeMessages(const Json& messages) {
  if (!messages.is_array()) return InvalidArgument("messages must be a list");
  Json result = messages;
  for (size_t i = 0; i < result.size(); ++i) {
    Json& message = result[i];
    if (!message.is_object()) return InvalidArgument("messages[{}] must be an object", i);
    const auto content = message.find("content");
    if (content != message.end() && content->is_array()) {
      QUIRE_RETURN_IF_ERROR(JoinTextParts(i, &*content));
    }
    const auto tool_calls = message.find("tool_calls");
    if (tool_calls == message.end() || !tool_calls->is_array()) continue;
    for (Json& tool_call : *tool_calls) DecodeArguments(&tool_call);
  }
  return result;
}

jinja::Trust TrustOf(const std::string& name) {
  const bool own =
      name == "bos_token" || name == "eos_token" || name == "pad_token" || name == "unk_token";
  return own ? jinja::Trust::kTemplate : jinja::Trust::kCaller;
}

}  // namespace

struct ChatTemplate::Program {
  jinja::ParsedTemplate parsed;
};

ChatTemplate::ChatTemplate(std::string source, std::shared_ptr<const Program> program)
    : source_(std::move(source)), program_(std::move(program)) {}

StatusOr<ChatTemplate> ChatTemplate::Parse(std::string source) {
  if (source.empty()) return NotFound("model has no chat template; give --chat-template");
  StatusOr<jinja::ParsedTemplate> parsed = jinja::ParseTemplate(source);
  if (!parsed.ok()) return parsed.status().WithContext("chat template");
  auto program = std::make_shared<const Program>(Program{std::move(parsed).value()});
  return ChatTemplate(std::move(source), std::move(program));
}

const std::set<std::string>& ChatTemplate::names_read() const {
  return program_->parsed.names_read;
}

StatusOr<RenderedChat> ChatTemplate::Render(const Json& messages, const Json& extra,
                                            const std::tm& now, const RenderLimits& limits) const {
  if (!extra.is_object() && !extra.is_null()) {
    return InvalidArgument("the template's variables must be an object");
  }
  jinja::Runtime runtime(limits, now);
  jinja::Scope* scope = runtime.heap().NewScope(nullptr);
  for (auto variable = extra.begin(); variable != extra.end(); ++variable) {
    QUIRE_ASSIGN_OR_RETURN(jinja::Value value,
                           jinja::ImportJson(&runtime, *variable, TrustOf(variable.key())));
    scope->Set(variable.key(), std::move(value));
  }
  QUIRE_ASSIGN_OR_RETURN(const Json normalized, NormalizeMessages(messages));
  QUIRE_ASSIGN_OR_RETURN(jinja::Value value, jinja::ImportMessages(&runtime, normalized));
  scope->Set("messages", std::move(value));
  jinja::MarkedText text;
  QUIRE_RETURN_IF_ERROR(jinja::Interpreter(&runtime).Run(program_->parsed.ast.root, scope, &text));
  return RenderedChat{text.bytes(), text.plain()};
}

std::tm LocalTimeNow() {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  localtime_r(&now, &local);
  return local;
}

}  // namespace quire
