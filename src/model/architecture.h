// Architecture: what sets one model family apart from the others, as data: one small file
// arch/NAME.cc each, listed in architecture.cc.
//
// A row says which keys and tensors a family has and which forms its layers take; the forward pass
// reads the row and has no names of families in it. All of this works on header bytes alone.
//
// Threads: constants.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "linear/kernels.h"
#include "model/architecture_keys.h"
#include "model/gguf_header.h"
#include "model/shape.h"

namespace quire {

// kPre: x += attention(norm x); x += feed_forward(norm x).
// kSandwich: x += norm(attention(norm x)); x += norm(feed_forward(norm x)).
enum class NormPlacement { kPre, kSandwich };
// What happens to each head of q and k before rope. kRms: an RMS norm, with one weight for all
// heads of q and one for all of k.
enum class HeadNorm { kNone, kRms };
// kSiluGate: down(silu(gate x) * up x). kGeluGate: down(gelu(gate x) * up x), with the GELU that
// tanh approximates.
enum class Activation { kSiluGate, kGeluGate };

// A number of the shape that a tensor's dimension must equal.
enum class Dim {
  kOne,  // no such dimension
  kEmbedding,
  kVocabulary,
  kQRows,
  kKRows,
  kVRows,
  kQkvRows,
  kAttentionColumns,
  kFeedForward,
  kHeadDimK,
  kHalfRope,  // rope.dimension_count / 2
};
int64_t DimValue(Dim dim, const ModelShape& shape);

enum class Presence { kAbsent, kOptional, kRequired };

// What multiplies a linear layer's product when the file has a tensor NAME.scale (one F32).
enum class ScaleForm {
  kNone,        // the family has no such tensor
  kIgnored,     // may be there, is not applied
  kBeforeBias,  // (W x) s + b
  kAfterBias,   // (W x + b) s
};

// One weight of the family with what may come with it: NAME.weight, NAME.bias, NAME.scale.
struct TensorRule {
  std::string_view name;  // without the suffix; "blk.N." stands for each layer
  Dim columns = Dim::kOne;
  Dim rows = Dim::kOne;  // kOne: a vector of `columns`
  Presence weight = Presence::kRequired;
  // [rows], of a vector [columns]. A required one is not missed where the weight is optional and
  // absent.
  Presence bias = Presence::kAbsent;
  ScaleForm scale = ScaleForm::kNone;
  // Another rule's name: with that weight in the file this one must be absent, and is not missed.
  std::string_view unless = {};
};

struct Architecture {
  std::string_view name;  // value of general.architecture
  RopePairs rope_pairs;
  NormPlacement norm_placement;
  HeadNorm head_norm;
  Activation activation;
  std::span<const TensorRule> tensors;
  // Reads and checks the keys of this family beyond the common ones; null where there are none.
  Status (*read_own_keys)(const ArchitectureKeys& keys, ModelShape& shape);
};

// Every known architecture.
std::span<const Architecture* const> AllArchitectures();

// kUnsupported with the list of known names if there is none of this name.
StatusOr<const Architecture*> FindArchitecture(std::string_view name);

// The architecture that general.architecture names.
StatusOr<const Architecture*> ReadArchitecture(const GgufHeader& header);

// The shape of the model, checked. Errors name the key, what it holds and what was wanted.
StatusOr<ModelShape> ReadShape(const GgufHeader& header);

// Checks every tensor against the rules of the architecture: all required ones there, each with
// exactly the expected dims and with a type that this version reads.
// Gives the names of tensors that no rule knows, which the loader ignores, for one line of the log.
// Errors: a missing tensor, other dims (both are named), an unsupported type, tensors of experts.
// Requires: a shape from ReadShape(header).
StatusOr<std::vector<std::string_view>> CheckTensors(const GgufHeader& header,
                                                     const ModelShape& shape);

// "blk.3.attn_q.weight" from ("blk.N.attn_q", 3, ".weight"). Names without "blk.N." ignore `layer`.
std::string TensorName(std::string_view rule_name, int layer, std::string_view suffix);

}  // namespace quire
