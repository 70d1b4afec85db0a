#!/usr/bin/env python3
"""Checks the shape of the source tree; prints each finding as PATH:LINE: WHAT, exit code 1 if any.

Usage: tools/check_layers.py [ROOT]

1. A folder of src includes only the folders on its line of LAYERS (docs/architecture.md has the same
   table, and this checks that too). Folders, not files: src/text/jinja belongs to text.
2. CMake agrees: a library's DEPS lie on the folder's line, and each folder it includes is in the
   closure of its DEPS.
3. Own files are included as "layer/file.h" from src (in tests also from tests) and are there; no
   file includes itself in a circle.
4. x.cc and x_test.cc include x.h first, which proves that x.h can be included alone. (Sources that
   Highway compiles once for each instruction set must start with its own lines.)
5. No source file is longer than 400 lines.
6. Only tests include base/test_data.h and base/test_cost.h. No file names a path of one machine.
"""

import pathlib
import re
import sys

# The layer table: a folder and what it may include besides itself and the standard library.
LAYERS = {
    "base": "",
    "codec": "base",
    "attention": "base codec",
    "linear": "base",
    "cache": "base codec",
    "schedule": "base cache",
    "text": "base",
    "model": "base codec attention linear text",
    "plan": "base codec cache schedule model",
    "engine": "base codec attention linear cache schedule text model",
    "server": "base codec cache text model plan engine",
    "cli": "base codec attention linear cache schedule text model plan engine server",
}
LAYERS = {layer: set(below.split()) for layer, below in LAYERS.items()}

MAX_LINES = 400
INCLUDE = re.compile(r'^\s*#\s*include\s+("([^"]+)"|<([^>]+)>)')
MACHINE_PATH = re.compile(r"/(work|farm|home|root|Users|tmp)/")
SOURCES = (".h", ".cc")
TEXTS = SOURCES + (".py", ".sh", ".md", ".txt", ".cmake", ".inc", ".json", ".yml")


class Tree:
    """The files under ROOT that belong to the project, read once."""

    def __init__(self, root):
        self.root = pathlib.Path(root)
        self.texts = {}
        for folder in ("src", "tests", "tools", "docs", "cmake", ".ci", "include"):
            for path in sorted((self.root / folder).rglob("*")):
                if path.suffix in TEXTS and path.is_file() and not self._is_data(path):
                    self._read(path)
        for path in sorted(self.root.glob("*")):
            if path.suffix in TEXTS and path.is_file():
                self._read(path)

    def _is_data(self, path):
        return path.relative_to(self.root).parts[:2] == ("tests", "data")

    def _read(self, path):
        name = path.relative_to(self.root).as_posix()
        self.texts[name] = path.read_text(encoding="utf-8", errors="replace")

    def sources(self):
        return {name: text for name, text in self.texts.items() if name.endswith(SOURCES)}


def layer_of(name):
    """The folder of src that the file belongs to, or None for tests, tools and the rest."""
    parts = name.split("/")
    return parts[1] if parts[0] == "src" and len(parts) > 2 else None


def is_test(name):
    return name.endswith("_test.cc") or name.startswith("tests/") or "test_support" in name or (
        pathlib.PurePosixPath(name).name.startswith("test_"))


def includes(text):
    """(line number, path, whether in quotes) of each include line."""
    for number, line in enumerate(text.split("\n"), 1):
        found = INCLUDE.match(line)
        if found:
            yield number, found.group(2) or found.group(3), found.group(2) is not None


def check_includes(tree):
    sources = tree.sources()
    for name, text in sources.items():
        layer = layer_of(name)
        if name.startswith("src/") and layer not in LAYERS:
            yield name, 1, f"the folder '{layer}' is not in the layer table"
            continue
        for number, path, quoted in includes(text):
            top = path.split("/")[0]
            if not quoted:
                if f"src/{path}" in sources:
                    yield name, number, f'own files are included in quotes: "{path}"'
                continue
            in_tests = name.startswith("tests/") and f"tests/{path}" in sources
            if f"src/{path}" not in tree.texts and not in_tests:
                yield name, number, f'"{path}" is not under src; other people\'s headers go in <>'
                continue
            if layer and top in LAYERS and top != layer and top not in LAYERS[layer]:
                line = " ".join(sorted(LAYERS[layer])) or "-"
                yield name, number, f"{layer} may not include {top}: its line is '{line}'"
            if path in ("base/test_data.h", "base/test_cost.h") and not is_test(name):
                yield name, number, f"only tests may include {path}"


def check_cycles(tree):
    """Each circle of includes between files is reported once, at its first file."""
    sources = tree.sources()
    edges = {name: [f"src/{path}" for _, path, quoted in includes(text)
                    if quoted and f"src/{path}" in sources and f"src/{path}" != name]
             for name, text in sources.items()}
    done, trail = set(), []

    def visit(name):
        if name in trail:
            circle = trail[trail.index(name):] + [name]
            yield name, 1, "circle of includes: " + " -> ".join(circle)
            return
        if name in done:
            return
        trail.append(name)
        for target in edges[name]:
            yield from visit(target)
        trail.pop()
        done.add(name)

    for name in sources:
        yield from visit(name)


def cmake_calls(text, function):
    """(line number, arguments) of each call of the function."""
    text = re.sub(r"#[^\n]*", "", text)
    for found in re.finditer(rf"\b{function}\s*\(([^)]*)\)", text):
        yield text.count("\n", 0, found.start()) + 1, found.group(1).split()


def cmake_deps(arguments):
    """The quire_ libraries after DEPS, without their prefix."""
    if "DEPS" not in arguments:
        return []
    rest = arguments[arguments.index("DEPS") + 1:]
    return [word[len("quire_"):] for word in rest if word.startswith("quire_")]


def check_cmake(tree):
    depends, place = {}, {}
    for name, text in tree.texts.items():
        layer = layer_of(name)
        if layer not in LAYERS or not name.endswith("CMakeLists.txt"):
            continue
        for number, arguments in cmake_calls(text, "quire_library"):
            library = arguments[0]
            depends[library], place[library] = cmake_deps(arguments), (name, number, layer)
    folder_of = {library: where[2] for library, where in place.items()}
    for library, (name, number, layer) in place.items():
        for dep in depends[library]:
            other = folder_of.get(dep, dep)
            if other != layer and other not in LAYERS[layer]:
                yield name, number, f"quire_{library} may not depend on quire_{dep} ({layer} below {other})"

    def closure(library, seen):
        if library not in seen:
            seen.add(library)
            for dep in depends.get(library, []):
                closure(dep, seen)
        return seen

    for layer in LAYERS:
        libraries = [library for library in place if folder_of[library] == layer]
        if not libraries:
            continue
        reached = set()
        for library in libraries:
            reached |= {folder_of.get(other, other) for other in closure(library, set())}
        for name, text in tree.sources().items():
            if layer_of(name) != layer or is_test(name):
                continue
            for number, path, quoted in includes(text):
                top = path.split("/")[0]
                if quoted and top in LAYERS[layer] and top not in reached:
                    yield name, number, (f"includes {top}, but no library of {layer} has "
                                         f"quire_{top} in its DEPS")


def check_first_include(tree):
    for name, text in tree.sources().items():
        if not name.startswith("src/") or not name.endswith(".cc") or "foreach_target.h" in text:
            continue
        stem = name[len("src/"):-len(".cc")]
        header = (stem[:-len("_test")] if stem.endswith("_test") else stem) + ".h"
        if f"src/{header}" not in tree.texts:
            continue
        first = next(iter(includes(text)), None)
        if first is None or first[1] != header:
            what = f'"{header}" must be the first include, so that it stands alone'
            yield name, first[0] if first else 1, what


def check_text(tree):
    for name, text in tree.texts.items():
        lines = text.split("\n")
        if name.endswith(SOURCES) and len(lines) - 1 > MAX_LINES:
            yield name, len(lines) - 1, f"{len(lines) - 1} lines; {MAX_LINES} at most: split it by its nouns"
        for number, line in enumerate(lines, 1):
            if MACHINE_PATH.search(line):
                yield name, number, f"names a path of one machine: {line.strip()[:80]}"


def check_document(tree):
    """The layer table of docs/architecture.md, rows '| layer | ... | base codec |', equals LAYERS."""
    name = "docs/architecture.md"
    if name not in tree.texts:
        return
    written = {}
    for number, line in enumerate(tree.texts[name].split("\n"), 1):
        cells = [cell.strip().strip("`") for cell in line.strip().strip("|").split("|")]
        if len(cells) == 3 and cells[0] in LAYERS:
            written[cells[0]] = (number, set(cells[2].replace("-", "").replace("`", "").split()))
    for layer, below in LAYERS.items():
        number, found = written.get(layer, (1, None))
        if found != below:
            yield name, number, f"the row of {layer} should say: {' '.join(sorted(below)) or '-'}"


CHECKS = (check_includes, check_cycles, check_cmake, check_first_include, check_text, check_document)


def findings(root):
    tree = Tree(root)
    return sorted({(name, number, what) for check in CHECKS for name, number, what in check(tree)})


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parent.parent
    found = findings(root)
    for name, number, what in found:
        print(f"{name}:{number}: {what}")
    print(f"check_layers: {len(found)} findings" if found else "check_layers: the tree is as it should be")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
