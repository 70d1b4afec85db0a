#include "text/jinja/operators.h"

#include <string.h>

#include <cmath>
#include <optional>
#include <utility>

namespace quire::jinja {
namespace {

// bool, int and float take part in arithmetic; bool as 0 and 1.
std::optional<int64_t> AsInteger(const Value& value) {
  if (const bool* boolean = value.boolean()) return *boolean ? 1 : 0;
  if (const int64_t* integer = value.integer()) return *integer;
  return std::nullopt;
}

std::optional<double> AsReal(const Value& value) {
  if (const double* real = value.real()) return *real;
  if (const std::optional<int64_t> integer = AsInteger(value)) return static_cast<double>(*integer);
  return std::nullopt;
}

const char* Symbol(Operator op) {
  constexpr const char* kSymbols[] = {
      "+", "-", "*", "/", "//", "%", "**", "==", "!=", "<", "<=", ">", ">=", "in", "not in"};
  return kSymbols[static_cast<size_t>(op)];
}

std::string Describe(const Value& value) {
  const Undefined* undefined = value.undefined();
  if (undefined == nullptr || undefined->name == nullptr) return KindName(value);
  return "undefined ('" + undefined->name->bytes() + "' is not there)";
}

Status Mismatch(Operator op, const Value& left, const Value& right) {
  return InvalidArgument("{} does not go between {} and {}", Symbol(op), Describe(left),
                         Describe(right));
}

Status Overflow() { return InvalidArgument("a number does not fit 64 bits"); }

StatusOr<Value> IntegerPower(int64_t base, int64_t exponent) {
  if (exponent < 0)
    return Value(std::pow(static_cast<double>(base), static_cast<double>(exponent)));
  int64_t result = 1;
  while (exponent > 0) {
    if ((exponent & 1) != 0 && __builtin_mul_overflow(result, base, &result)) return Overflow();
    exponent >>= 1;
    if (exponent > 0 && __builtin_mul_overflow(base, base, &base)) return Overflow();
  }
  return Value(result);
}

StatusOr<Value> IntegerArithmetic(Operator op, int64_t left, int64_t right) {
  int64_t result = 0;
  switch (op) {
    case Operator::kAdd:
      if (__builtin_add_overflow(left, right, &result)) return Overflow();
      return Value(result);
    case Operator::kSubtract:
      if (__builtin_sub_overflow(left, right, &result)) return Overflow();
      return Value(result);
    case Operator::kMultiply:
      if (__builtin_mul_overflow(left, right, &result)) return Overflow();
      return Value(result);
    case Operator::kPower:
      return IntegerPower(left, right);
    default:
      break;
  }
  if (right == 0) return InvalidArgument("division by zero");
  if (op == Operator::kDivide) return Value(static_cast<double>(left) / static_cast<double>(right));
  if (right == -1) {  // the smallest number divided by -1 has no room
    if (op == Operator::kModulo) return Value(int64_t{0});
    return IntegerArithmetic(Operator::kSubtract, 0, left);
  }
  int64_t quotient = left / right;
  int64_t remainder = left % right;
  if (remainder != 0 && (remainder < 0) != (right < 0)) {  // Python rounds down, C to zero
    remainder += right;
    --quotient;
  }
  return Value(op == Operator::kFloorDivide ? quotient : remainder);
}

StatusOr<Value> RealArithmetic(Operator op, double left, double right) {
  switch (op) {
    case Operator::kAdd:
      return Value(left + right);
    case Operator::kSubtract:
      return Value(left - right);
    case Operator::kMultiply:
      return Value(left * right);
    case Operator::kPower:
      return Value(std::pow(left, right));
    default:
      break;
  }
  if (right == 0) return InvalidArgument("division by zero");
  if (op == Operator::kDivide) return Value(left / right);
  double remainder = std::fmod(left, right);
  if (remainder != 0 && (remainder < 0) != (right < 0)) remainder += right;
  if (op == Operator::kModulo) return Value(remainder);
  return Value(std::floor((left - remainder) / right + 0.5));
}

StatusOr<Value> Repeat(Runtime* runtime, const Value& value, int64_t times) {
  const size_t count = static_cast<size_t>(std::max<int64_t>(times, 0));
  if (const MarkedText* text = value.text()) {
    const size_t limit = runtime->limits().max_text_bytes;
    if (!text->empty() && count > limit / text->size()) {
      return runtime->CheckTextSize(count > (limit * 2) ? limit * 2 : count * text->size());
    }
    QUIRE_RETURN_IF_ERROR(runtime->SpendBytes(count * text->cost()));
    MarkedText result;
    for (size_t i = 0; i < count && !text->empty(); ++i) result.Append(*text);
    return Value(std::move(result));
  }
  const List& list = *value.list();
  std::vector<Value> items;
  if (!list.items.empty()) {
    QUIRE_RETURN_IF_ERROR(runtime->Spend(std::min(count, size_t{1} << 40) * list.items.size()));
    for (size_t i = 0; i < count; ++i) {
      items.insert(items.end(), list.items.begin(), list.items.end());
    }
  }
  return runtime->MakeList(list.kind, std::move(items));
}

StatusOr<Value> Add(Runtime* runtime, const Value& left, const Value& right) {
  if (left.is_text() && right.is_text()) {
    MarkedText result = *left.text();
    result.Append(*right.text());
    return runtime->MakeText(std::move(result));
  }
  const List* a = left.list();
  const List* b = right.list();
  if (a == nullptr || b == nullptr || a->kind != b->kind || a->kind == ListKind::kLazy) {
    return Mismatch(Operator::kAdd, left, right);
  }
  QUIRE_RETURN_IF_ERROR(runtime->Spend(a->items.size() + b->items.size()));
  std::vector<Value> items = a->items;
  items.insert(items.end(), b->items.begin(), b->items.end());
  return runtime->MakeList(a->kind, std::move(items));
}

bool IsRepeatable(const Value& value) {
  return value.is_text() || (value.list() != nullptr && value.list()->kind != ListKind::kLazy);
}

// Recursive comparisons; depth bounds values that contain themselves.
class Comparer {
 public:
  explicit Comparer(Runtime* runtime) : runtime_(*runtime) {}

  StatusOr<bool> Equal(const Value& left, const Value& right, int depth) {
    QUIRE_RETURN_IF_ERROR(Enter(depth));
    if (const MarkedText* a = left.text()) {
      const MarkedText* b = right.text();
      if (b == nullptr || a->size() != b->size()) return false;
      QUIRE_RETURN_IF_ERROR(runtime_.SpendBytes(a->size()));
      return a->bytes() == b->bytes();
    }
    const std::optional<int64_t> int_left = AsInteger(left), int_right = AsInteger(right);
    if (int_left.has_value() && int_right.has_value()) return *int_left == *int_right;
    const std::optional<double> real_left = AsReal(left), real_right = AsReal(right);
    if (real_left.has_value() && real_right.has_value()) return *real_left == *real_right;
    if (left.is_none()) return right.is_none();
    if (left.is_undefined()) return right.is_undefined();
    if (left.list() != nullptr && right.list() != nullptr) {
      return ListsEqual(*left.list(), *right.list(), depth);
    }
    if (left.dict() != nullptr && right.dict() != nullptr) {
      return DictsEqual(*left.dict(), *right.dict(), depth);
    }
    return left.identity() != nullptr && left.identity() == right.identity();
  }

  StatusOr<bool> Less(const Value& left, const Value& right, int depth) {
    QUIRE_RETURN_IF_ERROR(Enter(depth));
    if (left.is_text() && right.is_text()) {
      // Byte order of UTF-8 is code point order.
      QUIRE_RETURN_IF_ERROR(
          runtime_.SpendBytes(std::min(left.text()->size(), right.text()->size())));
      return left.text()->bytes() < right.text()->bytes();
    }
    const std::optional<int64_t> int_left = AsInteger(left), int_right = AsInteger(right);
    if (int_left.has_value() && int_right.has_value()) return *int_left < *int_right;
    const std::optional<double> real_left = AsReal(left), real_right = AsReal(right);
    if (real_left.has_value() && real_right.has_value()) return *real_left < *real_right;
    const List* a = left.list();
    const List* b = right.list();
    if (a == nullptr || b == nullptr || a->kind != b->kind) {
      return Mismatch(Operator::kLess, left, right);
    }
    for (size_t i = 0; i < a->items.size() && i < b->items.size(); ++i) {
      QUIRE_ASSIGN_OR_RETURN(const bool same, Equal(a->items[i], b->items[i], depth + 1));
      if (!same) return Less(a->items[i], b->items[i], depth + 1);
    }
    return a->items.size() < b->items.size();
  }

 private:
  Status Enter(int depth) {
    if (depth > kMaxValueDepth) {
      return ResourceExhausted("values to compare are nested more than {} deep", kMaxValueDepth);
    }
    return runtime_.Spend(1);
  }

  StatusOr<bool> ListsEqual(const List& left, const List& right, int depth) {
    if (left.kind != right.kind || left.items.size() != right.items.size()) return false;
    for (size_t i = 0; i < left.items.size(); ++i) {
      QUIRE_ASSIGN_OR_RETURN(const bool same, Equal(left.items[i], right.items[i], depth + 1));
      if (!same) return false;
    }
    return true;
  }

  StatusOr<bool> DictsEqual(const Dict& left, const Dict& right, int depth) {
    if (left.size() != right.size()) return false;
    for (const auto& [key, value] : left.entries()) {
      const Value* other = right.Find(key);
      if (other == nullptr) return false;
      QUIRE_ASSIGN_OR_RETURN(const bool same, Equal(value, *other, depth + 1));
      if (!same) return false;
    }
    return true;
  }

  Runtime& runtime_;
};

}  // namespace

StatusOr<Value> Arithmetic(Runtime* runtime, Operator op, const Value& left, const Value& right) {
  const std::optional<int64_t> int_left = AsInteger(left), int_right = AsInteger(right);
  if (int_left.has_value() && int_right.has_value()) {
    return IntegerArithmetic(op, *int_left, *int_right);
  }
  const std::optional<double> real_left = AsReal(left), real_right = AsReal(right);
  if (real_left.has_value() && real_right.has_value()) {
    return RealArithmetic(op, *real_left, *real_right);
  }
  if (op == Operator::kAdd) return Add(runtime, left, right);
  if (op == Operator::kMultiply && int_right.has_value() && IsRepeatable(left)) {
    return Repeat(runtime, left, *int_right);
  }
  if (op == Operator::kMultiply && int_left.has_value() && IsRepeatable(right)) {
    return Repeat(runtime, right, *int_left);
  }
  if (op == Operator::kModulo && left.is_text()) {
    return Unsupported("formatting a text with % is not supported: join it with ~");
  }
  return Mismatch(op, left, right);
}

StatusOr<Value> Negate(const Value& value) {
  if (const std::optional<int64_t> integer = AsInteger(value)) {
    return IntegerArithmetic(Operator::kSubtract, 0, *integer);
  }
  if (const double* real = value.real()) return Value(-*real);
  return InvalidArgument("- does not go before {}", Describe(value));
}

StatusOr<bool> Compare(Runtime* runtime, Operator op, const Value& left, const Value& right) {
  const auto invert = [](StatusOr<bool> result) -> StatusOr<bool> {
    if (!result.ok()) return result.status();
    return !*result;
  };
  const auto or_equal = [&](StatusOr<bool> less) -> StatusOr<bool> {
    if (!less.ok() || *less) return less;
    return Equals(runtime, left, right);
  };
  switch (op) {
    case Operator::kEqual:
      return Equals(runtime, left, right);
    case Operator::kNotEqual:
      return invert(Equals(runtime, left, right));
    case Operator::kLess:
      return Less(runtime, left, right);
    case Operator::kLessEqual:
      return or_equal(Less(runtime, left, right));
    case Operator::kGreater:
      return Less(runtime, right, left);
    case Operator::kGreaterEqual:
      return or_equal(Less(runtime, right, left));
    case Operator::kNotIn:
      return invert(Contains(runtime, right, left));
    default:
      return Contains(runtime, right, left);
  }
}

StatusOr<bool> Equals(Runtime* runtime, const Value& left, const Value& right) {
  return Comparer(runtime).Equal(left, right, 0);
}

StatusOr<bool> Less(Runtime* runtime, const Value& left, const Value& right) {
  return Comparer(runtime).Less(left, right, 0);
}

StatusOr<bool> Contains(Runtime* runtime, const Value& container, const Value& item) {
  if (const MarkedText* text = container.text()) {
    if (!item.is_text()) return Mismatch(Operator::kIn, item, container);
    QUIRE_RETURN_IF_ERROR(runtime->SpendSearch(text->size(), item.text()->size()));
    return FindText(text->bytes(), item.text()->bytes()) != std::string::npos;
  }
  if (const Dict* dict = container.dict()) {
    QUIRE_RETURN_IF_ERROR(runtime->Spend(1));
    return dict->Find(item) != nullptr;
  }
  if (container.is_undefined()) return false;
  if (container.list() == nullptr) return Mismatch(Operator::kIn, item, container);
  for (const Value& candidate : container.list()->items) {
    QUIRE_ASSIGN_OR_RETURN(const bool same, Equals(runtime, candidate, item));
    if (same) return true;
  }
  return false;
}

size_t FindText(std::string_view text, std::string_view part, size_t from) {
  if (from > text.size()) return std::string_view::npos;
  if (part.empty()) return from;
  // memmem is two-way search; std::string::find is quadratic for a text made to be so.
  const void* found = memmem(text.data() + from, text.size() - from, part.data(), part.size());
  if (found == nullptr) return std::string_view::npos;
  return static_cast<size_t>(static_cast<const char*>(found) - text.data());
}

}  // namespace quire::jinja
