#!/usr/bin/env bash
# Builds everything and runs every test. Installs what is missing first (root, or a user with sudo).
# Again is cheap. Exit code 0 only if every test passed, and, where the shared test data lies beside
# the checkout (../shared/data), none was skipped.
#
#   ./test.sh [--no-install] [CTEST OPTIONS]     e.g. ./test.sh -L unit
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

install=true
if [ "${1:-}" = --no-install ]; then
  install=false
  shift
fi

echo "== 1/4 packages"
if $install; then
  tools/install_packages.sh build fetch test
else
  echo "packages: left alone, as --no-install says"
fi

echo "== 2/4 model"
tools/fetch_model.sh

echo "== 3/4 build"
tools/build.sh release --tests

echo "== 4/4 tests"
tools/run_tests.sh build/release "$@"
