// SPDX-License-Identifier: Apache-2.0
#include "experiments/results.h"

#include <algorithm>

#include "fovea/base/error.h"
#include "fovea/base/file.h"
#include "fovea/base/words.h"
#include "fovea/metrics/sum.h"

namespace fovea {

namespace {

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

}  // namespace

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

}  // namespace fovea
