#include "server/event_log.h"

#include <fmt/format.h>

#include <utility>

namespace quire {

void EventLog::Ring::Add(Event event) {
  events.push_back(std::move(event));
  if (events.size() > kMostEvents) events.pop_front();
  ++last_id;
}

void EventLog::Add(std::string kind, const std::string& tenant, std::string json) {
  const std::lock_guard lock(mutex_);
  if (!tenant.empty()) by_tenant_[tenant].Add({kind, json});
  all_.Add({std::move(kind), std::move(json)});
}

const EventLog::Ring* EventLog::RingOf(const Client& client) const {
  if (client.is_admin) return &all_;
  const auto found = by_tenant_.find(client.tenant);
  return found == by_tenant_.end() ? nullptr : &found->second;
}

uint64_t EventLog::last_id(const Client& client) const {
  const std::lock_guard lock(mutex_);
  const Ring* ring = RingOf(client);
  return ring == nullptr ? 0 : ring->last_id;
}

std::string EventLog::Next(const Client& client, uint64_t* last_id, size_t max_bytes) const {
  const std::lock_guard lock(mutex_);
  const Ring* ring = RingOf(client);
  if (ring == nullptr) return {};
  if (*last_id > ring->last_id) *last_id = 0;
  const uint64_t gone = ring->last_id - ring->events.size();  // events up to here
  std::string text;
  if (*last_id < gone) {
    text = fmt::format("id: {}\nevent: gap\ndata: {{\"missed\":{}}}\n\n", gone, gone - *last_id);
    *last_id = gone;
  }
  while (*last_id < ring->last_id && text.size() < max_bytes) {
    const Event& event = ring->events[*last_id - gone];
    ++*last_id;
    text += fmt::format("id: {}\nevent: {}\ndata: {}\n\n", *last_id, event.kind, event.json);
  }
  return text;
}

}  // namespace quire
