#!/usr/bin/env bash
# Compares what a g++ build and a clang++ build compute, bit for bit, and the instruction sets of this
# machine with each other.
#
#   tools/compare_compilers.sh [BITS_DIGEST]
#
# BITS_DIGEST is the program of the g++ build; without it, it is built in build/release. Its
# counterpart is built in build/clang. Exit code 77, with a reason, where there is no clang++.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

if ! command -v clang++ >/dev/null; then
  echo "no clang++ here: run tools/install_packages.sh test"
  exit 77
fi
if [ $# -gt 0 ]; then
  gcc_digest=$1
else
  tools/build.sh release --tests bits_digest
  gcc_digest=build/release/tests/property/bits_digest
fi
tools/build.sh clang --tests bits_digest

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$gcc_digest" >"$work/gcc"
build/clang/tests/property/bits_digest >"$work/clang"

if [ ! -s "$work/gcc" ] || ! diff "$work/gcc" "$work/clang" >"$work/difference"; then
  echo "failed: g++ (<) and clang++ (>) compute different bits in these cases:"
  cat "$work/difference"
  exit 1
fi
echo "g++ and clang++ compute the same bits in $(wc -l <"$work/gcc") cases"

# CASE/SET HASH: each case must have one hash.
differing=$(sed 's,/[^/ ]* , ,' "$work/gcc" | sort -u | cut -d' ' -f1 | uniq -d)
if [ -n "$differing" ]; then
  echo "failed: the instruction sets compute different bits in these cases:"
  for name in $differing; do grep -F "$name/" "$work/gcc"; done
  exit 1
fi
echo "so do the instruction sets: $(sed 's,.*/\([^/ ]*\) .*,\1,' "$work/gcc" | sort -u | tr '\n' ' ')"
