// SPDX-License-Identifier: Apache-2.0
// Files of texts that belong together, or have scores: read, and as tokens.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "fovea/data/table/labelled_reader.h"
#include "fovea/data/text_groups.h"
#include "fovea/pretrained/encoder_tokenizer.h"
#include "fovea/task/embed/settings.h"

namespace fovea {

/// Rows of pairs of texts, which all have a score or none.
struct GroupRows {
  std::vector<LabelledText> rows = {};
  bool scored = false;
};

/// Appends the readers' notes. Throws what LabelledReader throws; kInputFormat, "FILE:LINE: ...",
/// for a row without a score among such with one, or with a score and further texts.
GroupRows read_groups(std::span<const std::string> files, const TableOptions& options,
                      std::vector<std::string>& notes);

/// How texts become tokens.
struct GroupTokens {
  const EncoderTokenizer& tokenizer;
  const std::string& prompt;  ///< stands before each text
  index max_length = 0;       ///< a longer text is truncated
};
/// The rows `chosen` as tokens.
TextGroups groups_of(const GroupRows& rows, const std::vector<bool>& chosen, bool which,
                     const GroupTokens& how);

/// "training: 900 pairs with 12 further texts; tokens: median 12, 90 % at most 40, longest 97; cut
/// to 64: 3".
std::string groups_line(std::string_view name, const TextGroups& groups, index max_length);

/// The checksum of texts and scores.
std::string fingerprint(const TextGroups& groups);

}  // namespace fovea
