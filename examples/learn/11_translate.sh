#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Made by tools/make_lessons.py from docs/learn/11-translate.md: do not edit.
set -e

# A language of one page
cat > pairs.awk <<'END'
# An English sentence, a tab, and its Chinese. Both are said in the order of their language.
function below(n) { x = x * 16807 % 2147483647; return x % n }
function choose(text, both,  n, rows) { n = split(text, rows, ","); split(rows[1 + below(n)], both, "=") }
BEGIN {
  x = 1000 + seed
  for (i = 0; i < pairs; ++i) {
    choose("the teacher=老师,my mother=妈妈,the doctor=医生,the child=孩子,her friend=朋友,the singer=歌手", who)
    choose("bought=买 了,saw=看见 了,sold=卖 了,lost=丢 了,found=找到 了", does)
    choose("one=一,two=两,three=三,four=四,ten=十", number)
    choose("red=红,big=大,old=旧,new=新,black=黑", kind)
    choose("book=本 书,car=辆 车,cat=只 猫,bird=只 鸟,horse=匹 马,letter=封 信,picture=张 画,table=张 桌子,tree=棵 树", thing)
    choose("in London=在 伦敦,in Beijing=在 北京,at home=在 家,in the park=在 公园,at school=在 学校", place)
    choose("yesterday=昨天,last year=去年,on Monday=星期一,this morning=今天 早上", time)
    split(thing[2], measure, " ")
    if (below(3) == 0) {  # a person, not a thing: who does it to whom is told by the order alone
      choose("the teacher=老师,my mother=妈妈,the doctor=医生,the child=孩子,her friend=朋友,the singer=歌手", whom)
      choose("saw=看见 了,found=找到 了,called=叫 了", does)
      print who[1] " " does[1] " " whom[1] " " place[1] " " time[1] "\t" who[2] " " time[2] " " place[2] " " does[2] " " whom[2]
      continue
    }
    print who[1] " " does[1] " " number[1] " " kind[1] " " thing[1] (number[1] == "one" ? "" : "s") " " place[1] " " time[1] "\t" \
          who[2] " " time[2] " " place[2] " " does[2] " " number[2] " " measure[1] " " kind[2] " " measure[2]
  }
}
END
awk -v pairs=2000 -v seed=1 -f pairs.awk > train.tsv
awk -v pairs=1000 -v seed=2 -f pairs.awk | awk 'NR == FNR { seen[$0]; next } !($0 in seen)' train.tsv - | head -200 > test.tsv
head -3 test.tsv | expand -t 60

fovea train translate --train train.tsv --encoder-layers 1 --decoder-layers 1 --width 64 --heads 4 --batch-tokens 512 \
  --position learned --lr 0.003 --warmup 50 --stop-after 300u --eval-every 100u -o translator --overwrite -q > log 2>&1
grep '^best' log
echo "my mother sold two black horses in the park last year" | fovea translate translator
fovea eval translator --test test.tsv --tokenize none -q 2> log | grep -e '^loss' -e '^BLEU' | cut -c 1-60

# What it looks at
fovea explain translator "my mother sold two black horses in the park last year" --page 11-alignment.html --overwrite | sed -n '/cross-attention), mean/,/shaded/p'

# How much order does a translator need?
cut -f 1 test.tsv > test.en
cut -f 2 test.tsv > test.zh
for positions in "learned learned" "learned none" "none learned" "none none"; do
  fovea train translate --train train.tsv --encoder-layers 1 --decoder-layers 1 --width 64 --heads 4 --batch-tokens 512 \
    --position ${positions% *} --decoder-position ${positions#* } --lr 0.003 --warmup 50 --stop-after 300u --eval-every 300u -o order --overwrite -q > log 2>&1
  fovea translate order test.en --beam 1 -q > order.zh 2> log
  echo "$positions: BLEU $(fovea eval --hypothesis order.zh --reference test.zh --tokenize none -q 2> log | grep ^BLEU | tr -s ' ' | cut -d ' ' -f 2)," \
    "$(paste order.zh test.zh | awk -F '\t' '$1 == $2' | wc -l) of 200 right"
done

printf 'the child called the singer at home on Monday\nthe singer called the child at home on Monday\n' > whom.en
fovea translate order whom.en --nbest 2

# Exercises
printf 'the pilot saw two red birds at home yesterday\nyesterday at home my mother bought ten books\n' | fovea translate translator
