#!/usr/bin/env python3
"""Tests of tools/check_layers.py: each rule finds its fault in a small tree and nothing else."""

import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import check_layers  # noqa: E402

GOOD = {
    "src/base/ids.h": "#pragma once\n",
    "src/base/CMakeLists.txt": "quire_library(base SOURCES a.cc DEPS fmt::fmt)\n",
    "src/codec/codec.h": '#pragma once\n#include <vector>\n#include "base/ids.h"\n',
    "src/codec/codec.cc": '#include "codec/codec.h"\n',
    "src/codec/codec_test.cc": '#include "codec/codec.h"\n#include "base/test_data.h"\n',
    "src/base/test_data.h": "#pragma once\n",
    "src/codec/CMakeLists.txt": "quire_library(codec\n  SOURCES codec.cc\n  DEPS quire_base)\n",
}


def findings(**changes):
    """What the checks say of GOOD with these files added or replaced (None removes one)."""
    files = {**GOOD, **{name: text for name, text in changes.get("files", {}).items()}}
    with tempfile.TemporaryDirectory() as root:
        for name, text in files.items():
            if text is None:
                continue
            path = pathlib.Path(root) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return [f"{name}:{number}: {what}" for name, number, what in check_layers.findings(root)]


class CheckLayersTest(unittest.TestCase):
    def assertOneFinding(self, files, *words):
        found = findings(files=files)
        self.assertEqual(len(found), 1, found)
        for word in words:
            self.assertIn(word, found[0])

    def test_good_tree_has_no_findings(self):
        self.assertEqual(findings(), [])

    def test_include_up_the_table(self):
        self.assertOneFinding({"src/base/up.h": '#include "codec/codec.h"\n'},
                              "src/base/up.h:1", "base may not include codec")

    def test_include_up_the_table_from_a_subfolder_and_from_a_test(self):
        for name in ("src/codec/deep/x.h", "src/codec/x_test.cc"):
            found = findings(files={name: '#include "model/m.h"\n', "src/model/m.h": ""})
            self.assertEqual(len(found), 1, found)
            self.assertIn("codec may not include model", found[0])

    def test_folder_outside_the_table(self):
        self.assertOneFinding({"src/misc/x.h": ""}, "'misc' is not in the layer table")

    def test_missing_file_and_angle_brackets(self):
        self.assertOneFinding({"src/codec/x.h": '#include "base/none.h"\n'}, "not under src")
        self.assertOneFinding({"src/codec/x.h": "#include <base/ids.h>\n"}, "in quotes")

    def test_circle_between_files(self):
        self.assertOneFinding({"src/base/a.h": '#include "base/b.h"\n',
                               "src/base/b.h": '#include "base/a.h"\n'}, "circle of includes")

    def test_cmake_dependency_up_the_table(self):
        self.assertOneFinding(
            {"src/base/CMakeLists.txt": "quire_library(base SOURCES a.cc DEPS quire_codec)\n",
             "src/codec/CMakeLists.txt": "quire_library(codec SOURCES codec.cc DEPS quire_base)\n"},
            "quire_base may not depend on quire_codec")

    def test_include_without_cmake_dependency(self):
        self.assertOneFinding({"src/codec/CMakeLists.txt": "quire_library(codec SOURCES codec.cc)\n"},
                              "src/codec/codec.h:3", "no library of codec has quire_base")

    def test_comment_in_cmake_counts_for_nothing(self):
        self.assertOneFinding(
            {"src/codec/CMakeLists.txt": "quire_library(codec SOURCES c.cc # DEPS quire_base\n)\n"},
            "no library of codec has quire_base")

    def test_own_header_first(self):
        self.assertOneFinding({"src/codec/codec.cc": '#include <vector>\n#include "codec/codec.h"\n'},
                              "src/codec/codec.cc:1", "must be the first include")

    def test_per_target_sources_start_with_highways_lines(self):
        self.assertEqual(findings(files={
            "src/codec/codec.cc": '#include <hwy/foreach_target.h>\n#include "codec/codec.h"\n'}), [])

    def test_length(self):
        self.assertEqual(findings(files={"src/base/long.h": "\n" * 400}), [])
        self.assertOneFinding({"src/base/long.h": "\n" * 401}, "401 lines")

    def test_test_data_in_a_source(self):
        self.assertOneFinding({"src/codec/x.cc": '#include "base/test_data.h"\n'}, "only tests")

    def test_path_of_a_machine(self):
        path = "/" + "home/someone/model.gguf"
        self.assertOneFinding({"docs/x.md": f"read {path}\n"}, "docs/x.md:1", "path of one machine")
        self.assertEqual(findings(files={"tests/data/x.txt": path}), [])

    def test_document_with_another_table(self):
        rows = {layer: " ".join(sorted(below)) or "-" for layer, below in check_layers.LAYERS.items()}

        def document():
            return "".join(f"| `{layer}` | what | {below} |\n" for layer, below in rows.items())

        self.assertEqual(findings(files={"docs/architecture.md": document()}), [])
        rows["codec"] = "base text"
        self.assertOneFinding({"docs/architecture.md": document()}, "row of codec")


if __name__ == "__main__":
    unittest.main()
