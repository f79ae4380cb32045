#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Made by tools/make_lessons.py from docs/learn/05-positions.md: do not edit.
set -e

# Which can tell order?
awk 'function random(n) { x = (x * 16807) % 2147483647; return x % n }
function text(words, i, a, b, t) {
  a = random(words); b = random(words); if (a == b) b = (a + 1) % words
  t = ""; for (i = 0; i < words; i++) t = t " " (i == a ? "ann" : i == b ? "bob" : "la")
  return (a < b ? "ann" : "bob") "\t" substr(t, 2) }
BEGIN { x = 3
  for (n = 0; n < 800; n++) print text(12) > "order.tsv"
  for (n = 0; n < 400; n++) print text(12) > "new.tsv"
  for (n = 0; n < 400; n++) print text(36) > "longer.tsv" }'
head -n 2 order.tsv | tr '\t' ' '

for position in none sinusoidal alibi rotary; do
  fovea train classify --train order.tsv --encoder attention --position $position --width 64 --heads 4 --dropout 0 \
    --encoder-dropout 0 --lr 0.003 --max-length 36 --stop-after 200u --patience 0 --seed 1 -t 1 -o $position -q > log 2>&1
  for texts in new longer; do
    fovea eval $position --test $texts.tsv -q 2> log | awk -v name="$position $texts" '/^accuracy/ { print name, $2 }'
  done
done | tee accuracies.txt

awk '$2 == "new" { print $1, ($3 > 0.9 ? "knows the order" : "guesses") }' accuracies.txt
