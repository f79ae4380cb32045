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

text = open("licences.txt", encoding="utf-8").read()
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
