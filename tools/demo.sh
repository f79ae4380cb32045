#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The main job on two small texts, after the build: trains a character model on each, lets both
# write, sets their losses beside a Kneser-Ney 5-gram on the same split, and looks at what they wrote:
# exits 1 if a model recites its training text, or if the verse is no verse. `make demo` calls it.
#
#   tools/demo.sh [--short]   --short: a twentieth of the training, to see that all of it works;
#                             what the models write is then shown, and not judged
set -eu
cd "$(dirname "$0")/.."
fovea=${FOVEA:-build/release/cli/fovea}
updates_english=5000
updates_verse=900
judge_english="--max-run 40"
judge_verse="--max-run 14 --min-share 0.85"
if [ "${1:-}" = --short ]; then
  updates_english=250
  updates_verse=45
  judge_english=
  judge_verse=
fi

# train NAME OPTION...: from demo/NAME.txt to demo/NAME; sets `loss` to the best validation loss,
# that of the state that is kept as the model.
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

# judge NAME SPLIT LINES_SHOWN OPTION...: the first lines of the sample, then how good model and sample are.
judge() {
  name=$1
  split=$2
  lines_shown=$3
  shift 3
  echo
  echo "== demo/$name writes (the beginning of demo/$name.sample.txt):"
  head -n "$lines_shown" "demo/$name.sample.txt"
  echo
  python3 tools/ngram.py score "demo/$name.txt" --split "$split" --model-loss "$loss"
  echo "model: demo/$name    loss curve: demo/$name/loss.svg"
  python3 tools/ngram.py check "demo/$name.txt" "demo/$name.sample.txt" --split "$split" "$@" || {
    echo "demo: what demo/$name wrote is not good enough" >&2
    bad=1
  }
}

bad=0
python3 tools/demo_text.py demo

train english --layers 4 --heads 4 --width 128 --block 128 --batch-size 8 --position alibi \
  --dropout 0 --lr 2e-3 --min-lr 2e-4 --warmup 100 --beta2 0.99 --weight-decay 0.1 --clip 1 \
  --stop-after "${updates_english}u" --eval-every 1000u --save-every 1000u
# Narrower sampling than this strings the Bible's own formulas together ("And he said unto them, Thus saith the
# LORD"), and is soon a recital.
"$fovea" generate demo/english "And the" --max-tokens 4000 --temperature 1 --top-p 0.95 --seed 1 \
  >demo/english.sample.txt
# shellcheck disable=SC2086  # a list of options
judge english character 8 $judge_english

# So little text is soon known by heart: a narrow model, dropout, a strong decay, and the state with
# the lowest validation loss is the one that is kept. A quatrain is a sequence, and learned positions
# know where in its line a character stands.
train verse --data lines --layers 2 --heads 4 --width 96 --block 40 --batch-size 48 \
  --position learned --dropout 0.2 --lr 1e-3 --min-lr 1e-4 --warmup 50 --beta2 0.99 \
  --weight-decay 8 --clip 1 --stop-after "${updates_verse}u" --eval-every 50u --save-every 300u
for seed in $(seq 100); do
  "$fovea" generate demo/verse --max-tokens 120 --temperature 0.8 --top-p 0.8 --seed "$seed" \
    --threads 1
done >demo/verse.sample.txt
# shellcheck disable=SC2086  # a list of options
judge verse line 12 --verse $judge_verse

echo
echo "Let them write more:  $fovea generate demo/english \"And God said\""
echo "                      $fovea generate demo/verse"
echo "Train one for longer: $fovea train lm --resume -o demo/english --stop-after 10000u"
echo "On a text of yours:   $fovea train lm --train FILE -o DIR"

exit "$bad"
