#include "plan/plan_json.h"

#include <string>

#include "base/message_text.h"
#include "plan/explain.h"
#include "plan/formula_bytes.h"

namespace quire {
namespace {

using Json = nlohmann::ordered_json;

template <class T>
Json OrNull(const std::optional<T>& value) {
  return value.has_value() ? Json(*value) : Json(nullptr);
}

Json ModelJson(const KvModel& model) {
  Json notes = Json::array();
  for (const std::string& note : model.notes) notes.push_back(note);
  return {{"name", Printable(model.name)},
          {"architecture", Printable(model.architecture)},
          {"source", model.source},
          {"runs", model.runs},
          {"attention", AttentionKind(model)},
          {"context_length", model.context_length},
          {"num_layers", model.num_layers},
          {"num_q_heads", model.num_q_heads},
          {"parameters", OrNull(model.num_params)},
          {"active_parameters", OrNull(model.num_active_params)},
          {"weights_dtype", Printable(model.weights_dtype)},
          {"notes", std::move(notes)}};
}

Json RequestJson(const PlanRequest& request) {
  return {{"users", request.num_users},
          {"ctx", request.context_len},
          {"kv", request.kv.name()},
          {"page_size", request.kv.page_size},
          {"shared_prefix", request.shared_prefix},
          {"window", OrNull(request.window)},
          {"ttft_seconds", OrNull(request.ttft_seconds)},
          {"tpot_seconds", OrNull(request.tpot_seconds)}};
}

Json UseJson(const KvUse& use) {
  return {{"page_bytes", use.page_bytes},
          {"counted_bytes", use.counted_bytes},
          {"rounding_bytes", use.counted_bytes - use.page_bytes}};
}

Json GroupsJson(const Plan& plan) {
  Json groups = Json::array();
  for (size_t g = 0; g < plan.shape.groups.size(); ++g) {
    const KvLayers& layers = plan.request.model.groups[g];
    const KvGroupShape& shape = plan.shape.groups[g];
    const GroupUse& use = plan.conversation.groups[g];
    groups.push_back({{"name", GroupLabel(layers)},
                      {"layers", layers.num_layers},
                      {"window", layers.window},
                      {"kv_heads", layers.num_kv_heads},
                      {"head_dim_k", layers.head_dim_k},
                      {"head_dim_v", layers.head_dim_v},
                      {"latent_rope_dim", layers.latent_rope_dim},
                      {"token_bytes_f16", FormulaBytes(layers, 1, 16)},
                      {"page_bytes", shape.open_page_bytes},
                      {"counted_page_bytes", PageStride(shape.open_page_bytes)},
                      {"sealed_page_bytes", shape.sealed_page_bytes},
                      {"counted_sealed_page_bytes", PageStride(shape.sealed_page_bytes)},
                      {"sink_pages", shape.sink_pages},
                      {"recent_pages", shape.recent_pages},
                      {"conversation",
                       {{"pages", use.pages.open},
                        {"sealed_pages", use.pages.sealed},
                        {"formula_bytes_f16", FormulaBytes(layers, plan.request.context_len, 16)},
                        {"page_bytes", use.page_bytes},
                        {"counted_bytes", use.counted_bytes}}}});
  }
  return groups;
}

Json KvJson(const Plan& plan) {
  Json conversation = UseJson(plan.conversation);
  conversation["formula_bytes_f16"] = plan.formula_bytes;
  Json all = UseJson(plan.total);
  all["committed_bytes"] = plan.committed_bytes;
  all["slack_bytes"] = plan.slack_bytes();
  return {{"mark", MarkName(Mark::kExact)},
          {"codec", plan.request.kv.name()},
          {"runs", plan.request.kv.runs() && plan.request.model.runs},
          {"page_size", plan.request.kv.page_size},
          {"token_bytes_f16", plan.token_bytes},
          {"groups", GroupsJson(plan)},
          {"conversation", std::move(conversation)},
          {"shared_tokens", plan.shared_tokens},
          {"shared_prefix", UseJson(plan.prefix)},
          {"own", UseJson(plan.own)},
          {"all_users", std::move(all)}};
}

Json MemoryJson(const Plan& plan) {
  const MemoryPlan& memory = plan.memory;
  return {{"total",
           {{"bytes", memory.total_bytes},
            {"source", memory.total_source},
            {"mark", MarkName(memory.total_mark)}}},
          {"weights",
           {{"bytes", OrNull(memory.weight_bytes)},
            {"source", memory.weight_source},
            {"mark", MarkName(memory.weight_mark)}}},
          {"work", {{"bytes", memory.work_bytes}, {"mark", MarkName(Mark::kEstimated)}}},
          {"kv_budget", {{"bytes", memory.budget_bytes}, {"source", memory.budget_source}}},
          {"kv_needed", {{"bytes", plan.total.counted_bytes}, {"mark", MarkName(Mark::kExact)}}},
          {"needed_bytes", plan.needed_memory_bytes},
          {"left_bytes", plan.left_bytes()}};
}

Json CodecName(const CodecPlan* codec) {
  return codec == nullptr ? Json(nullptr) : Json(codec->name);
}

Json AnswersJson(const Plan& plan) {
  return {{"mark", MarkName(Mark::kExact)},
          {"users_at_context", plan.users_in_budget},
          {"users_at_context_unshared", plan.users_in_budget_unshared},
          {"context_at_users", plan.context_in_budget},
          {"context_at_users_unshared", plan.context_in_budget_unshared},
          {"kv_bytes_for_all", plan.total.counted_bytes},
          {"memory_bytes_for_all", plan.needed_memory_bytes},
          {"best_codec", CodecName(BestCodec(plan, /*must_run=*/true))},
          {"best_codec_planned", CodecName(BestCodec(plan, /*must_run=*/false))}};
}

Json CodecsJson(const Plan& plan) {
  Json codecs = Json::array();
  for (const CodecPlan& codec : plan.codecs) {
    Json one = {{"codec", codec.name}, {"runs", codec.runs}};
    if (!codec.refused.empty()) {
      one["refused"] = codec.refused;
    } else {
      one["page_bytes"] = codec.page_bytes;
      one["conversation_bytes"] = codec.conversation_bytes;
      one["needed_bytes"] = codec.needed_bytes;
      one["users_at_context"] = codec.users;
      one["context_at_users"] = codec.context_len;
      one["fits"] = codec.fits;
    }
    codecs.push_back(std::move(one));
  }
  return codecs;
}

Json SavingsJson(const Plan& plan) {
  Json steps = Json::array();
  for (const SavingStep& step : plan.savings)
    steps.push_back({{"step", step.name}, {"bytes", step.bytes}});
  const PagingGain& gain = plan.paging;
  return {{"mark", MarkName(Mark::kExact)},
          {"by_formula", std::move(steps)},
          {"paging",
           {{"reserved_tokens", gain.reserved_tokens},
            {"used_tokens", gain.used_tokens},
            {"contiguous_users", gain.contiguous_users},
            {"paged_users", gain.paged_users},
            {"reserved_bytes", gain.reserved_bytes},
            {"paged_bytes", gain.paged_bytes}}}};
}

Json RooflineJson(const std::optional<Roofline>& roofline) {
  if (!roofline.has_value()) return nullptr;
  return {{"mark", MarkName(Mark::kEstimated)},
          {"bytes_per_second", roofline->rates.bytes_per_second},
          {"flops", roofline->rates.flops},
          {"rates_source", roofline->rates.source},
          {"rates_mark", MarkName(roofline->rates.mark)},
          {"ttft_seconds", roofline->prefill_seconds},
          {"tpot_seconds", roofline->step_seconds},
          {"tpot_alone_seconds", roofline->alone_seconds},
          {"step_is_compute_bound", roofline->step_is_compute_bound},
          {"knee_users", OrNull(roofline->knee_users)}};
}

Json List(const std::vector<std::string>& texts) {
  Json list = Json::array();
  for (const std::string& text : texts) list.push_back(text);
  return list;
}

}  // namespace

Json PlanJson(const Plan& plan) {
  Json explain = Json::array();
  for (const Explanation& line : Explain(plan))
    explain.push_back({{"name", line.name}, {"formula", line.formula}, {"numbers", line.numbers}});
  return {{"schema", kPlanSchema},
          {"model", ModelJson(plan.request.model)},
          {"request", RequestJson(plan.request)},
          {"kv", KvJson(plan)},
          {"memory", MemoryJson(plan)},
          {"answers", AnswersJson(plan)},
          {"codecs", CodecsJson(plan)},
          {"savings", SavingsJson(plan)},
          {"roofline", RooflineJson(plan.roofline)},
          {"verdict",
           {{"fits", plan.fits}, {"reasons", List(plan.reasons)}, {"changes", List(plan.changes)}}},
          {"explain", std::move(explain)}};
}

}  // namespace quire
