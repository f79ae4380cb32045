// SPDX-License-Identifier: Apache-2.0
#include "fovea/report/metric_words.h"

#include <fmt/core.h>

namespace fovea {

namespace {

constexpr Phrase kMetrics[] = {
    {"accuracy", "准确率"},
    {"average_precision", "平均精确率（AP）"},
    {"bits_per_byte", "每字节比特数（BPB）"},
    {"bleu", "BLEU"},
    {"brier", "Brier 分数"},
    {"chrf", "chrF"},
    {"ece", "期望校准误差（ECE）"},
    {"exact", "整句正确率"},
    {"f1", "F1"},
    {"hamming_loss", "汉明损失"},
    {"known_recall", "登录词召回率"},
    {"log_loss", "对数损失"},
    {"loss", "损失"},
    {"mae", "平均绝对误差（MAE）"},
    {"mean", "各列平均"},
    {"mse", "均方误差（MSE）"},
    {"pearson", "Pearson 相关系数"},
    {"perplexity", "困惑度（PPL）"},
    {"precision", "精确率"},
    {"r2", "决定系数（R²）"},
    {"recall", "召回率"},
    {"roc_auc", "ROC 曲线下面积（AUC）"},
    {"span_f1", "片段 F1"},
    {"spearman", "Spearman 等级相关系数"},
    {"subset_accuracy", "子集准确率"},
    {"tagged_word_f1", "词与标签 F1"},
    {"ter", "TER"},
    {"unknown_recall", "未登录词召回率"},
    {"word_f1", "词 F1"},
};
constexpr Phrase kAverages[] = {{"macro_", "宏平均"},
                                {"micro_", "微平均"},
                                {"weighted_", "加权平均"},
                                {"samples_", "样本平均"}};

// Empty for a name that is not known.
std::string in_chinese(std::string_view name) {
  for (const Phrase& average : kAverages) {
    if (!name.starts_with(average.english)) continue;
    const std::string of = in_chinese(name.substr(average.english.size()));
    // A Latin letter stands apart from Chinese ones.
    return of.empty() ? of : fmt::format("{}{}{}", average.chinese, of == "F1" ? " " : "", of);
  }
  for (const Phrase& metric : kMetrics) {
    if (name == metric.english) return std::string(metric.chinese);
  }
  return {};
}

}  // namespace

std::string metric_words(std::string_view name, PageLanguage language) {
  if (language == PageLanguage::kEnglish) return std::string(name);
  if (const std::string whole = in_chinese(name); !whole.empty()) return whole;
  for (std::size_t cut = name.rfind('_'); cut != name.npos && cut > 0;
       cut = name.rfind('_', cut - 1)) {
    const std::string metric = in_chinese(name.substr(0, cut));
    if (!metric.empty()) return fmt::format("{}（{}）", metric, name.substr(cut + 1));
  }
  return std::string(name);
}

}  // namespace fovea
