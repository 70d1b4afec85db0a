// EventLog: what has happened, newest last, for those who watch (GET /quire/v1/events).
//
// A ring of the last kMostEvents for each tenant, and one of all for admins, each with ids of its
// own: a tenant can't tell from them what others do. Watchers keep nothing here: each has the id of
// the last event it was given and asks for the next; one that comes back after a break goes on from
// there (Last-Event-ID). What a slow one missed because the ring went round is told as one event
// "gap". So memory is bounded whatever watchers do.
//
// Events hold ids, counts and labels; never text of prompts.
//
// Threading: any thread; a short lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <string>

#include "server/client.h"

namespace quire {

class EventLog {
 public:
  static constexpr size_t kMostEvents = 10'000;

  // `kind`: "request", "prefix", "page". `tenant`: who may see it besides admins; empty: admins
  // only. `json`: one object in one line.
  void Add(std::string kind, const std::string& tenant, std::string json);

  // The id of the client's newest event; 0: there is none yet. Ids rise by one from 1 on.
  uint64_t last_id(const Client& client) const;

  // Server-sent events after *last_id, at most about `max_bytes` of them and at least one if there
  // is one; moves *last_id to the last of them. Empty: nothing new. An id from the future (of
  // another run of the server) counts as 0.
  std::string Next(const Client& client, uint64_t* last_id, size_t max_bytes) const;

 private:
  struct Event {
    std::string kind, json;
  };
  struct Ring {
    std::deque<Event> events;  // the last one has the id last_id
    uint64_t last_id = 0;
    void Add(Event event);
  };
  const Ring* RingOf(const Client& client) const;

  mutable std::mutex mutex_;
  Ring all_;
  std::map<std::string, Ring> by_tenant_;  // as many as keys name
};

}  // namespace quire
