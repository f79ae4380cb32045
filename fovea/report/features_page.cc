// SPDX-License-Identifier: Apache-2.0
#include "fovea/report/features_page.h"

#include <fmt/core.h>

namespace fovea {

namespace {

constexpr Phrase kTitle = {"Strongest n-grams", "最强的 n-gram"};
constexpr Phrase kModel = {"model", "模型"};
constexpr Phrase kNgram = {"n-gram", "n-gram"}, kWeight = {"weight", "权重"};
constexpr Phrase kReading = {
    "A weight is what the n-gram adds to the logit of the label for each unit of its value in a "
    "text, its tf-idf divided by the length of the text. N-grams of characters stand in brackets.",
    "权重是该 n-gram 在文本中的每单位取值（tf-idf 除以文本长度）对该标签 logit 的贡献。"
    "方括号中是字符 n-gram。"};

std::string table_of(const LabelFeatures& label, PageLanguage language) {
  std::string rows;
  for (const auto& [name, weight] : label.features) {
    rows += fmt::format("<tr><th scope=\"row\">{}</th><td>{:.4f}</td></tr>\n", bdi(name), weight);
  }
  return fmt::format(
      "<section class=\"panel\"><h2>{}</h2>\n<div class=\"scroll\" tabindex=\"0\" role=\"region\" "
      "aria-label=\"{}\"><table class=\"numbers\">\n<thead><tr><th scope=\"col\">{}</th><th "
      "scope=\"col\">{}</th></tr></thead>\n<tbody>\n{}</tbody></table></div></section>\n",
      bdi(label.label), html_text(label.label), kNgram.in(language), kWeight.in(language), rows);
}

}  // namespace

std::string draw_features_page(const std::vector<LabelFeatures>& labels, const std::string& model,
                               PageLanguage language) {
  std::string body = fmt::format("<p>{}: {}</p>\n<p>{}</p>\n", kModel.in(language), bdi(model),
                                 kReading.in(language));
  for (const LabelFeatures& label : labels) body += table_of(label, language);
  return draw_html({.language = language,
                    .title = kTitle.in(language),
                    .style = page_file("report.css"),
                    .body = body});
}

}  // namespace fovea
