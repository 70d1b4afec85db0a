#include "plan/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "base/errors.h"
#include "base/message_text.h"
#include "plan/formula_bytes.h"

namespace quire {
namespace {

constexpr uint32_t kContextWithoutModel = 4096;
constexpr uint32_t kTypicalTokens = 4096;  // of a request, beside the longest that is allowed

// By mean KL divergence of the next token, least first, and by a GPU's choice where a CPU has the
// same size; f32 keeps nothing that f16 loses.
constexpr std::string_view kByLoss[] = {"f16",   "tile8", "int8",  "fp8_e4m3", "tile6",
                                        "tile4", "int4",  "kivi4", "tile3",    "tile2"};

void OverrideWindow(uint32_t window, KvModel* model) {
  const bool has_windows =
      std::ranges::any_of(model->groups, [](const KvLayers& l) { return l.window > 0; });
  std::vector<KvLayers> groups;
  for (KvLayers layers : model->groups) {
    if (layers.window > 0 || !has_windows) layers.window = window;
    const auto same = std::ranges::find_if(groups, [&](const KvLayers& other) {
      return other.window == layers.window && other.num_kv_heads == layers.num_kv_heads &&
             other.head_dim_k == layers.head_dim_k && other.head_dim_v == layers.head_dim_v &&
             other.latent_rope_dim == layers.latent_rope_dim;
    });
    if (same == groups.end())
      groups.push_back(layers);
    else
      same->num_layers += layers.num_layers;
  }
  model->groups = std::move(groups);
  model->notes.push_back(window == 0 ? "every layer sees all keys, as --window 0 says"
                                     : fmt::format("windows of {} keys, as --window says", window));
}

Status Resolve(PlanRequest* request, Plan* plan) {
  if (request->num_users == 0 || request->num_users > kMostPlannedUsers)
    return InvalidArgument("{} users: need 1 to {}", request->num_users,
                           GroupDigits(kMostPlannedUsers));
  if (request->window.has_value()) OverrideWindow(*request->window, &request->model);
  const uint32_t trained = request->model.context_length;
  if (request->context_len == 0)
    request->context_len =
        trained > 0 ? std::min(trained, kMostPlannedTokens) : kContextWithoutModel;
  if (request->context_len > kMostPlannedTokens)
    return InvalidArgument("a context of {} tokens: need 1 to {}", request->context_len,
                           GroupDigits(kMostPlannedTokens));
  if (request->shared_prefix >= request->context_len && request->shared_prefix > 0)
    return InvalidArgument(
        "a shared prefix of {} tokens in a context of {}: need at least one token of one's own",
        request->shared_prefix, request->context_len);
  if (trained > 0 && request->context_len > trained)
    request->model.notes.push_back(
        fmt::format("a context of {} tokens is more than the {} that the model was trained for",
                    GroupDigits(request->context_len), GroupDigits(trained)));
  plan->most_context_len =
      trained > 0 ? std::min(std::max(trained, request->context_len), kMostPlannedTokens)
                  : kMostPlannedTokens;
  return OkStatus();
}

CodecPlan PlanOfCodec(const Plan& plan, const KvFormat& format) {
  const PlanRequest& request = plan.request;
  KvChoice choice = request.kv;
  choice.k = choice.v = &format;
  CodecPlan codec{.name = choice.name()};
  codec.runs = choice.runs() && request.model.runs;
  const StatusOr<KvShape> shape = ShapeOf(request.model, choice);
  if (!shape.ok()) {
    codec.refused = shape.status().message();
    return codec;
  }
  for (const KvGroupShape& group : shape->groups)
    codec.page_bytes += group.has_sealed() ? group.sealed_page_bytes : group.open_page_bytes;
  const uint64_t budget = plan.memory.budget_bytes;
  codec.conversation_bytes = ConversationUse(*shape, request.context_len).counted_bytes;
  codec.needed_bytes = BytesFor(*shape, request.num_users, request.context_len, plan.shared_tokens);
  codec.users = UsersIn(*shape, budget, request.context_len, plan.shared_tokens);
  codec.context_len =
      ContextIn(*shape, budget, request.num_users, plan.shared_tokens, plan.most_context_len);
  codec.fits = codec.needed_bytes <= budget;
  return codec;
}

void CountPages(Plan* plan) {
  const PlanRequest& request = plan->request;
  const KvShape& shape = plan->shape;
  const uint64_t budget = plan->memory.budget_bytes;
  plan->token_bytes = FormulaBytes(request.model, 1, 16);
  plan->formula_bytes = FormulaBytes(request.model, request.context_len, 16);
  plan->conversation = ConversationUse(shape, request.context_len);
  plan->own = ConversationUse(shape, request.context_len, plan->shared_tokens);
  plan->prefix = SharedUse(shape, plan->shared_tokens);
  plan->total = TotalUse(plan->prefix, plan->own, request.num_users);
  plan->committed_bytes = CommittedBytes(shape, plan->total);
  const unsigned __int128 needed = static_cast<unsigned __int128>(plan->total.counted_bytes) +
                                   plan->memory.known_weight_bytes() + plan->memory.work_bytes;
  plan->needed_memory_bytes =
      static_cast<uint64_t>(std::min<unsigned __int128>(needed, UINT64_MAX));
  plan->users_in_budget = UsersIn(shape, budget, request.context_len, plan->shared_tokens);
  plan->users_in_budget_unshared = UsersIn(shape, budget, request.context_len, 0);
  plan->context_in_budget =
      ContextIn(shape, budget, request.num_users, plan->shared_tokens, plan->most_context_len);
  plan->context_in_budget_unshared =
      ContextIn(shape, budget, request.num_users, 0, plan->most_context_len);
}

void EstimateTimes(Plan* plan) {
  PlanRequest& request = plan->request;
  if (request.memory.gpus.has_value()) {
    const AcceleratorSet& gpus = *request.memory.gpus;
    if (request.rates.bytes_per_second == 0)
      request.rates.bytes_per_second = gpus.count * gpus.kind->bytes_per_second;
    if (request.rates.flops == 0) request.rates.flops = gpus.count * gpus.kind->flops;
    if (request.rates.source.empty())
      request.rates.source = fmt::format("{} x {}, data sheet", gpus.count, gpus.kind->name);
  }
  plan->roofline = MakeRoofline(request.model,
                                {.weight_bytes = plan->memory.known_weight_bytes(),
                                 .kv_bytes = plan->conversation.page_bytes,
                                 .num_users = request.num_users,
                                 .tokens = request.context_len,
                                 .shared_tokens = plan->shared_tokens},
                                request.rates);
}

// A codec that fits, the best that runs and the best of all.
void SuggestCodecs(Plan* plan) {
  const CodecPlan* running = BestCodec(*plan, /*must_run=*/true);
  const CodecPlan* any = BestCodec(*plan, /*must_run=*/false);
  const auto suggest = [&](const CodecPlan& codec) {
    plan->changes.push_back(fmt::format("--kv {}: {} of KV for all{}", codec.name,
                                        BytesText(codec.needed_bytes),
                                        codec.runs ? "" : " (planned, does not run yet)"));
  };
  if (running != nullptr) suggest(*running);
  if (any != nullptr && any != running) suggest(*any);
}

void Judge(Plan* plan) {
  const PlanRequest& request = plan->request;
  const MemoryPlan& memory = plan->memory;
  const bool has_weights = memory.known_weight_bytes() + memory.work_bytes <= memory.total_bytes;
  const bool has_pages = plan->total.counted_bytes <= memory.budget_bytes;
  const bool has_both = plan->needed_memory_bytes <= memory.total_bytes;
  plan->fits = has_weights && has_pages && has_both;
  if (!has_weights)
    plan->reasons.push_back(fmt::format("the weights need {}, the memory is {}",
                                        BytesText(memory.known_weight_bytes()),
                                        BytesText(memory.total_bytes)));
  if (!has_pages)
    plan->reasons.push_back(fmt::format("need {} of KV pages, the budget is {}",
                                        BytesText(plan->total.counted_bytes),
                                        BytesText(memory.budget_bytes)));
  if (has_weights && has_pages && !has_both)
    plan->reasons.push_back(fmt::format("weights and KV pages need {}, the memory is {}",
                                        BytesText(plan->needed_memory_bytes),
                                        BytesText(memory.total_bytes)));
  if (!plan->fits) {
    if (plan->users_in_budget > 0 && plan->users_in_budget < request.num_users)
      plan->changes.push_back(fmt::format("{} of {} tokens", UsersText(plan->users_in_budget),
                                          GroupDigits(request.context_len)));
    if (plan->context_in_budget > 0 && plan->context_in_budget < request.context_len)
      plan->changes.push_back(fmt::format("{} of {} tokens", UsersText(request.num_users),
                                          GroupDigits(plan->context_in_budget)));
    if (!has_pages) SuggestCodecs(plan);
    plan->changes.push_back(
        fmt::format("{} of memory in all", BytesText(plan->needed_memory_bytes)));
  }
  const auto check = [&](const char* name, const std::optional<double>& target, double estimate) {
    if (!target.has_value() || estimate <= *target) return;
    plan->fits = false;
    plan->reasons.push_back(fmt::format("{} of {:.3g} s is wanted, {:.3g} s is estimated at best",
                                        name, *target, estimate));
  };
  if (plan->roofline.has_value()) {
    check("a first token after", request.ttft_seconds, plan->roofline->prefill_seconds);
    check("a token time", request.tpot_seconds, plan->roofline->step_seconds);
  }
}

}  // namespace

StatusOr<Plan> MakePlan(PlanRequest request) {
  Plan plan;
  QUIRE_RETURN_IF_ERROR(Resolve(&request, &plan));
  QUIRE_ASSIGN_OR_RETURN(plan.shape, ShapeOf(request.model, request.kv));
  QUIRE_ASSIGN_OR_RETURN(plan.memory, MakeMemoryPlan(request.model, request.memory));
  plan.shared_tokens = SharedTokens(request.shared_prefix, request.kv.page_size);
  plan.request = std::move(request);
  CountPages(&plan);
  for (const KvFormat& format : KvFormats()) plan.codecs.push_back(PlanOfCodec(plan, format));
  const PlanRequest& wish = plan.request;
  plan.savings = SavingSteps(wish.model, wish.kv, wish.context_len);
  const uint32_t longest =
      plan.most_context_len == kMostPlannedTokens ? wish.context_len : plan.most_context_len;
  plan.paging =
      GainOfPages(plan.shape, plan.memory.budget_bytes, longest, std::min(longest, kTypicalTokens));
  EstimateTimes(&plan);
  if (wish.memory.gpus.has_value())
    plan.request.model.notes.push_back("accelerators are planned: this engine runs on CPUs so far");
  Judge(&plan);
  return plan;
}

const CodecPlan* BestCodec(const Plan& plan, bool must_run) {
  for (const std::string_view name : kByLoss)
    for (const CodecPlan& codec : plan.codecs)
      if (codec.name == name && codec.refused.empty() && codec.fits && (codec.runs || !must_run))
        return &codec;
  return nullptr;
}

std::string GroupLabel(const KvLayers& layers) {
  if (layers.is_latent()) return "latent";
  return layers.window == 0 ? "full" : fmt::format("window({})", layers.window);
}

std::string UsersText(uint32_t num_users) {
  return fmt::format("{} user{}", GroupDigits(num_users), num_users == 1 ? "" : "s");
}

std::string BytesText(uint64_t bytes) {
  constexpr std::string_view kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (bytes < 1024) return fmt::format("{} B", bytes);
  auto value = static_cast<double>(bytes);
  size_t unit = 0;
  while (value >= 1023.995 && unit + 1 < std::size(kUnits)) {
    value /= 1024;
    ++unit;
  }
  return fmt::format("{:.2f} {}", value, kUnits[unit]);
}

}  // namespace quire
