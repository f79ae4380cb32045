// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/report/run_page.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "fovea/base/clock.h"
#include "fovea/base/version.h"
#include "fovea/config/json.h"
#include "fovea/report/run_report.h"
#include "fovea/task/classify/search.h"
#include "fovea/task/report/evaluation.h"
#include "fovea/task/task_table.h"
#include "fovea/text/utf8.h"
#include "fovea/train/checkpoint.h"
#include "fovea/train/model_folder.h"
#include "fovea/train/run_lock.h"
#include "fovea/train/run_state.h"
#include "fovea/train/run_summary.h"
#include "fovea/train/trainer.h"

namespace fovea {

namespace {

namespace fs = std::filesystem;

// The units of losses: see Objective::loss_unit.
constexpr Phrase kUnits[] = {
    {"nats per token", "nat/词元"},
    {"nats per text", "nat/文本"},
    {"nats per sample", "nat/样本"},
    {"nats per word", "nat/词"},
    {"nats per character", "nat/字"},
    {"squared error of the normalised numbers", "归一化数值的平方误差"},
};

Phrase unit_of(const fs::path& folder, const TaskRow& task) {
  const std::string_view unit =
      task.loss_unit(read_model_file(folder, "config.json"), (folder / "config.json").string());
  for (const Phrase& known : kUnits) {
    if (known.english == unit) return known;
  }
  return {unit, unit};
}

std::string text_of(const Json& value) {
  const auto* text = value.get_if<std::string>();
  return text != nullptr ? *text : value.line();
}

// "recipe.lr" and so on, of a folder whose config.json can be read.
std::vector<ReportSetting> settings_of(const fs::path& folder) {
  const std::string name = (folder / "config.json").string();
  const Json config =
      parse_json(read_model_file(folder, "config.json"), {name, ErrorCode::kModelDamaged});
  std::vector<ReportSetting> settings;
  for (const auto& [table, fields] : config.object()) {
    if (fields.get_if<Json::Object>() == nullptr) continue;
    for (const auto& [field, value] : fields.object()) {
      const std::string text = escape_text(text_of(value));
      settings.push_back({escape_text(table + "." + field), text, text});
    }
  }
  return settings;
}

// Adds what a run has been resumed with: the settings of its newest checkpoint that can be read.
void add_changes(const fs::path& folder, std::vector<ReportSetting>& settings) {
  const fs::path all = checkpoints_of(folder);
  std::vector<index> steps = checkpoint_steps(all);
  for (; !steps.empty(); steps.pop_back()) {
    try {
      for (const ReportSetting& now : settings_of(checkpoint_path(all, steps.back()))) {
        for (ReportSetting& one : settings) {
          if (one.name == now.name) one.now = now.began;
        }
      }
      return;
    } catch (const Error&) {  // damaged: `fovea inspect --verify` says so
    }
  }
}

bool is_locked(const fs::path& folder) {
  try {
    require_unlocked(folder);
    return false;
  } catch (const Error& error) {
    return error.code() == ErrorCode::kOutputExists;
  }
}

// The metric whose running mean a training records.
constexpr std::string_view kAccuracy = "accuracy";

void add(std::vector<NamedCurve>& curves, const MetricValue& metric, index step) {
  const std::string name = escape_text(metric.name);
  auto curve = std::find_if(curves.begin(), curves.end(),
                            [&](const NamedCurve& one) { return one.name == name; });
  if (curve == curves.end()) curve = curves.insert(curve, {.name = name, .points = {}});
  curve->points.push_back({static_cast<double>(step), metric.value});
}

void add_curves(const HistoryRecords& records, RunReport& report) {
  LossCurves& losses = report.losses;
  for (const UpdateRecord& one : records.updates) {
    const auto x = static_cast<double>(one.step);
    losses.last_batch.push_back({x, one.loss});
    losses.last16_mean.push_back({x, one.mean16_loss});
    losses.running_mean.push_back({x, one.running_loss});
    if (!std::isnan(one.running_accuracy)) {
      add(report.running_metrics, {std::string(kAccuracy), one.running_accuracy}, one.step);
    }
    report.lr.push_back({x, one.lr});
    report.gradient_norm.push_back({x, one.gradient_norm});
    report.speed.push_back({x, one.tokens_per_second});
  }
  for (const EvaluationRecord& one : records.evaluations) {
    const auto x = static_cast<double>(one.step);
    if (!std::isnan(one.train_loss)) losses.interval_mean.push_back({x, one.train_loss});
    losses.validation.push_back({x, one.valid_loss});
    if (!std::isnan(one.train_accuracy)) {
      add(report.interval_metrics, {std::string(kAccuracy), one.train_accuracy}, one.step);
    }
    if (one.is_best) losses.best = x;
  }
  for (const TrainingRecord& one : records.training) {
    losses.training.push_back({static_cast<double>(one.step), one.loss});
    for (const MetricValue& metric : one.values) add(report.training_metrics, metric, one.step);
  }
  for (const MetricsRecord& one : records.metrics) {
    for (const MetricValue& metric : one.values) add(report.metrics, metric, one.step);
  }
}

// Adds what cross-validation and a search for settings have measured.
void add_choice(const fs::path& folder, const HistoryRecords& records, RunReport& report) {
  if (!records.folds.empty()) {
    report.cross_validation.emplace();
    for (const FoldedMetric& one : records.folds.back().values) {
      report.cross_validation->numbers.push_back(
          {escape_text(one.name), one.mean, one.low, one.high});
    }
  }
  index most = 0;
  const std::vector<SearchTrial> trials = read_trials(folder).trials;
  for (const SearchTrial& trial : trials) most = std::max(most, trial.rung);
  for (const SearchTrial& trial : trials) {
    report.trials.push_back(
        {.trial = trial.trial,
         .rows = trial.rows,
         .on_highest = trial.rung == most,
         .loss = trial.loss,
         .seconds = trial.seconds,
         .options = escape_text(trial.options + (trial.found.empty() ? "" : " ") + trial.found)});
  }
}

// Records of another shape than the last one are not of this model, and are left out.
std::vector<std::vector<std::vector<PlotPoint>>> heads_of(
    const std::vector<AttentionRecord>& records, HeadNumbers AttentionRecord::*numbers) {
  std::vector<std::vector<std::vector<PlotPoint>>> heads;
  if (records.empty()) return heads;
  const HeadNumbers& last = records.back().*numbers;
  for (const std::vector<double>& layer : last) heads.emplace_back(layer.size());
  for (const AttentionRecord& record : records) {
    const HeadNumbers& layers = record.*numbers;
    const bool same = std::equal(layers.begin(), layers.end(), last.begin(), last.end(),
                                 [](auto& a, auto& b) { return a.size() == b.size(); });
    if (!same) continue;
    for (std::size_t l = 0; l < layers.size(); ++l) {
      for (std::size_t h = 0; h < layers[l].size(); ++h) {
        heads[l][h].push_back({static_cast<double>(record.step), layers[l][h]});
      }
    }
  }
  return heads;
}

void add_heads(const std::vector<AttentionRecord>& records, RunReport& report) {
  report.entropy = heads_of(records, &AttentionRecord::entropy);
  report.max_logit = heads_of(records, &AttentionRecord::max_logit);
  report.distance = heads_of(records, &AttentionRecord::distance);
}

void add_note(RunReport& report, std::string_view english, std::string_view chinese) {
  report.notes.push_back({english, chinese});
}

// A linear model is solved in one piece, once for each setting that is tried.
void note_linear(RunReport& report) {
  const bool is_linear = std::any_of(
      report.settings.begin(), report.settings.end(),
      [](const ReportSetting& one) { return one.name == "model.model" && one.began == "linear"; });
  if (!is_linear) return;
  add_note(report,
           "a linear model has no updates: what is numbered here is the settings that "
           "cross-validation tried",
           "线性模型没有更新：这里的编号是交叉验证尝试过的设置");
}

void add_notes(const HistoryRecords& records, RunReport& report) {
  note_linear(report);
  if (records.updates.empty() && records.evaluations.empty()) {
    add_note(report,
             "there is no history (metrics.jsonl): a copied model, or a run that has just begun",
             "没有历史记录（metrics.jsonl）：可能是复制来的模型，或刚刚开始的训练");
  }
  if (records.unreadable > 0) {
    add_note(report, "some lines of metrics.jsonl cannot be read; they are left out",
             "metrics.jsonl 中有些行无法读取，已略去");
  }
  if (records.torn && !report.is_running) {
    add_note(
        report,
        "the last line of metrics.jsonl is incomplete, as after a run that was killed; it is left "
        "out",
        "metrics.jsonl 的最后一行不完整（训练被强行终止时会这样），已略去");
  }
}

// The identity that the newest checkpoint holds: of runs of builds that recorded no starts.
RunIdentity identity_in(const fs::path& folder) {
  const fs::path all = checkpoints_of(folder);
  std::vector<index> steps = checkpoint_steps(all);
  for (; !steps.empty(); steps.pop_back()) {
    try {
      const fs::path path = checkpoint_path(all, steps.back());
      return identity_of(
          Checkpoint{.step = steps.back(),
                     .path = path,
                     .files = {{"state.json", read_model_file(path, "state.json")}}});
    } catch (const Error&) {  // damaged: `fovea inspect --verify` says so
    }
  }
  return {};
}

void add_facts(const fs::path& folder, RunReport& report) {
  const auto add_fact = [](std::vector<ReportFact>& facts, Phrase name, const std::string& value) {
    if (!value.empty()) facts.push_back({name, escape_text(value)});
  };
  const std::vector<ProcessStart> starts = read_starts(folder);
  for (const ProcessStart& start : starts) {
    if (start.step > 0) report.resumed.push_back(static_cast<double>(start.step));
  }
  ProcessStart last;
  if (!starts.empty()) {
    last = starts.back();
  } else {
    const RunIdentity identity = identity_in(folder);
    last = {.isa = identity.isa,
            .version = identity.version,
            .model = identity.model,
            .data = identity.data,
            .tokenizer = identity.tokenizer};
  }
  auto& machine = report.environment;
  add_fact(machine, {"begun, UTC", "开始时间（UTC）"}, starts.empty() ? "" : starts.front().time);
  add_fact(machine, {"last resumed, UTC", "最近一次恢复（UTC）"},
           starts.size() > 1 ? last.time : "");
  add_fact(machine, {"processes", "进程数"}, starts.empty() ? "" : std::to_string(starts.size()));
  add_fact(machine, {"processor", "处理器"}, last.processor);
  add_fact(machine, {"threads", "线程数"}, last.threads > 0 ? std::to_string(last.threads) : "");
  add_fact(machine, {"instruction set", "指令集"}, last.isa);
  add_fact(machine, {"version of fovea", "fovea 版本"}, last.version);
  add_fact(report.data, {kDataFingerprint, "数据指纹"}, last.data);
  add_fact(report.data, {"fingerprint of the tokenizer", "分词器指纹"}, last.tokenizer);
  add_fact(report.data, {"fingerprint of the model's configuration", "模型配置指纹"}, last.model);
}

// Seconds between two pages, at least: after an event, and between updates.
constexpr double kAfterEvent = 2, kBetween = 10;
constexpr double kShare = 50;  // a page may take this part of the time

std::string name_of(const std::filesystem::path& folder) {
  const std::filesystem::path whole = std::filesystem::absolute(folder).lexically_normal();
  const std::filesystem::path name =
      whole.has_filename() ? whole.filename() : whole.parent_path().filename();
  return name.string();
}

}  // namespace

RunReport report_of_run(const fs::path& folder, const std::string& name) {
  const TaskRow& task = task_row(kind_of_model(folder));
  RunReport report{.name = escape_text(name),
                   .kind = task.name,
                   .unit = unit_of(folder, task),
                   .is_running = is_locked(folder)};
  report.settings = settings_of(folder);
  add_changes(folder, report.settings);
  const HistoryRecords records = read_history(folder / "metrics.jsonl");
  const bool is_checkpoint = read_manifest(folder).kind == "checkpoint";
  const RunSummary summary = is_checkpoint ? run_summary(folder) : run_summary(folder, records);
  report.updates = summary.step;
  report.targets = summary.tokens;
  report.seconds = summary.seconds;
  add_curves(records, report);
  add_choice(folder, records, report);
  add_heads(records.attention, report);
  add_notes(records, report);
  add_facts(folder, report);
  return report;
}

LivePage::LivePage(TrainingObserver& next, std::filesystem::path folder, PageLanguage language)
    : next_(next), folder_(std::move(folder)), held_(folder_), language_(language) {}

void LivePage::begins(const RunState& state) {
  next_.begins(state);
  draw(true);
}

void LivePage::updated(const UpdateRecord& record, double fraction_done) {
  next_.updated(record, fraction_done);
  draw_if_due(kBetween);
}

void LivePage::evaluated(const EvaluationRecord& record) {
  next_.evaluated(record);
  draw_if_due(kAfterEvent);
}

void LivePage::saved(index step, const std::filesystem::path& checkpoint) {
  next_.saved(step, checkpoint);
  draw_if_due(kAfterEvent);
}

void LivePage::finish() { draw(false); }

void LivePage::draw_if_due(double least_seconds) {
  if (monotonic_seconds() - drawn_ >= std::max(least_seconds, kShare * cost_)) draw(true);
}

void LivePage::draw(bool is_running) {
  if (!held_.is_in_place()) return;  // the trainer says so
  const double begin = monotonic_seconds();
  try {
    RunReport report = report_of_run(folder_, name_of(folder_));
    report.is_running = is_running;
    write_file_atomically(
        folder_ / kReportName,
        draw_run_page({&report, 1},
                      {.language = language_, .made = utc_time(), .version = FOVEA_VERSION}));
  } catch (const Error& error) {
    if (!std::exchange(has_failed_, true)) {
      next_.noticed(fmt::format(
          "the page of the run could not be written, the training goes on: {}", error.what()));
    }
  }
  drawn_ = monotonic_seconds();
  cost_ = drawn_ - begin;
}

}  // namespace fovea
