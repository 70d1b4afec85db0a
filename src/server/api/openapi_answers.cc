// The schemas that no table has.
#include "base/check.h"
#include "server/api/openapi.h"

namespace quire {
namespace {

constexpr char kSchemas[] = R"json({
  "Object": {"type": "object"},
  "Error": {
    "type": "object",
    "properties": {
      "error": {
        "type": "object",
        "properties": {
          "message": {"type": "string"},
          "type": {"type": "string"},
          "param": {"type": ["string", "null"]},
          "code": {"type": ["string", "integer"]}
        },
        "required": ["message", "type", "code"]
      }
    },
    "required": ["error"]
  },
  "ContentPart": {
    "type": "object",
    "properties": {
      "type": {"const": "text"},
      "text": {"type": "string"},
      "prompt_cache_breakpoint": {
        "type": ["object", "null"],
        "properties": {"mode": {"enum": ["explicit", null]},
                       "ttl": {"type": ["string", "null"], "pattern": "^[1-9][0-9]{0,2}[smh]$"}}
      },
      "cache_control": {
        "type": ["object", "null"],
        "properties": {"type": {"enum": ["ephemeral", null]},
                       "ttl": {"type": ["string", "null"], "pattern": "^[1-9][0-9]{0,2}[smh]$"}}
      }
    },
    "required": ["type", "text"]
  },
  "ToolCall": {
    "type": "object",
    "properties": {
      "id": {"type": ["string", "null"]},
      "type": {"enum": ["function", null]},
      "function": {
        "type": "object",
        "properties": {"name": {"type": "string"}, "arguments": {"type": ["string", "null"]}},
        "required": ["name"]
      }
    },
    "required": ["function"]
  },
  "Message": {
    "type": "object",
    "properties": {
      "role": {"enum": ["system", "developer", "user", "assistant", "tool"]},
      "content": {
        "anyOf": [{"type": "string"},
                  {"type": "array", "items": {"$ref": "#/components/schemas/ContentPart"}}]
      },
      "name": {"type": ["string", "null"]},
      "tool_call_id": {"type": ["string", "null"]},
      "reasoning_content": {"type": ["string", "null"]},
      "reasoning": {"type": ["string", "null"]},
      "function_call": {"type": "null"},
      "audio": {"type": "null"}
    },
    "required": ["role", "content"]
  },
  "Usage": {
    "type": "object",
    "properties": {
      "prompt_tokens": {"type": "integer", "minimum": 0},
      "completion_tokens": {"type": "integer", "minimum": 0},
      "total_tokens": {"type": "integer", "minimum": 0},
      "prompt_tokens_details": {
        "type": "object",
        "properties": {"cached_tokens": {"type": "integer", "minimum": 0},
                       "cache_write_tokens": {"type": "integer", "minimum": 0}}
      },
      "completion_tokens_details": {
        "type": "object",
        "properties": {"reasoning_tokens": {"type": "integer", "minimum": 0}}
      }
    },
    "required": ["prompt_tokens", "completion_tokens", "total_tokens"]
  },
  "ChatAnswer": {
    "type": "object",
    "properties": {
      "id": {"type": "string"},
      "object": {"const": "chat.completion"},
      "created": {"type": "integer"},
      "model": {"type": "string"},
      "system_fingerprint": {"type": ["string", "null"]},
      "choices": {
        "type": "array",
        "items": {
          "type": "object",
          "properties": {
            "index": {"type": "integer", "minimum": 0},
            "message": {
              "type": "object",
              "properties": {"role": {"const": "assistant"},
                             "content": {"type": ["string", "null"]}},
              "required": ["role", "content"]
            },
            "logprobs": {"type": ["object", "null"]},
            "finish_reason": {"enum": ["stop", "length", "tool_calls"]},
            "stop_reason": {"type": ["string", "integer", "null"]}
          },
          "required": ["index", "message", "finish_reason"]
        }
      },
      "usage": {"$ref": "#/components/schemas/Usage"}
    },
    "required": ["id", "object", "created", "model", "choices", "usage"]
  },
  "CompletionAnswer": {
    "type": "object",
    "properties": {
      "id": {"type": "string"},
      "object": {"const": "text_completion"},
      "created": {"type": "integer"},
      "model": {"type": "string"},
      "system_fingerprint": {"type": ["string", "null"]},
      "choices": {
        "type": "array",
        "items": {
          "type": "object",
          "properties": {
            "index": {"type": "integer", "minimum": 0},
            "text": {"type": "string"},
            "logprobs": {"type": ["object", "null"]},
            "finish_reason": {"enum": ["stop", "length"]},
            "stop_reason": {"type": ["string", "integer", "null"]}
          },
          "required": ["index", "text", "finish_reason"]
        }
      },
      "usage": {"$ref": "#/components/schemas/Usage"}
    },
    "required": ["id", "object", "created", "model", "choices", "usage"]
  },
  "Model": {
    "type": "object",
    "properties": {
      "id": {"type": "string"},
      "object": {"const": "model"},
      "created": {"type": "integer"},
      "owned_by": {"type": "string"},
      "root": {"type": "string"},
      "parent": {"type": "null"},
      "max_model_len": {"type": "integer"},
      "permission": {"type": "array"},
      "meta": {"type": "object"}
    },
    "required": ["id", "object", "created", "owned_by"]
  },
  "Models": {
    "type": "object",
    "properties": {
      "object": {"const": "list"},
      "data": {"type": "array", "items": {"$ref": "#/components/schemas/Model"}}
    },
    "required": ["object", "data"]
  },
  "Tokens": {"type": "array", "items": {"type": "integer", "minimum": 0}},
  "TokenIds": {
    "type": "object",
    "properties": {"token_ids": {"$ref": "#/components/schemas/Tokens"}},
    "required": ["token_ids"]
  },
  "ListOfTokenIds": {"type": "array", "items": {"$ref": "#/components/schemas/TokenIds"}},
  "TokenizeCall": {
    "anyOf": [
      {
        "type": "object",
        "properties": {
          "prompt": {"type": "string"},
          "add_special_tokens": {"type": ["boolean", "null"]},
          "return_token_strs": {"type": ["boolean", "null"]}
        },
        "required": ["prompt"]
      },
      {
        "type": "object",
        "properties": {
          "content": {"type": "string"},
          "add_special": {"type": ["boolean", "null"]},
          "parse_special": {"type": ["boolean", "null"]},
          "with_pieces": {"type": ["boolean", "null"]}
        },
        "required": ["content"]
      },
      {"$ref": "#/components/schemas/ChatCall"}
    ]
  },
  "TokenizeAnswer": {
    "type": "object",
    "properties": {
      "tokens": {"type": "array"},
      "count": {"type": "integer"},
      "max_model_len": {"type": "integer"},
      "token_strs": {"type": ["array", "null"]}
    },
    "required": ["tokens"]
  },
  "DetokenizeCall": {
    "type": "object",
    "properties": {"tokens": {"$ref": "#/components/schemas/Tokens"}},
    "required": ["tokens"]
  },
  "DetokenizeAnswer": {
    "type": "object",
    "properties": {"prompt": {"type": "string"}, "content": {"type": "string"}},
    "required": ["prompt", "content"]
  },
  "TokenizerInfo": {
    "type": "object",
    "properties": {
      "bos_token": {"type": ["string", "null"]},
      "eos_token": {"type": ["string", "null"]},
      "pad_token": {"type": ["string", "null"]},
      "chat_template": {"type": ["string", "null"]}
    },
    "required": ["bos_token", "eos_token", "chat_template"]
  },
  "PromptText": {
    "type": "object",
    "properties": {"prompt": {"type": "string"}},
    "required": ["prompt"]
  },
  "Success": {
    "type": "object",
    "properties": {"success": {"type": "boolean"}},
    "required": ["success"]
  },
  "PromptCall": {
    "type": "object",
    "properties": {
      "prompt": {"anyOf": [{"type": "string", "minLength": 1},
                           {"$ref": "#/components/schemas/Tokens"}]},
      "messages": {"type": "array", "items": {"$ref": "#/components/schemas/Message"},
                   "minItems": 1},
      "token_ids": {"$ref": "#/components/schemas/Tokens"},
      "cache_salt": {"type": "string", "minLength": 1, "maxLength": 128,
                     "pattern": "^[^@/\\\\\\u0000]*$"}
    },
    "oneOf": [{"required": ["prompt"]}, {"required": ["messages"]}, {"required": ["token_ids"]}]
  },
  "KeepCall": {
    "type": "object",
    "properties": {"pin": {"type": "boolean"}, "ttl_s": {"type": "integer", "minimum": 0},
                   "label": {"type": "string"}}
  },
  "PrefixCall": {
    "allOf": [{"$ref": "#/components/schemas/PromptCall"},
              {"$ref": "#/components/schemas/KeepCall"}]
  },
  "PlanCall": {
    "type": "object",
    "properties": {
      "shape": {"type": ["string", "null"], "maxLength": 512},
      "config": {"type": ["object", "null"]},
      "users": {"type": ["integer", "null"], "minimum": 1, "maximum": 1000000},
      "ctx": {"type": ["integer", "null"], "minimum": 1, "maximum": 134217728},
      "shared_prefix": {"type": ["integer", "null"], "minimum": 0, "maximum": 134217728},
      "window": {"type": ["integer", "null"], "minimum": 0, "maximum": 134217728},
      "kv": {"type": ["string", "null"], "maxLength": 512},
      "page_size": {"type": ["integer", "null"], "minimum": 16, "maximum": 4096, "multipleOf": 16},
      "kv_sink_pages": {"type": ["integer", "null"], "minimum": 0, "maximum": 1},
      "kv_recent_pages": {"type": ["integer", "null"], "minimum": 0, "maximum": 1048576},
      "memory_bytes": {"type": ["integer", "null"], "minimum": 1, "maximum": 9007199254740992},
      "gpus": {"type": ["string", "null"], "maxLength": 512},
      "cache_share": {"type": ["number", "null"], "exclusiveMinimum": 0, "maximum": 1},
      "kv_memory_bytes": {"type": ["integer", "null"], "minimum": 1, "maximum": 9007199254740992},
      "weights_dtype": {"type": ["string", "null"], "maxLength": 512},
      "bandwidth_bytes_per_second":
        {"type": ["number", "null"], "exclusiveMinimum": 0, "maximum": 9007199254740992},
      "flops": {"type": ["number", "null"], "exclusiveMinimum": 0, "maximum": 9007199254740992},
      "ttft_seconds":
        {"type": ["number", "null"], "exclusiveMinimum": 0, "maximum": 9007199254740992},
      "tpot_seconds":
        {"type": ["number", "null"], "exclusiveMinimum": 0, "maximum": 9007199254740992}
    },
    "additionalProperties": false
  },
  "Plan": {
    "type": "object",
    "properties": {
      "schema": {"type": "integer"}, "model": {"type": "object"}, "request": {"type": "object"},
      "kv": {"type": "object"}, "memory": {"type": "object"}, "answers": {"type": "object"},
      "codecs": {"type": "array", "items": {"type": "object"}}, "savings": {"type": "object"},
      "roofline": {"type": ["object", "null"]}, "verdict": {"type": "object"},
      "explain": {"type": "array", "items": {"type": "object"}}
    },
    "required": ["schema", "model", "request", "kv", "memory", "answers", "codecs", "savings",
                 "roofline", "verdict", "explain"]
  }
})json";

}  // namespace

nlohmann::ordered_json AnswerSchemas() {
  auto schemas = nlohmann::ordered_json::parse(kSchemas, nullptr, false);
  QUIRE_CHECK(schemas.is_object());
  return schemas;
}

}  // namespace quire
