// SPDX-License-Identifier: Apache-2.0
// One row for each sequence, from all of its rows: mean, maximum, first, last, or attention.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "fovea/base/fields.h"
#include "fovea/grad/ops.h"
#include "fovea/nn/module.h"

namespace fovea {

enum class PoolingKind : std::uint8_t {
  kMean,
  kMax,        ///< of each column
  kFirst,      ///< the first row
  kLast,       ///< the last row; of columns that were read backwards the first, as in Keras
  kAttention,  ///< the mean with weights softmax(query . x / sqrt(width)), the query learned
};

inline constexpr EnumName<PoolingKind> kPoolingKindNames[] = {
    {PoolingKind::kMean, "mean"},
    {PoolingKind::kMax, "max"},
    {PoolingKind::kFirst, "first"},
    {PoolingKind::kLast, "last"},
    {PoolingKind::kAttention, "attention"}};
inline std::span<const EnumName<PoolingKind>> enum_names(PoolingKind) { return kPoolingKindNames; }

/// Parameters: with kAttention query [1, width], zeros at the start, which is the mean (Yang et al.
/// 2016, "Hierarchical attention networks for document classification", section 2.2, without the
/// layer before the query).
class Pooling {
 public:
  /// `reverse`: so many of the last columns were read backwards, and end at the first row.
  Pooling(PoolingKind kind, index width, const ParameterScope& scope, index reverse = 0);

  /// x [N, width] -> [sequences, width]; an empty sequence gives zeros.
  Variable forward(Tape& tape, Variable x, const PackedRows& rows) const;

  /// [N], to look at: of each row its weight (kAttention), or the share of the columns whose first
  /// maximum it is, unless all rows are alike there (kMax). Throws Error(kShape) for another kind.
  std::vector<double> weights(Variable x, const PackedRows& rows) const;

 private:
  Variable ends(Tape& tape, Variable x, const PackedRows& rows) const;

  PoolingKind kind_;
  index width_, reverse_;
  Parameter* query_ = nullptr;
};

}  // namespace fovea
