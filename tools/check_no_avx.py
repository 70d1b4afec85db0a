#!/usr/bin/env python3
"""Checks that no AVX instruction stands outside the kernels that are chosen at start.

Usage: tools/check_no_avx.py BUILD_FOLDER

Disassembles every libquire_*.a of the build folder with objdump. A function that belongs to one
instruction set has the set's namespace in its name (N_AVX2, N_AVX3). All others run on any x86-64
machine, before the choice and after it, so they may hold no ymm, zmm or mask register and no
VEX-coded instruction. Typical faults: a static initialiser in a kernel source; a shared inline
function compiled there with the kernel's flags, whose copy the linker happened to keep.

Exit code 1 if there is such a function, or if there was nothing to look at.
"""

import pathlib
import platform
import re
import shutil
import subprocess
import sys

FUNCTION = re.compile(r"^[0-9a-f]+ <(.+)>:$")
KERNEL = re.compile(r"N_AVX[23]")
# VEX and EVEX mnemonics all begin with v; verr, verw and the vm* of virtual machines are others.
VIRTUAL_MACHINES = "call|clear|func|launch|load|mcall|ptrld|ptrst|read|resume|run|save|write|xoff|xon"
AVX = re.compile(rf"\t(v(?!err\b|erw\b|m({VIRTUAL_MACHINES})[lq]?\b)[a-z0-9]+)\b|%[yz]mm[0-9]|%k[0-7]\b")


def avx_outside_kernels(disassembly):
    """(function, instruction) of the first AVX instruction of each function that may have none."""
    function, reported = None, None
    for line in disassembly:
        found = FUNCTION.match(line)
        if found:
            function = found.group(1)
        elif function and function != reported and not KERNEL.search(function):
            # "  address:\tinstruction", as with --no-show-raw-insn.
            found = AVX.search(line)
            if found:
                reported = function
                yield function, line.split("\t", 1)[-1].strip()


def disassemble(archive):
    process = subprocess.Popen(["objdump", "-d", "--no-show-raw-insn", str(archive)],
                               stdout=subprocess.PIPE, text=True)
    yield from process.stdout
    if process.wait() != 0:
        raise RuntimeError(f"objdump failed on {archive}")


def demangle(name):
    if shutil.which("c++filt") is None:
        return name
    return subprocess.run(["c++filt", name], stdout=subprocess.PIPE, text=True, check=True).stdout.strip()


def main():
    folder = pathlib.Path(sys.argv[1])
    if platform.machine() not in ("x86_64", "AMD64"):
        print("check_no_avx: not an x86-64 machine, nothing to look for")
        return 0
    archives = sorted(folder.rglob("libquire_*.a"))
    if not archives:
        print(f"check_no_avx: no libquire_*.a under {folder}: build first")
        return 1
    faults = 0
    for archive in archives:
        for function, instruction in avx_outside_kernels(disassemble(archive)):
            faults += 1
            print(f"{archive.relative_to(folder)}: {demangle(function)} has '{instruction}'")
    print(f"check_no_avx: {faults} functions outside the kernels have AVX code, in {len(archives)} libraries")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
