#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Made by tools/make_lessons.py from docs/learn/04-heads.md: do not edit.
set -e

# A task with two questions
awk 'function random(n) { x = (x * 16807) % 2147483647; return x % n }
BEGIN { x = 7
  for (n = 0; n < 600; n++) {
    for (i = 0; i < 14; i++) c[i] = substr("abcdefgh", 1 + random(8), 1)
    for (i = 1; i < 13; i++) print c[i], (c[i-1] < c[i+1] ? "UP" : c[i-1] > c[i+1] ? "DOWN" : "SAME")
    print "" } }' > neighbours.conll
head -n 4 neighbours.conll

for heads in 1 4; do
  fovea train tag --train neighbours.conll --encoder attention:heads=$heads:head-dim=$((64 / heads)) --width 64 \
    --position shaw-keys --head softmax --character-reader none --shape-width 0 --dropout 0 --lr 0.005 \
    --stop-after 400u --patience 0 --seed 1 -t 1 -o heads-$heads -q > heads-$heads.log 2>&1
  grep -o 'validation accuracy [0-9.]*' heads-$heads.log
done

sed -n 's/.*validation accuracy \([0-9.]*\).*/\1/p' heads-1.log heads-4.log |
  awk '{ a[NR] = $1 } END { print "four heads - one head > 0.1:", (a[2] - a[1] > 0.1 ? "true" : "false") }'

for heads in 1 4; do
  fovea explain heads-$heads "a c b d e a h" | sed -n '/^layer  /,/^$/p'
done

fovea explain heads-4 "a c b d e a h" --page heads.html -q > log
