// SPDX-License-Identifier: Apache-2.0
// The file of all rows that `fovea reproduce` measured, and the table of one call.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "experiments/experiment.h"

namespace fovea {

class ReproduceResults {
 public:
  /// Rows of earlier calls stay in the file until they are measured again. A last line that is not
  /// finished is dropped. Throws kConfig, which names the line, if the file has others.
  explicit ReproduceResults(std::filesystem::path file);

  /// Notes for people on dropped rows.
  const std::vector<std::string>& notes() const { return notes_; }

  /// Takes the row into the table and into the file, in place of the one with its name.
  void add(const ReproduceRow& row);

  /// The rows of this call as lines of text: of several seeds the mean and the standard deviation.
  std::string table() const;

 private:
  using Key = std::tuple<std::string, std::string, std::string>;  // experiment, variant, metric
  struct Cell {
    std::vector<double> ours, seconds;
    std::optional<double> published, pytorch;
  };

  void keep_line(const Json& row);

  const std::filesystem::path file_;
  std::vector<std::pair<std::string, std::string>> lines_;  // names and texts of rows
  std::vector<std::string> notes_;
  std::map<Key, Cell> cells_;
  std::vector<Key> order_;
};

}  // namespace fovea
