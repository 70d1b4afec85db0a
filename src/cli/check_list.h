// CheckList: runs checks one after another, and tells of each how it went and how long it took.
//
// Threading: one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/status.h"
#include "cache/kv_cache.h"
#include "engine/step_loop.h"

namespace quire {

struct CheckResult {
  std::string group = {}, name = {};
  bool ok = false;
  std::string detail = {};  // the first difference, or what was seen
  double seconds = 0;
};

class CheckList {
 public:
  explicit CheckList(std::function<void(const CheckResult&)> on_result)
      : on_result_(std::move(on_result)) {}

  void SetGroup(std::string group) { group_ = std::move(group); }
  // An error is a check that failed. `detail` may be set to what was seen.
  void Run(const std::string& name, const std::function<Status(std::string& detail)>& check);
  // An error if the text of a difference is not empty.
  static Status NoDifference(const std::string& difference);

  uint32_t num_checks() const { return num_checks_; }
  uint32_t num_failed() const { return num_failed_; }

  // Are the bytes of a cache accounted for? `at_rest`: no sequence is left, so nothing may be held.
  Status LookAt(const KvCache& cache, bool at_rest);
  uint32_t num_looks() const { return num_looks_; }
  uint32_t num_failed_looks() const { return num_failed_looks_; }

 private:
  static Status LookOnce(const KvCache& cache, bool at_rest);

  const std::function<void(const CheckResult&)> on_result_;
  std::string group_;
  uint32_t num_checks_ = 0, num_failed_ = 0, num_looks_ = 0, num_failed_looks_ = 0;
};

}  // namespace quire
