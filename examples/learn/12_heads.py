# SPDX-License-Identifier: Apache-2.0
# Made by tools/make_lessons.py from docs/learn/12-heads.md: do not edit.

# A task with one secret
import math

def nats(n):
    """What nobody can know of a line: its n letters, one of fewer each time, and that there are 5, 6, 7 or 8."""
    return sum(math.log(20 - k) for k in range(n)) + (math.log(4) if n <= 8 else 0)

tokens = sum(2 * n + 1 for n in range(5, 9))  # and the end
print(f"at least {sum(map(nats, range(5, 9))) / tokens:.2f} nats a token; without looking back {math.log(20):.2f}")

# Look
import json

with open("look.json", encoding="utf-8") as file:
    look = json.load(file)
letters, weights = look["tokens"], look["layers"][0]["heads"][0]["weights"]
cells = "".join(f'<rect x="{40 + 24 * j}" y="{40 + 24 * i}" width="23" height="23" fill="#2f81f7" fill-opacity="{w:.2f}"/>'
                for i, row in enumerate(weights) for j, w in enumerate(row) if w > 0.01)
names = "".join(f'<text x="{51 + 24 * n}" y="30" text-anchor="middle">{name if len(name) == 1 else "^"}</text>'
                f'<text x="32" y="{57 + 24 * n}" text-anchor="end">{name if len(name) == 1 else "^"}</text>' for n, name in enumerate(letters))
style = "<style>text{font:15px sans-serif;fill:#1f2328}@media(prefers-color-scheme:dark){text{fill:#e6edf3}}</style>"
size = 44 + 24 * len(letters)
with open("12-heads.svg", "w", encoding="utf-8") as file:
    file.write(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size} {size}">\n{style}\n{names}\n{cells}\n</svg>\n')

# Measure
with open("both/metrics.jsonl", encoding="utf-8") as file:
    rows = [json.loads(line) for line in file]
losses = {row["step"]: row["mean16_loss"] for row in rows if row["kind"] == "update"}
for row in rows:
    if row["kind"] == "attention" and row["step"] % 100 == 0:
        print(f"update {row['step']}: loss {losses[row['step']]:.2f}, entropy of the head {row['entropy'][0][0]:.2f}")
