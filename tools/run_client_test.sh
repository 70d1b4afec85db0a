#!/usr/bin/env bash
# Runs a test of tests/clients in its environment, which tools/install_clients.sh has made.
#
#   tools/run_client_test.sh SET FILE [PYTEST OPTIONS]
set -euo pipefail

tools=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
folder=$("$tools/install_clients.sh" --path "$1")
if [ ! -f "$folder/complete" ]; then
  echo "run_client_test: $folder is not there: run tools/install_clients.sh $1" >&2
  exit 1
fi
shift
# No index or model hub is asked from here on; no proxy stands before loopback.
export HF_HUB_OFFLINE=1 NO_PROXY=127.0.0.1,localhost no_proxy=127.0.0.1,localhost
exec "$folder/bin/python" -m pytest -p no:cacheprovider -q --durations=3 "$@"
