// SPDX-License-Identifier: Apache-2.0
#include "fovea/catalogue/catalogue.h"

#include <gmock/gmock.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

namespace fovea {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(InChinese, TranslatesATextThatItHas) {
  EXPECT_EQ(in_chinese("choose another folder"), "换一个文件夹");
  EXPECT_EQ(in_chinese(""), "");
}

TEST(InChinese, KeepsTheDefaultBehindTheHelpOfAnOption) {
  EXPECT_EQ(in_chinese("threads to work on; 0: all cores [0]"), "使用的线程数；0：全部核心 [0]");
}

TEST(InChinese, PutsThePartsOfAMessageIntoTheirPlaces) {
  EXPECT_EQ(in_chinese("train lm: unknown option '--bogus'"), "train lm：未知选项“--bogus”");
  EXPECT_EQ(in_chinese("x.txt: 5 of 8 lines end with CR LF; the CR stays in the text"),
            "x.txt：8 行中有 5 行以 CR LF 结尾；CR 保留在文本中");
}

TEST(InChinese, TranslatesPartsThatAreTextsThemselves) {
  EXPECT_EQ(in_chinese("--seed: expected a whole number; got 'x'"), "--seed：应为整数；得到 'x'");
  EXPECT_EQ(
      in_chinese("m.json: expected a regular file, got a folder").find("m.json：应为普通文件"), 0U);
}

TEST(InChinese, TranslatesUnitsAndNotNamesOfTheUser) {
  // "token" is a unit between two parts of a format, and a label may be called so.
  EXPECT_EQ(in_chinese("24.1k tokens/s"), "24.1k 词元/秒");
  EXPECT_EQ(in_chinese("no text has the label hint"), "没有文本带标签 hint");
}

TEST(InChinese, KeepsNamesThatAreWordsOfOurs) {
  EXPECT_EQ(in_chinese("text: cannot open: No such file or directory").find("text："), 0U);
  EXPECT_THAT(in_chinese("the labels of all texts are text"), testing::HasSubstr("text"));
  for (const std::string name : {"my file is here.tsv", "name or bag?", "or tokens", "text"}) {
    const std::string said = in_chinese(name + ":17: expected a label, got none");
    EXPECT_EQ(said.find(name), 0U) << said;
  }
}

TEST(InChinese, PassesWhatNoFormatHas) {
  EXPECT_EQ(in_chinese("a sentence that nothing of fovea says"),
            "a sentence that nothing of fovea says");
  EXPECT_EQ(in_chinese("x.npz: choose another folder"), "x.npz：换一个文件夹");
}

TEST(InChinese, TakesTheFormatThatSaysMost) {
  EXPECT_EQ(in_chinese("a.conll:3: expected a word in column 2, got none"),
            "a.conll:3：第 2 列应为词，但没有");
  EXPECT_EQ(in_chinese("m: the header claims 9 bytes; at most 5 are allowed"),
            "m：文件头声称 9 字节；最多允许 5 字节");
  EXPECT_EQ(in_chinese("texts to validate on that are among those to train on: 3 of 9; remove them "
                       "from --train or --valid: the validation is too good"),
            "验证用的文本也出现在训练文本中：3 个，共 9 个；从 --train 或 --valid "
            "中删除它们：否则验证结果偏乐观");
}

TEST(InChinese, TellsSentencesApart) {
  EXPECT_EQ(
      in_chinese("the schedule changes: learning rate 0.001 -> 0.002 at update 31; without that "
                 "jump: --schedule constant --lr 0.001"),
      "学习率计划改变：在更新 31 处学习率由 0.001 变为 0.002；若不要这一跳变：--schedule constant "
      "--lr 0.001");
  EXPECT_EQ(
      in_chinese("validation: most alone is predicted, and never rare (3 texts); add texts of "
                 "them, or say --class-weights balanced; are their labels right?"),
      "validation：只预测出 most，从未预测 rare（3 个文本）；增加这些类别的文本，或使用 "
      "--class-weights balanced；它们的标签是否正确？");
}

TEST(InChinese, TranslatesWhatStandsBehindSeveralOptions) {
  EXPECT_EQ(in_chinese("--word-column, --tag-column, --comments: have no effect: no file is CoNLL"),
            "--word-column, --tag-column, --comments：不起作用：没有 CoNLL 文件");
}

TEST(InChinese, FindsFormatsOfManyPlaces) {
  EXPECT_EQ(
      in_chinese("tags that break the scheme bio: 3 in 2 sentences, the first at a.txt:5 (1 span "
                 "does not begin as it says, 2 do not end so); they are repaired"),
      "不符合方案 bio 的标签：3 个，在 2 个句子中，第一个在 a.txt:5（1 个片段的开头不符，2 "
      "个的结尾不符）；已修正");
}

TEST(InChinese, LeavesAListOfNamesAsItIs) {
  EXPECT_EQ(in_chinese("train: say which: train lm, train tag"),
            "train：请指明是哪一个：train lm, train tag");
}

TEST(InChinese, PutsANameBehindATextThatEndsWithABlank) {
  EXPECT_EQ(in_chinese("this machine has scalar, avx2"), "本机有 scalar, avx2");
}

TEST(InChinese, EndsSoonOnATextOfManySeparators) {
  for (const int times : {45, 5000}) {
    std::string text;
    for (int n = 0; n < times; ++n) text += "a is b: c of d; e, ";
    const auto began = std::chrono::steady_clock::now();
    EXPECT_GE(in_chinese(text).size(), text.size());
    EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(30));
  }
}

TEST(InChinese, IsTheSameInEveryThread) {
  std::vector<std::string> said(8);
  std::vector<std::thread> threads;
  for (std::string& one : said) {
    threads.emplace_back([&one] { one = in_chinese("choose another file"); });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(said, testing::Each(std::string("换一个文件")));
}

TEST(EpilogInChinese, KeepsCommandsAndTranslatesWhatIsBesideThem) {
  const std::string text = epilog_in_chinese(
      "Examples:\n"
      "  fovea train lm --train book.txt -o model             a character model, with the "
      "defaults\n"
      "  fovea man -o man1\n\n"
      "Line n of the source and line n of the target belong together. Files may be packed\n"
      "by gzip or zstd.");
  EXPECT_THAT(text,
              HasSubstr("示例：\n  fovea train lm --train book.txt -o model             字符级"));
  EXPECT_THAT(text, HasSubstr("\n  fovea man -o man1\n\n源文件的第 n 行"));
  EXPECT_THAT(text, Not(HasSubstr("belong together")));
}

}  // namespace
}  // namespace fovea
