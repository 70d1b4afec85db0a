#include "cli/plan_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "base/message_text.h"
#include "cli/text_table.h"
#include "plan/explain.h"
#include "plan/formula_bytes.h"

namespace quire {
namespace {

constexpr size_t kColumns = 80;
constexpr size_t kNameColumns = 10;

std::string Both(uint64_t bytes) {
  return fmt::format("{} B ({})", GroupDigits(bytes), BytesText(bytes));
}

// The same in powers of 1000 too, as published figures may be.
std::string BothAndDecimal(uint64_t bytes) {
  return fmt::format("{} B ({}, {:.2f} GB)", GroupDigits(bytes), BytesText(bytes),
                     static_cast<double>(bytes) / 1e9);
}

// "120 ms", "3.4 s".
std::string TimeText(double seconds) {
  if (seconds < 0.9995) return fmt::format("{:.3g} ms", seconds * 1e3);
  return fmt::format("{:.3g} s", seconds);
}

class PlanPrinter {
 public:
  PlanPrinter(const Plan& plan, const PlanTextOptions& options)
      : plan_(plan), request_(plan.request), options_(options) {}

  std::string Text() {
    Have();
    Groups();
    Need();
    Answers();
    Codecs();
    Savings();
    Times();
    Verdict();
    if (options_.explains) Explanations();
    return std::move(text_);
  }

 private:
  // One line; what is too long for it goes on below, behind the name's column.
  void Line(std::string_view name, std::string_view value, std::string_view mark = {}) {
    std::string rest(value);
    if (!mark.empty()) rest += fmt::format(" [{}]", mark);
    text_ += fmt::format("{:<{}}", name, kNameColumns);
    while (rest.size() > kColumns - kNameColumns) {
      size_t cut = rest.rfind(' ', kColumns - kNameColumns);
      if (cut == std::string::npos || cut == 0) cut = kColumns - kNameColumns;
      text_ += rest.substr(0, cut) + "\n" + std::string(kNameColumns, ' ');
      rest.erase(0, rest[cut] == ' ' ? cut + 1 : cut);
    }
    text_ += rest + "\n";
  }

  void Have() {
    const KvModel& model = request_.model;
    const MemoryPlan& memory = plan_.memory;
    const std::string trained =
        model.context_length == 0
            ? ""
            : fmt::format(", trained for {} tokens", GroupDigits(model.context_length));
    Line("model",
         fmt::format("{} ({}, {}), {} layers{}{}", Printable(model.name, 48),
                     Printable(model.architecture, 32), AttentionKind(model), model.num_layers,
                     trained, model.runs ? "" : "; planned, does not run here yet"));
    Line("memory", fmt::format("{}, {}", Both(memory.total_bytes), memory.total_source),
         MarkName(memory.total_mark));
    if (memory.weight_bytes.has_value())
      Line("weights", fmt::format("{}, {}", Both(*memory.weight_bytes), memory.weight_source),
           MarkName(memory.weight_mark));
    else
      Line("weights", memory.weight_source + "; counted as 0");
    if (memory.work_bytes > 0)
      Line("work", fmt::format("{}, for activations, logits, program", Both(memory.work_bytes)),
           MarkName(Mark::kEstimated));
    Line("KV budget", fmt::format("{}, {}", Both(memory.budget_bytes), memory.budget_source));
    Line("KV",
         fmt::format("codec {}{}, pages of {} tokens; a token is {} B in 16 bits",
                     request_.kv.name(), request_.kv.runs() ? "" : " (planned)",
                     request_.kv.page_size, GroupDigits(plan_.token_bytes)),
         MarkName(Mark::kExact));
    for (const std::string& note : model.notes) Line("note", note);
  }

  void Groups() {
    TextTable table({{"layers"},
                     {"page bytes", true},
                     {"sealed", true},
                     {"pages", true},
                     {"16 bits, formula", true},
                     {"counted bytes", true}});
    text_ += '\n';
    for (size_t g = 0; g < plan_.shape.groups.size(); ++g) {
      const KvLayers& layers = request_.model.groups[g];
      const KvGroupShape& shape = plan_.shape.groups[g];
      const GroupUse& use = plan_.conversation.groups[g];
      table.AddRow({fmt::format("{} {}", layers.num_layers, GroupLabel(layers)),
                    GroupDigits(shape.open_page_bytes),
                    shape.has_sealed() ? GroupDigits(shape.sealed_page_bytes) : "-",
                    GroupDigits(use.pages.open + use.pages.sealed),
                    GroupDigits(FormulaBytes(layers, request_.context_len, 16)),
                    GroupDigits(use.counted_bytes)});
    }
    text_ += table.Text(/*is_aligned=*/true);
  }

  void Need() {
    const KvUse& one = plan_.conversation;
    Line("one",
         fmt::format("{} tokens: {}, of it 4 KiB rounding {}; formula {}",
                     GroupDigits(request_.context_len), BothAndDecimal(one.counted_bytes),
                     BytesText(one.counted_bytes - one.page_bytes), BytesText(plan_.formula_bytes)),
         MarkName(Mark::kExact));
    const std::string shared =
        plan_.shared_tokens == 0
            ? ""
            : fmt::format(", {} tokens shared once", GroupDigits(plan_.shared_tokens));
    Line("all",
         fmt::format("{}{}: {}; in extents of 2 MiB {} more", UsersText(request_.num_users), shared,
                     Both(plan_.total.counted_bytes), BytesText(plan_.slack_bytes())),
         MarkName(Mark::kExact));
    Line("left", plan_.needed_memory_bytes > plan_.memory.total_bytes
                     ? fmt::format("nothing: {} needed in all", Both(plan_.needed_memory_bytes))
                     : Both(plan_.left_bytes()));
  }

  void Answers() {
    const auto context = [&](uint32_t tokens) {
      return GroupDigits(tokens) +
             (tokens == plan_.most_context_len && tokens == request_.model.context_length
                  ? " (all that the model can)"
                  : "");
    };
    text_ += '\n';
    const auto line = [&](std::string_view name, uint32_t users, uint32_t tokens) {
      Line(name,
           fmt::format("{} of {} tokens, or {} of {} tokens", UsersText(users),
                       GroupDigits(request_.context_len), UsersText(request_.num_users),
                       context(tokens)),
           MarkName(Mark::kExact));
    };
    line("fit", plan_.users_in_budget_unshared, plan_.context_in_budget_unshared);
    if (plan_.shared_tokens > 0) line("shared", plan_.users_in_budget, plan_.context_in_budget);
  }

  void Codecs() {
    TextTable table(
        {{"codec"}, {""}, {"each", true}, {"all", true}, {"users", true}, {"context", true}, {""}});
    for (const CodecPlan& codec : plan_.codecs) {
      if (!codec.refused.empty()) continue;
      table.AddRow({codec.name, codec.runs ? "" : "planned", BytesText(codec.conversation_bytes),
                    BytesText(codec.needed_bytes), GroupDigits(codec.users),
                    GroupDigits(codec.context_len), codec.fits ? "ok" : "-"});
    }
    text_ += '\n' + table.Text(/*is_aligned=*/true) + '\n';
  }

  void Savings() {
    std::string steps;
    for (const SavingStep& step : plan_.savings)
      steps += fmt::format("{}{} {}", steps.empty() ? "" : "; ", step.name, BytesText(step.bytes));
    Line("formula", steps, MarkName(Mark::kExact));
    const PagingGain& gain = plan_.paging;
    Line("paging",
         fmt::format("requests that use {} tokens: {} at once in pages, {} if each sets {} aside",
                     GroupDigits(gain.used_tokens), GroupDigits(gain.paged_users),
                     GroupDigits(gain.contiguous_users), GroupDigits(gain.reserved_tokens)),
         MarkName(Mark::kExact));
  }

  void Times() {
    if (!plan_.roofline.has_value()) {
      Line("times", request_.model.num_params.has_value()
                        ? "not known: give --bandwidth and --flops, or --measure"
                        : "not known: the number of parameters is not");
      return;
    }
    const Roofline& times = *plan_.roofline;
    Line("times",
         fmt::format("at least {} to the first token, then {} a token for all ({}), {} "
                     "for one alone; {}",
                     TimeText(times.prefill_seconds), TimeText(times.step_seconds),
                     times.step_is_compute_bound ? "computing" : "reading memory",
                     TimeText(times.alone_seconds), times.rates.source),
         MarkName(Mark::kEstimated));
    Line("knee",
         times.knee_users.has_value()
             ? fmt::format("from {:.0f} users on a step computes longer than it reads",
                           *times.knee_users)
             : "at any number of users a step reads longer than it computes",
         MarkName(Mark::kEstimated));
  }

  void Verdict() {
    const std::string_view word = plan_.fits ? "FITS" : "DOES NOT FIT";
    const std::string reasons = fmt::format("{}", fmt::join(plan_.reasons, "; "));
    const size_t begin = text_.size() + kNameColumns;
    Line("verdict",
         plan_.fits
             ? fmt::format("{}: {} of {} tokens, with {} left", word, UsersText(request_.num_users),
                           GroupDigits(request_.context_len), BytesText(plan_.left_bytes()))
             : fmt::format("{}: {}", word, reasons));
    if (options_.has_colour) {
      text_.insert(begin + word.size(), "\033[0m");
      text_.insert(begin, plan_.fits ? "\033[32m" : "\033[31m");
    }
    for (const std::string& change : plan_.changes) Line("would fit", change);
  }

  void Explanations() {
    text_ += '\n';
    for (const Explanation& line : Explain(plan_)) {
      text_ += line.name + "\n";
      Line("", line.formula);
      Line("", line.numbers);
    }
  }

  const Plan& plan_;
  const PlanRequest& request_;
  const PlanTextOptions& options_;
  std::string text_;
};

}  // namespace

std::string PlanText(const Plan& plan, const PlanTextOptions& options) {
  return PlanPrinter(plan, options).Text();
}

}  // namespace quire
