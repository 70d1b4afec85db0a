#!/usr/bin/env python3
"""Checks the tests of src/cache: applies one deliberate fault after another to a copy of the tree
and says which test fails for it. A fault that no test sees is a missing test.

  tools/mutate_cache.py [--work DIR] [--only TEXT]... [--from N] [--list]

The copy and its build folder lie in --work (a new folder under the system's temporary one unless
given; give it to go on with what is built). The tree itself is only read. Exit code 1 if a fault
was not caught, no longer applies, or an invariant of the headers has none. By command, not in CI:
each fault takes a build of a library.

The faults are in tools/cache_faults.py.
"""
import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from cache_faults import FAULTS

ROOT = pathlib.Path(__file__).resolve().parent.parent
# The model finds most faults, but says least about them: it runs for those that the others miss.
SUITES = ["-CacheModel.*:EvictionModel.*:*Slow.*", "CacheModel.*:EvictionModel.*"]


def invariants_of_headers():
    text = "".join(p.read_text() for p in (ROOT / "src/cache").glob("*.h"))
    return set(re.findall(r"\[(cache\.[a-z]+\.\d+)\]", text))


def copy_tree(work):
    """Files that are the same already stay untouched, so that little is built again."""
    tree = work / "tree"
    files = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                           cwd=ROOT, check=True, capture_output=True).stdout.decode().split("\0")
    for name in filter(None, files):
        source = ROOT / name
        target = tree / name
        if not source.is_file() or (target.exists() and
                                    target.read_bytes() == source.read_bytes()):
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)  # not its time: what was built of a fault is old
    return tree


def build(work, jobs):
    result = subprocess.run(["ninja", "-C", str(work / "build"), f"-j{jobs}", "cache_test"],
                            capture_output=True, text=True)
    return result.returncode == 0, result.stdout + result.stderr


def first_failure(work):
    """The first test that fails, or None if all pass."""
    for suite in SUITES:
        try:
            result = subprocess.run(
                [str(work / "build/src/cache/cache_test"), f"--gtest_filter={suite}",
                 "--gtest_fail_fast", "--gtest_break_on_failure=0"],
                capture_output=True, text=True, errors="replace", timeout=300)
        except subprocess.TimeoutExpired:
            return "(does not end)"
        if result.returncode == 0:
            continue
        failed = re.findall(r"\[  FAILED  \] (\S+)", result.stdout)
        started = re.findall(r"\[ RUN      \] (\S+)", result.stdout)
        return failed[0] if failed else f"{started[-1] if started else '?'} (stops)"
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--work", type=pathlib.Path)
    parser.add_argument("--only", action="append", default=[], metavar="TEXT",
                        help="faults with this in their line, path or invariants; may be repeated")
    parser.add_argument("--from", dest="first", type=int, default=0, metavar="N",
                        help="leave out the first N of them")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    args = parser.parse_args()
    def is_wanted(fault):
        line = f"{fault.text} {fault.path} {' '.join(fault.invariants)}"
        return not args.only or any(text in line for text in args.only)

    faults = [f for f in FAULTS if is_wanted(f)]
    faults = faults[args.first:]
    if args.list:
        for fault in faults:
            print(f"{', '.join(fault.invariants):32} {fault.text}")
        return 0

    missing = invariants_of_headers() - {i for f in FAULTS for i in f.invariants}
    work = args.work or pathlib.Path(tempfile.mkdtemp(prefix="mutate_cache_"))
    work.mkdir(parents=True, exist_ok=True)
    tree = copy_tree(work)
    subprocess.run(["cmake", "-S", tree, "-B", work / "build", "-G", "Ninja",
                    "-DCMAKE_BUILD_TYPE=Release", "-DCMAKE_CXX_FLAGS_RELEASE=-O1 -DNDEBUG",
                    "-DQUIRE_BUILD_TESTS=ON"], check=True, capture_output=True)
    is_built, log = build(work, args.jobs)
    if not is_built:
        print(log[-3000:])
        return 1
    if (failed := first_failure(work)) is not None:
        print(f"without a fault: {failed} fails")
        return 1

    num_caught, bad = 0, []
    for fault in faults:
        path = tree / "src/cache" / fault.path
        text = path.read_text()
        if text.count(fault.old) != 1:
            outcome = f"STALE: its text is there {text.count(fault.old)} times"
        else:
            path.write_text(text.replace(fault.old, fault.new))
            is_built, log = build(work, args.jobs)
            caught = first_failure(work) if is_built else None
            path.write_text(text)
            outcome = caught or ("NOT CAUGHT" if is_built else "DOES NOT BUILD")
        if outcome.isupper() or outcome.startswith("STALE"):
            bad.append(fault.text)
        else:
            num_caught += 1
        print(f"{', '.join(fault.invariants):34} {fault.text:60} {outcome}", flush=True)
    for name in sorted(missing):
        print(f"{name:34} has no fault")
    print(f"{num_caught} of {len(faults)} faults caught")
    return 1 if bad or missing else 0


if __name__ == "__main__":
    sys.exit(main())
