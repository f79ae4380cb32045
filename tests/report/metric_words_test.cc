// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "fovea/report/run_tables.h"

namespace fovea {
namespace {

std::string chinese(std::string_view name) { return metric_words(name, PageLanguage::kChinese); }

TEST(MetricWords, AreTheUsualTermsAndKeepAbbreviations) {
  EXPECT_EQ(chinese("accuracy"), "准确率");
  EXPECT_EQ(chinese("macro_f1"), "宏平均 F1");
  EXPECT_EQ(chinese("weighted_precision"), "加权平均精确率");
  EXPECT_EQ(chinese("log_loss"), "对数损失");
  EXPECT_EQ(chinese("ece"), "期望校准误差（ECE）");
  EXPECT_EQ(chinese("bleu"), "BLEU");
}

TEST(MetricWords, OfATagColumnNameIt) {
  EXPECT_EQ(chinese("accuracy_upos"), "准确率（upos）");
  EXPECT_EQ(chinese("micro_f1_my_column"), "微平均 F1（my_column）");
  EXPECT_EQ(chinese("span_f1_2"), "片段 F1（2）");
}

TEST(MetricWords, LeaveEnglishAndWhatIsNotKnown) {
  EXPECT_EQ(metric_words("macro_f1", PageLanguage::kEnglish), "macro_f1");
  EXPECT_EQ(chinese("chrF2"), "chrF2");
  EXPECT_EQ(chinese("macro_x_y"), "macro_x_y");
  EXPECT_EQ(chinese("_"), "_");
  EXPECT_EQ(chinese(""), "");
}

}  // namespace
}  // namespace fovea
