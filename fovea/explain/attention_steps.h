// SPDX-License-Identifier: Apache-2.0
// Scaled dot-product attention step by step (Vaswani et al. 2017, eq. 1), on two short texts.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "fovea/base/context.h"
#include "fovea/base/types.h"
#include "fovea/report/html.h"

namespace fovea {

/// Every step of softmax(Q K^T / sqrt(d)) V. Matrices are row by row.
struct AttentionSteps {
  static constexpr index kWidth = 4;  ///< d

  std::vector<std::string> queries,
      keys;                          ///< the characters; those of the keys are the values, too
  std::vector<double> q = {};        ///< [T, d]
  std::vector<double> k = {};        ///< [S, d]; V = K
  std::vector<double> scores = {};   ///< [T, S] Q K^T
  std::vector<double> scaled = {};   ///< [T, S] the same / sqrt(d)
  std::vector<double> weights = {};  ///< [T, S] softmax of each row
  std::vector<double> output = {};   ///< [T, d]
};

/// Most characters of each text.
inline constexpr index kMostStepCharacters = 64;

/// The embedding of a character: number i is ((c mod m) - (m - 1) / 2) / 10 of its code point c,
/// with m = 19, 23, 29, 31. A learner can check it by hand, and no two characters share all four.
std::vector<double> step_embedding(char32_t character);

/// All steps in double, computed by the operator: scores are its result without a norm, with the
/// rows of the identity as values. Throws kInputTooSmall for an empty text, kOptionValue for one of
/// more than kMostStepCharacters, kEncoding; `--q` and `--kv` name the texts.
AttentionSteps attention_steps(const Context& context, std::string_view query_text,
                               std::string_view key_text);

/// The steps for people, with the names of the formula, at most `columns` wide (at least 40).
std::string steps_text(const AttentionSteps& steps, index columns,
                       PageLanguage language = PageLanguage::kEnglish);

}  // namespace fovea
