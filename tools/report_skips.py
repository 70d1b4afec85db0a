#!/usr/bin/env python3
"""Prints the tests that were skipped, and why, from the result files of a test run.

Usage: tools/report_skips.py RESULTS     (a folder that tools/run_tests.sh filled)

One line a reason: skipped: NAME (and N more): REASON. Exit code 1 if there is a skipped test although
the shared test data is there, so that nothing is left untested unseen; else 0. A reason that begins with
"by command: " is of a test whose data is fetched by hand only: it is printed and does not count.
"""

import os
import pathlib
import sys
import xml.etree.ElementTree as ElementTree

SOURCE = pathlib.Path(__file__).resolve().parent.parent


def gtest_skips(path):
    """(name, reason) of each skipped or disabled test in a GoogleTest result file."""
    for case in ElementTree.parse(path).getroot().iter("testcase"):
        name = f"{case.get('classname')}.{case.get('name')}"
        skipped = case.find("skipped")
        if skipped is not None:
            # "FILE:LINE\nREASON": the place is of no use to the reader.
            text = (skipped.get("message") or skipped.text or "").strip()
            lines = text.split("\n")
            if len(lines) > 1 and ":" in lines[0]:
                lines = lines[1:]
            yield name, " ".join(line.strip() for line in lines).strip() or "no reason given"
        elif name.find("DISABLED_") >= 0:
            yield name, "disabled in the source"


def ctest_skips(path):
    """(name, reason) of each test that ctest itself did not run or counted as skipped."""
    for case in ElementTree.parse(path).getroot().iter("testcase"):
        if case.get("status") in ("notrun", "disabled"):
            skipped = case.find("skipped")
            reason = skipped.get("message") if skipped is not None else "not run"
            output = [line for line in (case.findtext("system-out") or "").splitlines() if line.strip()]
            yield case.get("name"), output[-1].strip() if output else reason


def shared_data():
    return pathlib.Path(os.environ.get("QUIRE_SHARED_DATA") or SOURCE.parent / "shared" / "data")


def main():
    results = pathlib.Path(sys.argv[1])
    by_reason = {}
    for path in sorted((results / "gtest").glob("*.xml")):
        for name, reason in gtest_skips(path):
            by_reason.setdefault(reason, []).append(name)
    if (results / "ctest.xml").exists():
        for name, reason in ctest_skips(results / "ctest.xml"):
            by_reason.setdefault(reason, []).append(name)

    count = sum(len(names) for names in by_reason.values())
    unwanted = any(not reason.startswith("by command: ") for reason in by_reason)
    for reason, names in sorted(by_reason.items()):
        more = f" (and {len(names) - 1} more)" if len(names) > 1 else ""
        print(f"skipped: {names[0]}{more}: {reason}")
    print(f"{count} tests skipped")
    if unwanted and shared_data().is_dir():
        print("failed: tests were skipped although the shared test data is there")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
