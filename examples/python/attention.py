# SPDX-License-Identifier: Apache-2.0
"""Attention over packed sequences with ALiBi and a window, its gradients, and what it looked at."""

import numpy as np

import fovea


def main() -> None:
    random = np.random.default_rng(0)
    lengths, H, D = [5, 12, 3], 4, 16
    offsets = np.cumsum([0, *lengths])
    qkv = random.standard_normal((1, offsets[-1], 3, H, D), dtype=np.float32)  # one projection, as it lies
    attended = fovea.attend(
        *(qkv[:, :, n] for n in range(3)),
        query_offsets=offsets,
        key_offsets=offsets,
        causal=True,
        window=(8, 0),
        slopes=2.0 ** -np.arange(1, H + 1, dtype=np.float32),
        observe="entropy",
    )
    gradients = attended.backward(np.ones_like(attended.o))
    for begin, end in zip(offsets, offsets[1:]):
        print(f"tokens {begin} to {end}: mean entropy {attended.entropy[:, :, begin:end].mean():.3f} nats")
    print("gradient of the slopes:", gradients["dslopes"].round(3))


if __name__ == "__main__":
    main()
