# SPDX-License-Identifier: Apache-2.0
# Made by tools/make_lessons.py from docs/learn/08-training.md: do not edit.

# The loss is a number of choices
import collections
import json
import math

def records(run, kind):
    with open(f"{run}/metrics.jsonl", encoding="utf-8") as file:
        return [row for row in map(json.loads, file) if row["kind"] == kind]

def entropy(counts):
    total = sum(counts.values())
    return -sum(n / total * math.log(n / total) for n in counts.values())

with open("licences.txt", encoding="utf-8") as file:
    text = file.read()
single = entropy(collections.Counter(text))
pairs = entropy(collections.Counter(zip(text, text[1:]))) - single
first, last = records("first", "update")[0]["mean16_loss"], records("first", "evaluation")[-1]["valid_loss"]
for name, loss in ("one of 338 alike", math.log(338)), ("first ten updates", first), ("frequencies of characters", single), \
                  ("the character before", pairs), ("the model, on new text", last):
    print(f"{name:26} {loss:.2f} nats  {loss / math.log(2):.2f} bits  one of {math.exp(loss):.1f}")

# Clipping
for lr in "0.0003", "0.003", "0.03", "0.3":
    norms = [row["gradient_norm"] for row in records(f"lr-{lr}", "update")]
    print(f"{lr:7} first {norms[0]:.1f}, largest {max(norms):.1f}, last {norms[-1]:.1f}")

# Overfitting
for row in records("little", "evaluation"):
    print(f"{row['step']:4} training {row['train_loss']:.2f}  new text {row['valid_loss']:.2f}")

def line(key, colour):
    points = " ".join(f"{30 + 1.6 * row['step']:.0f},{180 - 40 * row[key]:.0f}" for row in records("little", "evaluation"))
    return f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>'

style = ("<style>text{font:13px sans-serif;fill:#1f2328}line{stroke:#808080}"
         "@media(prefers-color-scheme:dark){text{fill:#e6edf3}}</style>")
marks = "".join(f'<text x="22" y="{185 - 40 * n}" text-anchor="end">{n}</text>' for n in range(5))
marks += "".join(f'<text x="{30 + 1.6 * n:.0f}" y="200" text-anchor="middle">{n}</text>' for n in (0, 50, 100, 150, 200))
with open("08-overfitting.svg", "w", encoding="utf-8") as file:
    file.write(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 380 210">\n{style}\n{marks}\n'
               '<line x1="30" y1="10" x2="30" y2="180"/><line x1="30" y1="180" x2="360" y2="180"/>\n'
               f'{line("train_loss", "#2f81f7")}\n{line("valid_loss", "#d9822b")}\n</svg>\n')
