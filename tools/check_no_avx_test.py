#!/usr/bin/env python3
"""Tests of tools/check_no_avx.py."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import check_no_avx  # noqa: E402


def faults(text):
    return [name for name, _ in check_no_avx.avx_outside_kernels(text.split("\n"))]


class CheckNoAvxTest(unittest.TestCase):
    def test_plain_code_is_fine(self):
        self.assertEqual(faults("0000 <_ZN5quire3SumEv>:\n   0:\taddss  %xmm1,%xmm0\n   4:\tret"), [])
        self.assertEqual(faults("0000 <f>:\n   0:\tverr   %ax\n   4:\tvmcall"), [])
        # The name of a called function is no instruction.
        self.assertEqual(faults("0000 <f>:\n   0:\tcall   12 <vfma_of_something>"), [])

    def test_avx_in_a_kernel_is_fine(self):
        for name in ("_ZN5quire6N_AVX23DotEPKf", "_ZN5quire6N_AVX33DotEPKf.constprop.0"):
            self.assertEqual(faults(f"0000 <{name}>:\n   0:\tvaddps %ymm1,%ymm0,%ymm0"), [])

    def test_avx_elsewhere_is_a_fault_named_once(self):
        for instruction in ("vaddps %ymm1,%ymm0,%ymm0", "vaddss %xmm1,%xmm0,%xmm0",
                            "vmovups %zmm0,(%rdi)", "kmovw  %k1,%eax", "vzeroupper",
                            "vmulss (%rdi),%xmm0,%xmm1"):
            text = (f"0000 <_ZN5quire4InitEv>:\n   0:\t{instruction}\n   4:\t{instruction}\n"
                    "0010 <g>:\n  10:\tret")
            self.assertEqual(faults(text), ["_ZN5quire4InitEv"], instruction)


if __name__ == "__main__":
    unittest.main()
