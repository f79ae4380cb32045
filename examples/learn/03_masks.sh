#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Made by tools/make_lessons.py from docs/learn/03-masks.md: do not edit.
set -e

# 3. Masks, and the five ways to get them wrong
fovea demo padding-mask | sed -n '/^Weights of sentence 1/,/^$/p'

# 5. The triangle is shifted
shape() { printf '"%s":{"dtype":"F32","shape":[1,%d,1,1],"data_offsets":[%d,%d]}' "$@"; }
header="{$(shape q 384 0 1536),$(shape k 640 1536 4096),$(shape v 640 4096 6656)}"
{ printf '\000\002\000\000\000\000\000\000%-512s' "$header"; head -c 6656 /dev/zero; } > zeros.safetensors
for causal in bottom-right top-left; do
  echo $causal
  fovea attention zeros.safetensors --causal=$causal --plan | grep '^  '
done

fovea attention zeros.safetensors --causal --page causal.html -q
