#include "reference/engine_fixture.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string_view>

#include "base/check.h"
#include "reference/golden_data.h"

namespace quire {
namespace {

template <class T>
T ValueOrDie(StatusOr<T> value) {
  if (!value.ok()) std::fprintf(stderr, "%s\n", value.status().message().c_str());
  QUIRE_CHECK(value.ok());
  return std::move(value).value();
}

}  // namespace

EngineOptions ExactOptions() {
  std::optional<std::string_view> forced;
  if (const char* name = std::getenv("QUIRE_CPU")) forced = name;
  EngineOptions options;
  options.num_threads = 1;
  options.instruction_set = ValueOrDie(ChooseInstructionSet(forced));
  options.activations = ActivationForm::kF32;
  options.kv_codec = KvCodec::kF32;
  options.kv_memory_bytes = uint64_t{512} << 20;
  return options;
}

std::unique_ptr<ModelRunner> LoadRunner(const std::string& path, const EngineOptions& options) {
  return ValueOrDie(ModelRunner::Load(path, options, {}));
}

std::unique_ptr<ModelRunner> LoadRunner(const GgufWriter& writer, const EngineOptions& options) {
  const TemporaryFile file(writer);
  return LoadRunner(file.path(), options);
}

std::unique_ptr<Engine> LoadEngine(const std::string& path, const EngineOptions& options) {
  return ValueOrDie(Engine::Load(path, options, {}));
}

std::vector<float> ComputeLogits(ModelRunner& engine, std::span<const TokenId> tokens, size_t first,
                                 size_t step) {
  Sequence sequence = engine.NewSequence();
  std::vector<float> all;
  if (step == 0) step = tokens.size();
  for (size_t begin = 0; begin < tokens.size(); begin += step) {
    const size_t end = std::min(begin + step, tokens.size());
    const size_t wanted = end > first ? end - std::max(begin, first) : 0;
    const std::span<const float> logits = ValueOrDie(engine.Compute(
        sequence, tokens.subspan(begin, end - begin), static_cast<uint32_t>(wanted)));
    QUIRE_CHECK(logits.size() == wanted * static_cast<size_t>(engine.model().shape().vocab_size));
    all.insert(all.end(), logits.begin(), logits.end());
  }
  return all;
}

std::vector<TokenId> Greedy(ModelRunner& engine, std::span<const TokenId> prompt, size_t count) {
  Sequence sequence = engine.NewSequence();
  std::vector<TokenId> answer;
  std::span<const TokenId> next = prompt;
  while (answer.size() < count) {
    answer.push_back(ArgMax(ValueOrDie(engine.Compute(sequence, next))));
    next = std::span(answer).last(1);
  }
  return answer;
}

}  // namespace quire
