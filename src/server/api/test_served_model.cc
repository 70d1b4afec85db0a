#include "server/api/test_served_model.h"

#include <utility>

#include "text/test_vocabulary.h"

namespace quire {
namespace {

constexpr char kTemplate[] =
    "{% for message in messages %}<|start|>{{ message.role }}\n"
    "{% if message.reasoning_content %}<think>{{ message.reasoning_content }}</think>{% endif %}"
    "{{ message.content }}<|end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|start|>assistant\n{% endif %}";

SamplingParams OpenAiDefaults() {
  SamplingParams sampling;
  sampling.temperature = 1;
  sampling.top_k = 0;
  sampling.top_p = 1;
  sampling.min_p = 0;
  return sampling;
}

}  // namespace

TestServedModel::TestServedModel() : TestServedModel(SmallBpeVocabulary(), kTemplate) {}

TestServedModel::TestServedModel(Vocabulary vocabulary, std::string template_source) {
  auto tokenizer = Tokenizer::Create(std::move(vocabulary));
  QUIRE_CHECK(tokenizer.ok());
  tokenizer_ = std::make_unique<const Tokenizer>(std::move(*tokenizer));
  if (!template_source.empty()) {
    auto parsed = ChatTemplate::Parse(std::move(template_source));
    QUIRE_CHECK(parsed.ok());
    template_ = std::make_unique<const ChatTemplate>(std::move(*parsed));
  }
  model_.names = {"tiny"};
  model_.root = "tiny.gguf";
  model_.tokenizer = tokenizer_.get();
  model_.chat_template = template_.get();
  model_.context_len = 512;
  model_.trained_context_len = 512;
  model_.vocab_size = static_cast<uint32_t>(tokenizer_->num_tokens());
  model_.sampling_defaults = OpenAiDefaults();
}

}  // namespace quire
