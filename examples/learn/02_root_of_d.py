# SPDX-License-Identifier: Apache-2.0
# Made by tools/make_lessons.py from docs/learn/02-root-of-d.md: do not edit.

# How large is a dot product?
import numpy as np

random = np.random.default_rng(0)
for d in (4, 64, 1024):
    q, k = random.standard_normal((2, 10000, d))
    products = (q * k).sum(axis=1)
    print(f"d {d:5}   mean {products.mean():5.1f}   standard deviation {products.std():5.1f}   root of d {d ** 0.5:5.1f}")

# What the softmax makes of it
def softmax(s):
    e = np.exp(s - s.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)

def largest_and_slope(d, factor):
    """Means over 500 queries: the largest weight, and the largest slope of a weight by a score, w (1 - w)."""
    q, k = random.standard_normal((500, 1, d)), random.standard_normal((500, 16, d))
    w = softmax((q * k).sum(axis=-1) * factor)
    return w.max(axis=1).mean(), (w * (1 - w)).max(axis=1).mean()

widths = (4, 16, 64, 256, 1024)
plain = [largest_and_slope(d, 1) for d in widths]
scaled = [largest_and_slope(d, d ** -0.5) for d in widths]
print("width     largest weight     largest slope")
for d, (w, slope), (w_scaled, slope_scaled) in zip(widths, plain, scaled):
    print(f"{d:5}     {w:.2f}   root {w_scaled:.2f}     {slope:.2f}   root {slope_scaled:.2f}")

def curve(points, colour):
    at = " ".join(f"{60 + 70 * n:.0f},{190 - 150 * value:.0f}" for n, value in enumerate(points))
    return f'<polyline points="{at}" fill="none" stroke="{colour}" stroke-width="3"/>'

labels = [f'<text x="{60 + 70 * n}" y="214" text-anchor="middle">{d}</text>' for n, d in enumerate(widths)]
levels = [f'<path d="M60 {190 - 150 * y:.0f}H340" stroke="#808080" stroke-width=".5"/><text x="48" y="{195 - 150 * y:.0f}" '
          f'text-anchor="end">{y}</text>' for y in (0, 0.5, 1)]
style = "<style>text{font:15px sans-serif;fill:#1f2328}@media(prefers-color-scheme:dark){text{fill:#e6edf3}}</style>"
names = ['<text x="350" y="45">q·k</text>', '<text x="350" y="143">q·k / √d</text>', '<text x="385" y="214">d</text>']
curves = [curve([round(w, 2) for w, _ in plain], "#d9822b"), curve([round(w, 2) for w, _ in scaled], "#2f81f7")]
with open("02-largest-weight.svg", "w", encoding="utf-8") as file:
    file.write("\n".join(['<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 430 225">', style, *levels, *labels, *curves,
                          *names, "</svg>", ""]))

# Exercises
once, twice = (largest_and_slope(64, factor)[0] for factor in (64 ** -0.5, 1 / 64))
print(f"largest of 16 weights: once {once:.2f}, twice {twice:.2f}; all alike would be {1 / 16:.2f}")

x = random.standard_normal((16, 64))
w = softmax(x @ x.T / 8)
print(f"mean weight of a word on itself: {np.diag(w).mean():.2f}")
