// SPDX-License-Identifier: Apache-2.0
#include "fovea/train/history.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <initializer_list>
#include <string_view>
#include <utility>

#include "fovea/base/check.h"
#include "fovea/base/file.h"
#include "fovea/config/json.h"
#include "fovea/train/model_folder.h"

namespace fovea {

namespace {

[[noreturn]] void fail_writing(const std::filesystem::path& file) {
  const ErrorCode code = code_of_failed_write(errno);
  throw Error(code, fmt::format("{}: cannot write: {}", file.string(), std::strerror(errno)),
              code == ErrorCode::kDiskFull
                  ? "free some space, then go on with --resume and the same options"
                  : "check the path and its permissions");
}

// Up to the end of a line.
void keep_whole_lines(std::string& text) {
  text.resize(text.rfind('\n') == std::string::npos ? 0 : text.rfind('\n') + 1);
}

// The first `bytes` bytes of a file that may be shorter or missing, up to the end of a line.
std::string whole_lines(const std::filesystem::path& file, index bytes) {
  std::string text = read_run_file(file);
  text.resize(std::min(text.size(), static_cast<std::size_t>(bytes)));
  keep_whole_lines(text);
  return text;
}

template <class Record>
Record record_of(const Json& json, const JsonSource& source) {
  Record record;
  set_from_json(fields_of(record), json, source, MissingKeys::kKeepTheirValue);
  return record;
}

// Without those of these numbers that mean nothing for such a model.
template <class Record>
std::string line_of(const Record& record, std::initializer_list<std::string_view> names) {
  Json::Object members = json_of(record).object();
  std::erase_if(members, [&](const auto& member) {
    return std::find(names.begin(), names.end(), member.first) != names.end() &&
           std::isnan(member.second.number());
  });
  return Json(std::move(members)).line() + "\n";
}

// Lines of before do not say whether the weights were the best: their loss was that of the best.
EvaluationRecord evaluation_record(const Json& line, const JsonSource& source,
                                   const std::vector<EvaluationRecord>& before) {
  auto record = record_of<EvaluationRecord>(line, source);
  if (line.find("is_best") != nullptr) return record;
  record.is_best = record.valid_loss == record.best_valid_loss &&
                   (before.empty() || before.back().best_valid_loss != record.best_valid_loss);
  return record;
}

constexpr std::string_view kMetrics = "metrics";
constexpr std::string_view kTraining = "training";
constexpr std::string_view kAttention = "attention";

Json::Object object_of(const std::vector<MetricValue>& values) {
  Json::Object object;
  for (const MetricValue& one : values) object.emplace_back(one.name, one.value);
  return object;
}

std::vector<MetricValue> values_of(const Json& object) {
  std::vector<MetricValue> values;
  for (const auto& [name, value] : object.object()) values.push_back({name, value.number()});
  return values;
}

Json to_json_value(const MetricsRecord& record) {
  Json::Object line;
  line.emplace_back("kind", kMetrics);
  line.emplace_back("step", record.step);
  line.emplace_back("is_best", record.is_best);
  line.emplace_back("values", object_of(record.values));
  return line;
}

MetricsRecord metrics_record(const Json& line) {
  return {.step = line.at("step").whole(),
          .is_best = line.at("is_best").boolean(),
          .values = values_of(line.at("values"))};
}

Json to_json_value(const TrainingRecord& record) {
  Json::Object line;
  line.emplace_back("kind", kTraining);
  line.emplace_back("step", record.step);
  line.emplace_back("loss", record.loss);
  line.emplace_back("values", object_of(record.values));
  return line;
}

TrainingRecord training_record(const Json& line) {
  return {.step = line.at("step").whole(),
          .loss = line.at("loss").number(),
          .values = values_of(line.at("values"))};
}

Json to_json_value(const HeadNumbers& numbers) {
  Json::Array layers;
  for (const std::vector<double>& heads : numbers) {
    layers.emplace_back(Json::Array(heads.begin(), heads.end()));
  }
  return layers;
}

HeadNumbers head_numbers(const Json& json) {
  HeadNumbers numbers;
  for (const Json& layer : json.array()) {
    std::vector<double>& heads = numbers.emplace_back();
    for (const Json& number : layer.array()) heads.push_back(number.number());
  }
  return numbers;
}

Json to_json_value(const AttentionRecord& record) {
  Json::Object line;
  line.emplace_back("kind", kAttention);
  line.emplace_back("step", record.step);
  line.emplace_back("entropy", to_json_value(record.entropy));
  line.emplace_back("max_logit", to_json_value(record.max_logit));
  line.emplace_back("distance", to_json_value(record.distance));
  return line;
}

AttentionRecord attention_record(const Json& line) {
  return {.step = line.at("step").whole(),
          .entropy = head_numbers(line.at("entropy")),
          .max_logit = head_numbers(line.at("max_logit")),
          .distance = head_numbers(line.at("distance"))};
}

constexpr std::string_view kFolds = "folds";

Json to_json_value(const FoldsRecord& record) {
  Json::Object values;
  for (const FoldedMetric& one : record.values) values.emplace_back(one.name, json_of(one));
  Json::Object line;
  line.emplace_back("kind", kFolds);
  line.emplace_back("step", record.step);
  line.emplace_back("values", std::move(values));
  return line;
}

FoldsRecord folds_record(const Json& line) {
  FoldsRecord record{.step = line.at("step").whole()};
  for (const auto& [name, value] : line.at("values").object()) {
    FoldedMetric one{.name = name,
                     .mean = value.at("mean").number(),
                     .low = value.at("low").number(),
                     .high = value.at("high").number()};
    for (const Json& fold : value.at("folds").array()) one.folds.push_back(fold.number());
    record.values.push_back(std::move(one));
  }
  return record;
}

void add_parsed(HistoryRecords& records, const Json& line, const JsonSource& source) {
  if (line.at("kind").text() == kAttention) {
    records.attention.push_back(attention_record(line));
  } else if (line.at("kind").text() == kMetrics) {
    records.metrics.push_back(metrics_record(line));
  } else if (line.at("kind").text() == kFolds) {
    records.folds.push_back(folds_record(line));
  } else if (line.at("kind").text() == kTraining) {
    records.training.push_back(training_record(line));
  } else if (line.at("kind").text() == EvaluationRecord().kind) {
    records.evaluations.push_back(evaluation_record(line, source, records.evaluations));
  } else if (line.at("kind").text() == UpdateRecord().kind) {
    records.updates.push_back(record_of<UpdateRecord>(line, source));
  } else {
    ++records.unreadable;  // of a later version
  }
}

// The records are for display only: a line that cannot be parsed is left out.
HistoryRecords parse(const std::string& text, const std::filesystem::path& file) {
  HistoryRecords records;
  const JsonSource source{file.string()};
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = text.find('\n', begin);
    try {
      const Json line = parse_json(std::string_view(text).substr(begin, end - begin), source);
      add_parsed(records, line, source);
    } catch (const Error&) {
      ++records.unreadable;
    }
    begin = end + 1;
  }
  return records;
}

}  // namespace

Json json_of(const FoldedMetric& metric) {
  Json::Object object =
      object_of({{"mean", metric.mean}, {"low", metric.low}, {"high", metric.high}});
  object.emplace_back("folds", Json::Array(metric.folds.begin(), metric.folds.end()));
  return object;
}

HistoryRecords read_history(const std::filesystem::path& file) {
  std::string text = read_run_file(file);
  const std::size_t size = text.size();
  keep_whole_lines(text);
  HistoryRecords records = parse(text, file);
  records.torn = text.size() < size;
  return records;
}

History::History(std::filesystem::path file) : file_(std::move(file)) { open(O_TRUNC); }

History::History(std::filesystem::path file, index bytes) : file_(std::move(file)) {
  const std::string kept = whole_lines(file_, bytes);
  records_ = parse(kept, file_);
  open(0);
  bytes_ = static_cast<index>(kept.size());
  if (::ftruncate(fd_, bytes_) != 0) fail_writing(file_);
}

History::~History() { ::close(fd_); }

void History::open(int flags) {
  fd_ = ::open(file_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | flags, 0666);
  if (fd_ < 0) fail_writing(file_);
}

// One write per line: in the file of a killed process only the last line may be incomplete.
void History::append(const std::string& line) {
  std::string_view rest = line;
  while (!rest.empty()) {
    const ssize_t n = ::write(fd_, rest.data(), rest.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail_writing(file_);
    rest.remove_prefix(static_cast<std::size_t>(n));
  }
  bytes_ += static_cast<index>(line.size());
}

void History::add(const UpdateRecord& record) {
  append(line_of(record, {"running_accuracy"}));
  records_.updates.push_back(record);
}

void History::add(const EvaluationRecord& record) {
  append(line_of(record, {"train_loss", "train_accuracy"}));
  records_.evaluations.push_back(record);
}

void History::add(const MetricsRecord& record) {
  append(to_json_value(record).line() + "\n");
  records_.metrics.push_back(record);
}

void History::add(const TrainingRecord& record) {
  append(to_json_value(record).line() + "\n");
  records_.training.push_back(record);
}

void History::add(const AttentionRecord& record) {
  append(to_json_value(record).line() + "\n");
  records_.attention.push_back(record);
}

void History::add(const FoldsRecord& record) {
  append(to_json_value(record).line() + "\n");
  records_.folds.push_back(record);
}

index History::flush() {
  if (::fsync(fd_) != 0) fail_writing(file_);
  return bytes_;
}

}  // namespace fovea
