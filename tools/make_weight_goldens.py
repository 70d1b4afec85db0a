#!/usr/bin/env python3
"""Writes tests/data/weights/blocks.bin: random blocks of every quantised GGUF type and their values.

Usage: tools/make_weight_goldens.py FILE

The values are those of the `gguf` package (PyPI, made with 0.19.0). For each type: u32 type id, u32
elements, u32 bytes, the blocks, the elements as f32; all little-endian. Scales are finite, the rest
of the bytes is random.
"""

import struct
import sys

import gguf
import numpy as np

ELEMENTS = 512
# Bytes of a block that are f16 numbers, by type; the others may be anything.
HALVES = {
    "Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2], "Q8_0": [0], "Q2_K": [80, 82],
    "Q3_K": [108], "Q4_K": [0, 2], "Q5_K": [0, 2], "Q6_K": [208], "IQ4_NL": [0], "IQ4_XS": [0],
    "MXFP4": [],
}


def main():
    random = np.random.default_rng(7)
    with open(sys.argv[1], "wb") as out:
        for name, halves in HALVES.items():
            kind = gguf.GGMLQuantizationType[name]
            block_elements, block_bytes = gguf.GGML_QUANT_SIZES[kind]
            num_blocks = ELEMENTS // block_elements
            blocks = random.integers(0, 256, (num_blocks, block_bytes), dtype=np.uint8)
            for at in halves:
                values = random.uniform(-1, 1, num_blocks).astype(np.float16)
                blocks[:, at:at + 2] = values.view(np.uint8).reshape(num_blocks, 2)
            if name == "MXFP4":  # every class of exponent: zero, one, small, large
                blocks[:6, 0] = [0, 1, 2, 127, 250, 100]
                blocks[6:, 0] = random.integers(100, 150, num_blocks - 6)
            values = gguf.quants.dequantize(blocks.reshape(-1), kind).astype("<f4")
            assert values.size == ELEMENTS and np.isfinite(values).all(), name
            out.write(struct.pack("<III", int(kind), ELEMENTS, blocks.size))
            out.write(blocks.tobytes())
            out.write(values.tobytes())


main()
