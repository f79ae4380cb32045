# SPDX-License-Identifier: Apache-2.0
# Made by tools/make_lessons.py from docs/learn/06-cost.md: do not edit.

# Memory
import numpy as np
import fovea

random = np.random.default_rng(0)
for n in (256, 512, 1024):
    x = random.standard_normal((1, n, 1, 16), np.float32)
    plan = fovea.attend(x, x, x).plan
    print(f"{n:5} words: weights {n * n * 4:8} bytes, tiles of 64 x 128 computed: {plan['tiles']}")

# How far a window sees
def reach(layers, **mask):
    """The rows that a number in row 0 gets to, through layers with equal scores."""
    zeros, x = np.zeros((1, 40, 1, 1)), np.zeros((1, 40, 1, 1))
    x[0, 0] = 1
    for _ in range(layers):
        x = fovea.attention(zeros, zeros, x, **mask)
    return int(np.flatnonzero(x[0, :, 0, 0]).max())

for layers in (1, 2, 3):
    print(f"layers {layers}: a window of 4 reaches {reach(layers, window=(4, 0))}, "
          f"one of every third key {reach(layers, window=(4, 0), dilation=3)}")

# Exercises
def cache(words, heads=12, layers=12, width=64):
    return 2 * layers * heads * width * 4 * words / 2**20

print(f"4,096 words: {cache(4096):.0f} MiB; grouped {cache(4096, heads=3):.0f} MiB; window {cache(256):.0f} MiB")

for n in (256, 1024, 4096):
    x = np.zeros((1, n, 1, 16), np.float32)
    kept = [fovea.attend(x, x, x, **mask).plan["forward_flops"] for mask in ({}, {"causal": True})]
    print(f"{n:5} words: {kept[1] / kept[0]:.3f}")

n = 1024
x = np.zeros((1, n, 1, 16), np.float32)
keep = random.random((1, 1, n, n)) < 0.1
for name, mask in (("a random tenth", {"keep": keep}), ("a window of 102", {"window": (102, 0)})):
    plan = fovea.attend(x, x, x, **mask).plan
    print(f"{name}: {plan['tiles_kept']} of {plan['tiles']} tiles")
