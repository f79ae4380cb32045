# SPDX-License-Identifier: Apache-2.0
"""Samples of numbers over time for the tests of commands."""

import math
import random

import support  # noqa: F401  makes tools/ importable
from tensor_files import Tensor

JOINTS, STEPS, KEY_JOINT, KEY_STEPS = 8, 40, 4, 6


def gestures(count, seed):
    """Noise, but for one joint, which moves within six time steps: its direction is the class.

    Returns the arrays, and where each sample has its gesture."""
    rng = random.Random(seed)
    values, lengths, labels, starts = [], [], [], []
    for _ in range(count):
        length, label = rng.randint(24, STEPS), rng.randrange(4)
        start = rng.randrange(length - KEY_STEPS)
        rest = [rng.gauss(0, 0.3) for _ in range(3 * JOINTS)]
        for t in range(STEPS):
            row = [at + rng.gauss(0, 0.15) if t < length else math.nan for at in rest]
            if start <= t < start + KEY_STEPS:
                move = 2 * math.sin((t - start) / (KEY_STEPS - 1) * math.pi)
                row[3 * KEY_JOINT + label // 2] += move if label % 2 == 0 else -move
            values += row
        lengths.append(length)
        labels.append(label)
        starts.append(start)
    arrays = {"x": Tensor("F32", (count, STEPS, JOINTS, 3), values),
              "lengths": Tensor("I32", (count,), lengths),
              "labels": Tensor("I64", (count,), labels)}
    return arrays, starts
