// SPDX-License-Identifier: Apache-2.0
#include "experiments/experiment.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <limits>
#include <system_error>

#include "fovea/base/check.h"
#include "fovea/base/error.h"
#include "fovea/base/file.h"
#include "fovea/base/version.h"
#include "fovea/base/words.h"
#include "fovea/metrics/sum.h"
#include "fovea/simd/isa.h"
#include "fovea/tensor/checksum.h"

namespace fovea {

namespace {

Json number_or_null(const std::optional<double>& value) { return value ? Json(*value) : Json(); }

std::string spread(const std::vector<double>& values) {
  if (values.empty()) return {};
  if (values.size() == 1) return fmt::format("{:.4f}", values[0]);
  return fmt::format("{:.4f} +- {:.4f}", mean(values), sample_deviation(values));
}

// The name that tells a row from others.
std::string name_of(const Json& row) {
  return fmt::format("{}/{}/{}/{}", row.at("experiment").text(), row.at("variant").text(),
                     row.at("seed").whole(), row.at("metric").text());
}

constexpr std::array kInks = {Ink::kBlue, Ink::kOrange, Ink::kShade3, Ink::kShade4};

PlotPoint after_epoch(std::size_t epochs, double value) {
  return {static_cast<double>(epochs), value};
}

}  // namespace

Json json_of_row(const ReproduceRow& row) {
  Json::Array by_epoch;
  for (const double value : row.by_epoch) by_epoch.emplace_back(value);
  return Json::Object{{"experiment", row.experiment},
                      {"variant", row.variant},
                      {"seed", row.seed},
                      {"metric", row.metric},
                      {"published", number_or_null(row.published)},
                      {"ours", number_or_null(row.ours)},
                      {"by_epoch", by_epoch},
                      {"seconds_per_epoch", number_or_null(row.seconds_per_epoch)},
                      {"pytorch_seconds_per_epoch", number_or_null(row.pytorch_seconds_per_epoch)}};
}

std::filesystem::path require_data(const std::filesystem::path& folder, const DataFile& file) {
  const std::filesystem::path path = folder / file.path;
  const std::string hint =
      fmt::format("put the file with SHA-256 {} there; it comes from {}", file.sha256, file.origin);
  std::error_code error;
  if (!std::filesystem::exists(path, error)) {
    throw Error(ErrorCode::kMissingInput,
                fmt::format("{}: the data of the experiment is not there", path.string()), hint);
  }
  const std::string found = xxh3_128(read_file(path));
  if (found != file.xxh3) {
    throw Error(ErrorCode::kInputFormat,
                fmt::format("{}: this is another file: its XXH3 is {}, expected {}", path.string(),
                            found, file.xxh3),
                hint);
  }
  return path;
}

TrainerSetup setup_in(const std::filesystem::path& folder, std::string_view model,
                      std::string_view data) {
  TrainerSetup setup;
  setup.folder = folder;
  setup.identity = {.model = xxh3_128(model),
                    .data = xxh3_128(data),
                    .tokenizer = "",
                    .isa = std::string(isa_name(current_isa())),
                    .version = FOVEA_VERSION};
  return setup;
}

void run_trainer(const Context& context, Objective& objective, TrainingObserver& watching,
                 TrainerSetup setup) {
  const std::filesystem::path folder = setup.folder;
  create_folders(folder);
  const RunLock lock(folder);
  const bool began = run_began(folder);
  if (!began) write_model_files(folder, {});
  Trainer trainer(context, objective, watching, std::move(setup));
  if (began) trainer.resume();
  if (trainer.run().stopped) throw ReproduceStopped();
}

ReproduceResults::ReproduceResults(std::filesystem::path file) : file_(std::move(file)) {
  if (!std::filesystem::exists(file_)) return;
  const std::string text = read_file(file_);
  for (const std::string_view line : parts_between(text, '\n')) {
    if (line.empty()) continue;
    const std::string where = fmt::format("{}:{}", file_.string(), lines_.size() + 1);
    const bool unfinished = line.data() + line.size() == text.data() + text.size();
    try {
      lines_.emplace_back(name_of(parse_json(line, {where, ErrorCode::kConfig})), line);
    } catch (const Error& error) {
      if (unfinished) {  // by a line end: its writing was cut off
        notes_.push_back(fmt::format("{}: the last line is not finished; it is dropped", where));
        continue;
      }
      std::string why = error.what();
      if (why.starts_with(where)) why.erase(0, where.size() + 2);  // the place, and ": "
      throw Error(ErrorCode::kConfig,
                  fmt::format("{}: this line is no result of fovea reproduce: {}", where, why),
                  "choose another folder with -o DIR, or move the file away");
    }
  }
}

void ReproduceResults::add(const ReproduceRow& row) {
  keep_line(json_of_row(row));
  const Key key{row.experiment, row.variant, row.metric};
  const auto [entry, is_new] = cells_.try_emplace(key);
  if (is_new) order_.push_back(key);
  Cell& cell = entry->second;
  if (row.ours) cell.ours.push_back(*row.ours);
  if (row.published) cell.published = row.published;
  if (row.seconds_per_epoch) cell.seconds.push_back(*row.seconds_per_epoch);
  if (row.pytorch_seconds_per_epoch) cell.pytorch = row.pytorch_seconds_per_epoch;
}

std::string ReproduceResults::table() const {
  constexpr std::string_view kLine = "{:<4} {:<40} {:<22} {:>9} {:>17} {:>8} {:>8}\n";
  const auto number = [](double x) { return fmt::format("{:.4g}", x); };
  const auto known = [&](const std::optional<double>& x) { return x ? number(*x) : std::string(); };
  std::string text =
      fmt::format(kLine, "", "variant", "metric", "published", "ours", "s/epoch", "PyTorch");
  for (const Key& key : order_) {
    const Cell& cell = cells_.at(key);
    const auto& [experiment, variant, metric] = key;
    const std::string seconds = cell.seconds.empty() ? std::string() : number(mean(cell.seconds));
    text += fmt::format(kLine, experiment, variant, metric, known(cell.published),
                        spread(cell.ours), seconds, known(cell.pytorch));
  }
  return text;
}

void ReproduceResults::keep_line(const Json& row) {
  const std::string name = name_of(row);
  const auto known = std::find_if(lines_.begin(), lines_.end(),
                                  [&](const auto& line) { return line.first == name; });
  if (known == lines_.end()) {
    lines_.emplace_back(name, row.line());
  } else {
    known->second = row.line();
  }
  std::string text;
  for (const auto& line : lines_) text += line.second + "\n";
  write_file_atomically(file_, text);
}

void SeedCurves::publish(std::string_view experiment, std::vector<double> by_epoch) {
  experiments_[std::string(experiment)].published = std::move(by_epoch);
}

void SeedCurves::add(std::string_view experiment, std::string_view variant,
                     std::vector<double> by_epoch) {
  std::vector<Variant>& variants = experiments_[std::string(experiment)].variants;
  auto found = std::find_if(variants.begin(), variants.end(),
                            [&](const Variant& v) { return v.name == variant; });
  if (found == variants.end()) {
    found = variants.insert(variants.end(), {.name = std::string(variant), .seeds = {}});
  }
  found->seeds.push_back(std::move(by_epoch));
}

Plot SeedCurves::plot(std::string_view experiment) const {
  Plot plot{.title = std::string(experiment),
            .x_label = "epoch",
            .y_label = metric_,
            .begins_at_zero = false,
            .cuts_peaks = false};
  const auto found = experiments_.find(experiment);
  if (found == experiments_.end()) return plot;
  std::size_t most = 0, fewest = std::numeric_limits<std::size_t>::max();
  for (const Variant& variant : found->second.variants) {
    most = std::max(most, variant.seeds.size());
    fewest = std::min(fewest, variant.seeds.size());
  }
  for (const Variant& variant : found->second.variants) {
    const std::size_t seeds = variant.seeds.size();
    Curve curve{.name = most == fewest ? variant.name : fmt::format("{} ({})", variant.name, seeds),
                .ink = kInks[plot.curves.size() % kInks.size()]};
    for (std::size_t epoch = 0; epoch < variant.seeds[0].size(); ++epoch) {
      std::vector<double> values;
      for (const std::vector<double>& seed : variant.seeds) values.push_back(seed[epoch]);
      curve.points.push_back(after_epoch(epoch + 1, mean(values)));
      if (values.size() > 1) curve.spread.push_back(sample_deviation(values));
    }
    plot.curves.push_back(std::move(curve));
  }
  const std::string seeds =
      most == fewest ? std::to_string(most) : fmt::format("{} to {}", fewest, most);
  plot.subtitle =
      most > 1 ? "mean of " + seeds + " seeds, and a standard deviation up and down" : "one seed";
  if (found->second.published.empty()) return plot;
  Curve published{.name = "published", .ink = Ink::kShade0, .stroke = Stroke::kDashed};
  for (std::size_t epoch = 0; epoch < found->second.published.size(); ++epoch) {
    published.points.push_back(after_epoch(epoch + 1, found->second.published[epoch]));
  }
  plot.curves.push_back(std::move(published));
  return plot;
}

}  // namespace fovea
