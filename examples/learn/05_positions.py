# SPDX-License-Identifier: Apache-2.0
# Made by tools/make_lessons.py from docs/learn/05-positions.md: do not edit.

# 5. Positions
import numpy as np
import fovea

random = np.random.default_rng(0)
x = random.standard_normal((1, 6, 1, 8))  # [batch, length, heads, width]
order = np.array([3, 0, 5, 1, 4, 2])
y = fovea.attention(x, x, x)
shuffled = x[:, order]
print("outputs move along:", bool(np.allclose(fovea.attention(shuffled, shuffled, shuffled), y[:, order], atol=1e-6)))

# Waves in the embedding
def sinusoids(length, d):
    angle = np.arange(length)[:, None] / 10000 ** (2 * np.arange(d // 2) / d)
    return np.stack([np.sin(angle), np.cos(angle)], axis=-1).reshape(length, d)

P = sinusoids(200, 64)
for distance in (0, 1, 5, 50):
    products = [P[p] @ P[p + distance] for p in (0, 20, 140)]
    print(f"distance {distance:3}: products at three places", " ".join(f"{x:5.1f}" for x in products))

near = P[100] @ P.T / 32
at = " ".join(f"{40 + 3 * (n - 40):.0f},{150 - 120 * value:.0f}" for n, value in enumerate(near) if 40 <= n <= 160)
style = "<style>text{font:15px sans-serif;fill:#1f2328}@media(prefers-color-scheme:dark){text{fill:#e6edf3}}</style>"
marks = [f'<text x="{40 + 3 * (n - 40)}" y="190" text-anchor="middle">{n - 100}</text>' for n in (40, 70, 100, 130, 160)]
levels = [f'<path d="M40 {150 - 120 * y:.0f}H400" stroke="#808080" stroke-width=".5"/><text x="30" y="{155 - 120 * y:.0f}" '
          f'text-anchor="end">{y}</text>' for y in (0, 0.5, 1)]
with open("05-sinusoids.svg", "w", encoding="utf-8") as file:
    file.write("\n".join(['<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 430 200">', style, *levels, *marks,
                          f'<polyline points="{at}" fill="none" stroke="#2f81f7" stroke-width="2"/>', "</svg>", ""]))

# Rotations of q and k
def turned(row, position, base=10000):
    """The row as complex numbers, one for each pair of columns, turned by the angles of its position."""
    pairs = row[0::2] + 1j * row[1::2]
    return pairs * np.exp(1j * position / base ** (2 * np.arange(len(pairs)) / len(row)))

q, k = random.standard_normal((2, 8))
score = lambda at_q, at_k: float((turned(q, at_q) * turned(k, at_k).conj()).real.sum())
print(f"positions 5 and 2: {score(5, 2):.4f}   105 and 102: {score(105, 102):.4f}   2 and 5: {score(2, 5):.4f}")

# Which can tell order?
slopes = np.array([0.5])
backwards = x[:, ::-1].copy()
y = fovea.attention(x, x, x, slopes=slopes)
print("reversed:", bool(np.allclose(fovea.attention(backwards, backwards, backwards, slopes=slopes), y[:, ::-1], atol=1e-6)))

# Exercises
first = np.zeros((1, 6, 1, 8))
first[0, 0] = 1  # the value of the mark of the beginning
alike = np.zeros((1, 6, 1, 8))
print(" ".join(f"{n:.3f}" for n in fovea.attention(alike, alike, first, causal=True)[0, :, 0, 0]))

words = random.standard_normal((1000, 64))
cosines = [abs(w @ p) / np.linalg.norm(w) / np.linalg.norm(p) for w in words for p in P[:20]]
print(f"mean |cosine| of a random word and a position: {np.mean(cosines):.2f}")

for base in (100, 10000):
    slowest = 2 * np.pi * base ** (1 - 2 / 64)
    print(f"base {base}: the slowest of 32 clocks comes round after {slowest:.0f} words")
