#!/usr/bin/env bash
# Looks at the sources without running them: layers, format, shell scripts, and clang-tidy on what has
# changed. Prints findings; exit code 1 if there are any.
#
#   tools/lint.sh [--tidy-seconds N] [--tidy-all]
#
# clang-tidy reads the changed sources (--tidy-all: all of them, and the tests): those that differ from
# the merge base with origin/main or, where that is this commit, from the commit before. It takes no
# new file after N seconds (180) and names those that it left. build/release must be configured.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

tidy_seconds=180
tidy_all=false
while [ $# -gt 0 ]; do
  case "$1" in
    --tidy-seconds) tidy_seconds=$2; shift 2 ;;
    --tidy-all) tidy_all=true; tidy_seconds=100000; shift ;;
    *) echo "lint: unknown option $1; see the head of tools/lint.sh" >&2; exit 1 ;;
  esac
done

failed=false
mapfile -t sources < <(git ls-files 'src/*.h' 'src/*.cc' 'tests/*.h' 'tests/*.cc')
mapfile -t scripts < <(git ls-files '*.sh' .ci/run)

echo "lint: layers"
python3 tools/check_layers.py || failed=true

echo "lint: format of ${#sources[@]} sources"
if ! clang-format --dry-run -Werror "${sources[@]}"; then
  echo "lint: run clang-format -i on the files named above"
  failed=true
fi

echo "lint: ${#scripts[@]} shell scripts"
shellcheck "${scripts[@]}" || failed=true

# Headers are seen through the sources that include them.
if $tidy_all; then
  mapfile -t tidy < <(git ls-files 'src/*.cc' 'tests/*.cc')
else
  base=$(git merge-base HEAD origin/main 2>/dev/null || true)
  if [ -z "$base" ] || [ "$base" = "$(git rev-parse HEAD)" ]; then
    base=$(git rev-parse --verify --quiet HEAD~1 || true)
  fi
  if [ -n "$base" ]; then
    mapfile -t tidy < <(git diff --name-only --diff-filter=d "$base" -- 'src/*.cc' ':!*_test.cc')
  else
    # No commit to compare with: a few files that stand for the rest.
    tidy=(src/base/status.cc src/base/threads.cc src/codec/kv_codec.cc)
  fi
fi

# Prints only findings. One that takes longer than three minutes is left, not failed.
tidy_one() {
  local status=0
  timeout 180 clang-tidy --quiet --extra-arg=-Wno-unknown-warning-option -p build/release "$1" 2>/dev/null || status=$?
  if [ "$status" -eq 124 ]; then
    echo "lint: clang-tidy took too long on $1; left out"
    status=0
  fi
  return "$status"
}

echo "lint: clang-tidy on ${#tidy[@]} sources"
deadline=$((SECONDS + tidy_seconds))
left=()
running=0
for file in ${tidy[@]+"${tidy[@]}"}; do
  # Only what the release build compiles has its flags recorded.
  grep -qF "/$file\"" build/release/compile_commands.json || continue
  if [ "$SECONDS" -ge "$deadline" ]; then
    left+=("$file")
    continue
  fi
  if [ "$running" -ge "$(nproc)" ]; then
    wait -n || failed=true
    running=$((running - 1))
  fi
  tidy_one "$file" &
  running=$((running + 1))
done
while [ "$running" -gt 0 ]; do
  wait -n || failed=true
  running=$((running - 1))
done
if [ ${#left[@]} -gt 0 ]; then
  echo "lint: no time left for ${#left[@]} files: ${left[*]}"
fi

if $failed; then
  echo "lint: there are findings"
  exit 1
fi
echo "lint: nothing found"
