// Reads a model file's tokenizer keys into a Vocabulary.
//
// Checks what the file format can get wrong: types, lengths of lists that belong together. What
// the tokens mean, and whether they make a working tokenizer, is checked by text/tokenizer.h.
#pragma once

#include <memory>

#include "base/status.h"
#include "model/gguf_header.h"
#include "text/vocabulary.h"

namespace quire {

// `owner` keeps the header's bytes alive (GgufFile::header_memory()); the tokens are views into
// them. A special id outside the vocabulary counts as not set. Without a tokenizer ("no_vocab",
// "none" or no key) the kind is kNone and the lists are empty, whatever the file has.
// Errors: kUnsupported for a kind of tokenizer that we do not have; kInvalidFile for a missing
// or ill-typed key and for lists of different lengths.
StatusOr<Vocabulary> ReadVocabulary(const GgufHeader& header, std::shared_ptr<const void> owner);

}  // namespace quire
