#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The main job on two small texts, after the build: trains a character model on each, lets both
# write, and sets their losses beside a Kneser-Ney 5-gram on the same split. `make demo` calls it.
#
#   tools/demo.sh [--short]   --short: a twentieth of the training, to see that all of it works
set -eu
cd "$(dirname "$0")/.."
fovea=${FOVEA:-build/release/cli/fovea}
updates_english=5000
updates_verse=500
if [ "${1:-}" = --short ]; then
  updates_english=250
  updates_verse=25
fi

# train NAME OPTION...: from demo/NAME.txt to demo/NAME; sets `loss` to the best validation loss.
train() {
  name=$1
  shift
  echo
  echo "== training demo/$name on demo/$name.txt"
  result=$("$fovea" train lm --train "demo/$name.txt" --valid-fraction 0.1 --tokenizer char \
    -o "demo/$name" --overwrite --seed 1 --json "$@")
  echo "$result"
  loss=$(printf '%s\n' "$result" | tail -n 1 |
    python3 -c 'import json, sys; print(json.load(sys.stdin)["best_valid_loss"])')
}

# show NAME PROMPT OPTION...: what the model writes, and how good it is.
show() {
  name=$1
  prompt=$2
  shift 2
  echo
  echo "== demo/$name writes:"
  "$fovea" generate "demo/$name" "$prompt" --seed 1 "$@"
  echo
  python3 tools/ngram.py score "demo/$name.txt" --model-loss "$loss"
  echo "model: demo/$name    loss curve: demo/$name/loss.svg"
}

python3 tools/demo_text.py demo

train english --layers 4 --heads 4 --width 128 --block 128 --batch-size 8 --position alibi \
  --dropout 0 --lr 2e-3 --min-lr 2e-4 --warmup 100 --beta2 0.99 --weight-decay 0.1 --clip 1 \
  --stop-after "${updates_english}u" --eval-every 1000u --save-every 1000u
show english "And the" --max-tokens 600 --temperature 0.8

# So little text is soon known by heart: a narrow model, dropout, a strong decay, and the state with
# the lowest validation loss is the one that is kept.
train verse --layers 2 --heads 4 --width 96 --block 32 --batch-size 24 --position alibi \
  --dropout 0.2 --lr 1e-3 --min-lr 1e-4 --warmup 50 --beta2 0.99 --weight-decay 4 --clip 1 \
  --stop-after "${updates_verse}u" --eval-every 25u --save-every 250u
show verse "春风" --max-tokens 120 --temperature 0.8
