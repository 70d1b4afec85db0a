#include "schedule/simulator.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/check.h"
#include "base/errors.h"
#include "cache/test_values.h"
#include "schedule/start_need.h"

namespace quire {
namespace {

constexpr uint64_t kMostIdleSteps = 3;  // with requests, without a token computed
constexpr uint64_t kFreshSteps = 16;
constexpr uint32_t kVocabulary = 5;

// What is sampled after a token with this value; forks sample other answers.
TokenId Sampled(uint64_t hash, uint64_t fork) {
  return static_cast<TokenId>(MixValue(hash + fork) % kVocabulary);
}

}  // namespace

struct Simulator::Live {
  uint64_t id = 0;
  uint64_t fork = 0;
  SimulatedRequest request;
  uint32_t num_sampled = 0;
  std::vector<TokenId> tokens;
  std::vector<std::vector<uint64_t>> slots;  // [layer group][token]: what its slot holds
  ScheduledSequence scheduled;
  std::optional<SequencePages> pages;
  bool is_over = false, is_forked = false;

  void Push(TokenId token) {
    tokens.push_back(token);
    for (uint32_t g = 0; g < slots.size(); ++g)
      slots[g].push_back(
          NextValue(slots[g].empty() ? StartValue(g, request.tenant) : slots[g].back(), token));
  }
};

SimulatorOptions RandomOptions(uint64_t seed) {
  const auto part = [&](uint64_t below) { return static_cast<uint32_t>(seed % below); };
  SimulatorOptions options;
  options.seed = seed;
  options.num_pages = 8 + static_cast<uint32_t>(seed * 7 % 57);
  options.seals = part(2) == 1;
  options.window = part(4) >= 2 ? 3 + part(13) : 0;
  if (options.seals) {
    options.sink_pages = part(8) / 4;
    options.recent_pages = part(24) / 8;
  }
  options.keeps_prefixes = part(16) != 0;
  options.page_size = part(5) == 0 ? 8 : 4;
  options.check_every = 4;
  options.most_live = 4 + part(3) * 10;
  options.limits.token_budget = part(7) == 0 ? 1 + part(6) : 32;
  options.limits.most_preemptions = part(11) == 0 ? 0 : 3;  // 0: nothing starts that could not end
  options.limits.max_running = part(3) == 0 ? 3 : 256;
  options.limits.watermark_bytes = part(2) * PageStride(1);
  return options;
}

Simulator::Simulator(const SimulatorOptions& options) : options_(options), random_(options.seed) {
  // What a page costs of the budget: an open one twice what its sealed form does.
  const size_t page_bytes =
      options.seals ? 2 * PageStride(1) : options.page_size * sizeof(uint64_t);
  shape_ = MakeTestShape(options.page_size, {.open_page_bytes = page_bytes,
                                             .seals = options.seals,
                                             .window = options.window,
                                             .sink_pages = options.sink_pages,
                                             .recent_pages = options.recent_pages});
  auto cache = KvCache::Create({.shape = shape_,
                                .budget_bytes = options.num_pages * PageStride(page_bytes),
                                .keeps_prefixes = options.keeps_prefixes,
                                .fill_with_nan = true});
  QUIRE_CHECK(cache.ok());
  cache_ = std::move(cache).value();
  for (uint32_t t = 0; t < options.num_tenants; ++t)
    namespaces_.push_back(
        cache_->Namespace({.tenant = std::string(1, static_cast<char>('a' + t))}).value());
  records_.resize(1);  // ids from 1 on
}

Simulator::~Simulator() { live_.clear(); }

uint64_t Simulator::Add(const SimulatedRequest& request) {
  auto live = std::make_unique<Live>();
  live->id = records_.size();
  live->request = request;
  if (live->request.most_answer == 0) live->request.most_answer = request.num_answer;
  live->slots.resize(shape_.num_groups());
  for (const TokenId token : request.prompt) live->Push(token);
  const auto length = static_cast<uint32_t>(request.prompt.size());
  live->scheduled = {.id = live->id,
                     .arrival = next_arrival_++,
                     .tenant = request.tenant,
                     .priority = request.priority,
                     .ns = namespaces_[request.tenant],
                     .is_private = request.is_private,
                     .most_tokens = length + live->request.most_answer - 1,
                     .most_matched = request.most_matched,
                     .waiting_since = step_ + 1};
  records_.push_back({.arrival_step = step_ + 1});
  tenants_.Arrive(live->request.tenant);
  live_.push_back(std::move(live));
  return live_.back()->id;
}

// Few token ids and few beginnings, so that prompts share and diverge at every place.
SimulatedRequest Simulator::RandomRequest() {
  SimulatedRequest request;
  uint32_t length = 1 + Random(options_.most_prompt);
  if (Random(4) == 0) length = 1 + Random(options_.page_size + 1);
  const uint32_t kept = Random(length + 1);
  if (!live_.empty() && Random(2) == 0)
    request.prompt = live_[Random(static_cast<uint32_t>(live_.size()))]->tokens;
  if (Random(2) == 0) request.prompt.resize(std::min<size_t>(request.prompt.size(), kept));
  const uint32_t pattern = Random(3);
  while (request.prompt.size() < length)
    request.prompt.push_back(
        static_cast<TokenId>(Random(8) == 0 ? Random(3) : (request.prompt.size() * pattern) % 3));
  request.num_answer = 1 + Random(options_.most_answer);
  request.most_answer = request.num_answer + Random(options_.most_answer);
  request.tenant = Random(options_.num_tenants);
  request.is_private = Random(16) == 0;
  if (Random(8) == 0) request.most_matched = Random(2 * options_.page_size);
  request.priority = Random(4) == 0 ? static_cast<int32_t>(Random(3)) - 1 : 0;
  return request;
}

void Simulator::Abort(uint64_t id) {
  const auto it = std::ranges::find(live_, id, &Live::id);
  if (it == live_.end()) return;
  records_[id].is_aborted = true;
  records_[id].end_step = step_ + 1;
  tenants_.Leave((*it)->request.tenant);
  if (Live& live = **it; live.pages && id % 2 == 0) live.pages->End(live.tokens);
  live_.erase(it);
}

uint64_t Simulator::Fork(uint64_t id) {
  const auto it = std::ranges::find(live_, id, &Live::id);
  if (it == live_.end() || !(*it)->pages) return 0;
  Live& parent = **it;
  parent.is_forked = true;
  auto live = std::make_unique<Live>();
  live->id = live->fork = records_.size();
  live->is_forked = true;
  live->request = parent.request;
  live->num_sampled = parent.num_sampled;
  live->tokens = parent.tokens;
  live->slots = parent.slots;
  live->scheduled = parent.scheduled;
  live->scheduled.id = live->id;
  live->scheduled.num_preemptions = 0;
  live->pages = parent.pages->Fork();
  records_.push_back({.arrival_step = step_ + 1, .last_part = step_});
  tenants_.Arrive(live->request.tenant);
  live_.push_back(std::move(live));
  return live_.back()->id;
}

void Simulator::FillState() {
  sequences_.clear();
  for (const auto& live : live_) {
    ScheduledSequence& scheduled = live->scheduled;
    scheduled.tokens = live->tokens;
    if (live->pages && live->tokens.size() - live->pages->next_position() > 1)
      live->pages->Follow(scheduled.matched_tokens());
    scheduled.pages = live->pages ? &*live->pages : nullptr;
    sequences_.push_back(scheduled);
  }
  state_ = {.sequences = sequences_,
            .tenants = tenants_.services(),
            .cache = cache_.get(),
            .step = step_};
}

Status Simulator::Step() {
  ++step_;
  FillState();
  decision_ = &scheduler_.Schedule(state_, options_.limits);
  if (live_.empty()) {
    last_progress_ = step_;
    return OkStatus();
  }
  Status status = CheckDecision(state_, options_.limits, *decision_);
  if (status.ok() && step_ % kFreshSteps == 0 &&
      Scheduler().Schedule(state_, options_.limits) != *decision_)
    status = Internal("a new scheduler decides otherwise");
  if (status.ok()) status = Apply();
  if (status.ok() && options_.check_every > 0 && step_ % options_.check_every == 0)
    status = CheckAll();
  if (!decision_->parts.empty() || live_.empty()) last_progress_ = step_;
  if (status.ok() && step_ - last_progress_ > kMostIdleSteps)
    status = Internal("nothing is computed since step {}, {} requests are there", last_progress_,
                      live_.size());
  return status.ok() ? status : status.WithContext("step " + std::to_string(step_));
}

Status Simulator::Apply() {
  for (const Refusal& refusal : decision_->refused) {
    Live& live = *live_[refusal.index];
    live.is_over = true;
    Record& record = records_[live.id];
    record.is_refused = true;
    record.end_step = step_;
    record.needed_bytes = refusal.needed_bytes;
  }
  for (const uint32_t index : decision_->preempted) {
    Live& live = *live_[index];
    live.pages->End(live.tokens);  // its open page too: it goes on with it if it stays
    live.pages.reset();
    live.scheduled.waiting_since = step_;
    ++live.scheduled.num_preemptions;
    ++num_preemptions_;
    if (++records_[live.id].num_preemptions > options_.limits.most_preemptions + 1 &&
        !live.is_forked)
      return Internal("request {} is preempted {} times", live.id, live.scheduled.num_preemptions);
  }
  for (const Admission& admission : decision_->admitted) {
    Live& live = *live_[admission.index];
    const uint32_t most = live.scheduled.most_tokens;
    PrefixMatch match;
    const StartNeed need = admission.takes_match ? NeedWithMatch(*cache_, live.scheduled.ns,
                                                                 live.scheduled.matched_tokens())
                                                 : NeedWithoutMatch(*cache_, live.scheduled.ns);
    const size_t held = cache_->pool().held_bytes();
    if (live.request.is_private)
      live.pages = cache_->NewPrivateSequence(most);
    else if (admission.takes_match)
      live.pages =
          cache_->NewSequence(live.scheduled.ns, live.scheduled.matched_tokens(), most, &match);
    else
      live.pages = cache_->NewSequence(live.scheduled.ns, most);
    if (cache_->pool().held_bytes() - held != need.match_bytes ||
        live.pages->next_position() != need.begin)
      return Internal("request {} starts at {} with {} bytes, not at {} with {}", live.id,
                      live.pages->next_position(), cache_->pool().held_bytes() - held, need.begin,
                      need.match_bytes);
    for (uint32_t end = need.begin + 1; end <= live.tokens.size(); ++end)
      if (live.pages->BytesNeeded(end) != FirstStepBytes(shape_, need, end))
        return Internal("request {} needs {} bytes to {}, not {}", live.id,
                        live.pages->BytesNeeded(end), end, FirstStepBytes(shape_, need, end));
    num_cold_starts_ += admission.takes_match ? 0 : 1;
  }
  // All pages are taken before the first token is computed.
  for (const StepPart& part : decision_->parts) {
    SequencePages& pages = *live_[part.index]->pages;
    const Status reserved = pages.Reserve(pages.next_position() + part.num_tokens);
    if (!reserved.ok()) return reserved.WithContext("the pages of a part");
  }
  for (const StepPart& part : decision_->parts)
    QUIRE_RETURN_IF_ERROR(Compute(*live_[part.index], part.num_tokens));
  for (const auto& live : live_)
    if (live->is_over && live->pages) QUIRE_RETURN_IF_ERROR(End(*live));
  std::erase_if(live_, [&](const auto& live) {
    if (live->is_over) tenants_.Leave(live->request.tenant);
    return live->is_over;
  });
  return OkStatus();
}

Status Simulator::Compute(Live& live, uint32_t num_tokens) {
  const uint32_t begin = live.pages->next_position(), end = begin + num_tokens;
  for (uint32_t g = 0; g < shape_.num_groups(); ++g)
    WriteValues(shape_, g, live.pages->views()[g], live.slots[g], live.pages->length(), end);
  live.pages->Commit(end, live.tokens);
  Record& record = records_[live.id];
  if (record.first_part == 0) record.first_part = step_;
  const uint64_t since = std::max(record.last_part, record.arrival_step - 1);
  record.longest_wait = std::max(record.longest_wait, step_ - since);
  record.last_part = live.scheduled.last_part = step_;
  record.num_computed += num_tokens;
  num_computed_ += num_tokens;
  tenants_.Serve(live.request.tenant, num_tokens);
  if (end < live.tokens.size()) return OkStatus();
  if (record.first_token == 0) record.first_token = step_;
  ++live.num_sampled;
  const TokenId sampled = Sampled(live.slots[0].back(), live.fork);
  if (live.num_sampled == live.request.num_answer) {
    record.end_step = step_;
    live.is_over = true;
  } else {
    live.Push(sampled);
  }
  return OkStatus();
}

Status Simulator::End(Live& live) {
  QUIRE_RETURN_IF_ERROR(CheckContents(live));
  live.pages->End(live.tokens);
  live.pages.reset();
  return OkStatus();
}

void Simulator::ChangeRandomly() {
  if (live_.size() < options_.most_live && Random(100) < options_.arrivals) {
    const uint32_t burst = Random(6) == 0 ? options_.most_live : 1;
    const SimulatedRequest request = RandomRequest();
    for (uint32_t i = 0; i < burst && live_.size() < options_.most_live; ++i)
      Add(i > 0 && Random(3) == 0 ? RandomRequest() : request);  // many with one prompt
  }
  if (!live_.empty() && Random(100) < 2)
    Abort(live_[Random(static_cast<uint32_t>(live_.size()))]->id);
  if (!live_.empty() && live_.size() < options_.most_live && Random(100) < 2)
    Fork(live_[Random(static_cast<uint32_t>(live_.size()))]->id);
}

Status Simulator::RunRandom(uint64_t num_steps) {
  for (uint64_t i = 0; i < num_steps; ++i) {
    ChangeRandomly();
    QUIRE_RETURN_IF_ERROR(Step());
  }
  return Drain();
}

Status Simulator::Drain() {
  for (uint64_t i = 0; !live_.empty(); ++i) {
    if (i > 100'000) return Internal("{} requests do not end", live_.size());
    QUIRE_RETURN_IF_ERROR(Step());
  }
  QUIRE_RETURN_IF_ERROR(CheckAll());
  const size_t budget = cache_->pool().budget_bytes();
  if (!cache_->MakeRoom(budget) || cache_->pool().free_bytes() != budget)
    return Internal("{} of {} bytes are free after all has ended", cache_->pool().free_bytes(),
                    budget);
  return cache_->CheckInvariants();
}

Status Simulator::CheckContents(const Live& live) const {
  for (uint32_t g = 0; g < shape_.num_groups(); ++g)
    if (Status status = CheckValues(shape_, g, *live.pages, live.slots[g]); !status.ok())
      return status.WithContext("request " + std::to_string(live.id));
  return OkStatus();
}

Status Simulator::CheckAll() const {
  QUIRE_RETURN_IF_ERROR(cache_->CheckInvariants());
  for (const auto& live : live_) {
    if (!live->pages) continue;
    QUIRE_RETURN_IF_ERROR(live->pages->CheckInvariants());
    QUIRE_RETURN_IF_ERROR(CheckContents(*live));
  }
  return OkStatus();
}

}  // namespace quire
