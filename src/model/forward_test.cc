// What a step reads. What it computes is judged by tests/golden and tests/property.
#include "model/forward.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "model/gguf_writer.h"
#include "model/layer_groups.h"
#include "model/test_kv.h"

namespace quire {
namespace {

constexpr uint32_t kPageSize = 16, kContext = 512;

// A model of zeros with room for one sequence.
class ForwardTest : public ::testing::Test {
 protected:
  void Load(const GgufWriter& writer) {
    std::string path = (std::filesystem::temp_directory_path() / "quire-test-XXXXXX").string();
    const int descriptor = mkstemp(path.data());
    ASSERT_GE(descriptor, 0);
    close(descriptor);
    const Bytes bytes = writer.File();
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
    const auto file = GgufFile::Open(path);
    std::filesystem::remove(path);
    ASSERT_TRUE(file.ok()) << file.status().message();
    auto model = Model::Load(*file, team_, {});
    ASSERT_TRUE(model.ok()) << model.status().message();
    model_ = std::move(model).value();
    const LayerGroups groups(model_->shape());
    const auto forms = MakeGroupForms(model_->shape(), groups, kPageSize, {});
    ASSERT_TRUE(forms.ok()) << forms.status().message();
    auto forward = ForwardPass::Create(
        *model_, {.kv = *forms, .instruction_set = AvailableInstructionSets().back()}, 1);
    ASSERT_TRUE(forward.ok()) << forward.status().message();
    forward_ = std::move(forward).value();
    kv_ = std::make_unique<TestKv>(groups, *forms, kContext);
  }

  // (page, KV head) chunks that a step of `num_tokens` from `first_position` on reads.
  uint64_t ChunksRead(uint32_t first_position, uint32_t num_tokens) {
    const std::vector<TokenId> tokens(num_tokens, 3);
    kv_->Prepare(first_position, first_position + num_tokens);
    const ForwardSequence sequence = {
        .tokens = tokens, .first_position = first_position, .kv = kv_->views()};
    const uint64_t before = forward_->num_chunks_read();
    EXPECT_TRUE(forward_->Run(team_, {&sequence, 1}, nullptr).ok());
    return forward_->num_chunks_read() - before;
  }

  ThreadTeam team_{1};
  std::unique_ptr<Model> model_;
  std::unique_ptr<ForwardPass> forward_;
  std::unique_ptr<TestKv> kv_;
};

// Layer 0 has a window of 8, layer 1 sees all; both have two KV heads.
TEST_F(ForwardTest, WindowedLayersReadThePagesOfTheirWindowOnly) {
  Load(TinyOf("gemma3").Set<uint32_t>("gemma3.context_length", kContext));
  ChunksRead(0, 200);
  for (const uint32_t position : {200u, 206u, 207u, 208u, 214u, 215u, 216u}) {
    const uint32_t last_page = position / kPageSize;
    const uint32_t full = last_page + 1, windowed = last_page - (position - 7) / kPageSize + 1;
    EXPECT_EQ(ChunksRead(position, 1), 2 * (full + windowed)) << position;
  }
}

}  // namespace
}  // namespace quire
