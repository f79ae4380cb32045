# SPDX-License-Identifier: Apache-2.0
# Made by tools/make_lessons.py from docs/learn/11-translate.md: do not edit.

# BLEU in thirty lines
import collections
import math
import random

def ngrams(words, n):
    return collections.Counter(tuple(words[i:i + n]) for i in range(len(words) - n + 1))

def bleu(said, meant):
    """Of whole texts, lists of lists of words (Papineni et al. 2002)."""
    logs = []
    for n in 1, 2, 3, 4:
        right = sum((ngrams(s, n) & ngrams(m, n)).total() for s, m in zip(said, meant))
        logs.append(math.log(max(right, 1e-9) / sum(max(len(s) - n + 1, 0) for s in said)))
    brevity = min(0, 1 - sum(map(len, meant)) / sum(map(len, said)))
    return 100 * math.exp(sum(logs) / 4 + brevity), [f"{math.exp(x):.2f}" for x in logs]

with open("test.tsv", encoding="utf-8") as file:
    meant = [line.rstrip("\n").split("\t")[1].split() for line in file]
shuffle = random.Random(1)
mixed = [shuffle.sample(words, len(words)) for words in meant]
swapped = [[*words[:-2], words[-1], words[-2]] for words in meant]
shorter = [words[:-1] for words in meant]
for name, said in ("the same", meant), ("the last two words swapped", swapped), ("the last word missing", shorter), ("all words mixed", mixed):
    score, shares = bleu(said, meant)
    print(f"{name:27} {score:5.1f}  {' '.join(shares)}")
