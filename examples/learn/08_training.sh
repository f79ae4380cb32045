#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Made by tools/make_lessons.py from docs/learn/08-training.md: do not edit.
set -e

# 8. Training: loss, rates, clipping, overfitting, seeds
cat /usr/share/common-licenses/GPL-3 /usr/share/common-licenses/LGPL-2.1 > licences.txt
fovea train lm --train licences.txt --layers 2 --width 64 --lr 0.003 --warmup 20 --stop-after 300u --eval-every 50u -o first --overwrite -q > log 2>&1
grep '^best' log
fovea inspect first --json | grep -o '"vocabulary":[0-9][0-9]*'
fovea report first --terminal | head -24

# The rate
for lr in 0.0003 0.003 0.03 0.3; do
  fovea train lm --train licences.txt --layers 2 --width 64 --lr $lr --warmup 20 --stop-after 150u --eval-every 150u -o lr-$lr --overwrite -q > log 2>&1
  echo "$lr $(grep -o 'best validation loss [0-9.]*' log)"
done

# Overfitting
head -c 1500 licences.txt > little.txt
tail -c 8000 licences.txt > new.txt
fovea train lm --train little.txt --valid new.txt --layers 2 --width 128 --lr 0.003 --warmup 20 --stop-after 200u --eval-every 25u -o little --overwrite -q > log 2>&1
grep '^best' log
fovea report little -o 08-overfitting.html --overwrite -q

# Seeds
for seed in 2 3 4; do
  fovea train lm --train licences.txt --layers 2 --width 64 --lr 0.003 --warmup 20 --stop-after 150u --eval-every 150u --seed $seed -o seed-$seed --overwrite -q > log 2>&1
  echo "seed $seed $(grep -o 'best validation loss [0-9.]*' log)"
done

# Exercises
for warmup in 0 20 80; do
  fovea train lm --train licences.txt --layers 2 --width 64 --lr 0.01 --warmup $warmup --stop-after 150u --eval-every 150u -o warmup-$warmup --overwrite -q > log 2>&1
  echo "$warmup $(grep -o 'best validation loss [0-9.]*' log)"
done
