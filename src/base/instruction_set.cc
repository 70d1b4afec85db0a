#include "base/instruction_set.h"

#include <algorithm>
#include <string>

#include "base/errors.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace quire {
namespace {

#if defined(__x86_64__)
// __builtin_cpu_supports("f16c") is not known to clang 14.
bool HasF16c() {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  return __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & bit_F16C) != 0;
}
bool HasAvx2() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
         __builtin_cpu_supports("bmi2") && HasF16c();
}
bool HasAvx512() {
  return HasAvx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512vnni");
}
#else
bool HasAvx2() { return false; }
bool HasAvx512() { return false; }
#endif

constexpr InstructionSet kAll[] = {InstructionSet::kPortable, InstructionSet::kAvx2,
                                   InstructionSet::kAvx512};

}  // namespace

std::string_view InstructionSetName(InstructionSet set) {
  switch (set) {
    case InstructionSet::kPortable:
      return "portable";
    case InstructionSet::kAvx2:
      return "avx2";
    case InstructionSet::kAvx512:
      return "avx512";
  }
  return "?";
}

std::vector<InstructionSet> AvailableInstructionSets() {
  std::vector<InstructionSet> sets = {InstructionSet::kPortable};
  if (HasAvx2()) sets.push_back(InstructionSet::kAvx2);
  if (HasAvx512()) sets.push_back(InstructionSet::kAvx512);
  return sets;
}

StatusOr<InstructionSet> ChooseInstructionSet(std::optional<std::string_view> forced) {
  const auto available = AvailableInstructionSets();
  if (!forced.has_value() || forced->empty()) return available.back();
  std::string names;
  for (InstructionSet set : available) {
    if (!names.empty()) names += ", ";
    names += InstructionSetName(set);
  }
  for (InstructionSet set : kAll) {
    if (InstructionSetName(set) != *forced) continue;
    if (std::find(available.begin(), available.end(), set) != available.end()) return set;
    return Unsupported("QUIRE_CPU={}: this machine has {}", *forced, names);
  }
  return InvalidArgument("QUIRE_CPU={}: unknown instruction set; this machine has {}", *forced,
                         names);
}

}  // namespace quire
