#!/usr/bin/env bash
# Makes the Python environments that tests/clients needs: real clients of the OpenAI API, pinned.
#
#   tools/install_clients.sh [--path] [SET...]     SET: main, guidellm (default: both)
#   --path   prints the environments' folders, one a line, and makes nothing
#
# They lie in ~/.cache/quire/venv-clients-HASH: another list of versions, or another Python, is
# another folder. One that is whole is used as it is. Needs Python 3.11 or later with venv
# (tools/install_packages.sh test) and a package index that pip reaches.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

fail() {
  printf 'install_clients: %s\n' "$@" >&2
  exit 1
}

path_only=false
if [ "${1:-}" = --path ]; then
  path_only=true
  shift
fi
[ $# -gt 0 ] || set -- main guidellm

command -v python3 >/dev/null || fail "python3 is missing: run tools/install_packages.sh test"
cache=${HOME:?install_clients: set HOME to the folder under which .cache/quire shall lie}/.cache/quire

requirements_of() {
  case "$1" in
    main) echo tests/clients/requirements.txt ;;
    guidellm) echo tests/clients/requirements-guidellm.txt ;;
    *) fail "no set '$1'; the sets are main, guidellm" ;;
  esac
}

folder_of() {  # REQUIREMENTS
  echo "$cache/venv-clients-$({ python3 -c 'import sys; print(sys.version, sys.prefix)'; cat "$1"; } |
    sha256sum | cut -c1-12)"
}

install_set() {  # NAME REQUIREMENTS FOLDER
  local total log start=$SECONDS
  total=$(grep -c == "$2")
  rm -rf "$3"
  python3 -m venv "$3" ||
    fail "python3 cannot make a virtual environment: run tools/install_packages.sh test"
  log=$3/install.log
  echo "clients: installing $total packages of $2 into $3"
  # All versions are pinned, so nothing is left to resolve.
  if ! "$3/bin/python" -m pip install --no-deps --disable-pip-version-check --progress-bar off \
      -r "$2" </dev/null 2>"$log.err" | tee "$log" |
      awk -v total="$total" '/^Collecting / && ++n % 20 == 0 { print "clients: " n " of " total; fflush() }
                             /^Installing collected/ { print "clients: unpacking"; fflush() }'; then
    tail -n 20 "$log.err" >&2
    fail "pip could not install $2 (its last words are above)." \
      "Check the network, the proxy and pip's index settings, and that ~/.cache has 2 GB free; then run this again."
  fi
  "$3/bin/python" -m pip check --disable-pip-version-check ||
    fail "the versions in $2 do not go together"
  touch "$3/complete"
  echo "clients: $1 is there after $((SECONDS - start)) s, $(du -sh "$3" | cut -f1)"
}

for name in "$@"; do
  requirements=$(requirements_of "$name")
  folder=$(folder_of "$requirements")
  if $path_only; then
    echo "$folder"
    continue
  fi
  mkdir -p "$cache" || fail "cannot make the folder $cache: check its permissions"
  exec 9>"$cache/venv-clients.lock"
  flock 9  # two at once would spoil one another's folder
  if [ -f "$folder/complete" ]; then
    echo "clients: $name is there already: $folder"
  else
    install_set "$name" "$requirements" "$folder"
  fi
done
