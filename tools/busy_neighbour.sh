#!/usr/bin/env bash
# How decoding fares beside a process that is always busy: tokens per second alone, then beside it,
# and their ratio. On an idle machine.
#
#   tools/busy_neighbour.sh MODEL.gguf [BUSY LOOPS] [QUIRE]     1 loop; build/release/quire
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

model=$1
num_loops=${2:-1}
quire=${3:-build/release/quire}
loops=()
stop() {
  for loop in ${loops[@]+"${loops[@]}"}; do kill "$loop" 2>/dev/null || true; done
  loops=()
}
trap stop EXIT

decode() {
  "$quire" bench "$model" -p 0 -n 128 -r 5 --json |
    python3 -c 'import json, sys; print(json.load(sys.stdin)[0]["tokens_per_second"])'
}

alone=$(decode)
for ((i = 0; i < num_loops; ++i)); do
  bash -c 'while :; do :; done' &
  loops+=($!)
done
beside=$(decode)
stop
python3 - "$alone" "$beside" "$num_loops" <<'PYTHON'
import sys
alone, beside, loops = float(sys.argv[1]), float(sys.argv[2]), sys.argv[3]
print(f"decode: {alone:.1f} tokens/s alone, {beside:.1f} beside {loops} busy, ratio {beside / alone:.2f}")
PYTHON
