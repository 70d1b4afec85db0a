#include "model/step_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <set>

#include "model/layer_groups.h"

namespace quire {
namespace {

// Layers with the given windows, 4 query heads and 2 KV heads of 16, pages of 64.
class StepPlanTest : public ::testing::Test {
 protected:
  static ModelShape ShapeWith(const std::vector<int>& windows) {
    ModelShape shape;
    shape.num_layers = static_cast<int>(windows.size());
    shape.num_q_heads = 4;
    shape.num_kv_heads = 2;
    shape.head_dim_k = shape.head_dim_v = 16;
    shape.attention_scale = 0.25;
    for (const int window : windows) shape.layers.push_back({.window = window});
    return shape;
  }

  static ForwardOptions OptionsFor(const ModelShape& shape) {
    const auto forms = MakeGroupForms(shape, LayerGroups(shape), 64, {});
    EXPECT_TRUE(forms.ok());
    return {.kv = *forms};
  }

  // A sequence of `num_tokens` rows after `first_position`, with pages of its own, the same in each
  // group.
  ForwardSequence Sequence(uint32_t first_position, uint32_t num_tokens, uint32_t num_logits = 0,
                           size_t num_groups = 1) {
    auto& table = tables_.emplace_back((first_position + num_tokens) / 64 + 1);
    for (std::byte*& page : table) page = reinterpret_cast<std::byte*>(next_page_ += 64);
    const KvView view = {.pages = table.data(), .num_pages = static_cast<uint32_t>(table.size())};
    return {.tokens = std::span(tokens_).first(num_tokens),
            .first_position = first_position,
            .kv = views_.emplace_back(num_groups, view),
            .num_logits = num_logits};
  }

  const std::vector<TokenId> tokens_ = std::vector<TokenId>(1000, 7);
  std::deque<std::vector<std::byte*>> tables_;
  std::deque<std::vector<KvView>> views_;
  uintptr_t next_page_ = 0;
};

TEST_F(StepPlanTest, LayersOfOneWindowShareAPlan) {
  const ModelShape shape = ShapeWith({512, 512, 0, 512, 8, 0});
  StepPlan plan(shape, OptionsFor(shape), 2);
  const ForwardSequence sequences[] = {Sequence(5000, 3, 0, 3)};
  plan.Build(sequences);
  std::map<int, const GroupPlan*> by_window;
  for (int layer = 0; layer < shape.num_layers; ++layer) {
    const GroupPlan& own = plan.of_layer(layer);
    const int window = shape.layers[static_cast<size_t>(layer)].window;
    EXPECT_EQ(own.plan().shape().window, static_cast<uint32_t>(window));
    const auto [place, is_new] = by_window.emplace(window, &own);
    EXPECT_EQ(place->second, &own) << layer;
  }
  EXPECT_EQ(by_window.size(), 3u);
  // Windowed items leave out the splits before the window: position 5,000 lies in split 4.
  const auto first_split = [&](int layer) {
    uint32_t first = UINT32_MAX;
    for (const AttentionItem& item : plan.of_layer(layer).plan().items())
      first = std::min(first, item.first_key / kSplitTokens);
    return first;
  };
  EXPECT_EQ(first_split(2), 0u);
  EXPECT_EQ(first_split(4), 4u);
}

TEST_F(StepPlanTest, RowsAreThoseOfTheSequencesInOrder) {
  const ModelShape shape = ShapeWith({0});
  StepPlan plan(shape, OptionsFor(shape), 1);
  const ForwardSequence sequences[] = {Sequence(10, 2, 1), Sequence(0, 70, 0), Sequence(3, 1, 5)};
  for (int step = 0; step < 2; ++step) {  // a second step leaves nothing of the first
    plan.Build(sequences);
    ASSERT_EQ(plan.num_rows(), 73);
    EXPECT_EQ(plan.position(1), 11u);
    EXPECT_EQ(plan.position(2), 0u);
    EXPECT_EQ(plan.position(72), 3u);
    EXPECT_EQ(std::vector<uint32_t>(plan.logit_rows().begin(), plan.logit_rows().end()),
              (std::vector<uint32_t>{1, 72}));
    std::map<uint32_t, uint32_t> appended;
    for (int begin = 0; begin < plan.num_rows(); begin += 8) {
      const int end = std::min(begin + 8, plan.num_rows());
      plan.ForEachAppend(begin, end, [&](const StepPlan::Append& append) {
        EXPECT_LE(append.num_rows, 8u);
        EXPECT_EQ(append.row_offset, appended[append.sequence]);
        appended[append.sequence] += append.num_rows;
      });
    }
    EXPECT_EQ(appended, (std::map<uint32_t, uint32_t>{{0, 2}, {1, 70}, {2, 1}}));
  }
}

// Rows before first_append are not counted: a page that they end in is filled by the others.
TEST_F(StepPlanTest, APageIsFilledOnceByItsLastToken) {
  const ModelShape shape = ShapeWith({0});
  StepPlan plan(shape, OptionsFor(shape), 1);
  ForwardSequence sequences[] = {Sequence(60, 140), Sequence(63, 1),  Sequence(0, 63),
                                 Sequence(120, 8),  Sequence(64, 64), Sequence(10, 60)};
  sequences[3].first_append = 124;
  sequences[4].first_append = 128;
  sequences[5].first_append = 66;
  plan.Build(sequences);
  using Filled = std::map<uint32_t, std::multiset<uint32_t>>;  // pages of a sequence
  for (int layer = 0; layer < 3; ++layer) {
    Filled filled;
    for (int begin = 0; begin < plan.num_rows(); begin += 8) {
      const int tail = layer == 1 ? (plan.num_rows() - 1) / 8 * 8 - begin : begin;
      plan.ForEachAppend(
          tail, std::min(tail + 8, plan.num_rows()), [&](const StepPlan::Append& append) {
            plan.ForEachFilled(append, [&](uint32_t p) { filled[append.sequence].insert(p); });
          });
    }
    EXPECT_EQ(filled, (Filled{{0, {0, 1, 2}}, {1, {0}}, {3, {1}}}));
  }
}

// ForwardOptions::cascade is for all plans of the step.
TEST_F(StepPlanTest, CascadeIsAnOption) {
  const ModelShape shape = ShapeWith({0, 512});
  const ForwardSequence sequences[] = {Sequence(1000, 1, 0, 2), Sequence(1010, 1, 0, 2)};
  std::copy_n(tables_[0].begin(), 15, tables_[1].begin());
  ForwardOptions options = OptionsFor(shape);
  for (const bool cascade : {true, false}) {
    options.cascade = cascade;
    StepPlan plan(shape, options, 2);
    plan.Build(sequences);
    for (int layer : {0, 1}) EXPECT_EQ(plan.of_layer(layer).plan().run_items().empty(), !cascade);
  }
}

}  // namespace
}  // namespace quire
