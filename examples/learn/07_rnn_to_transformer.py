# SPDX-License-Identifier: Apache-2.0
# Made by tools/make_lessons.py from docs/learn/07-rnn-to-transformer.md: do not edit.

# Why it does not find out
import numpy as np

random = np.random.default_rng(7)
width, most = 32, 80
W, U = random.normal(0, 0.5, (width, width)), random.normal(0, 0.9 / width ** 0.5, (width, width))
h, states, way, reach = np.zeros(width), [], np.eye(width), []
for x in random.normal(0, 0.3, (most + 1, width)):
    h = np.tanh(W @ x + U @ h)
    states.append(h)
    if len(states) > 1:  # the derivative of this state by the first one
        way = np.diag(1 - h ** 2) @ U @ way
        reach.append(np.linalg.norm(way, 2))
for distance in 1, 5, 20, 80:
    print(f"{distance:3} steps: {reach[distance - 1]:.0e}")

points = " ".join(f"{58 + 4 * n:.0f},{20 - 8 * np.log10(r):.0f}" for n, r in enumerate(reach))
ticks = "".join(f'<text x="50" y="{25 + 40 * k}" text-anchor="end">{"1" if k == 0 else "1e-" + str(5 * k)}</text>' for k in range(4))
marks = "".join(f'<text x="{58 + 4 * n}" y="182" text-anchor="middle">{n}</text>' for n in (0, 20, 40, 60, 80))
style = ("<style>text{font:13px sans-serif;fill:#1f2328}line{stroke:#808080}"
         "@media(prefers-color-scheme:dark){text{fill:#e6edf3}}</style>")
with open("07-gradient.svg", "w", encoding="utf-8") as file:
    file.write(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 410 190">\n{style}\n'
               f'<line x1="58" y1="10" x2="58" y2="166"/><line x1="58" y1="166" x2="388" y2="166"/>{ticks}{marks}<text x="263" y="72">RNN</text>\n'
               f'<polyline points="{points}" fill="none" stroke="#d9822b" stroke-width="2"/>\n'
               '<line x1="58" y1="20" x2="378" y2="20" style="stroke:#2f81f7;stroke-width:2"/>\n</svg>\n')

# Attention over the states
import fovea

states = np.array(states)                       # [T, width]
scores = states @ states.T / np.sqrt(width)     # [T, T]
scores[np.triu_indices(len(states), 1)] = -np.inf
weights = np.exp(scores - scores.max(1, keepdims=True))
weights /= weights.sum(1, keepdims=True)
by_hand = weights @ states
rows = states[None, :, None]                    # [batch, T, heads, width]
by_fovea = fovea.attention(rows, rows, rows, causal=True)[0, :, 0]
print("the last row sees", np.count_nonzero(weights[-1]), "states")
print("largest difference below 1e-6:", bool(np.abs(by_hand - by_fovea).max() < 1e-6))
