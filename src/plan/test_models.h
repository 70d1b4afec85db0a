// Shapes of published models for the planner's tests, as their config.json says.
#pragma once

#include <gtest/gtest.h>

#include <string_view>

#include "plan/kv_choice.h"
#include "plan/kv_model.h"

namespace quire {

inline KvModel TestModel(uint32_t layers, uint32_t q_heads, uint32_t kv_heads, uint32_t head_dim,
                         uint32_t context) {
  KvModel model;
  model.name = "test";
  model.architecture = "llama";
  model.source = "--shape";
  model.runs = true;
  model.context_length = context;
  model.num_layers = layers;
  model.num_q_heads = q_heads;
  model.q_head_dim = model.v_head_dim = head_dim;
  model.groups = {{.num_layers = layers,
                   .num_kv_heads = kv_heads,
                   .head_dim_k = head_dim,
                   .head_dim_v = head_dim}};
  return model;
}

inline KvModel Llama70B() {
  KvModel model = TestModel(80, 64, 8, 128, 131'072);
  model.num_params = 70'553'706'496;
  return model;
}
inline KvModel Llama70BAsMha() { return TestModel(80, 64, 64, 128, 131'072); }
inline KvModel Llama8B() { return TestModel(32, 32, 8, 128, 131'072); }
// 5 layers, 4 KV heads of 8: 640 B a token.
inline KvModel Stories() { return TestModel(5, 8, 4, 8, 512); }

// 10 layers see all, 52 the last 1,024.
inline KvModel Gemma27B() {
  KvModel model = TestModel(10, 32, 16, 128, 131'072);
  model.num_layers = 62;
  model.groups.push_back(
      {.num_layers = 52, .window = 1024, .num_kv_heads = 16, .head_dim_k = 128, .head_dim_v = 128});
  return model;
}

// Every layer sees the last 4,096.
inline KvModel Mistral7B() {
  KvModel model = TestModel(32, 32, 8, 128, 32'768);
  model.groups.front().window = 4096;
  return model;
}

inline KvModel DeepSeekV3() {
  KvModel model = TestModel(61, 128, 1, 0, 163'840);
  model.runs = false;
  model.q_head_dim = 192;
  model.v_head_dim = 128;
  model.groups = {{.num_layers = 61, .num_kv_heads = 1, .head_dim_k = 512, .latent_rope_dim = 64}};
  model.num_params = 671'000'000'000;
  model.num_active_params = 37'000'000'000;
  return model;
}

inline KvShape TestShape(const KvModel& model, std::string_view codec, uint32_t page_size) {
  KvChoice choice{.page_size = page_size};
  EXPECT_TRUE(ParseKvChoice(codec, &choice).ok());
  auto shape = ShapeOf(model, choice);
  EXPECT_TRUE(shape.ok());
  return shape.value();
}

}  // namespace quire
