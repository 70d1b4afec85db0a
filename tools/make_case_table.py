#!/usr/bin/env python3
"""Writes src/text/jinja/unicode_case.inc: Python's str.upper and str.lower, character by character.

Usage: tools/make_case_table.py > src/text/jinja/unicode_case.inc

A row {first, last, step, delta} maps first, first + step, ..., last by adding delta. ASCII is left
out: the code has its own short way. Characters whose mapping is several characters come last.
"""

import unicodedata


def rows(mapping):
    result = []
    for code, delta in mapping:
        if result and result[-1][3] == delta:
            row = result[-1]
            step = code - row[1]
            if (row[0] == row[1] and step <= 2) or (row[0] != row[1] and step == row[2]):
                row[1], row[2] = code, step
                continue
        result.append([code, code, 1, delta])
    return result


def print_simple(name, change):
    mapping = []
    for code in range(128, 0x110000):
        changed = change(chr(code))
        if len(changed) == 1 and changed != chr(code):
            mapping.append((code, ord(changed) - code))
    print(f"constexpr CaseRow {name}[] = {{")
    print_filled([f"{{{a:#x}, {b:#x}, {step}, {delta}}}," for a, b, step, delta in rows(mapping)])
    print("};")


def print_special(name, change):
    items = []
    for code in range(128, 0x110000):
        changed = change(chr(code))
        if len(changed) > 1:
            text = "".join(f"\\x{byte:02x}" for byte in changed.encode())
            items.append(f'{{{code:#x}, "{text}"}},')
    print(f"constexpr SpecialCase {name}[] = {{")
    print_filled(items)
    print("};")


def print_filled(items):
    line = "   "
    for item in items:
        if len(line) + 1 + len(item) > 100:
            print(line)
            line = "   "
        line += " " + item
    print(line)


print(f"// Made by tools/make_case_table.py from Unicode {unicodedata.unidata_version}. clang-format off")
print_simple("kUpper", str.upper)
print_simple("kLower", str.lower)
print_special("kSpecialUpper", str.upper)
print_special("kSpecialLower", str.lower)
