// Explain: the formula of each number of a plan, with the plan's numbers in it.
//
// Threads: a pure function.
#pragma once

#include <string>
#include <vector>

#include "plan/plan.h"

namespace quire {

struct Explanation {
  std::string name;     // "KV bytes a token"
  std::string formula;  // "sum over groups: layers x KV heads x (head_dim K + V) x 2 bytes"
  std::string numbers;  // "80 x 8 x (128 + 128) x 2 = 327,680 B"
};

std::vector<Explanation> Explain(const Plan& plan);

}  // namespace quire
