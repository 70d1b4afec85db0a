// Plan: what a model, a machine and a wish (users, context, codec) come to: does it fit, how much
// more would, what to change. One value that the command line prints, draws and writes as JSON, and
// that the server answers with.
//
// Bytes of pages are those of the code that the engine allocates and admits by. Each number is
// exact, measured or estimated (plan/mark.h); docs/planner.md says which and why.
//
// Threads: a plain value and a pure function. Cost: well below a millisecond.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "plan/capacity.h"
#include "plan/kv_choice.h"
#include "plan/memory_plan.h"
#include "plan/roofline.h"
#include "plan/savings.h"

namespace quire {

struct PlanRequest {
  KvModel model = {};
  KvChoice kv = {};
  uint32_t num_users = 1;      // 1 to kMostPlannedUsers
  uint32_t context_len = 0;    // tokens of each; 0: what the model was trained for, else 4096
  uint32_t shared_prefix = 0;  // tokens that all begin with
  std::optional<uint32_t> window = {};  // in place of the model's; 0: every layer sees all
  MemoryRequest memory = {};
  MachineRates rates = {};  // 0: not known, or those of memory.gpus
  std::optional<double> ttft_seconds = {}, tpot_seconds = {};  // targets
};

// One codec with the same pages, users and context.
struct CodecPlan {
  std::string name;
  bool runs = false;
  std::string refused = {};         // why it does not go with this model; then there are no numbers
  uint64_t page_bytes = 0;          // all groups, in the final form
  uint64_t conversation_bytes = 0;  // counted, nothing shared
  uint64_t needed_bytes = 0;        // of all users, with the shared prefix
  uint32_t users = 0;               // of context_len, with the shared prefix
  uint32_t context_len = 0;         // of num_users, with the shared prefix
  bool fits = false;
};

struct Plan {
  PlanRequest request;  // with every 0 resolved, the window in the model
  KvShape shape;
  MemoryPlan memory;
  uint32_t most_context_len = 0;  // what a context may be at most: the model's, or any
  uint32_t shared_tokens = 0;     // the part of the prefix in whole pages

  // KV of a token by formula, while no window is full; of one conversation and of all.
  uint64_t token_bytes = 0;
  uint64_t formula_bytes = 0;
  KvUse conversation;  // alone: nothing shared
  KvUse own;           // beside the shared prefix
  KvUse prefix;        // the shared prefix
  KvUse total;         // all users
  uint64_t committed_bytes = 0;
  uint64_t needed_memory_bytes = 0;  // weights, work memory, pages of all users

  uint32_t users_in_budget = 0, users_in_budget_unshared = 0;      // of context_len
  uint32_t context_in_budget = 0, context_in_budget_unshared = 0;  // of num_users
  std::vector<CodecPlan> codecs;
  std::vector<SavingStep> savings;
  PagingGain paging;
  std::optional<Roofline> roofline;

  bool fits = false;  // memory, and targets where they are given and can be estimated
  std::vector<std::string> reasons;  // why not
  std::vector<std::string> changes;  // what would; or how much more would fit

  uint64_t slack_bytes() const { return committed_bytes - total.counted_bytes; }
  // What is left of the memory beside weights, work memory and the pages of all users.
  uint64_t left_bytes() const {
    return memory.total_bytes > needed_memory_bytes ? memory.total_bytes - needed_memory_bytes : 0;
  }
};

// kInvalidArgument: what MakeMemoryPlan and ShapeOf say; users, context or prefix out of range.
StatusOr<Plan> MakePlan(PlanRequest request);

// The best codec, by measured loss, among those that fit; nullptr if none does.
const CodecPlan* BestCodec(const Plan& plan, bool must_run);

// "full", "window(1024)", "latent".
std::string GroupLabel(const KvLayers& layers);

// "10.41 GiB", of powers of 1024, with the unit that gives 1 to 1023.
std::string BytesText(uint64_t bytes);

// "1 user", "1,000 users".
std::string UsersText(uint32_t num_users);

}  // namespace quire
