#include "server/api/openapi.h"

#include <fmt/format.h>

#include "base/check.h"
#include "server/api/json_text.h"

namespace quire {
namespace {

using Json = nlohmann::ordered_json;

struct Operation {
  const char* method;
  const char* path;
  const char* summary;
  const char* body;    // a schema's name; empty: none
  const char* answer;  // a schema's name, or "text"
  const char* query;   // "name:type ..." of query parameters
  int status = 200;
};

constexpr Operation kOperations[] = {
    {"get", "/health", "Whether the server is ready", "", "Object", ""},
    {"get", "/ping", "The same", "", "Object", ""},
    {"get", "/health/live", "Whether the process is up", "", "Object", ""},
    {"get", "/health/ready", "Whether requests are taken", "", "Object", ""},
    {"get", "/health/progress", "How far loading is", "", "Object", ""},
    {"get", "/version", "The version", "", "Object", ""},
    {"get", "/metrics", "Metrics in Prometheus' text format", "", "text", ""},
    {"get", "/load", "Requests that run or wait", "", "Object", ""},
    {"get", "/v1/models", "The served models", "", "Models", ""},
    {"get", "/v1/models/{model}", "One served model", "", "Model", ""},
    {"post", "/v1/chat/completions", "Answer a chat", "ChatCall", "ChatAnswer", ""},
    {"post", "/v1/completions", "Go on with a text", "CompletionCall", "CompletionAnswer", ""},
    {"post", "/v1/embeddings", "Not offered for this kind of model", "Object", "Object", ""},
    {"post", "/v1/chat/completions/render", "The tokens of a chat's prompt", "ChatCall", "TokenIds",
     ""},
    {"post", "/v1/completions/render", "The tokens of each prompt", "CompletionCall",
     "ListOfTokenIds", ""},
    {"post", "/tokenize", "Text to tokens", "TokenizeCall", "TokenizeAnswer", ""},
    {"post", "/detokenize", "Tokens to text", "DetokenizeCall", "DetokenizeAnswer", ""},
    {"get", "/tokenizer_info", "The tokenizer's own tokens, the chat template", "", "TokenizerInfo",
     ""},
    {"post", "/apply-template", "The text of a chat's prompt", "ChatCall", "PromptText", ""},
    {"post", "/reset_prefix_cache", "Drop what the cache holds", "", "Success",
     "reset_running_requests:boolean reset_external:boolean"},
    {"get", "/openapi.json", "This document", "", "Object", ""},
    {"get", "/quire/v1/cache", "Bytes and pages of the cache by state", "", "Object", ""},
    {"get", "/quire/v1/prefixes", "Cached prefixes", "", "Object", "sort:string limit:integer"},
    {"post", "/quire/v1/prefixes", "Compute a prefix and keep it", "PrefixCall", "Object", "", 201},
    {"patch", "/quire/v1/prefixes/{id}", "Change a prefix's pin or ttl_s", "KeepCall", "Object",
     ""},
    {"delete", "/quire/v1/prefixes/{id}", "Drop a prefix", "", "Object", ""},
    {"delete", "/quire/v1/tenants/{tenant}/cache", "Drop all of a tenant's cache", "", "Object",
     ""},
    {"post", "/quire/v1/match", "What the cache has of a prompt", "PromptCall", "Object", ""},
    {"get", "/quire/v1/requests", "Requests that run or wait", "", "Object", ""},
    {"delete", "/quire/v1/requests/{id}", "End a request", "", "Object", ""},
    {"get", "/quire/v1/events", "Server-sent events of cache and requests", "", "events", ""},
    {"post", "/quire/v1/plan", "What fits into a machine's memory", "PlanCall", "Plan", ""},
};

Json Ref(const std::string& name) { return {{"$ref", "#/components/schemas/" + name}}; }

Json Content(const std::string& type, Json schema) {
  return {{type, {{"schema", std::move(schema)}}}};
}

Json Parameter(const std::string& name, const char* where, const std::string& type) {
  Json schema = {{"type", type}};
  if (type == "string") schema["minLength"] = 1;
  return {{"name", name},
          {"in", where},
          {"required", where == std::string("path")},
          {"schema", std::move(schema)}};
}

Json Parameters(const Operation& operation) {
  Json list = Json::array();
  const std::string_view path = operation.path;
  if (const size_t open = path.find('{'); open != std::string_view::npos)
    list.push_back(
        Parameter(std::string(path.substr(open + 1, path.find('}') - open - 1)), "path", "string"));
  std::string_view query = operation.query;
  while (!query.empty()) {
    const size_t end = std::min(query.find(' '), query.size());
    const std::string_view one = query.substr(0, end);
    const size_t colon = one.find(':');
    list.push_back(
        Parameter(std::string(one.substr(0, colon)), "query", std::string(one.substr(colon + 1))));
    query.remove_prefix(std::min(end + 1, query.size()));
  }
  return list;
}

Json Responses(const Operation& operation) {
  const std::string answer = operation.answer;
  Json content;
  if (answer == "text") {
    content = Content("text/plain", {{"type", "string"}});
  } else if (answer == "events") {
    content = Content("text/event-stream", {{"type", "string"}});
  } else {
    content = Content("application/json", Ref(answer));
    // With stream: true.
    if (answer == "ChatAnswer" || answer == "CompletionAnswer")
      content["text/event-stream"] = {{"schema", {{"type", "string"}}}};
  }
  Json responses = {{std::to_string(operation.status),
                     {{"description", "The answer"}, {"content", std::move(content)}}}};
  for (const int status : {400, 401, 403, 404, 405, 408, 413, 415, 429, 431, 500, 503})
    responses[std::to_string(status)] = {{"$ref", "#/components/responses/Refusal"}};
  return responses;
}

Json OperationObject(const Operation& operation) {
  Json object = {{"summary", operation.summary}};
  Json parameters = Parameters(operation);
  if (!parameters.empty()) object["parameters"] = std::move(parameters);
  if (*operation.body != '\0')
    object["requestBody"] = {{"required", true},
                             {"content", Content("application/json", Ref(operation.body))}};
  object["responses"] = Responses(operation);
  return object;
}

// The type, and null, which counts as absent.
Json Nullable(const char* type) { return {{"type", {type, "null"}}}; }

// A double without a fraction as an integer, where it fits one.
Json Bound(double value) {
  if (value >= 9223372036854775808.0) return INT64_MAX;
  if (value == static_cast<double>(static_cast<int64_t>(value))) return static_cast<int64_t>(value);
  return value;
}

Json Ids(const ServedModel& model, double most) {
  return {{"type", "array"},
          {"items", {{"type", "integer"}, {"minimum", 0}, {"maximum", model.vocab_size - 1}}},
          {"maxItems", Bound(most)}};
}

Json EnumWithNull(Json values) {
  values.push_back(nullptr);
  return {{"enum", std::move(values)}};
}

Json Choices(std::string_view values) {
  Json list = Json::array();
  while (!values.empty()) {
    const size_t end = std::min(values.find(' '), values.size());
    list.push_back(values.substr(0, end));
    values.remove_prefix(std::min(end + 1, values.size()));
  }
  return EnumWithNull(std::move(list));
}

// Objects whose members have rules of their own.
Json ObjectSchema(std::string_view name) {
  Json schema = Nullable("object");
  if (name == "stream_options") {
    for (const char* flag : {"include_usage", "continuous_usage_stats", "include_obfuscation"})
      schema["properties"][flag] = Nullable("boolean");
  } else if (name == "prompt_cache_options") {
    schema["properties"]["mode"] = EnumWithNull({"implicit", "explicit"});
    schema["properties"]["ttl"] = Nullable("string");
    schema["properties"]["ttl"]["pattern"] = "^[1-9][0-9]{0,2}[smh]$";
  } else if (name == "chat_template_kwargs") {
    schema["additionalProperties"] = {{"type", {"string", "number", "boolean", "null"}}};
  }
  return schema;
}

Json PromptSchema(const ServedModel& model, double most) {
  const Json text = {{"type", "string"}};
  Json ids = Ids(model, model.context_len);
  ids["minItems"] = 1;
  const auto list_of = [most](const Json& item) {
    return Json{{"type", "array"}, {"items", item}, {"minItems", 1}, {"maxItems", Bound(most)}};
  };
  return {{"anyOf", {text, ids, list_of(text), list_of(ids)}}};
}

Json FieldSchema(const ApiField& field, const ServedModel& model) {
  if (field.effect == FieldEffect::kRefused)
    return EnumWithNull(Json::parse(field.values, nullptr, false));
  Json schema;
  switch (field.kind) {
    case FieldKind::kBool:
      return Nullable("boolean");
    case FieldKind::kInteger:
    case FieldKind::kNumber:
      schema = Nullable(field.kind == FieldKind::kInteger ? "integer" : "number");
      schema["minimum"] = Bound(field.least);
      schema["maximum"] = Bound(field.most);
      return schema;
    case FieldKind::kString:
      schema = Nullable("string");
      schema["minLength"] = Bound(field.least);
      schema["maxLength"] = Bound(field.most);
      if (field.name == "cache_salt") schema["pattern"] = "^[^@/\\\\\\u0000]*$";
      return schema;
    case FieldKind::kChoice:
      return Choices(field.values);
    case FieldKind::kStrings: {
      const Json text = {{"type", "string"}, {"minLength", 1}, {"maxLength", 256}};
      const Json list = {{"type", "array"}, {"items", text}, {"maxItems", Bound(field.most)}};
      return {{"anyOf", {text, list, {{"type", "null"}}}}};
    }
    case FieldKind::kIds:
      schema = Ids(model, field.most);
      schema["type"] = {"array", "null"};
      return schema;
    case FieldKind::kTokenBias:
      schema = Nullable("object");
      schema["propertyNames"] = {{"pattern", "^(0|[1-9][0-9]*)$"}};
      schema["additionalProperties"] = {{"type", "number"}, {"minimum", -100}, {"maximum", 100}};
      schema["maxProperties"] = Bound(field.most);
      return schema;
    case FieldKind::kObject:
      return ObjectSchema(field.name);
    case FieldKind::kList:
      return Nullable("array");
    case FieldKind::kPrompt:
      return PromptSchema(model, field.most);
    case FieldKind::kMessages:
      return {{"type", "array"},
              {"items", Ref("Message")},
              {"minItems", Bound(field.least)},
              {"maxItems", Bound(field.most)}};
    case FieldKind::kAny:
      break;
  }
  return Json::object();
}

}  // namespace

Json BodySchema(ApiForm form, const ServedModel& model) {
  Json properties = Json::object();
  for (const ApiField& field : ApiFields()) {
    if (!field.IsIn(form)) continue;
    Json schema = FieldSchema(field, model);
    std::string help(field.help);
    if (field.effect == FieldEffect::kIgnored) help += " No effect on the output.";
    if (!field.fallback.empty()) help += fmt::format(" Default: {}.", field.fallback);
    schema["description"] = std::move(help);
    properties[std::string(field.name)] = std::move(schema);
  }
  Json names = Json::array();
  for (const std::string& name : model.names) names.push_back(name);
  if (!model.IsServed("*") && !names.empty()) {
    Json& schema = properties["model"];
    schema = {{"enum", std::move(names)}, {"description", schema["description"]}};
    schema["enum"].push_back(nullptr);
  }
  return {{"type", "object"},
          {"properties", std::move(properties)},
          {"required", {form == ApiForm::kChat ? "messages" : "prompt"}}};
}

std::string OpenApiDocument(const ServedModel& model) {
  Json paths = Json::object();
  for (const Operation& operation : kOperations)
    paths[operation.path][operation.method] = OperationObject(operation);
  Json schemas = AnswerSchemas();
  schemas["ChatCall"] = BodySchema(ApiForm::kChat, model);
  schemas["CompletionCall"] = BodySchema(ApiForm::kCompletions, model);
  const Json refusal = {{"description", "A refusal or an error"},
                        {"content", Content("application/json", Ref("Error"))}};
  const Json key = {{"type", "http"}, {"scheme", "bearer"}};
  const Json document = {
      {"openapi", "3.1.0"},
      {"info",
       {{"title", "Quire"},
        {"version", "1"},
        {"description", "The OpenAI API of a Quire server, and its own under /quire/v1."}}},
      {"paths", std::move(paths)},
      {"components",
       {{"schemas", std::move(schemas)},
        {"responses", {{"Refusal", refusal}}},
        {"securitySchemes", {{"key", key}}}}},
      // A key, where the server has any.
      {"security", {Json::object(), {{"key", Json::array()}}}}};
  return ToText(document);
}

}  // namespace quire
