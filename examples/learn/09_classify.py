# SPDX-License-Identifier: Apache-2.0
# Made by tools/make_lessons.py from docs/learn/09-classify.md: do not edit.

# Networks on the same lines
import json

with open("network/metrics.jsonl", encoding="utf-8") as file:
    rows = [row for row in map(json.loads, file) if row["kind"] == "evaluation"]
for row in rows:
    print(f"{row['step']:4} training {row['train_loss']:.2f}, right {row['train_accuracy']:.2f}; validation {row['valid_loss']:.2f}")
