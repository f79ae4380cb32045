# SPDX-License-Identifier: Apache-2.0
"""What the tests of the Python package share."""

import json
import os
import pathlib
import struct
import subprocess
import sys

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
TYPES = {"F32": np.float32, "F64": np.float64, "I32": np.int32, "I64": np.int64, "U8": np.uint8}


def fovea(*words, **options):
    """Runs the command of the package."""
    return subprocess.run([sys.executable, "-m", "fovea", *map(str, words)], capture_output=True, text=True,
                          check=False, **options)


def python(text, **environment):
    """Runs a program in a fresh Python."""
    return subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=False,
                          env={**os.environ, **environment})


def read_safetensors(path):
    data = pathlib.Path(path).read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8:8 + length])
    tensors = {}
    for name, info in header.items():
        if name != "__metadata__":
            begin, end = info["data_offsets"]
            values = np.frombuffer(data[8 + length + begin:8 + length + end], TYPES[info["dtype"]])
            tensors[name] = values.reshape(info["shape"])
    return tensors


class Problem:
    """Random q, k, v and do."""

    def __init__(self, seed=0, dtype=np.float64, sizes=(2, 7, 9, 4, 2, 8, 6)):
        B, T, S, H, G, D, Dv = sizes
        self.random = np.random.default_rng(seed)
        self.dtype = dtype
        self.q, self.k, self.v, self.do = (
            self.normal(*shape) for shape in ((B, T, H, D), (B, S, G, D), (B, S, G, Dv), (B, T, H, Dv)))

    def normal(self, *shape):
        return self.random.standard_normal(shape).astype(self.dtype)

    @property
    def qkv(self):
        return self.q, self.k, self.v


def relative_error(got, expected):
    """As `fovea conformance` measures it."""
    expected = np.asarray(expected)
    if expected.dtype.kind != "f":
        return 0.0 if np.array_equal(got, expected) else np.inf
    finite = np.isfinite(expected)
    if not np.array_equal(np.where(finite, 0, got), np.where(finite, 0, expected), equal_nan=True):
        return np.inf
    if not finite.any():
        return 0.0
    largest = max(1.0, np.abs(expected[finite]).max())
    return np.abs(got[finite].astype(np.float64) - expected[finite]).max() / largest
