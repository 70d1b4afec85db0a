#include "plan/plan_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <vector>

#include "base/message_text.h"

namespace quire {
namespace {

constexpr double kGiB = 0x1p30;
constexpr double kPanelWidth = 360, kPanelHeight = 300;  // of the area that lines lie in
constexpr double kLeft = 70, kTop = 60, kGap = 110;
constexpr int kNumPoints = 48;
constexpr size_t kMostLines = 5;  // as many as there are colours

// Okabe and Ito's colours, which colour-blind people can tell apart, light enough for both schemes.
constexpr std::string_view kStyle =
    "<style>\n"
    "svg { background: #ffffff; font: 12px sans-serif; }\n"
    "text { fill: #222222; }\n"
    ".axis { stroke: #666666; fill: none; }\n"
    ".box { fill: #ffffff; }\n"
    ".grid { stroke: #dddddd; fill: none; }\n"
    ".line { fill: none; stroke-width: 2; }\n"
    ".budget { stroke: #888888; stroke-dasharray: 6 4; fill: none; stroke-width: 2; }\n"
    ".c0 { stroke: #0072b2; } .c1 { stroke: #e69f00; } .c2 { stroke: #009e73; }\n"
    ".c3 { stroke: #cc79a7; } .c4 { stroke: #d55e00; }\n"
    "@media (prefers-color-scheme: dark) {\n"
    "  svg { background: #1b1b1b; }\n"
    "  text { fill: #e6e6e6; }\n"
    "  .box { fill: #1b1b1b; }\n"
    "  .axis { stroke: #999999; }\n"
    "  .grid { stroke: #3a3a3a; }\n"
    "  .budget { stroke: #aaaaaa; }\n"
    "  .c0 { stroke: #56b4e9; }\n"
    "}\n"
    "</style>\n";

std::string Escaped(std::string_view text) {
  std::string safe;
  for (const char c : text) {
    if (c == '<')
      safe += "&lt;";
    else if (c == '>')
      safe += "&gt;";
    else if (c == '&')
      safe += "&amp;";
    else
      safe += c;
  }
  return safe;
}

struct ChartLine {
  std::string label;
  KvShape shape;
  uint32_t num_users;
};

// The least of 1, 2 and 5 times a power of ten that is not below.
double RoundStep(double least) {
  const double power = std::pow(10, std::floor(std::log10(std::max(least, 1e-9))));
  for (const double factor : {1.0, 2.0, 5.0})
    if (factor * power >= least) return factor * power;
  return 10 * power;
}

std::string TokensLabel(double tokens) {
  if (tokens >= 10'000) return fmt::format("{:g}k", tokens / 1000);
  return fmt::format("{:g}", tokens);
}

class ChartPainter {
 public:
  explicit ChartPainter(const Plan& plan) : plan_(plan), request_(plan.request) {
    most_tokens_ = std::max(request_.context_len, 16u);
  }

  std::string Paint() {
    const double width = kLeft + 2 * kPanelWidth + kGap + 30;
    const double height = kTop + kPanelHeight + 60;
    svg_ = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {:g} {:g}\" width=\"{:g}\" "
        "height=\"{:g}\" role=\"img\">\n<title>KV memory of {}</title>\n{}",
        width, height, width, height, Escaped(Printable(request_.model.name)), kStyle);
    Panel(kLeft, fmt::format("by users, codec {}", request_.kv.name()), UserLines());
    Panel(kLeft + kPanelWidth + kGap,
          fmt::format("by codec, {} users", GroupDigits(request_.num_users)), CodecLines());
    return svg_ + "</svg>\n";
  }

 private:
  std::vector<ChartLine> UserLines() const {
    std::vector<uint32_t> users;
    const uint32_t n = request_.num_users;
    for (const uint32_t count : {1u, n / 4, n / 2, n, std::min(2 * n, kMostPlannedUsers)})
      if (count > 0 && (users.empty() || count > users.back())) users.push_back(count);
    std::vector<ChartLine> lines;
    for (const uint32_t count : users) lines.push_back({UsersText(count), plan_.shape, count});
    return lines;
  }

  std::vector<ChartLine> CodecLines() const {
    std::vector<ChartLine> lines = {{request_.kv.name(), plan_.shape, request_.num_users}};
    for (const std::string_view name : {"f16", "int8", "kivi4", "tile4", "tile2"}) {
      KvChoice choice = request_.kv;
      choice.k = choice.v = FindKvFormat(name);
      if (lines.size() == kMostLines || choice.name() == lines.front().label) continue;
      auto shape = ShapeOf(request_.model, choice);
      if (!shape.ok()) continue;
      const bool runs = choice.runs() && request_.model.runs;
      lines.push_back({std::string(name) + (runs ? "" : " (planned)"), std::move(shape).value(),
                       request_.num_users});
    }
    return lines;
  }

  uint32_t TokensAt(int point) const {
    return std::max(1u, static_cast<uint32_t>(uint64_t{most_tokens_} *
                                              static_cast<uint64_t>(point) / kNumPoints));
  }

  double GiBOf(const ChartLine& line, uint32_t tokens) const {
    const uint32_t shared =
        SharedTokens(std::min(plan_.shared_tokens, tokens - 1), line.shape.page_size);
    return static_cast<double>(BytesFor(line.shape, line.num_users, tokens, shared)) / kGiB;
  }

  void Panel(double left, const std::string& title, const std::vector<ChartLine>& lines) {
    const double budget = static_cast<double>(plan_.memory.budget_bytes) / kGiB;
    double most = 1e-6;
    for (const ChartLine& line : lines) most = std::max(most, GiBOf(line, most_tokens_));
    if (budget <= 3 * most) most = std::max(most, budget);
    const double step = RoundStep(most / 5);
    most = std::ceil(most / step) * step;
    const auto x = [&](double tokens) { return left + tokens / most_tokens_ * kPanelWidth; };
    const auto y = [&](double gib) { return kTop + kPanelHeight * (1 - gib / most); };
    Text(left, kTop - 16, "start", "KV memory " + title);
    for (double gib = 0; gib <= most * 1.0001; gib += step) {
      Path("grid", fmt::format("M{:.1f} {:.1f}H{:.1f}", left, y(gib), left + kPanelWidth));
      Text(left - 6, y(gib) + 4, "end", fmt::format("{:.4g}", gib));
    }
    const double tokens_step = RoundStep(most_tokens_ / 5.0);
    for (double tokens = 0; tokens <= most_tokens_; tokens += tokens_step) {
      Path("grid", fmt::format("M{:.1f} {:.1f}V{:.1f}", x(tokens), kTop, kTop + kPanelHeight));
      Text(x(tokens), kTop + kPanelHeight + 16, "middle", TokensLabel(tokens));
    }
    Path("axis", fmt::format("M{:.1f} {:.1f}V{:.1f}H{:.1f}", left, kTop, kTop + kPanelHeight,
                             left + kPanelWidth));
    Text(left + kPanelWidth / 2, kTop + kPanelHeight + 38, "middle", "context, tokens");
    svg_ += fmt::format(
        "<text x=\"0\" y=\"0\" text-anchor=\"middle\" transform=\"translate({:.1f} {:.1f}) "
        "rotate(-90)\">GiB</text>\n",
        left - 50, kTop + kPanelHeight / 2);
    for (size_t i = 0; i < lines.size(); ++i) {
      std::string path;
      for (int point = 0; point <= kNumPoints; ++point) {
        const uint32_t tokens = TokensAt(point);
        path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : "L", x(tokens),
                            y(GiBOf(lines[i], tokens)));
      }
      Path(fmt::format("line c{}", i), path);
    }
    const bool has_budget = budget <= most;
    if (has_budget)
      Path("budget", fmt::format("M{:.1f} {:.1f}H{:.1f}", left, y(budget), left + kPanelWidth));
    svg_ +=
        fmt::format("<rect class=\"box\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"150\" height=\"{}\"/>\n",
                    left + 6, kTop + 4, 18 * (lines.size() + (has_budget ? 1 : 0)) + 4);
    for (size_t i = 0; i < lines.size(); ++i)
      Legend(left, i, fmt::format("line c{}", i), lines[i].label);
    if (has_budget) Legend(left, lines.size(), "budget", "KV budget");
  }

  void Legend(double left, size_t index, const std::string& style, const std::string& label) {
    const double y = kTop + 14 + 18 * static_cast<double>(index);
    Path(style, fmt::format("M{:.1f} {:.1f}h22", left + 10, y));
    Text(left + 38, y + 4, "start", label);
  }

  void Path(const std::string& style, const std::string& path) {
    svg_ += fmt::format("<path class=\"{}\" d=\"{}\"/>\n", style, path);
  }
  void Text(double x, double y, const char* anchor, const std::string& text) {
    svg_ += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n", x, y,
                        anchor, Escaped(text));
  }

  const Plan& plan_;
  const PlanRequest& request_;
  uint32_t most_tokens_ = 0;
  std::string svg_;
};

}  // namespace

std::string PlanChart(const Plan& plan) { return ChartPainter(plan).Paint(); }

}  // namespace quire
