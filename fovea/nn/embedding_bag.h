// SPDX-License-Identifier: Apache-2.0
// The sum or the mean of the embeddings of a bag of ids: words, hashed n-grams (Joulin et al. 2016,
// arXiv:1607.01759).
#pragma once

#include <optional>

#include "fovea/grad/ops.h"
#include "fovea/nn/module.h"

namespace fovea {

struct EmbeddingBagOptions {
  index rows = 0;
  index width = 0;
  BagMode mode = BagMode::kMean;
  Init init = Init::normal(kInitDeviation);
  std::optional<std::int32_t> padding{};  ///< an id that does not count and is never trained
  /// kDense where a step reads a large part of the table.
  RowUse row_use = RowUse::kSparse;
};

/// Parameters: weight [rows, C].
class EmbeddingBag {
 public:
  EmbeddingBag(const EmbeddingBagOptions& options, const ParameterScope& scope);

  /// One row for each bag: bag b has ids[offsets[b]] to ids[offsets[b + 1] - 1], offsets [B + 1].
  /// An empty bag gives 0. ids and offsets must outlive the step; ids out of range are errors.
  /// `inputs`, if given, becomes the row [N, C] of each id as an input of the tape, for its
  /// gradient; then there must be no padding.
  Variable forward(Tape& tape, Vec<const std::int32_t> ids, Vec<const std::int32_t> offsets,
                   Variable* inputs = nullptr) const;

  Parameter& weight() const { return *weight_; }

 private:
  EmbeddingBagOptions options_;
  Parameter* weight_;
};

}  // namespace fovea
