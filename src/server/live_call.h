// LiveCall: one generation request under way: from its body to the last byte of its answer.
//
// Threading: the HTTP thread, but for `news` (the engine's thread raises it) and `is_gone` (the
// helper thread looks at it before it starts to work).
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/answer.h"
#include "server/api/answer_writer.h"
#include "server/call_summary.h"
#include "server/client.h"
#include "server/http/http_server.h"
#include "server/tenant_limits.h"

namespace quire {

// Raised by the engine after a step that gave the call tokens. Outlives the call, since the engine
// may hold the answer a little longer.
struct CallNews {
  explicit CallNews(HttpServer* server_to_ring) : server(server_to_ring) {}
  void Raise() {
    is_raised.store(true, std::memory_order_release);
    server->Ring();
  }
  HttpServer* const server;
  std::atomic<bool> is_raised{false};
};

struct LiveCall {
  using Clock = std::chrono::steady_clock;

  LiveCall(std::string request_id, ApiForm api_form, std::string route_pattern, Client sender,
           TenantSlot tenant_slot, HttpReply its_reply, HttpServer* server)
      : id(std::move(request_id)),
        form(api_form),
        endpoint(std::move(route_pattern)),
        client(std::move(sender)),
        slot(std::move(tenant_slot)),
        reply(std::move(its_reply)),
        news(std::make_shared<CallNews>(server)) {}

  const std::string id;
  const ApiForm form;
  const std::string endpoint;
  const Client client;
  TenantSlot slot;
  HttpReply reply;
  const std::shared_ptr<CallNews> news;
  const Clock::time_point start = Clock::now();
  Clock::time_point submitted = {}, last_sent = start;
  std::atomic<bool> is_gone{false};

  std::unique_ptr<AnswerWriter> writer;  // none until the engine has the requests
  AnswerNotes notes;
  std::vector<uint32_t> to_retain = {};  // prompts that wait to be computed, then kept
  uint32_t num_retaining = 0;            // asks for that which the engine has
  bool is_writing = false;               // a whole answer
  bool goes_on = false;                  // a turn of its stream is to come
  bool has_ended = false;
};

// What the call came to, after its end.
CallSummary Summarise(const LiveCall& call, int status, const std::string& error_code);

}  // namespace quire
