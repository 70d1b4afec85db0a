#!/usr/bin/env python3
"""Tests of tools/report_skips.py."""

import contextlib
import io
import os
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import report_skips  # noqa: E402

GTEST = """<testsuites><testsuite name="S">
<testcase name="Runs" status="run" result="completed" classname="S"/>
<testcase name="A" status="run" result="skipped" classname="S">
<skipped message="a.cc:7&#x0A;no model&#x0A;"/></testcase>
<testcase name="B" status="run" result="skipped" classname="S">
<skipped message="a.cc:9&#x0A;no model&#x0A;"/></testcase>
</testsuite></testsuites>"""
CTEST = """<testsuite><testcase name="passed" status="run"><system-out/></testcase>
<testcase name="compare" status="notrun"><skipped message="SKIP_RETURN_CODE=77"/>
<system-out>first
no clang++ here
</system-out></testcase></testsuite>"""


def report(gtest, ctest, with_data):
    """What the tool prints, and its exit code."""
    with tempfile.TemporaryDirectory() as folder:
        results = pathlib.Path(folder)
        (results / "gtest").mkdir()
        (results / "data").mkdir()
        if gtest:
            (results / "gtest" / "s_test.xml").write_text(gtest)
        if ctest:
            (results / "ctest.xml").write_text(ctest)
        os.environ["QUIRE_SHARED_DATA"] = str(results / ("data" if with_data else "none"))
        sys.argv = ["report_skips.py", folder]
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            code = report_skips.main()
        return printed.getvalue(), code


class ReportSkipsTest(unittest.TestCase):
    def test_a_reason_is_one_line(self):
        printed, code = report(GTEST, CTEST, with_data=False)
        self.assertIn("skipped: S.A (and 1 more): no model\n", printed)
        self.assertIn("skipped: compare: no clang++ here\n", printed)
        self.assertIn("3 tests skipped", printed)
        self.assertEqual(code, 0)

    def test_a_skip_beside_shared_data_fails(self):
        self.assertEqual(report(GTEST, None, with_data=True)[1], 1)
        self.assertEqual(report(None, CTEST, with_data=True)[1], 1)

    def test_what_runs_by_command_only_is_printed_and_does_not_fail(self):
        by_command = GTEST.replace("no model", "by command: no model")
        printed, code = report(by_command, None, with_data=True)
        self.assertIn("skipped: S.A (and 1 more): by command: no model\n", printed)
        self.assertEqual(code, 0)
        self.assertEqual(report(by_command, CTEST, with_data=True)[1], 1)

    def test_no_skip_passes(self):
        self.assertEqual(report(None, None, with_data=True), ("0 tests skipped\n", 0))


if __name__ == "__main__":
    unittest.main()
