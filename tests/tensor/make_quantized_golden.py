# SPDX-License-Identifier: Apache-2.0
"""Writes quantized_golden.h: blocks of random bytes, and what the package `gguf` makes of them.

    python3 tests/tensor/make_quantized_golden.py > tests/tensor/quantized_golden.h     (gguf 0.17, NumPy)
"""

import numpy
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType
from gguf.quants import dequantize

TYPES = "F32 F16 BF16 Q4_0 Q4_1 Q5_0 Q5_1 Q8_0 Q2_K Q3_K Q4_K Q5_K Q6_K".split()


def hexadecimal(values):
    text = values.tobytes().hex()
    lines = [text[at : at + 80] for at in range(0, len(text), 80)]
    return "\n     ".join(f'"{line}"' for line in lines)


random = numpy.random.default_rng(1)
print("""// SPDX-License-Identifier: Apache-2.0
// Made by make_quantized_golden.py.
// clang-format off
#pragma once

namespace fovea {

struct GoldenBlocks {
  const char* type;
  const char* bytes;   // hexadecimal
  const char* values;  // the bytes of their float32, the same
};

inline constexpr GoldenBlocks kGoldenBlocks[] = {""")
for name in TYPES:
    kind = GGMLQuantizationType[name]
    block, size = GGML_QUANT_SIZES[kind]
    while True:  # NaN has many forms: blocks without
        blocks = random.integers(0, 256, max(1, 64 // block) * size, dtype=numpy.uint8)
        values = dequantize(blocks.view(numpy.float32) if name == "F32" else
                            blocks.view(numpy.float16) if name == "F16" else blocks, kind)
        if numpy.isfinite(values).all():
            break
    print(f'    {{"{name}",\n     {hexadecimal(blocks)},\n     {hexadecimal(values.astype(numpy.float32))}}},')
print("""};

}  // namespace fovea""")
