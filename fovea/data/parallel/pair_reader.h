// SPDX-License-Identifier: Apache-2.0
// Sentences and their translations, from two files of lines, or from one file with a tab between
// the two.
#pragma once

#include <string>
#include <vector>

#include "fovea/base/types.h"

namespace fovea {

/// n pairs.
struct SentencePairs {
  std::vector<std::string> source = {};
  std::vector<std::string> target = {};
  index empty = 0;  ///< pairs of which a side is empty or white space

  index size() const { return static_cast<index>(source.size()); }
};

/// Where pairs come from. Files may be packed, pipes, or "-".
struct PairFiles {
  std::vector<std::string> source = {};  ///< line n of file k of these and ...
  std::vector<std::string> target = {};  ///< ... line n of file k of these belong together
  std::vector<std::string> tables = {};  ///< a source, a tab and its target a line

  bool empty() const { return source.empty() && target.empty() && tables.empty(); }
};

/// The way to treat a pair of which a side is empty or white space.
enum class EmptyPairs { kLeaveOut, kKeep };

/// Appends the pairs of all files, without the CR of a CR LF. Throws what read_text throws;
/// kUsage unless there are as many files of sources as of targets; kInputFormat, which names the
/// files and counts, if the lines of a source and its target differ in number, and "FILE:LINE: ..."
/// for a line of a table that has not exactly one tab.
void read_pairs(SentencePairs& pairs, const PairFiles& files,
                EmptyPairs empty = EmptyPairs::kLeaveOut);

}  // namespace fovea
