# SPDX-License-Identifier: Apache-2.0
"""What the tests of the Python package share."""

import contextlib
import importlib.util
import io
import json
import os
import pathlib
import re
import struct
import subprocess
import sys
import tempfile

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


# Code in Python, and commands with what they print, as a page of the documentation shows them.
BLOCK = re.compile(r"^```python\n(?P<python>.*?)^```$|^```sh\n(?P<sh>.*?)^```\n\n```text\n(?P<text>.*?)^```$",
                   re.MULTILINE | re.DOTALL)


def has(module):
    return importlib.util.find_spec(module) is not None


@contextlib.contextmanager
def working_in(folder):
    before = os.getcwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def run_page(test, page, commands=False):
    """Runs the Python code of a page of the documentation, and returns its variables; with `commands` also the
    commands, which must print what the page says. All of it runs in a folder of its own."""
    names = {}
    shown = [found.groupdict() for found in BLOCK.finditer((ROOT / page).read_text(encoding="utf-8"))]
    test.assertTrue(shown, f"{page} shows nothing")
    with tempfile.TemporaryDirectory() as folder, working_in(folder):
        path = pathlib.Path(folder, "bin")
        path.mkdir()
        (path / "fovea").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m fovea "$@"\n')
        (path / "fovea").chmod(0o755)
        for block in shown:
            if block["sh"] is not None:
                if commands:
                    run_commands(test, block, path)
                continue
            needed = [module for module in ("torch", "transformers") if module in block["python"] and not has(module)]
            if needed:
                print(f"note: {page}: {needed[0]} is not installed: what needs it is skipped", file=sys.stderr)
                if needed[0] == "torch":
                    break
                continue
            with contextlib.redirect_stdout(io.StringIO()):
                exec(compile(block["python"], page, "exec"), names)
    return names


def run_commands(test, block, path):
    environment = {**os.environ, "PATH": f"{path}:{os.environ['PATH']}"}
    done = subprocess.run(["sh", "-c", block["sh"]], text=True, timeout=300, check=False, env=environment,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    test.assertEqual(done.stdout, block["text"], block["sh"])


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
