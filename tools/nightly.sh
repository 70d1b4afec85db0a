#!/usr/bin/env bash
# What takes too long for every change: all tests under each sanitizer, long fuzz runs, the comparison
# of compilers, clang-tidy on everything. An hour or two on two cores.
#
#   tools/nightly.sh [FUZZ_SECONDS]     seconds for each fuzz target (600)
#
# Goes on after a failure and names at the end what failed; exit code 1 then.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1

fuzz_seconds=${1:-600}
failures=()
step() {
  local name=$1
  shift
  printf '\n#### %s\n' "$name"
  "$@" || failures+=("$name")
}
sanitized() {
  tools/build.sh "$1" --tests && tools/run_tests.sh "build/$1"
}
million_headers() {
  if [ ! -x tools/fuzz_gguf.sh ]; then
    echo "tools/fuzz_gguf.sh is missing"
    return 1
  fi
  tools/fuzz_gguf.sh
}

step "packages" tools/install_packages.sh build fetch test lint
step "model" tools/fetch_model.sh
step "release" ./test.sh
step "address and undefined-behaviour sanitizers" sanitized asan-ubsan
step "thread sanitizer" sanitized tsan
step "a million mutated GGUF headers" million_headers
step "scheduler, 100,000 steps for each of 200 seeds" build/release/src/schedule/schedule_simulator
step "fuzzers, $fuzz_seconds s each" tools/run_fuzzers.sh "$fuzz_seconds"
step "comparison of compilers" tools/compare_compilers.sh
step "lint, clang-tidy on everything" tools/lint.sh --tidy-all

if [ ${#failures[@]} -gt 0 ]; then
  printf '\nnightly: %d steps failed:\n' "${#failures[@]}"
  printf '  %s\n' "${failures[@]}"
  exit 1
fi
printf '\nnightly: all passed\n'
