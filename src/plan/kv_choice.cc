#include "plan/kv_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/errors.h"
#include "base/message_text.h"

namespace quire {
namespace {

constexpr uint64_t kMostPageBytes = uint64_t{1} << 31;  // as MakeKvLayout
constexpr uint32_t kMostPageSize = 4096;
constexpr uint32_t kMostRecentPages = 1 << 20;

std::string FormatNames() {
  std::vector<std::string_view> names;
  for (const KvFormat& format : KvFormats()) names.push_back(format.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

StatusOr<const KvFormat*> ParseFormat(std::string_view name) {
  if (const KvFormat* format = FindKvFormat(name)) return format;
  return InvalidArgument("unknown KV codec '{}': use one of {}; or k=CODEC,v=CODEC",
                         Printable(name), FormatNames());
}

Status CheckChoice(const KvChoice& choice) {
  if (choice.page_size == 0 || choice.page_size % 16 != 0 || choice.page_size > kMostPageSize)
    return InvalidArgument("page size {}: need a multiple of 16 from 16 to {}", choice.page_size,
                           kMostPageSize);
  if (choice.sink_pages.value_or(0) > 1)
    return InvalidArgument("{} sink pages: need 0 or 1", *choice.sink_pages);
  if (choice.recent_pages > kMostRecentPages)
    return InvalidArgument("{} recent pages: need at most {}", choice.recent_pages,
                           kMostRecentPages);
  return OkStatus();
}

// Of one layer and head.
uint64_t ChunkBytes(const KvLayers& layers, const KvFormat& k, const KvFormat& v,
                    uint32_t page_size) {
  if (layers.is_latent())
    return LatentChunkBytes(k, page_size, layers.head_dim_k, layers.latent_rope_dim);
  return KvChunkBytes(k, v, page_size, layers.head_dim_k, layers.head_dim_v);
}

Status CheckLatent(const KvChoice& choice) {
  if (choice.k == choice.v && choice.k->is_for_latent) return OkStatus();
  return InvalidArgument(
      "codec {} has no form for latent attention (MLA), which keeps one vector for K and V: use "
      "f16, int8, tile8, tile6 or tile4",
      choice.name());
}

}  // namespace

std::string KvChoice::name() const {
  return k == v ? std::string(k->name) : fmt::format("k={},v={}", k->name, v->name);
}

Status ParseKvChoice(std::string_view text, KvChoice* choice) {
  if (text.find('=') == std::string_view::npos) {
    QUIRE_ASSIGN_OR_RETURN(choice->k, ParseFormat(text));
    choice->v = choice->k;
    return OkStatus();
  }
  const KvFormat *k = nullptr, *v = nullptr;
  for (std::string_view rest = text; !rest.empty();) {
    const std::string_view part = rest.substr(0, rest.find(','));
    const KvFormat** side = part.starts_with("k=") ? &k : part.starts_with("v=") ? &v : nullptr;
    if (side == nullptr || *side != nullptr)
      return InvalidArgument("KV codec '{}': write CODEC, or k=CODEC,v=CODEC", Printable(text));
    QUIRE_ASSIGN_OR_RETURN(*side, ParseFormat(part.substr(2)));
    rest.remove_prefix(std::min(part.size() + 1, rest.size()));
  }
  if (k == nullptr || v == nullptr)
    return InvalidArgument("KV codec '{}': both sides are needed, as in k=int8,v=int4",
                           Printable(text));
  choice->k = k;
  choice->v = v;
  return OkStatus();
}

StatusOr<KvGroupShape> PlannedGroupShape(const KvLayers& layers, const KvChoice& choice) {
  const uint64_t num_chunks = uint64_t{layers.num_layers} * layers.num_kv_heads;
  const uint64_t open =
      ChunkBytes(layers, OpenFormat(*choice.k), OpenFormat(*choice.v), choice.page_size);
  if (num_chunks == 0 || open == 0)
    return InvalidArgument("a layer group of {} layers, {} KV heads, head_dim {} and {}: need > 0",
                           layers.num_layers, layers.num_kv_heads, layers.head_dim_k,
                           layers.head_dim_v);
  if (open > kMostPageBytes / num_chunks)
    return InvalidArgument("a page of {} tokens would be larger than 2 GiB: lower --page-size",
                           choice.page_size);
  KvGroupShape shape = {.window = layers.window, .open_page_bytes = num_chunks * open};
  if (!choice.k->is_page_wise && !choice.v->is_page_wise) return shape;
  shape.sealed_page_bytes = num_chunks * ChunkBytes(layers, *choice.k, *choice.v, choice.page_size);
  const uint32_t wanted = std::max(choice.k->default_sink_pages, choice.v->default_sink_pages);
  shape.sink_pages = layers.window > 0 ? 0 : choice.sink_pages.value_or(wanted);
  shape.recent_pages = choice.recent_pages;
  return shape;
}

StatusOr<KvShape> ShapeOf(const KvModel& model, const KvChoice& choice) {
  QUIRE_RETURN_IF_ERROR(CheckChoice(choice));
  if (model.groups.empty()) return InvalidArgument("the model has no layer with a KV cache");
  KvShape shape = {.page_size = choice.page_size, .groups = {}};
  for (const KvLayers& layers : model.groups) {
    if (layers.is_latent()) QUIRE_RETURN_IF_ERROR(CheckLatent(choice));
    if (layers.is_latent() || !choice.runs()) {
      QUIRE_ASSIGN_OR_RETURN(const KvGroupShape group, PlannedGroupShape(layers, choice));
      shape.groups.push_back(group);
      continue;
    }
    const KvGeometry geometry = {.page_size = choice.page_size,
                                 .num_layers = layers.num_layers,
                                 .num_kv_heads = layers.num_kv_heads,
                                 .head_dim_k = layers.head_dim_k,
                                 .head_dim_v = layers.head_dim_v};
    QUIRE_ASSIGN_OR_RETURN(const KvForms forms, MakeKvForms(geometry,
                                                            {.k_codec = *choice.k->codec,
                                                             .v_codec = *choice.v->codec,
                                                             .sink_pages = choice.sink_pages,
                                                             .recent_pages = choice.recent_pages},
                                                            layers.window));
    shape.groups.push_back(GroupShapeOf(layers.window, forms));
  }
  return shape;
}

}  // namespace quire
