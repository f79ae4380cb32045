// SPDX-License-Identifier: Apache-2.0
// How a classifier's answers are written: as lines of text or JSON, or as columns of the table that
// was asked; to stdout or into a file that appears when it is whole; in the order of the texts, or
// the least certain first.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/base/fields.h"
#include "fovea/base/file.h"
#include "fovea/data/table/labelled_reader.h"
#include "fovea/data/table/row_writer.h"
#include "fovea/task/classify/prediction_line.h"

namespace fovea::cli {

enum class AnswerOrder { kInput, kUncertain };
inline constexpr EnumName<AnswerOrder> kAnswerOrderNames[] = {
    {AnswerOrder::kInput, "input"}, {AnswerOrder::kUncertain, "uncertain"}};
inline std::span<const EnumName<AnswerOrder>> enum_names(AnswerOrder) { return kAnswerOrderNames; }

struct AnswerOutput {
  AnswerOrder sort = AnswerOrder::kInput;
  std::string output;
  bool overwrite = false;
  bool json = false;

  template <class Visitor>
  void visit_fields(Visitor&& visit) {
    visit("output", output,
          "write into this file: a table with the columns of the answer behind its own, in which "
          "rows that cannot be read stay, too; -: to stdout",
          {.only_command_line = true, .shown = "FILE", .also = "o"});
    visit("overwrite", overwrite, "replace the file of --output if it is there already",
          {.only_command_line = true});
    visit("sort", sort,
          "uncertain: the texts of which the model is least sure first, with their line and text: "
          "label these next");
    visit("json", json, "print each answer as a JSON object on a line of its own",
          {.only_command_line = true});
  }
};

/// Throws what check_page_file and check_output_is_apart throw.
void check_output(const AnswerOutput& output, const std::string& input,
                  const std::filesystem::path& model);

/// A text of which the model was asked.
struct AskedText {
  std::string text, name;  ///< name: what messages call it
  index line = 0;
  bool is_bad = false;  ///< it could not be read, and is not answered
  RawRow raw = {};
};

class AnswerPrinter {
 public:
  /// Opens the file. `answers` refers to the model.
  AnswerPrinter(const ClassifierAnswers& answers, const PredictionChoice& choice,
                AnswerOutput output);
  ~AnswerPrinter();

  /// Rows of this table follow. `between`: what stands between several labels in a field.
  void begin(const LabelledReader& reader, std::string_view between);
  /// The lines of an answer; "" where they are kept to be sorted. No values: it is not answered.
  std::string lines_of(const AskedText& asked, std::optional<Vec<const float>> values);
  /// Throws NobodyReads.
  void print(std::string_view lines);
  /// All answers have been printed; `rest` stands behind the last row.
  void end(std::string_view rest);

  index abstained() const { return abstained_; }

 private:
  struct Kept {
    float certainty;
    std::string lines;
  };

  std::string line_of(const AskedText& asked, std::optional<Vec<const float>> values) const;
  std::string row_of(const AskedText& asked, std::optional<Vec<const float>> values) const;
  void keep(float certainty, std::string lines);

  const ClassifierAnswers answers_;
  const PredictionChoice choice_;
  const AnswerOutput output_;
  std::unique_ptr<AtomicFile> file_;  // null: stdout
  std::unique_ptr<RowWriter> rows_;   // null: lines
  std::string between_;
  std::vector<Kept> kept_;
  double unchecked_ = 0;  // bytes of these
  index abstained_ = 0;
};

}  // namespace fovea::cli
