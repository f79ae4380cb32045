// SPDX-License-Identifier: Apache-2.0
// The labelled texts of a run: read, checked, split into those to train on and those to validate.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fovea/data/frames.h"
#include "fovea/data/label_set.h"
#include "fovea/data/table/labelled_reader.h"
#include "fovea/task/classify/settings.h"

namespace fovea {

/// Rows of several files: of texts, or samples of numbers, whose `line` is their number from 0.
struct TextTable {
  std::vector<LabelledText> rows = {};
  std::vector<std::string> places = {};  ///< names of the files
  std::vector<index> ends = {};          ///< the number of rows up to the end of each file
  InputKind input = InputKind::kText;

  bool has_frames() const { return input == InputKind::kNpz; }
  index size() const { return static_cast<index>(rows.size()); }
};

struct LabelledSet {
  TextTable table;                          ///< all texts: those of --train, then those of --valid
  std::vector<bool> validates;              ///< [texts]
  std::vector<FrameFile> frames;            ///< with input npz: the files of the table
  LabelSet labels;                          ///< of the texts to train on; none for regression
  std::vector<std::string> notes;           ///< of the reader, and what is odd about the texts
  std::vector<std::string> overview = {};   ///< the same, where it is no reason to warn
  bool validates_apart = false;             ///< the texts to validate on have files of their own
  std::optional<std::size_t> label_of_two;  ///< of two columns, the one of the label
  TableForm form;                           ///< of the first file of texts
};

/// "FILE:LINE" of row i, "FILE: sample NUMBER" of a sample.
std::string place_of(const TextTable& table, index i);

/// How the files are read: with what the settings make of labels and bytes.
TableOptions table_options(const ClassifierTextOptions& options);

/// Reads all files. Throws what LabelledReader throws; kUsage without a file to train on;
/// kInputFormat, "FILE:LINE: ...", for several labels where one is asked for and for a label that
/// no text to train on has; kInputTooSmall if all texts have the same label, labels or number.
LabelledSet read_labelled_set(const ClassifierTextOptions& options, std::uint64_t seed);

/// Draws this part of the texts to train on, of those with the same labels alike, for validation.
void hold_back(LabelledSet& set, double fraction, bool regression, std::uint64_t seed);

/// The checksum of the texts, their labels or numbers, and which of them validate.
std::string fingerprint(const LabelledSet& set);

/// A part of the texts to train on, drawn by the seed, of those with the same labels alike; all
/// texts to validate on.
LabelledSet part_of(const LabelledSet& set, double share, bool regression, std::uint64_t seed);

/// "word" or "char": what suits the texts. Appends to `notes` which, and why.
std::string choose_tokenizer(const LabelledSet& set, std::vector<std::string>& notes);

/// How many texts of how many have each label.
struct LabelCounts {
  std::vector<index> counts;  ///< [labels]
  index texts = 0;
  bool multi_label = false;
};

/// none: no weights. balanced: N / (K n_k) of class k of K with n_k of N texts; with several labels
/// (N - n_k) / n_k, which counts texts with and without the label alike. LABEL=NUMBER,...: as said,
/// and 1 of the others; a label with a comma stands in double quotes, and quotes in it twice.
/// Throws kOptionValue, which names what is wrong.
std::vector<double> class_weights(const std::string& option, const LabelSet& labels,
                                  const LabelCounts& found);

}  // namespace fovea
