// KvChoice: how the KV of a planned model is kept: codecs of K and V, page size, what stays in 16
// bits. What --kv, --page-size, --kv-sink-pages and --kv-recent-pages say.
//
// Threads: plain values and pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "cache/kv_shape.h"
#include "codec/kv_format.h"
#include "plan/kv_model.h"

namespace quire {

struct KvChoice {
  const KvFormat* k = &KvFormatOf(KvCodec::kF16);  // never null
  const KvFormat* v = &KvFormatOf(KvCodec::kF16);
  uint32_t page_size = 64;                  // tokens, a multiple of 16
  std::optional<uint32_t> sink_pages = {};  // 0 or 1; unset: what the codec wants
  uint32_t recent_pages = 0;

  // As --kv takes it: "f16", "k=int8,v=int4".
  std::string name() const;
  // The engine takes one codec for both sides, so far.
  bool runs() const { return k == v && k->runs(); }
};

// Sets k and v. kInvalidArgument: the message lists the codecs.
Status ParseKvChoice(std::string_view text, KvChoice* choice);

// The pages of this model. For what runs these are the engine's own functions (MakeKvForms,
// GroupShapeOf). kInvalidArgument for a page size, a codec or a model that do not go together.
StatusOr<KvShape> ShapeOf(const KvModel& model, const KvChoice& choice);

// Of one layer group, by the byte formulas of KvFormat; what ShapeOf takes for codecs and kinds of
// attention that do not run. kInvalidArgument if a page would be larger than 2 GiB.
StatusOr<KvGroupShape> PlannedGroupShape(const KvLayers& layers, const KvChoice& choice);

}  // namespace quire
