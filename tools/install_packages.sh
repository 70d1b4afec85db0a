#!/usr/bin/env bash
# Installs the Debian packages that a task needs, by one apt-get line, and only those that are missing.
#
#   tools/install_packages.sh [--list] GROUP...
#     build   compiler, CMake, libraries: what the program is made of
#     fetch   Python and pip: what the model is fetched with
#     test    GoogleTest, and clang for the comparison of compilers
#     lint    clang-format, clang-tidy, shellcheck
#   --list    prints the packages of the groups and installs nothing
#
# Nothing is asked of apt or of root when all is there. Exit code 1 with a line that says what to do
# when something is missing and cannot be installed.
set -euo pipefail

packages_of() {
  case "$1" in
    build)
      echo g++ cmake ninja-build pkg-config libhwy-dev libpcre2-dev nlohmann-json3-dev \
        libcli11-dev libfmt-dev libspdlog-dev libboost-dev libssl-dev prometheus-cpp-dev ;;
    fetch)
      echo ca-certificates
      command -v python3 >/dev/null || echo python3
      # Any pip will do; Debian's is installed only where there is none.
      has_pip || echo python3-pip ;;
    test)
      echo libgtest-dev libgmock-dev clang binutils python3
      # For the clients' environments; a Python that is not Debian's may bring its own.
      has_venv || echo python3-venv ;;
    lint) echo clang-format clang-tidy shellcheck git python3 ;;
    *)
      echo "install_packages: no group '$1'; the groups are build, fetch, test, lint" >&2
      return 1 ;;
  esac
}

has_pip() {
  python3 -m pip --version >/dev/null 2>&1 || pip3 --version >/dev/null 2>&1
}

has_venv() {
  python3 -c 'import ensurepip, venv' >/dev/null 2>&1
}

list_only=false
if [ "${1:-}" = --list ]; then
  list_only=true
  shift
fi
wanted=()
for group in "$@"; do
  # Assigned first: a failure inside <(...) would be lost.
  names=$(packages_of "$group")
  for name in $names; do wanted+=("$name"); done
done
if [ ${#wanted[@]} -eq 0 ]; then
  echo "install_packages: name at least one group: build, fetch, test, lint" >&2
  exit 1
fi
if $list_only; then
  printf '%s\n' "${wanted[@]}"
  exit 0
fi

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
  echo "install_packages: this machine has no apt-get. Install what these Debian packages hold:" >&2
  echo "  ${wanted[*]}" >&2
  echo "and call the script again with --no-install." >&2
  exit 1
fi

missing=()
for name in "${wanted[@]}"; do
  status=$(dpkg-query -W -f='${db:Status-Status}' "$name" 2>/dev/null || true)
  [ "$status" = installed ] || missing+=("$name")
done
if [ ${#missing[@]} -eq 0 ]; then
  echo "packages ($*): all ${#wanted[@]} are there already"
  exit 0
fi

install=(apt-get install -y --no-install-recommends "${missing[@]}")
as_root=()
if [ "$(id -u)" -ne 0 ]; then
  if ! command -v sudo >/dev/null; then
    echo "install_packages: these packages are missing, and to install them needs root or sudo." >&2
    echo "As root, run:  apt-get update && ${install[*]}" >&2
    exit 1
  fi
  as_root=(sudo)
fi
run_as_root() { ${as_root[@]+"${as_root[@]}"} env DEBIAN_FRONTEND=noninteractive "$@"; }

echo "packages ($*): ${#missing[@]} of ${#wanted[@]} are missing; ${install[*]}"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ! { run_as_root apt-get update && run_as_root "${install[@]}"; } >"$log" 2>&1 </dev/null; then
  tail -n 20 "$log" >&2
  echo "install_packages: apt-get failed (its last lines are above). Check the network and the" >&2
  echo "package sources (this needs Debian 12 or later), then run the same command again." >&2
  exit 1
fi
echo "packages ($*): installed"
