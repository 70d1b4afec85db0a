#!/usr/bin/env bash
# Runs the tests of a build folder by ctest and says of each skipped one why.
#
#   tools/run_tests.sh BUILD_FOLDER [CTEST OPTIONS]
#
# Exit code: 0 when all passed; 1 when one failed, when there was none, or when one was skipped
# although ../shared/data (or $QUIRE_SHARED_DATA) is there. ctest's closing lines come last.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

folder=$1
shift
results=$PWD/$folder/Testing/results
rm -rf "$results"
mkdir -p "$results/gtest"
closing=$results/closing.txt

# GoogleTest writes one XML file a test there (cmake/quire.cmake); tools/report_skips.py reads them.
status=0
ctest --test-dir "$folder" --output-on-failure \
  --no-tests=error --parallel "$(nproc)" --output-junit "$results/ctest.xml" "$@" 2>&1 |
  awk -v closing="$closing" '/^[0-9]+% tests passed/ { hold = 1 } hold { print > closing; next } { print; fflush() }' ||
  status=1

python3 tools/report_skips.py "$results" || status=1
cat "$closing" 2>/dev/null || true
exit "$status"
