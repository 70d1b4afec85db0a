#include "cli/plan_verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "base/errors.h"
#include "base/memory.h"
#include "base/message_text.h"
#include "cli/engine_flags.h"
#include "cli/text_table.h"
#include "engine/model_runner.h"

namespace quire {
namespace {

using Json = nlohmann::ordered_json;

constexpr uint32_t kUsers = 4, kTokens = 300;  // where no flag says: seconds, for most models
constexpr uint64_t kMiB = uint64_t{1} << 20;
// Code, libraries, heap, work buffers in huge pages: 20 to 55 MB with models of 1 to 100 MB.
constexpr uint64_t kProgramBytes = 64 * kMiB;

struct VerifyLine {
  std::string codec, what;
  uint64_t planned = 0, real = 0;
  bool ok = false;
};

VerifyLine Equal(std::string codec, std::string what, uint64_t planned, uint64_t real) {
  return {std::move(codec), std::move(what), planned, real, planned == real};
}

bool IsNear(uint64_t planned, uint64_t real) {
  const uint64_t most = std::max(planned / 50, 100 * kMiB);
  const bool is_over = planned > real && planned - real > most;
  const bool is_under = real > planned && real - planned > real / 100;
  return !is_over && !is_under;
}

// Of one codec: plan and pool.
class CodecVerifier {
 public:
  CodecVerifier(const PlanRequest& request, uint32_t num_users, uint32_t tokens)
      : request_(request), num_users_(num_users), tokens_(tokens) {}

  // Returns what the plan has of committed bytes.
  StatusOr<uint64_t> Run(const std::shared_ptr<const Model>& model, EngineOptions options,
                         const KvFormat& format, std::vector<VerifyLine>* lines) const {
    KvChoice choice = request_.kv;
    choice.k = choice.v = &format;
    QUIRE_ASSIGN_OR_RETURN(const KvShape shape, ShapeOf(request_.model, choice));
    // All conversations at their end, but the last of them in its largest step.
    KvUse use = ConversationUse(shape, tokens_);
    for (size_t g = 0; g < shape.groups.size(); ++g) {
      const GroupPages pages = HeldPages(shape.groups[g], shape.page_size, tokens_);
      use.groups[g].pages.open += pages.open * (num_users_ - 1);
      use.groups[g].pages.sealed += pages.sealed * (num_users_ - 1);
    }
    const uint64_t committed = CommittedBytes(shape, use);
    options.kv_codec = *format.codec;
    options.kv_memory_bytes = BytesFor(shape, num_users_, tokens_, 0) + RoomBehind(shape);
    // A step computes one page, so that its pages are those of a token in a full page.
    options.token_budget = choice.page_size;
    QUIRE_ASSIGN_OR_RETURN(const auto runner, ModelRunner::Create(model, options));
    CompareClasses(shape, runner->cache().pool(), choice.name(), lines);
    std::vector<Sequence> sequences;
    std::vector<TokenId> prompt(tokens_);
    for (uint32_t user = 0; user < num_users_; ++user) {
      for (uint32_t i = 0; i < tokens_; ++i)
        prompt[i] = static_cast<TokenId>((user * 31 + i * 7) % 97 %
                                         static_cast<uint32_t>(model->shape().num_tokens));
      sequences.push_back(runner->NewSequence());
      QUIRE_ASSIGN_OR_RETURN(const auto logits, runner->Compute(sequences.back(), prompt));
      static_cast<void>(logits);
    }
    const PagePool& pool = runner->cache().pool();
    lines->push_back(Equal(choice.name(),
                           fmt::format("{} x {} tokens, held", num_users_, GroupDigits(tokens_)),
                           HeldBytes(shape, tokens_) * num_users_, pool.held_bytes()));
    lines->push_back(
        Equal(choice.name(), "committed, extents of 2 MiB", committed, pool.committed_bytes()));
    return committed;
  }

 private:
  // So that the last extent of each class in use is a whole one.
  static uint64_t RoomBehind(const KvShape& shape) {
    uint64_t most = PageMemory::kExtentBytes;
    for (const KvGroupShape& group : shape.groups)
      most += PageStride(group.open_page_bytes) + PageStride(group.sealed_page_bytes);
    return most;
  }

  static void CompareClasses(const KvShape& shape, const PagePool& pool, const std::string& codec,
                             std::vector<VerifyLine>* lines) {
    for (uint32_t g = 0; g < shape.num_groups(); ++g) {
      const KvGroupShape& group = shape.groups[g];
      const std::string name = group.window == 0 ? "full" : fmt::format("window({})", group.window);
      lines->push_back(Equal(codec, name + ": a page, counted", PageStride(group.open_page_bytes),
                             pool.stride(OpenClass(g))));
      if (group.has_sealed())
        lines->push_back(Equal(codec, name + ": sealed, counted",
                               PageStride(group.sealed_page_bytes), pool.stride(SealedClass(g))));
    }
  }

  const PlanRequest& request_;
  const uint32_t num_users_, tokens_;
};

void Print(const std::vector<VerifyLine>& lines, bool is_json) {
  if (is_json) {
    Json json = {{"schema", 1}, {"lines", Json::array()}};
    for (const VerifyLine& line : lines)
      json["lines"].push_back({{"codec", line.codec},
                               {"what", line.what},
                               {"planned_bytes", line.planned},
                               {"real_bytes", line.real},
                               {"ok", line.ok}});
    fmt::print("{}\n", json.dump(2, ' ', false, Json::error_handler_t::replace));
    return;
  }
  TextTable table({{"codec"}, {"bytes of"}, {"planned", true}, {"real", true}, {""}});
  for (const VerifyLine& line : lines)
    table.AddRow({line.codec, line.what, GroupDigits(line.planned), GroupDigits(line.real),
                  line.ok ? "ok" : "DIFFERS"});
  fmt::print("{}", table.Text(/*is_aligned=*/true));
}

}  // namespace

StatusOr<int> VerifyPlan(const PlanFlags& flags, const PlanRequest& request) {
  if (!request.model.runs)
    return Unsupported("{} is planned, the engine does not run it: nothing to verify",
                       Printable(request.model.architecture));
  EngineFlags engine;
  engine.model_path = flags.model_path;
  engine.page_size = request.kv.page_size;
  engine.sink_pages = request.kv.sink_pages;
  engine.recent_pages = request.kv.recent_pages;
  engine.kv_memory = "64MiB";  // of the runner that loads: each codec has a budget of its own
  std::vector<const KvFormat*> formats;
  for (const KvFormat& format : KvFormats())
    if (format.runs() && (flags.kv.empty() || &format == request.kv.k)) formats.push_back(&format);
  if (!flags.kv.empty() && !request.kv.runs())
    return Unsupported("--kv {} is planned, the engine does not run it: nothing to verify",
                       request.kv.name());
  std::shared_ptr<const Model> model;
  EngineOptions options;
  {
    QUIRE_ASSIGN_OR_RETURN(const auto runner, LoadRunner(engine));
    model = runner->shared_model();
    options = runner->options();
  }
  const uint32_t trained = std::max(1u, request.model.context_length);
  const uint32_t tokens =
      request.context_len > 0 ? request.context_len : std::min(kTokens, trained);
  const uint32_t users = request.num_users > 1 ? request.num_users : kUsers;
  options.context_len = std::max(options.context_len, tokens);
  std::vector<VerifyLine> lines;
  uint64_t committed = 0;
  const CodecVerifier verifier(request, users, tokens);
  for (const KvFormat* format : formats) {
    QUIRE_ASSIGN_OR_RETURN(const uint64_t one, verifier.Run(model, options, *format, &lines));
    committed = std::max(committed, one);
  }
  const uint64_t weights = request.model.weight_bytes.value_or(0);
  const uint64_t planned = kProgramBytes + weights + committed;
  const uint64_t real = PeakResidentBytes();
  lines.push_back({"all", "process peak", planned, real, IsNear(planned, real)});
  Print(lines, flags.json);
  return std::ranges::all_of(lines, &VerifyLine::ok) ? 0 : 1;
}

}  // namespace quire
