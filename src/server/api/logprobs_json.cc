#include "server/api/logprobs_json.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "server/api/json_text.h"

namespace quire {
namespace {

bool HasText(const Tokenizer& tokenizer, TokenId id) {
  return tokenizer.has_text() && tokenizer.IsValid(id);
}

std::string BytesOf(const Tokenizer& tokenizer, TokenId id) {
  if (!HasText(tokenizer, id)) return {};
  const TokenType type = tokenizer.Type(id);
  const bool is_special = type == TokenType::kControl || type == TokenType::kUnknown;
  return is_special ? std::string(tokenizer.Text(id)) : tokenizer.Piece(id);
}

void AppendTokenText(std::string& json, TokenId id, const LogprobsForm& form) {
  if (form.tokens_as_ids || !HasText(*form.tokenizer, id)) {
    json += "\"token_id:";
    AppendJsonInteger(json, id);
    json += '"';
  } else {
    AppendJsonString(json, BytesOf(*form.tokenizer, id));
  }
}

// {"token","logprob","bytes", without the closing brace.
void AppendChatToken(std::string& json, TokenId id, double logprob, const LogprobsForm& form) {
  json += "{\"token\":";
  AppendTokenText(json, id, form);
  json += ",\"logprob\":";
  AppendJsonNumber(json, logprob);
  json += ",\"bytes\":[";
  for (const char byte : BytesOf(*form.tokenizer, id)) {
    AppendJsonComma(json);
    AppendJsonInteger(json, static_cast<uint8_t>(byte));
  }
  json += ']';
}

std::span<const TokenLogprob> TopOf(const Logprobs& logprobs, const LogprobsForm& form) {
  return std::span(logprobs.top).first(std::min(logprobs.num_top, form.num_top));
}

// {text: logprob} of one token.
void AppendAlternatives(std::string& json, const ToldToken& token, const LogprobsForm& form) {
  std::vector<std::pair<std::string, double>> values;  // by JSON text, in the order of coming
  const auto add = [&](TokenId id, double logprob) {
    std::string text;
    AppendTokenText(text, id, form);
    const auto same = std::ranges::find(values, text, &std::pair<std::string, double>::first);
    if (same == values.end()) {
      values.emplace_back(std::move(text), logprob);
    } else {
      same->second = std::max(same->second, logprob);
    }
  };
  for (const TokenLogprob& top : TopOf(*token.logprobs, form)) add(top.id, top.logprob);
  add(token.id, token.logprobs->sampled);
  json += '{';
  for (const auto& [text, logprob] : values) {
    AppendJsonComma(json);
    json += text;
    json += ':';
    AppendJsonNumber(json, logprob);
  }
  json += '}';
}

void AppendRanked(std::string& json, TokenId id, double logprob, size_t rank,
                  const LogprobsForm& form) {
  AppendJsonComma(json);
  json += '"';
  AppendJsonInteger(json, id);
  json += "\":{\"logprob\":";
  AppendJsonNumber(json, logprob);
  json += ",\"rank\":";
  if (rank > 0) {
    AppendJsonInteger(json, static_cast<int64_t>(rank));
  } else {
    json += "null";
  }
  json += ",\"decoded_token\":";
  AppendTokenText(json, id, form);
  json += '}';
}

}  // namespace

void AppendChatLogprobs(std::string& json, std::span<const ToldToken> tokens,
                        const LogprobsForm& form) {
  json += "{\"content\":[";
  for (const ToldToken& token : tokens) {
    AppendJsonComma(json);
    AppendChatToken(json, token.id, token.logprobs->sampled, form);
    json += ",\"top_logprobs\":[";
    for (const TokenLogprob& top : TopOf(*token.logprobs, form)) {
      AppendJsonComma(json);
      AppendChatToken(json, top.id, top.logprob, form);
      json += '}';
    }
    json += "]}";
  }
  json += "]}";
}

void AppendCompletionLogprobs(std::string& json, std::span<const ToldToken> tokens,
                              const LogprobsForm& form) {
  json += "{\"tokens\":[";
  for (const ToldToken& token : tokens) {
    AppendJsonComma(json);
    AppendTokenText(json, token.id, form);
  }
  json += "],\"token_logprobs\":[";
  for (const ToldToken& token : tokens) {
    AppendJsonComma(json);
    if (token.logprobs.has_value()) {
      AppendJsonNumber(json, token.logprobs->sampled);
    } else {
      json += "null";
    }
  }
  json += "],\"top_logprobs\":[";
  for (const ToldToken& token : tokens) {
    AppendJsonComma(json);
    if (token.logprobs.has_value()) {
      AppendAlternatives(json, token, form);
    } else {
      json += "null";
    }
  }
  json += "],\"text_offset\":[";
  for (const ToldToken& token : tokens) {
    AppendJsonComma(json);
    AppendJsonInteger(json, token.offset);
  }
  json += "]}";
}

void AppendPromptLogprobs(std::string& json, std::span<const ToldToken> tokens,
                          const LogprobsForm& form) {
  json += '[';
  for (const ToldToken& token : tokens) {
    AppendJsonComma(json);
    if (!token.logprobs.has_value()) {
      json += "null";
      continue;
    }
    const auto top = TopOf(*token.logprobs, form);
    json += '{';
    bool is_token_told = false;
    for (size_t i = 0; i < top.size(); ++i) {
      AppendRanked(json, top[i].id, top[i].logprob, i + 1, form);
      is_token_told = is_token_told || top[i].id == token.id;
    }
    if (!is_token_told) AppendRanked(json, token.id, token.logprobs->sampled, 0, form);
    json += '}';
  }
  json += ']';
}

}  // namespace quire
