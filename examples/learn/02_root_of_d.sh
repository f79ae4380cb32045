#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Made by tools/make_lessons.py from docs/learn/02-root-of-d.md: do not edit.
set -e

# In a training
awk 'function random(n) { x = (x * 16807) % 2147483647; return x % n }
BEGIN { x = 1; split("the a film was of and with its long very some story that one place", w, " ")
  for (n = 0; n < 400; n++) { text = ""; at = random(20)
    for (i = 0; i < 20; i++) text = text " " (i == at ? (n % 2 ? "wonderful" : "dreadful") : w[1 + random(15)])
    printf "%s\t%s\n", n % 2 ? "good" : "bad", substr(text, 2) } }' > films.tsv
head -n 2 films.tsv | tr '\t' ' '

for scale in auto 1; do
  layer=attention:heads=1:head-dim=64
  if [ $scale = 1 ]; then layer=$layer:scale=1; fi
  fovea train classify --train films.tsv --encoder $layer --width 64 --lr 0.003 --stop-after 100u -t 1 -o scale-$scale -q > log 2>&1
  fovea explain scale-$scale "the film was wonderful and very long" | sed -n -e '/^label/p' -e '/^layer  /,/^$/p'
done
