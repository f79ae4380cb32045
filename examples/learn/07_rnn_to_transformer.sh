#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Made by tools/make_lessons.py from docs/learn/07-rnn-to-transformer.md: do not edit.
set -e

# One state for everything
cat > recall.awk <<'END'
# The label is the capital at the begin of the line. x: numbers that every awk computes alike.
function below(n) { x = x * 16807 % 2147483647; return x % n }
BEGIN {
  x = 1000 + seed
  for (i = 0; i < lines; ++i) {
    capital = substr("ABCDEFGH", 1 + below(8), 1)
    text = capital
    for (j = 0; j < distance; ++j) text = text " " substr("abcdefghijklmnopqrstuvwxyz", 1 + below(26), 1)
    print capital "\t" text " ?"
  }
}
END
for distance in 5 80; do
  awk -v lines=2000 -v distance=$distance -v seed=1 -f recall.awk > train$distance.tsv
  awk -v lines=400 -v distance=$distance -v seed=2 -f recall.awk > test$distance.tsv
done
head -3 test5.tsv | expand -t 4

for distance in 5 80; do
  for layer in rnn gru attention-rnn attention; do
    fovea train classify --train train$distance.tsv --valid test$distance.tsv --encoder $layer --pooling last \
      --position none --words spaces --no-lower --width 32 --lr 0.005 --stop-after 15e -o $layer-$distance --overwrite -q > log 2>&1
    echo "$distance $layer $(fovea eval $layer-$distance --test test$distance.tsv -q 2> log | grep ^accuracy | tr -s ' ' | cut -d ' ' -f 2)"
  done
done

# On a text
for model in "rnn --layers 1" "gru --layers 1" "attention-rnn --heads 1" "transformer --layers 2"; do
  fovea train lm --train /usr/share/common-licenses/GPL-3 --model $model --width 64 --no-tie --init keras \
    --batch-size 16 --lr 0.005 --stop-after 300u --eval-every 300u -o "lm-${model%% *}" --overwrite -q > log 2>&1
  echo "${model%% *} $(grep -o 'best validation loss [0-9.]*' log) $(fovea inspect "lm-${model%% *}" --json | grep -o '"parameters":[0-9]*')"
done
fovea report lm-rnn lm-gru lm-attention-rnn lm-transformer -o 07-language-models.html --overwrite -q

# Exercises
for part in train test; do
  awk '{ at = 4 + NR % 3; text = $2
         for (i = 3; i < NF; ++i) text = text (i == at ? " " substr("ABCDEFGH", 1 + (NR * 7 + i) % 8, 1) : "") " " $i
         print $1 "\t" text " ?" }' ${part}5.tsv > $part-two.tsv
done
head -2 test-two.tsv | expand -t 4
for position in none sinusoidal; do
  fovea train classify --train train-two.tsv --valid test-two.tsv --encoder attention --pooling last \
    --position $position --words spaces --no-lower --width 32 --lr 0.005 --stop-after 15e -o two-$position --overwrite -q > log 2>&1
  echo "$position $(fovea eval two-$position --test test-two.tsv -q 2> log | grep ^accuracy | tr -s ' ' | cut -d ' ' -f 2)"
done
