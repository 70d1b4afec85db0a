#!/usr/bin/env bash
# Configures a preset and builds it, quietly: one line before, one line after, the compiler's words
# only when it fails.
#
#   tools/build.sh PRESET [--tests] [TARGET...]     into build/PRESET; no TARGET builds all
#
# --tests also configures the tests (they need GoogleTest). A folder that has them keeps them.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

preset=$1
shift
folder=build/$preset
options=()
if [ "${1:-}" = --tests ]; then
  options=(-DQUIRE_BUILD_TESTS=ON)
  shift
elif [ ! -f "$folder/CMakeCache.txt" ]; then
  options=(-DQUIRE_BUILD_TESTS=OFF)
fi

log=$(mktemp)
trap 'rm -f "$log"' EXIT
start=$SECONDS
if ! cmake --preset "$preset" ${options[@]+"${options[@]}"} >"$log" 2>&1; then
  cat "$log" >&2
  echo "build: CMake could not configure $folder (its words are above)." >&2
  echo "If a package is missing: tools/install_packages.sh build test. If the folder is from another" >&2
  echo "compiler or place: remove $folder and run this again." >&2
  exit 1
fi
echo "build: $folder, $(nproc) at a time$(command -v ccache >/dev/null && echo ', with ccache')"
fail() {
  echo "build: failed in $folder (the compiler's words are above)" >&2
  exit 1
}
if [ -t 1 ]; then
  # At a terminal ninja shows how far it is, in one line.
  ninja -C "$folder" "$@" || fail
else
  if ! ninja -C "$folder" "$@" >"$log" 2>&1; then
    grep -v '^\[[0-9]*/[0-9]*\] \(Building\|Linking\)' "$log" | tail -n 60 >&2
    fail
  fi
fi
echo "build: $folder is up to date after $((SECONDS - start)) s"
