// FieldDocument: docs/api_fields.md, made from the table of fields.
//
// Threading: a pure function.
#pragma once

#include <string>

namespace quire {

std::string FieldDocument();

}  // namespace quire
