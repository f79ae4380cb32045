// SPDX-License-Identifier: Apache-2.0
#include "fovea/report/run_tables.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>
#include <vector>

#include "fovea/report/progress.h"
#include "fovea/report/terminal.h"

namespace fovea {

namespace {

constexpr std::string_view kDash = "–";
constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
constexpr Phrase kGoing = {"in training", "训练中"};

constexpr Phrase kUpdates = {"updates", "更新次数"}, kRun = {"run", "训练"};
constexpr Phrase kAllPoints = {"Numbers of this figure", "本图的全部数值"};
constexpr Phrase kCounts = {"Counts", "计数"}, kBins = {"Bins", "分箱数据"};
constexpr Phrase kSame = {"Settings that all runs share", "所有训练相同的设置"};
constexpr Phrase kAll = {"All settings", "全部设置"};
constexpr std::string_view kWords = "numbers words";
constexpr Phrase kSetting = {"setting", "设置"}, kNumber = {"number", "指标"};
constexpr Phrase kWhat = {"what", "项目"};
constexpr Phrase kResumedWith = {"since it was resumed", "恢复训练后"};
constexpr Phrase kInterval = {"interval", "区间"};

std::string head_cell(std::string_view html) {
  return fmt::format("<th scope=\"col\">{}</th>", html);
}
std::string row_name(std::string_view html) {
  return fmt::format("<th scope=\"row\">{}</th>", html);
}
std::string cell(std::string_view html) { return fmt::format("<td>{}</td>", html); }
std::string text_cell(std::string_view html) {
  return fmt::format("<td class=\"text\">{}</td>", html);
}

// `name` is for readers of the screen; the region can be scrolled by keyboard.
std::string table(std::string_view name, std::string_view head, std::string_view rows,
                  std::string_view style = "numbers") {
  return fmt::format(
      "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{}\"><table "
      "class=\"{}\">\n<thead><tr>{}</tr></thead>\n<tbody>\n{}</tbody></table></div>\n",
      name, style, head, rows);
}

std::string folded(std::string_view summary, std::string_view html) {
  return fmt::format("<details><summary>{}</summary>\n{}</details>\n", summary, html);
}

std::string updates_cell(double first, double last) {
  return first == last ? fmt::format("{:.0f}", last) : fmt::format("{:.0f}–{:.0f}", first, last);
}

std::string point_cell(const SeriesPoint& p) {
  if (p.count == 1) return cell(number_cell(p.mean));
  return cell(
      fmt::format("{} [{}, {}]", number_cell(p.mean), number_cell(p.low), number_cell(p.high)));
}

std::string interval_text(const ReportNumber& number) {
  return std::isnan(number.low) ? std::string(kDash)
                                : fmt::format("{:.4f}–{:.4f}", number.low, number.high);
}

std::string names_of(std::span<const RunReport> runs) {
  std::string cells;
  for (const RunReport& run : runs) cells += head_cell(bdi(run.name));
  return cells;
}

std::string setting_html(const ReportSetting& setting, PageLanguage language) {
  std::string html = bdi(setting.began.empty() ? kDash : std::string_view(setting.began));
  if (setting.now != setting.began) {
    html += fmt::format(" <span class=\"quiet\">({}: {})</span>", kResumedWith.in(language),
                        bdi(setting.now));
  }
  return html;
}

// A row of the settings: the cell of each run, and whether they are all the same.
struct SettingRow {
  std::vector<std::string> cells;
  bool differs() const {
    return std::any_of(cells.begin(), cells.end(),
                       [&](const std::string& one) { return one != cells.front(); });
  }
};

std::string rows_of(const std::vector<std::pair<std::string, SettingRow>>& rows, bool differing) {
  std::string html;
  for (const auto& [name, row] : rows) {
    if (row.differs() != differing) continue;
    html += differing ? "<tr class=\"differs\">" : "<tr>";
    html += row_name(html_text(name));
    for (const std::string& one : row.cells) html += text_cell(one.empty() ? kDash : one);
    html += "</tr>\n";
  }
  return html;
}

// In the order in which settings first occur; a run without a setting has an empty cell.
std::vector<std::pair<std::string, SettingRow>> settings_of(std::span<const RunReport> runs,
                                                            PageLanguage language) {
  std::vector<std::pair<std::string, SettingRow>> rows;
  std::map<std::string, std::size_t, std::less<>> places;
  for (std::size_t r = 0; r < runs.size(); ++r) {
    for (const ReportSetting& setting : runs[r].settings) {
      const auto [at, is_new] = places.try_emplace(setting.name, rows.size());
      if (is_new) rows.push_back({setting.name, {std::vector<std::string>(runs.size())}});
      rows[at->second].second.cells[r] = setting_html(setting, language);
    }
  }
  return rows;
}

// The metrics of the weights that are kept: the first few, and the mean of columns, which chooses
// the weights of a tagger with several.
std::string metrics_of_best(const RunReport& run, PageLanguage language) {
  constexpr std::size_t kMost = 3;
  std::string text;
  for (std::size_t n = 0; n < run.metrics.size(); ++n) {
    if (n >= kMost && run.metrics[n].name != "mean") continue;
    for (const PlotPoint& p : run.metrics[n].points) {
      if (p.x != run.losses.best) continue;
      text += fmt::format("{}{} {}", text.empty() ? "" : "<br/>",
                          html_text(metric_words(run.metrics[n].name, language)), number_cell(p.y));
      break;
    }
  }
  return text.empty() ? std::string(kDash) : text;
}

}  // namespace

std::string number_cell(double value) {
  return std::isnan(value) ? std::string(kDash) : fmt::format("{:.6g}", value);
}

std::string points_table(std::span<const Series> series, PageLanguage language) {
  // Rows by what they stand for: (last, first) update.
  std::map<std::pair<double, double>, std::vector<const SeriesPoint*>> rows;
  std::string head = head_cell(kUpdates.in(language));
  for (std::size_t s = 0; s < series.size(); ++s) {
    head += head_cell(bdi(series[s].name));
    for (const SeriesPoint& p : series[s].points) {
      auto& row = rows.try_emplace({p.last, p.first}, series.size(), nullptr).first->second;
      row[s] = &p;
    }
  }
  if (rows.empty()) return {};
  std::string body;
  for (const auto& [updates, points] : rows) {
    body += "<tr>" + row_name(updates_cell(updates.second, updates.first));
    for (const SeriesPoint* p : points) body += p == nullptr ? "<td></td>" : point_cell(*p);
    body += "</tr>\n";
  }
  const std::string_view name = kAllPoints.in(language);
  return folded(name, table(name, head, body));
}

std::string summary_table(std::span<const RunReport> runs, PageLanguage language) {
  constexpr Phrase kHeads[] = {{"run", "训练"},
                               {"model", "模型"},
                               {"updates", "更新次数"},
                               {"targets", "目标数"},
                               {"time", "用时"},
                               {"best weights: validation loss", "最佳权重：验证损失"},
                               {"at update", "所在更新"},
                               {"last validation loss", "最后验证损失"},
                               {"best weights: metrics", "最佳权重：指标"}};
  std::string head, body;
  for (const Phrase& name : kHeads) head += head_cell(name.in(language));
  for (std::size_t r = 0; r < runs.size(); ++r) {
    const RunReport& run = runs[r];
    const auto& validation = run.losses.validation;
    const auto best = std::find_if(validation.begin(), validation.end(),
                                   [&](const PlotPoint& p) { return p.x == run.losses.best; });
    std::string name = bdi(run.name);
    if (runs.size() > 1) {
      name =
          draw_sample({.name = "", .ink = ink_of_run(r), .stroke = stroke_of_run(r)}) + " " + name;
    }
    if (run.is_running) {
      name += fmt::format(" <span class=\"going\">{}</span>", kGoing.in(language));
    }
    // A problem that is solved has no updates: its evaluations are of settings.
    const bool is_solved = run.updates == 0 && !validation.empty();
    const auto count = [&](index n) {
      return cell(is_solved ? std::string(kDash) : std::to_string(n));
    };
    body += "<tr>" + row_name(name) + text_cell(run.kind.in(language)) + count(run.updates) +
            count(run.targets) + cell(format_duration(run.seconds)) +
            cell(number_cell(best == validation.end() ? kNone : best->y)) +
            cell(best == validation.end() || is_solved ? std::string(kDash)
                                                       : fmt::format("{:.0f}", best->x)) +
            cell(number_cell(validation.empty() ? kNone : validation.back().y)) +
            cell(metrics_of_best(run, language)) + "</tr>\n";
  }
  return table(kRun.in(language), head, body, "numbers runs");
}

std::string facts_table(std::span<const RunReport> runs, std::vector<ReportFact> RunReport::*facts,
                        PageLanguage language) {
  std::vector<std::pair<std::string, SettingRow>> rows;
  for (std::size_t r = 0; r < runs.size(); ++r) {
    for (const ReportFact& fact : runs[r].*facts) {
      const std::string name(fact.name.in(language));
      auto at = std::find_if(rows.begin(), rows.end(),
                             [&](const auto& row) { return row.first == name; });
      if (at == rows.end()) {
        at = rows.insert(at, {name, {std::vector<std::string>(runs.size())}});
      }
      at->second.cells[r] = bdi(fact.value);
    }
  }
  if (rows.empty()) return {};
  return table(kWhat.in(language), head_cell(kWhat.in(language)) + names_of(runs),
               rows_of(rows, true) + rows_of(rows, false), kWords);
}

std::string settings_table(std::span<const RunReport> runs, PageLanguage language) {
  const auto rows = settings_of(runs, language);
  const std::string head = head_cell(kSetting.in(language)) + names_of(runs);
  const std::string differing = rows_of(rows, true), same = rows_of(rows, false);
  std::string html;
  if (!differing.empty()) html += table(kSetting.in(language), head, differing, kWords);
  if (same.empty()) return html;
  const std::string shared = table(kSetting.in(language), head, same, kWords);
  return html + folded(runs.size() > 1 ? kSame.in(language) : kAll.in(language), shared);
}

std::string evaluations_table(std::span<const RunReport> runs, PageLanguage language,
                              std::optional<ReportEvaluation> RunReport::*of) {
  std::vector<std::string> names;
  for (const RunReport& run : runs) {
    if (!(run.*of)) continue;
    for (const ReportNumber& number : (run.*of)->numbers) {
      if (std::find(names.begin(), names.end(), number.name) == names.end()) {
        names.push_back(number.name);
      }
    }
  }
  std::string head = head_cell(kNumber.in(language));
  for (const RunReport& run : runs) {
    if (!(run.*of)) continue;
    head +=
        head_cell(bdi(run.name)) +
        head_cell(fmt::format("{:g} % {}", 100 * (run.*of)->confidence, kInterval.in(language)));
  }
  std::string body;
  for (const std::string& name : names) {
    body += "<tr>" + row_name(html_text(metric_words(name, language)));
    for (const RunReport& run : runs) {
      if (!(run.*of)) continue;
      const auto& numbers = (run.*of)->numbers;
      const auto at = std::find_if(numbers.begin(), numbers.end(),
                                   [&](const ReportNumber& one) { return one.name == name; });
      if (at == numbers.end()) {
        body += "<td></td><td></td>";
        continue;
      }
      body += cell(number_cell(at->value));
      body += cell(interval_text(*at));
    }
    body += "</tr>\n";
  }
  return names.empty() ? "" : table(kNumber.in(language), head, body);
}

std::string classes_table(const ReportEvaluation& evaluation, PageLanguage language) {
  constexpr Phrase kSupport = {"true", "真实数"}, kPredicted = {"predicted", "预测数"};
  constexpr std::string_view kScores[] = {"precision", "recall", "f1"};
  if (evaluation.classes.empty()) return {};
  const std::string_view name = evaluation.class_name.in(language);
  std::string head = head_cell(name), body;
  for (const Phrase& count : {kSupport, kPredicted}) head += head_cell(count.in(language));
  for (const std::string_view score : kScores) head += head_cell(metric_words(score, language));
  head += head_cell(fmt::format("{}: {:g} % {}", metric_words("f1", language),
                                100 * evaluation.confidence, kInterval.in(language)));
  for (const ReportClass& one : evaluation.classes) {
    body += "<tr>" + row_name(bdi(one.name)) + cell(std::to_string(one.support)) +
            cell(std::to_string(one.predicted)) + cell(number_cell(one.precision)) +
            cell(number_cell(one.recall)) + cell(number_cell(one.f1.value)) +
            cell(interval_text(one.f1)) + "</tr>\n";
  }
  return table(name, head, body);
}

std::string mistakes_table(const ReportEvaluation& evaluation, PageLanguage language) {
  constexpr Phrase kPlace = {"where", "位置"}, kTrue = {"true", "真实"};
  constexpr Phrase kPredicted = {"predicted", "预测"}, kText = {"text", "文本"};
  constexpr Phrase kFirst = {"The first {} of {}.", "前 {} 个，共 {} 个。"};
  constexpr std::size_t kMost = 100;
  constexpr index kTextColumns = 400;
  const std::vector<ReportMistake>& all = evaluation.mistakes;
  if (all.empty()) return {};
  const auto answer = [](const std::string& words, double probability) {
    return text_cell(bdi(words) +
                     (std::isnan(probability)
                          ? ""
                          : fmt::format(" <span class=\"quiet\">({:.4f})</span>", probability)));
  };
  const auto has = [&](auto&& what) { return std::any_of(all.begin(), all.end(), what); };
  const bool answers = has([](const ReportMistake& m) { return !m.truth.empty(); });
  const bool losses = has([](const ReportMistake& m) { return !std::isnan(m.loss); });
  std::string head = head_cell(kPlace.in(language)), body;
  if (answers) head += head_cell(kTrue.in(language)) + head_cell(kPredicted.in(language));
  if (losses) head += head_cell(metric_words("loss", language));
  head += head_cell(kText.in(language));
  for (std::size_t n = 0; n < std::min(all.size(), kMost); ++n) {
    const ReportMistake& m = all[n];
    body += "<tr>" + row_name(bdi(m.place));
    if (answers) {
      body += answer(m.truth, m.truth_probability) + answer(m.predicted, m.probability);
    }
    if (losses) body += cell(number_cell(m.loss));
    body += text_cell(bdi(fit_columns(m.text, kTextColumns))) + "</tr>\n";
  }
  const std::string cut =
      all.size() <= kMost
          ? ""
          : fmt::format("<p class=\"quiet\">{}</p>\n",
                        fmt::format(fmt::runtime(kFirst.in(language)), kMost, all.size()));
  return table(kText.in(language), head, body, "numbers words mistakes") + cut;
}

std::string confusion_table(const ConfusionPlot& plot, PageLanguage language) {
  std::string head = head_cell(""), body;
  for (const std::string& label : plot.labels) head += head_cell(bdi(label));
  const std::size_t K = plot.labels.size();
  for (std::size_t t = 0; t < K; ++t) {
    body += "<tr>" + row_name(bdi(plot.labels[t]));
    for (std::size_t p = 0; p < K; ++p) body += cell(std::to_string(plot.counts[t * K + p]));
    body += "</tr>\n";
  }
  return folded(kCounts.in(language), table(kCounts.in(language), head, body));
}

std::string calibration_table(const ReliabilityPlot& plot, PageLanguage language) {
  constexpr Phrase kFrom = {"from", "自"}, kTo = {"to", "至"}, kCount = {"count", "数量"};
  std::string head, body;
  for (const Phrase& name : {kFrom, kTo, kCount}) head += head_cell(name.in(language));
  head += head_cell(html_text(plot.x_label)) + head_cell(html_text(plot.y_label));
  for (const ReliabilityBar& bar : plot.bars) {
    if (bar.count == 0) continue;
    body += "<tr>" + row_name(number_cell(bar.low)) + cell(number_cell(bar.high)) +
            cell(std::to_string(bar.count)) + cell(number_cell(bar.confidence)) +
            cell(number_cell(bar.accuracy)) + "</tr>\n";
  }
  return folded(kBins.in(language), table(kBins.in(language), head, body));
}

std::string curve_words(const NamedCurve& curve, PageLanguage language) {
  constexpr Phrase kAllDecisions = {"all, micro-averaged", "全部（微平均）"};
  return curve.name.empty() ? std::string(kAllDecisions.in(language)) : curve.name;
}

std::string precision_recall_table(const ReportEvaluation& evaluation, PageLanguage language) {
  constexpr Phrase kPoints = {"Points of the curves", "曲线上的点"};
  std::string head = head_cell(evaluation.class_name.in(language)), body;
  for (const std::string_view name : {"recall", "precision"}) {
    head += head_cell(metric_words(name, language));
  }
  for (const NamedCurve& curve : evaluation.precision_recall) {
    for (const PlotPoint& p : curve.points) {
      body += "<tr>" + row_name(bdi(curve_words(curve, language))) + cell(number_cell(p.x)) +
              cell(number_cell(p.y)) + "</tr>\n";
    }
  }
  return folded(kPoints.in(language), table(kPoints.in(language), head, body));
}

std::string trials_table(const RunReport& run, PageLanguage language) {
  constexpr Phrase kTrial = {"trial", "试验"}, kTexts = {"texts", "文本数"},
                   kLoss = {"loss", "损失"}, kSeconds = {"seconds", "秒"},
                   kOptions = {"options", "选项"}, kTrials = {"All trials", "全部试验"};
  std::string head, body;
  for (const Phrase& name : {kTrial, kTexts, kLoss, kSeconds, kOptions}) {
    head += head_cell(name.in(language));
  }
  for (const ReportTrial& trial : run.trials) {
    body += "<tr>" + row_name(std::to_string(trial.trial)) + cell(std::to_string(trial.rows)) +
            cell(number_cell(trial.loss)) + cell(fmt::format("{:.1f}", trial.seconds)) +
            text_cell(bdi(trial.options)) + "</tr>\n";
  }
  return folded(kTrials.in(language), table(kTrials.in(language), head, body, kWords));
}

std::string learning_table(const RunReport& run, PageLanguage language) {
  constexpr Phrase kTexts = {"texts", "文本数"};
  if (run.learning.empty()) return {};
  std::string head = head_cell(kTexts.in(language)), body;
  for (const ReportNumber& number : run.learning.back().numbers) {
    head += head_cell(html_text(metric_words(number.name, language))) +
            head_cell(fmt::format("95 % {}", kInterval.in(language)));
  }
  for (const ReportLearning& point : run.learning) {
    body += "<tr>" + row_name(std::to_string(point.rows));
    for (const ReportNumber& number : point.numbers) {
      body += cell(number_cell(number.value)) + cell(interval_text(number));
    }
    body += "</tr>\n";
  }
  return table(kTexts.in(language), head, body);
}

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

namespace {

std::string csv_cell(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == text.npos) return std::string(text);
  std::string quoted;
  for (const char c : text) quoted.append(c == '"' ? 2 : 1, c);
  return fmt::format("\"{}\"", quoted);
}

// The columns of all runs, in the order in which they first occur, and the points of each.
class Columns {
 public:
  // Adds a column of run number `r`.
  void add(std::size_t r, const std::string& name, const std::vector<PlotPoint>& points) {
    auto at = std::find(names_.begin(), names_.end(), name);
    if (at == names_.end()) at = names_.insert(at, name);
    const auto column = static_cast<std::size_t>(at - names_.begin());
    for (const PlotPoint& p : points) cells_[{r, p.x}][column] = p.y;
  }

  std::string text(std::span<const RunReport> runs) const {
    std::string text = "run,update";
    for (const std::string& name : names_) text += fmt::format(",{}", csv_cell(name));
    text += '\n';
    for (const auto& [place, cells] : cells_) {
      text += fmt::format("{},{:.0f}", csv_cell(runs[place.first].name), place.second);
      for (std::size_t column = 0; column < names_.size(); ++column) {
        const auto cell = cells.find(column);
        text += ',';
        if (cell != cells.end()) text += fmt::format("{}", cell->second);
      }
      text += '\n';
    }
    return text;
  }

 private:
  std::vector<std::string> names_;
  std::map<std::pair<std::size_t, double>, std::map<std::size_t, double>> cells_;
};

}  // namespace

std::string run_csv(std::span<const RunReport> runs) {
  Columns columns;
  for (std::size_t r = 0; r < runs.size(); ++r) {
    const RunReport& run = runs[r];
    const auto add_metrics = [&](std::string_view of, const std::vector<NamedCurve>& curves) {
      for (const NamedCurve& one : curves) {
        columns.add(r, fmt::format("{}_{}", of, one.name), one.points);
      }
    };
    columns.add(r, "training_loss_batch", run.losses.last_batch);
    columns.add(r, "training_loss_last16_mean", run.losses.last16_mean);
    columns.add(r, "training_loss_running_mean", run.losses.running_mean);
    columns.add(r, "training_loss_interval_mean", run.losses.interval_mean);
    columns.add(r, "training_loss", run.losses.training);
    columns.add(r, "validation_loss", run.losses.validation);
    columns.add(r, "lr", run.lr);
    columns.add(r, "gradient_norm", run.gradient_norm);
    columns.add(r, "targets_per_second", run.speed);
    add_metrics("training_running_mean", run.running_metrics);
    add_metrics("training_interval_mean", run.interval_metrics);
    add_metrics("training", run.training_metrics);
    add_metrics("validation", run.metrics);
  }
  return columns.text(runs);
}

}  // namespace fovea
