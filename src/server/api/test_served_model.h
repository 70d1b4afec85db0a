// A ServedModel with a real tokenizer and chat template, for tests and fuzzers: no weights.
#pragma once

#include <memory>
#include <string>

#include "server/api/served_model.h"

namespace quire {

class TestServedModel {
 public:
  // The small BPE vocabulary of text/test_vocabulary.h (all bytes), context 512, a template
  // in the form of ChatML with its control tokens.
  TestServedModel();
  // A vocabulary and template of one's own; the template may be empty: none.
  TestServedModel(Vocabulary vocabulary, std::string template_source);

  ServedModel& model() { return model_; }
  const Tokenizer& tokenizer() const { return *tokenizer_; }

 private:
  std::unique_ptr<const Tokenizer> tokenizer_;
  std::unique_ptr<const ChatTemplate> template_;
  ServedModel model_;
};

}  // namespace quire
