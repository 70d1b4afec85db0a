#!/usr/bin/env bash
# From a fresh Debian 12 to the first answer: installs what is missing, builds, fetches a small model
# and asks it something. Run it as root, or as a user with sudo. Again is cheap.
#
#   ./quickstart.sh [--no-install] [PROMPT]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

install=true
if [ "${1:-}" = --no-install ]; then
  install=false
  shift
fi
prompt=${1:-What is gravity?}
model=$HOME/.cache/quire/models/SmolLM2-135M-Instruct.Q4_1.gguf

echo "== 1/4 packages"
if $install; then
  groups=(build)
  # pip is needed only as long as the model is not there.
  [ -f "$model" ] || groups+=(fetch)
  tools/install_packages.sh "${groups[@]}"
else
  echo "packages: left alone, as --no-install says"
fi

echo "== 2/4 build"
tools/build.sh release quire

echo "== 3/4 model"
tools/fetch_model.sh

echo "== 4/4 answer"
# --temp 0: the same answer every time.
echo "build/release/quire run $model --temp 0 -p '$prompt'"
build/release/quire run "$model" --temp 0 -p "$prompt"
