// ServedModel: what the API tells of the model and needs of it, fixed once it is loaded.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/sampling_params.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace quire {

struct ServedModel {
  std::vector<std::string>
      names;              // the first is told in answers; "*" among them: any name is taken
  std::string root = {};  // the file's name without its folder
  std::string owned_by = "quire";
  int64_t created = 0;               // seconds since 1970: when it was loaded
  std::string system_fingerprint{};  // equal means equal bits: build, model, codec, instruction set
  const Tokenizer* tokenizer = nullptr;
  const ChatTemplate* chat_template = nullptr;  // null: the model has none, chat is refused
  uint32_t context_len = 0;
  uint32_t vocab_size = 0;           // ids of logits: at least those of the tokenizer
  uint32_t longest_token_bytes = 0;  // LongestTokenBytes; 0: found at each call that needs it
  uint32_t trained_context_len = 0;
  uint64_t num_parameters = 0;
  uint64_t file_bytes = 0;
  SamplingParams sampling_defaults = {};  // of requests that say nothing: OpenAI's
  bool trusts_request_templates = false;  // --trust-request-chat-template
  bool refuses_unknown_fields = false;    // --strict-fields
  nlohmann::ordered_json chat_template_kwargs = nlohmann::ordered_json::object();

  bool IsServed(const std::string& name) const;
};

// Bytes of the vocabulary's longest text: what one token can stand for at most. Reads it all.
uint32_t LongestTokenBytes(const Tokenizer& tokenizer);

}  // namespace quire
