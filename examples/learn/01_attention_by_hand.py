# SPDX-License-Identifier: Apache-2.0
# Made by tools/make_lessons.py from docs/learn/01-attention-by-hand.md: do not edit.

# The same in numpy
import numpy as np

def embed(text):
    return np.array([[(ord(c) % m - (m - 1) / 2) / 10 for m in (19, 23, 29, 31)] for c in text])

Q, K = embed("是"), embed("你人")
V = K
scores = Q @ K.T
scaled = scores / np.sqrt(Q.shape[1])
weights = np.exp(scaled) / np.exp(scaled).sum(axis=1, keepdims=True)
output = weights @ V
for name, row in zip(("scores", "scaled", "weights", "output"), (scores, scaled, weights, output)):
    print(f"{name:8}", " ".join(f"{x:8.4f}" for x in row[0]))

import fovea

out = fovea.attention(Q[None, :, None], K[None, :, None], V[None, :, None])
print(out.shape, "largest difference below 1e-6:", bool(np.abs(out[0, :, 0] - output).max() < 1e-6))

# The output is a place between the values
def picture(points):
    """An SVG of named points (x, y, colour) and the line between the first two."""
    at = [(60 + 300 * x, 200 - 120 * y) for x, y, _ in points.values()]
    line = '<path d="M{:.0f} {:.0f}L{:.0f} {:.0f}" stroke="#808080" stroke-dasharray="4"/>'.format(*at[0], *at[1])
    dots = [f'<circle cx="{x:.0f}" cy="{y:.0f}" r="6" fill="{point[2]}"/><text x="{x + 12:.0f}" y="{y + 5:.0f}">{name}</text>'
            for (x, y), (name, point) in zip(at, points.items())]
    style = "<style>text{font:15px sans-serif;fill:#1f2328}@media(prefers-color-scheme:dark){text{fill:#e6edf3}}</style>"
    return "\n".join(['<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 340 160">', style, line, *dots, "</svg>", ""])

points = {"你 71 %": (*V[0, [0, 2]], "#2f81f7"), "人 29 %": (*V[1, [0, 2]], "#2f81f7"),
          "是": (*output[0, [0, 2]], "#d9822b")}
with open("01-mean.svg", "w", encoding="utf-8") as file:
    file.write(picture(points))

# Exercises
Q = K = embed("你是人")
scaled = Q @ K.T / np.sqrt(4)
weights = np.exp(scaled) / np.exp(scaled).sum(axis=1, keepdims=True)
print(" ".join(f"{x:.4f}" for x in weights[1]), "ratio", f"{weights[1, 0] / weights[1, 2]:.2f}")

s = np.array([1000.0, 999.0])
safe = np.exp(s - s.max())
print(" ".join(f"{x:.4f}" for x in safe / safe.sum()))
