// SPDX-License-Identifier: Apache-2.0
#include "cli/answer_printer.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "cli/output.h"
#include "cli/signals.h"
#include "fovea/base/machine.h"
#include "fovea/text/compressed.h"
#include "fovea/text/utf8.h"

namespace fovea::cli {

namespace {

constexpr double kBetweenChecks = 64 << 20;  // bytes of answers
constexpr float kLast = 2;                   // more certain than any

}  // namespace

void check_output(const AnswerOutput& output, const std::string& input,
                  const std::filesystem::path& model) {
  const std::string& file = output.output;
  if (file.empty() || file == "-") return;
  check_output_is_apart(file, input, model);
  if (without_compression_suffix(file) != file) {
    throw Error(ErrorCode::kUsage, fmt::format("--output: {}: the file is not packed", file),
                "leave .gz or .zst out, or say -o - and pack what is printed");
  }
  check_page_file({.option = "--output",
                   .file = file,
                   .overwrite = output.overwrite,
                   .kind = "table",
                   .ending = ".csv",
                   .mark = ""});
}

AnswerPrinter::AnswerPrinter(const ClassifierAnswers& answers, const PredictionChoice& choice,
                             AnswerOutput output)
    : answers_(answers), choice_(choice), output_(std::move(output)) {
  if (output_.output.empty() || output_.output == "-") return;
  file_ = std::make_unique<AtomicFile>(output_.output);
  remove_if_stopped(file_->temporary());
}

AnswerPrinter::~AnswerPrinter() {
  if (file_) remove_if_stopped({});
}

void AnswerPrinter::begin(const LabelledReader& reader, std::string_view between) {
  const TableSummary& table = reader.summary();
  const bool divided = table.format == TableFormat::kTsv || table.format == TableFormat::kCsv;
  const bool objects = table.format == TableFormat::kJsonLines;
  if (output_.output.empty() || output_.json || (!divided && !objects)) return;
  if (const auto named = format_of_name(output_.output); named && *named != table.format) {
    throw Error(ErrorCode::kUsage,
                fmt::format("--output: {}: the texts are {}, and so is what is written",
                            output_.output, to_string(table.format)),
                fmt::format("name a file that ends in .{}", to_string(table.format)));
  }
  between_ = between.empty() ? "|" : between;
  rows_ = std::make_unique<RowWriter>(
      table, objects ? prediction_keys(answers_) : prediction_columns(answers_, choice_));
  print(rows_->header(reader.raw_header()));
}

std::string AnswerPrinter::lines_of(const AskedText& asked,
                                    std::optional<Vec<const float>> values) {
  if (values && abstains(answers_, *values, choice_)) ++abstained_;
  std::string lines = rows_ ? row_of(asked, values) : line_of(asked, values);
  if (output_.sort == AnswerOrder::kInput) return rows_ ? asked.raw.before + lines : lines;
  keep(values ? certainty(answers_, *values, choice_) : kLast, std::move(lines));
  return {};
}

std::string AnswerPrinter::line_of(const AskedText& asked,
                                   std::optional<Vec<const float>> values) const {
  const bool sorted = output_.sort != AnswerOrder::kInput;
  if (output_.json) {
    Json::Object object = values ? prediction_object(answers_, *values, choice_) : Json::Object();
    if (sorted) {
      object.emplace_back("line", asked.line);
      object.emplace_back("text", asked.text);
    }
    return Json(std::move(object)).line() + '\n';
  }
  std::string line = values ? prediction_text(answers_, *values, choice_) : "";
  if (sorted) line += fmt::format("\t{}\t{}", asked.line, escape_text(asked.text));
  return line + '\n';
}

std::string AnswerPrinter::row_of(const AskedText& asked,
                                  std::optional<Vec<const float>> values) const {
  if (!rows_->writes_objects()) {
    return rows_->row(asked.raw.row, values
                                         ? prediction_fields(answers_, *values, choice_, between_)
                                         : std::vector<std::string>(rows_->names().size()));
  }
  std::vector<Json> members(rows_->names().size());
  if (values) {
    Json::Object object = prediction_object(answers_, *values, choice_);
    for (std::size_t n = 0; n < members.size(); ++n) members[n] = std::move(object[n].second);
  }
  return rows_->row(asked.raw.row, std::move(members), asked.name);
}

void AnswerPrinter::keep(float certainty, std::string lines) {
  if (!lines.ends_with('\n')) lines += '\n';  // the last of its file is another's neighbour now
  const double bytes = sizeof(Kept) + static_cast<double>(lines.capacity());
  kept_.push_back({certainty, std::move(lines)});
  unchecked_ += bytes;
  if (unchecked_ < kBetweenChecks) return;
  unchecked_ = 0;
  require_memory("the answers to sort", kBetweenChecks + 2.0 * sizeof(Kept) * kept_.size(),
                 "ask of less text at once, or leave --sort out");
}

void AnswerPrinter::print(std::string_view lines) {
  if (file_) {
    file_->write(lines);
  } else {
    print_answers(lines);
  }
}

void AnswerPrinter::end(std::string_view rest) {
  std::stable_sort(kept_.begin(), kept_.end(),
                   [](const Kept& a, const Kept& b) { return a.certainty < b.certainty; });
  for (const Kept& one : kept_) print(one.lines);
  if (rows_ && output_.sort == AnswerOrder::kInput) print(rest);
  if (file_) file_->publish();
}

}  // namespace fovea::cli
