#include "server/banner.h"

#include <fmt/format.h>

#include <string_view>

#include "base/message_text.h"

namespace quire {
namespace {

std::string Access(const BannerFacts& facts) {
  if (facts.num_keys == 0) return "no keys: everyone who reaches it may use it";
  return fmt::format("{} key{} of {} tenant{}", facts.num_keys, facts.num_keys == 1 ? "" : "s",
                     facts.num_tenants, facts.num_tenants == 1 ? "" : "s");
}

// "1,073,741,824 bytes (1.00 GiB)".
std::string Size(uint64_t bytes) {
  const double mib = static_cast<double>(bytes) / 0x1p20;
  return fmt::format("{} bytes ({:.2f} {})", GroupDigits(bytes), mib < 1024 ? mib : mib / 1024,
                     mib < 1024 ? "MiB" : "GiB");
}

}  // namespace

std::string Banner(const BannerFacts& facts, const KvReport& report) {
  const KvPlan& plan = report.plan;
  std::string text;
  const auto line = [&](std::string_view name, const std::string& value) {
    text += fmt::format("{:<9}{}\n", name, value);
  };
  line("quire", facts.version);
  line("model",
       fmt::format("{} ({}{}{}), context {} tokens, trained for {}", Printable(facts.model_name),
                   facts.architecture, facts.file_type.empty() ? "" : ", ", facts.file_type,
                   GroupDigits(plan.context_len), GroupDigits(facts.trained_context_len)));
  line("weights", Size(facts.weight_bytes));
  line("KV", fmt::format("codec {} in all layers, page_size {} tokens, prefix cache {}", plan.codec,
                         plan.page_size, plan.keeps_prefixes ? "on" : "off"));
  for (const GroupReport& group : report.cache.groups) {
    const std::string sealed =
        group.sealed_page_bytes == 0
            ? ""
            : fmt::format(", {} sealed", GroupDigits(group.sealed_page_bytes));
    line("group", fmt::format("{}: {} bytes a page{}", GroupName(group),
                              GroupDigits(group.open_page_bytes), sealed));
  }
  line("pool",
       fmt::format("{}, {} pages, {} tokens; {}", Size(plan.budget_bytes),
                   GroupDigits(plan.num_pages), GroupDigits(plan.num_tokens), plan.budget_source));
  line("requests",
       fmt::format("the longest {} tokens, {:.2f} at once of {} tokens",
                   GroupDigits(plan.longest_len), plan.concurrency, GroupDigits(plan.context_len)));
  line("tiers", "device only");
  line("cpu", fmt::format("{}, {} thread{}", facts.instruction_set, facts.num_threads,
                          facts.num_threads == 1 ? "" : "s"));
  line("server", fmt::format("{}, {}", facts.address, Access(facts)));
  line("events", "no KV events are published");
  for (const std::string& warning : facts.warnings) line("warning", warning);
  return text;
}

}  // namespace quire
