// The values a template computes with, as Python has them.
//
// Texts are shared and immutable. Lists, dicts, namespaces, functions and loops have an identity
// and may contain themselves, so a Heap (text/jinja/heap.h) owns them all until the rendering ends
// and a Value only points at them. Integers have 64 bits; text/jinja/operators.h refuses overflow.
//
// Threading: a Value belongs to one rendering, on one thread. Values without a pointer into a heap
// (constants of a template) may be read from any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <variant>
#include <vector>

#include "text/jinja/marked_text.h"

namespace quire::jinja {

struct List;
class Dict;
struct Namespace;
struct Function;
struct Loop;

using TextRef = std::shared_ptr<const MarkedText>;

// What a missing name, key or attribute gives: prints as nothing, is false, has no attributes.
struct Undefined {
  TextRef name;  // what was missing, for messages; may be null
};

struct None {};

class Value {
 public:
  Value() = default;               // undefined
  Value(None) : value_(None{}) {}  // NOLINT: implicit by intent
  explicit Value(Undefined undefined) : value_(std::move(undefined)) {}
  explicit Value(bool value) : value_(value) {}
  explicit Value(int64_t value) : value_(value) {}
  explicit Value(double value) : value_(value) {}
  explicit Value(TextRef text) : value_(std::move(text)) {}
  explicit Value(MarkedText text) : value_(std::make_shared<const MarkedText>(std::move(text))) {}
  explicit Value(List* list) : value_(list) {}
  explicit Value(Dict* dict) : value_(dict) {}
  explicit Value(Namespace* space) : value_(space) {}
  explicit Value(Function* function) : value_(function) {}
  explicit Value(Loop* loop) : value_(loop) {}

  bool is_undefined() const { return Is<Undefined>(); }
  bool is_none() const { return Is<None>(); }
  bool is_text() const { return Is<TextRef>(); }

  // The value's content if it is of that kind, else null.
  const Undefined* undefined() const { return std::get_if<Undefined>(&value_); }
  const bool* boolean() const { return std::get_if<bool>(&value_); }
  const int64_t* integer() const { return std::get_if<int64_t>(&value_); }
  const double* real() const { return std::get_if<double>(&value_); }
  const MarkedText* text() const {
    const TextRef* ref = std::get_if<TextRef>(&value_);
    return ref == nullptr ? nullptr : ref->get();
  }
  TextRef text_ref() const { return is_text() ? std::get<TextRef>(value_) : nullptr; }
  List* list() const { return Pointer<List>(); }
  Dict* dict() const { return Pointer<Dict>(); }
  Namespace* space() const { return Pointer<Namespace>(); }
  Function* function() const { return Pointer<Function>(); }
  Loop* loop() const { return Pointer<Loop>(); }

  // The address that tells two lists, dicts, ... apart; null for plain values.
  const void* identity() const;

 private:
  template <class T>
  bool Is() const {
    return std::holds_alternative<T>(value_);
  }
  template <class T>
  T* Pointer() const {
    T* const* pointer = std::get_if<T*>(&value_);
    return pointer == nullptr ? nullptr : *pointer;
  }

  std::variant<Undefined, None, bool, int64_t, double, TextRef, List*, Dict*, Namespace*, Function*,
               Loop*>
      value_;
};

// "undefined", "none", "boolean", "integer", "float", "string", "list", "tuple", "mapping", ...:
// for messages.
const char* KindName(const Value& value);

// Python's bool().
bool IsTrue(const Value& value);

enum class ListKind {
  kList,
  kTuple,
  kLazy,  // what Python makes step by step: map(), items(), range(); it cannot be printed
};

struct List {
  ListKind kind = ListKind::kList;
  std::vector<Value> items;
};

// A for loop's `loop`.
struct Loop {
  std::vector<Value> items;
  int64_t index0 = 0;
  int64_t depth = 1;  // 1 in the outermost loop
};

// An attribute of a value that can be called, a function of the environment, or a macro.
struct Function {
  enum class Kind { kMethod, kBuiltin, kMacro };
  Kind kind = Kind::kBuiltin;
  std::string_view name;  // of the method or function; text of the template or static
  Value receiver;         // kMethod: the value before the dot
  const struct Statement* macro = nullptr;  // kMacro
  struct Scope* scope = nullptr;            // kMacro: where it was defined
};

}  // namespace quire::jinja
