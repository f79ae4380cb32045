// SPDX-License-Identifier: Apache-2.0
#include "fovea/nn/position.h"

#include <array>
#include <cmath>
#include <cstdlib>

namespace fovea {

namespace {

struct Columns {
  index sine, cosine;
};

Columns columns_of(index i, const SinusoidOptions& options) {
  const index half = options.width / 2;
  switch (options.order) {
    case SinusoidOrder::kInterleaved:
      return {2 * i, 2 * i + 1};
    case SinusoidOrder::kSinCos:
      return {i, half + i};
    case SinusoidOrder::kCosSin:
      return {half + i, i};
  }
  return {};
}

}  // namespace

Tensor sinusoidal_positions(index count, const SinusoidOptions& options, DType dtype) {
  const index d = options.width;
  check(count >= 0 && d > 0 && d % 2 == 0,
        "sinusoidal positions: the width must be even and positive; it is {}", d);
  Tensor table({count, d}, DType::kFloat64);
  for (index p = 0; p < count; ++p) {
    double* row = table.rows<double>()[p];
    const auto distance = static_cast<double>(std::abs(p - options.reference));
    for (index i = 0; i < d / 2; ++i) {
      const double angle =
          distance / std::pow(10000.0, 2 * static_cast<double>(i) / static_cast<double>(d));
      const auto [sine, cosine] = columns_of(i, options);
      row[sine] = std::sin(angle);
      row[cosine] = std::cos(angle);
    }
  }
  return dtype == DType::kFloat64 ? table : table.to(dtype);
}

Variable join_positions(Tape& tape, Variable e, const TableRows& positions, PositionJoin join) {
  const Variable p = embedding(tape, positions);
  return join == PositionJoin::kAdd ? add(tape, e, p) : concat_columns(tape, std::array{e, p});
}

}  // namespace fovea
