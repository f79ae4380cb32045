#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Made by tools/make_lessons.py from docs/learn/06-cost.md: do not edit.
set -e

# Counting
for n in 512 1024 2048 4096; do
  size=$((n * 8 * 64 * 4))
  shape() { printf '"%s":{"dtype":"F32","shape":[1,%d,8,64],"data_offsets":[%d,%d]}' $1 $n $(($2 * size)) $(($2 * size + size)); }
  { printf '\000\002\000\000\000\000\000\000%-512s' "{$(shape q 0),$(shape k 1),$(shape v 2)}"
    head -c $((3 * size)) /dev/zero; } > zeros-$n.safetensors
done
for n in 512 1024 2048 4096; do
  for mask in "" --causal "--window 64,0" "--norm none --causal"; do
    fovea attention zeros-$n.safetensors $mask --plan | awk -v call="$n words $mask" '/^forward FLOPs/ { printf "%-34s %s\n", call, $3 }'
  done
done

# Measuring
for n in 256 512 1024; do
  fovea bench attention --batch 1 --heads 4 --length $n -t 1 --json |
    sed 's/.*"forward_seconds":\([0-9.e-]*\).*/\1/' | awk -v n=$n '{ printf "%d words: %.4f seconds\n", n, $1 }'
done

# How far a window sees
awk 'function random(n) { x = (x * 16807) % 2147483647; return x % n }
BEGIN { x = 11
  for (n = 0; n < 400; n++) {
    for (i = 0; i < 24; i++) { c[i] = substr("abcd", 1 + random(4), 1); print c[i], (i < 6 ? "none" : "was-" c[i-6]) }
    print "" } }' > six.conll
for layers in attention:window=4 attention:window=4,attention:window=4; do
  fovea train tag --train six.conll --encoder $layers --width 64 --heads 4 --position shaw-keys --head softmax \
    --character-reader none --shape-width 0 --dropout 0 --lr 0.005 --stop-after 300u --patience 0 --seed 1 -t 1 \
    -o six-$(echo $layers | tr -dc , | wc -c) -q > log 2>&1
  grep -o 'validation accuracy [0-9.]*' log | sed "s/.* \(.*\)/$layers \1/"
done | tee six.txt

awk '{ print $1, ($2 > 0.9 ? "sees it" : "guesses") }' six.txt
