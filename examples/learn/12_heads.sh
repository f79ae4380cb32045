#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Made by tools/make_lessons.py from docs/learn/12-heads.md: do not edit.
set -e

# A task with one secret
cat > twice.awk <<'END'
# Different letters, and the same ones once more.
function below(n) { x = x * 16807 % 2147483647; return x % n }
BEGIN {
  x = 1000 + seed
  for (i = 0; i < lines; ++i) {
    n = least + below(most - least + 1); text = ""; left = "abcdefghijklmnopqrst"
    for (j = 0; j < n; ++j) {
      k = 1 + below(length(left))
      text = text substr(left, k, 1)
      left = substr(left, 1, k - 1) substr(left, k + 1)
    }
    print text text
  }
}
END
awk -v lines=6000 -v least=5 -v most=8 -v seed=1 -f twice.awk > twice.txt
awk -v lines=300 -v least=5 -v most=8 -v seed=2 -f twice.awk > like.txt
awk -v lines=300 -v least=12 -v most=12 -v seed=3 -f twice.awk > longer.txt
head -3 twice.txt

train() { name=$1; shift; fovea train lm --train twice.txt --data lines --block 32 --width 32 --init keras --no-tie --batch-size 64 --lr 0.01 \
  --warmup 50 --stop-after 600u --eval-every 600u --observe-every 50 -o $name --overwrite -q "$@" > log 2>&1
  echo "$name: $(grep -o 'best validation loss [0-9.]*' log)"; }
train attention --model encoder --encoder attention:heads=1 --position none
train both --model encoder --encoder conv3,attention:heads=1 --position none
train deep --model transformer --layers 2 --heads 2 --position learned

# Look
fovea explain both gbmqhtgbmqh --page 12-induction.html --overwrite | sed -n '/layer 1 (attention),/,/shaded/p'
fovea explain both gbmqhtgbmqh --json > look.json

# Change
for text in gbmqhtgbmqh gbmqhrgbmqh gxmqhtgbmqh gbmqhtgbmqr; do
  echo "$text $(fovea explain both $text | head -1)"
done

# The same loss, another mechanism
for model in both deep; do
  for test in like longer; do echo "$model $test $(fovea eval $model --test $test.txt -q 2> log | head -1 | cut -d ' ' -f 2)"; done
done

fovea explain deep gbmqhtgbmqh --layer 1 | sed -n '/layer 1 (transformer),/,/shaded/p'

# Exercises
for seed in 1 2 3; do
  fovea train lm --train twice.txt --data lines --block 32 --width 32 --init keras --no-tie --batch-size 64 --lr 0.01 --warmup 50 --stop-after 600u \
    --eval-every 600u --model encoder --encoder conv3,attention:heads=2 --position none --seed $seed -o two-heads --overwrite -q > log 2>&1
  echo "seed $seed: $(grep -o 'best validation loss [0-9.]*' log)"
  fovea explain two-heads gbmqhtgbmqh | grep '^layer 1 (attention)   '
done

for text in abcadabca bacadeba bacadeca; do
  echo "$text $(fovea explain both $text | head -1 | cut -d ',' -f 1-2)"
done
