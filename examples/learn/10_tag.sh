#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Made by tools/make_lessons.py from docs/learn/10-tag.md: do not edit.
set -e

# 10. Tag
cat > names.awk <<'END'
# Sentences with persons and places, a word and its tag a line. Some names are both.
function below(n) { x = x * 16807 % 2147483647; return x % n }
function say(words, tag,  n, i, part) {
  n = split(words, part, " ")
  for (i = 1; i <= n; ++i) print part[i] "\t" (tag == "O" ? "O" : (i == 1 ? "B-" : "I-") tag)
}
function person() { say(first[seen + 1 + below(many)] (below(3) ? " " last[1 + below(nlast)] : ""), "PER") }
function place() { say(below(4) ? city[seen + 1 + below(many)] : both[1 + below(nboth)], "LOC") }
function either() { if (below(4)) person(); else say(both[1 + below(nboth)], "PER") }
BEGIN {
  x = 1000 + seed
  split("Ada Alan Emmy Carl Marie Niels Rosa Hugo Vera Otto Lise Karl Ida Paul Nora Erik Olga Leon Maja Finn", first)
  nlast = split("Lovelace Turing Noether Gauss Curie Bohr Parks Rubin Hahn Meitner", last)
  split("London Berlin Oslo Rome Madrid Vienna Prague Athens Lisbon Dublin Cairo Delhi Lima Quito Seoul Tunis Kyiv Riga Bern Graz", city)
  nboth = split("Jordan Austin Paris Chelsea Florence Sydney", both)
  for (i = 0; i < sentences; ++i) {
    kind = below(5)
    if (kind == 0) { either(); say("was born in", "O"); place() }
    if (kind == 1) { say("In", "O"); place(); either(); say("met", "O"); either() }
    if (kind == 2) { say("On Monday the office of", "O"); place(); say("called", "O"); either() }
    if (kind == 3) { say("The old road from", "O"); place(); say("to", "O"); place(); say("is long", "O") }
    if (kind == 4) { either(); say("left", "O"); place(); say("for", "O"); place() }
    print ".\tO\n"
  }
}
END
awk -v sentences=300 -v seed=1 -v seen=0 -v many=10 -f names.awk > train.conll
awk -v sentences=200 -v seed=2 -v seen=0 -v many=10 -f names.awk > known.conll
awk -v sentences=200 -v seed=3 -v seen=10 -v many=10 -f names.awk > new.conll
head -16 new.conll | expand -t 10

# What is easy
awk -F '\t' 'NR == FNR { if ($1 != "") { ++count[$1, $2]; tags[$2] } next }
  $1 != "" { best = "O"; for (t in tags) if (count[$1, t] > count[$1, best]) best = t
             ++all; right += best == $2; if ($2 != "O") { ++names; found += best == $2 } }
  END { printf "all words %.2f, words of names %.2f\n", right / all, found / names }' train.conll new.conll
awk -F '\t' '$1 != "" { ++all; o += $2 == "O" } END { printf "O for every word %.2f\n", o / all }' new.conll

fovea train tag --train train.conll -o names --overwrite -q > log 2>&1
fovea eval names --test new.conll 2> log | grep -v macro
fovea tag names new.conll > said.conll 2> log

# The same word twice
echo "Jordan Curie left Jordan for Riga ." | fovea tag names --text | expand -t 10
fovea explain names "Jordan Curie left Jordan for Riga ." --token 4 --page 10-names.html --overwrite | sed -n '3,11p'

# Which layer sees neighbours
f1() { fovea eval race --test "$1" -q 2> log | grep '^micro f1' | tr -s ' ' | cut -d ' ' -f 3; }
for model in "attention --position none --head softmax" "attention --position sinusoidal --head softmax" \
             "attention --position sinusoidal --head crf" "conv3,attention --position sinusoidal --head softmax" \
             "bilstm --head softmax" "bilstm --head crf"; do
  fovea train tag --train train.conll --encoder $model --width 64 --stop-after 300u -o race --overwrite -q > log 2>&1
  echo "$(f1 known.conll) $(f1 new.conll) $model"
done

# The words of Chinese
cat > words.awk <<'END'
function below(n) { x = x * 16807 % 2147483647; return x % n }
function any(text,  n, part) { n = split(text, part, " "); return part[1 + below(n)] }
BEGIN {
  x = 1000 + seed
  for (i = 0; i < sentences; ++i) {
    who = any("研究生 大学生 学生 老师 科学家 大家")
    does = any("研究 讨论 喜欢 热爱 学习")
    what = any("生命 生活 科学 大学 学生会 家乡 生物")
    print (below(3) ? who " " : "") does " " what " 的 " any("起源 意义 问题")
  }
}
END
awk -v sentences=400 -v seed=1 -f words.awk > train.seg
awk -v sentences=200 -v seed=2 -f words.awk > test.seg
head -4 test.seg
fovea train tag --task segment --train train.seg -o segmenter --stop-after 300u --overwrite -q > log 2>&1
fovea eval segmenter --test test.seg -q 2> log | grep '^f1'
printf '研究生命的起源\n研究生研究生命的起源\n大学生活的问题\n' | fovea tag segmenter
