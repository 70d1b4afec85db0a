#!/usr/bin/env bash
# Feeds mutated GGUF headers to the parser under the address and undefined-behaviour sanitizers.
#
#   tools/fuzz_gguf.sh [RUNS]     default 1,000,000; about five minutes on one core
#
# Seeds are the first bytes of the small models in tests/data and, where it is there, ../shared/data.
# What it finds of interest stays in build/fuzz/gguf-corpus for the next run. A finding ends it with
# exit code 1, and the input lies in build/fuzz as gguf-crash-*.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

runs=${1:-1000000}
seed_bytes=4096 # of each model: a small model's whole header; longer inputs only make runs slow
tools/build.sh fuzz fuzz_gguf

seeds=build/fuzz/gguf-seeds
corpus=build/fuzz/gguf-corpus
rm -rf "$seeds"
mkdir -p "$seeds" "$corpus"
shared=${QUIRE_SHARED_DATA:-../shared/data}
while IFS= read -r model; do
  head -c "$seed_bytes" "$model" >"$seeds/$(echo "$model" | tr -c 'A-Za-z0-9._\n-' _)"
done < <(find tests/data "$shared/models" -name '*.gguf' 2>/dev/null | sort)
echo "fuzz: $runs runs from $(find "$seeds" -type f | wc -l) headers"

# An allocation of more than 64 MiB for a header of kilobytes is a finding.
start=$SECONDS
if ! build/fuzz/tests/fuzz/fuzz_gguf "$corpus" "$seeds" -runs="$runs" -max_len=6144 -timeout=10 \
  -malloc_limit_mb=64 -rss_limit_mb=2048 -artifact_prefix=build/fuzz/gguf- \
  -print_final_stats=1 -verbosity=0 >build/fuzz/gguf.log 2>&1; then
  tail -n 60 build/fuzz/gguf.log >&2
  echo "fuzz: a finding; the input is build/fuzz/gguf-crash-* (or -oom-, -timeout-)" >&2
  exit 1
fi
grep -E 'number_of_executed_units|peak_rss' build/fuzz/gguf.log || true
echo "fuzz: nothing found in $((SECONDS - start)) s"
