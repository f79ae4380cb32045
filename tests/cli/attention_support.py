# SPDX-License-Identifier: Apache-2.0
"""Calls of fovea attention, and their comparison with the definition."""

import math
import random
import struct

from support import CommandTest

import attention_definition
from tensor_files import Tensor, read, write

FORWARD = ("o", "lse")
# What is asked for, and the tensors that answer.
OBSERVED = {"entropy": ("entropy",), "max": ("max",), "distance": ("distance",), "weights": ("weights",),
            "topk=3": ("topk_index", "topk_weight"), "column_mass": ("column_mass",),
            "dropout_keep": ("dropout_keep",)}


def normal(rng, *shape, dtype="F64"):
    values = [rng.gauss(0, 1) for _ in range(math.prod(shape))]
    if dtype == "F32":  # what the file will hold
        values = [struct.unpack("f", struct.pack("f", x))[0] for x in values]
    return Tensor(dtype, shape, values)


def whole(rng, most, *shape, dtype="I32"):
    return Tensor(dtype, shape, [rng.randint(0, most) for _ in range(math.prod(shape))])


def problem(seed=1, dtype="F64", **sizes):
    rng = random.Random(seed)
    size = {"B": 2, "T": 5, "S": 7, "H": 4, "G": 2, "D": 6, "Dv": 3, **sizes}
    return {name: normal(rng, *(size[letter] for letter in axes.split()), dtype=dtype)
            for name, axes in [("q", "B T H D"), ("k", "B S G D"), ("v", "B S G Dv"), ("do", "B T H Dv")]}


def words_of(options):
    """The options of the definition, as the command takes them."""
    words = []
    for name, value in options.items():
        if value is True:
            words.append(f"--{name}")
        elif name == "causal":
            words.append(f"--causal={value}")
        else:
            words += [f"--{name}", ",".join(map(str, value)) if isinstance(value, tuple) else str(value)]
    return words


class AttentionTest(CommandTest):
    def run_on(self, tensors, *words, kind="safetensors", **options):
        """OUT of the tensors."""
        given, made = self.folder / f"in.{kind}", self.folder / f"out.{kind}"
        write(given, tensors)
        self.succeed("attention", given, "-o", made, "--overwrite", *words, *words_of(options))
        return read(made)

    def assert_close(self, got, wanted, tolerance):
        self.assertEqual(got.shape, wanted.shape)
        largest = max([1.0, *(abs(x) for x in wanted.values if math.isfinite(x))])
        for x, y in zip(got.values, wanted.values):
            if x != y:  # infinities
                self.assertLessEqual(abs(x - y), tolerance * largest)

    def check(self, tensors, *words, names=None, tolerance=1e-12, **options):
        """Everything that can be asked for, against the definition."""
        wanted = attention_definition.attention(tensors, **options)
        observed = ",".join(name for name, made in OBSERVED.items() if made[0] in wanted)
        out = self.run_on(tensors, "--backward", "--observe", observed, *words, **options)
        self.assertEqual(set(out), set(wanted))
        for name in names or wanted:
            with self.subTest(tensor=name):
                self.assert_close(out[name], wanted[name], tolerance)
        return out
