#include "text/jinja/value.h"

#include "text/jinja/dict.h"

namespace quire::jinja {

const void* Value::identity() const {
  if (list() != nullptr) return list();
  if (dict() != nullptr) return dict();
  if (space() != nullptr) return space();
  if (function() != nullptr) return function();
  return loop();
}

const char* KindName(const Value& value) {
  if (value.is_undefined()) return "undefined";
  if (value.is_none()) return "none";
  if (value.boolean() != nullptr) return "boolean";
  if (value.integer() != nullptr) return "integer";
  if (value.real() != nullptr) return "float";
  if (value.is_text()) return "string";
  if (const List* list = value.list()) {
    return list->kind == ListKind::kList    ? "list"
           : list->kind == ListKind::kTuple ? "tuple"
                                            : "lazy sequence";
  }
  if (value.dict() != nullptr) return "mapping";
  if (value.space() != nullptr) return "namespace";
  return value.function() != nullptr ? "function" : "loop";
}

bool IsTrue(const Value& value) {
  if (value.is_undefined() || value.is_none()) return false;
  if (const bool* boolean = value.boolean()) return *boolean;
  if (const int64_t* integer = value.integer()) return *integer != 0;
  if (const double* real = value.real()) return *real != 0;
  if (const MarkedText* text = value.text()) return !text->empty();
  if (const List* list = value.list()) return !list->items.empty();
  if (const Dict* dict = value.dict()) return dict->size() > 0;
  return true;
}

}  // namespace quire::jinja
