#!/usr/bin/env bash
# Builds the libFuzzer programs under the sanitizers and runs each for a while.
#
#   tools/run_fuzzers.sh SECONDS [NAME...]     NAME: as in fuzz_NAME; without one, all that there are
#
# Seeds: tests/fuzz/corpus/NAME and build/fuzz/NAME-seeds (tools/fuzz_gguf.sh makes one), words:
# tests/fuzz/NAME.dict, all only where they exist. What it finds new is kept in build/fuzz/corpus/NAME,
# so that a later run goes on from there; an input that breaks something is written to
# build/fuzz/found/ and named. Exit code 1 then.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

seconds=$1
shift
names=("$@")
cmake --preset fuzz >/dev/null || { echo "fuzz: cannot configure build/fuzz; run: cmake --preset fuzz" >&2; exit 1; }
if [ ${#names[@]} -eq 0 ]; then
  mapfile -t names < <(ninja -C build/fuzz -t targets all | sed -n 's/^fuzz_\([a-z0-9_]*\): phony$/\1/p' | sort -u)
fi
if [ ${#names[@]} -eq 0 ]; then
  echo "fuzz: there are no fuzz targets"
  exit 0
fi
tools/build.sh fuzz "${names[@]/#/fuzz_}"

mkdir -p build/fuzz/found
failed=false
for name in "${names[@]}"; do
  program=$(find build/fuzz -type f -name "fuzz_$name" -perm -u+x | head -n 1)
  corpus=build/fuzz/corpus/$name
  mkdir -p "$corpus"
  options=("-max_total_time=$seconds" -timeout=20 -rss_limit_mb=3000 -print_final_stats=1
    "-artifact_prefix=build/fuzz/found/$name-")
  [ -f "tests/fuzz/$name.dict" ] && options+=("-dict=tests/fuzz/$name.dict")
  folders=("$corpus")
  [ -d "tests/fuzz/corpus/$name" ] && folders+=("tests/fuzz/corpus/$name")
  [ -d "build/fuzz/$name-seeds" ] && folders+=("build/fuzz/$name-seeds")
  log=build/fuzz/$name.log
  if "$program" "${options[@]}" "${folders[@]}" >"$log" 2>&1 </dev/null; then
    runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
    echo "fuzz: $name: $runs inputs in $seconds s, nothing found"
  else
    tail -n 40 "$log"
    echo "fuzz: $name failed; the input is in build/fuzz/found, the words in $log"
    failed=true
  fi
done
! $failed
