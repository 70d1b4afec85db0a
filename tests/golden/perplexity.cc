#include "golden/perplexity.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "base/check.h"
#include "base/test_data.h"
#include "reference/engine_fixture.h"

namespace quire {

namespace {

// -log of the probability that the row gives `token`.
double NegativeLogLikelihood(std::span<const float> row, TokenId token) {
  double top = -INFINITY, sum = 0;
  for (const float logit : row) top = std::max(top, double{logit});
  for (const float logit : row) sum += std::exp(logit - top);
  return std::log(sum) + top - row[static_cast<size_t>(token)];
}

}  // namespace

double Perplexity(ModelRunner& engine, const Tokenizer& tokenizer, const std::string& path,
                  size_t context, size_t num_chunks) {
  const auto ids =
      tokenizer.Encode(ReadTestFile(path), {.add_special = true, .parse_special = false});
  QUIRE_CHECK(ids.ok() && ids->size() >= context * num_chunks);
  const auto vocab_size = static_cast<size_t>(engine.model().shape().vocab_size);
  const size_t half = context / 2;
  double sum = 0;
  for (size_t chunk = 0; chunk < num_chunks; ++chunk) {
    const auto begin = ids->begin() + static_cast<ptrdiff_t>(chunk * context);
    std::vector<TokenId> tokens(begin, begin + static_cast<ptrdiff_t>(context));
    if (tokenizer.adds_bos()) tokens[0] = tokenizer.bos().value();
    const std::vector<float> logits = ComputeLogits(engine, tokens, half);
    for (size_t i = half; i + 1 < context; ++i)
      sum += NegativeLogLikelihood(std::span(logits).subspan((i - half) * vocab_size, vocab_size),
                                   tokens[i + 1]);
  }
  return std::exp(sum / static_cast<double>(num_chunks * (context - half - 1)));
}

}  // namespace quire
