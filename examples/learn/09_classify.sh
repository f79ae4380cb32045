#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Made by tools/make_lessons.py from docs/learn/09-classify.md: do not edit.
set -e

# 9. Classify
for name in Apache-2.0 GFDL-1.3 GPL-3 MPL-2.0; do
  grep -E '[a-z].* .* .* .* ' /usr/share/common-licenses/$name | awk -v name=$name '{ $1 = $1; print name "\t" $0 }'
done > lines.tsv
awk 'NR % 4 == 1' lines.tsv > test.tsv
awk 'NR % 4 != 1' lines.tsv > train.tsv
cut -f 1 train.tsv | uniq -c
sed -n '5p;105p;205p;270p' test.tsv | expand -t 14

# The model to beat
fovea train classify --train train.tsv -o linear --overwrite -q > log 2>&1
fovea eval linear --test test.tsv --errors 3 --plots 09-linear --overwrite
cp 09-linear/confusion.svg 09-confusion.svg

# What it has learned
fovea explain linear --top-features 5

fovea explain linear "You may convey the covered work under these terms." | tail -n +4

printf 'You may convey a work based on the Program.\nThe Document may contain zero Invariant Sections.\nThe weather is fine today.\n' > new.txt
fovea classify linear new.txt | expand -t 12

# Networks on the same lines
for model in "--model bag" "--encoder attention --width 64" "--encoder bilstm --width 64"; do
  fovea train classify --train train.tsv $model --dropout 0.3 --lr 0.003 --stop-after 12e -o network --overwrite -q > log 2>&1
  echo "$model: $(fovea eval network --test test.tsv -q 2> log | grep '^accuracy' | tr -s ' ')"
done

# Where attention is needed
awk 'function below(n) { x = x * 16807 % 2147483647; return x % n }
     function words(n,  t) { for (t = ""; n > 0; --n) t = t " " filler[1 + below(5)]; return t }
     BEGIN { x = 7; split("cat dog fox hen cow pig", animal); split("very old big red then", filler)
       for (i = 0; i < 1600; ++i) { a = 1 + below(6); b = 1 + (a + below(5)) % 6
         print animal[a] "\t" "the" words(1 + below(3)) " " animal[a] words(1 + below(3)) " chased" words(1 + below(3)) " " animal[b] words(1 + below(3)) } }' > chases.tsv
head -2 chases.tsv | expand -t 6
head -1200 chases.tsv > chases-train.tsv
tail -400 chases.tsv > chases-test.tsv
for model in "--model linear --word-ngrams 1 --char-ngrams 0" "--model linear" "--encoder attention --position none --width 32 --stop-after 8e" \
             "--encoder attention --position sinusoidal --width 32 --stop-after 8e"; do
  fovea train classify --train chases-train.tsv $model -o chases --overwrite -q > log 2>&1
  echo "$model: $(fovea eval chases --test chases-test.tsv -q 2> log | grep '^accuracy' | tr -s ' ' | cut -d ' ' -f 2)"
done

# Exercises
sed 's/^GPL-3/yes/; s/^[A-Z][^\t]*/no/' train.tsv > gpl-train.tsv
sed 's/^GPL-3/yes/; s/^[A-Z][^\t]*/no/' test.tsv > gpl-test.tsv
for threshold in f1 precision=0.9 recall=0.95; do
  fovea train classify --train gpl-train.tsv --threshold $threshold -o gpl --overwrite -q > log 2>&1
  echo "$threshold: $(fovea eval gpl --test gpl-test.tsv -q 2> log | grep ^yes | awk "{ print \"precision\", \$4, \"recall\", \$5 }" | head -1)"
done
