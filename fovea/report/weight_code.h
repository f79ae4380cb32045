// SPDX-License-Identifier: Apache-2.0
// Attention weights as few bits: decimal integers in Rice codes, which page/weights.js reads.
//
// A mask is a row after row of runs: their number, then for each how many keys are skipped and how
// many are kept, all as LEB128 numbers. A head is a row after row of the weights of its kept cells:
//
//   5 bits k < 31, then every weight as Rice(k)                                 a dense row
//   5 bits 31, 5 bits g, 5 bits k, 16 bits n, then n pairs Rice(g), Rice(k)     a sparse row
//
// The pairs are the number of cells without a weight and the next weight less 1. Rice(k) of x is
// x >> k ones, a zero and the k low bits of x; 16 ones and 22 bits of x if there would be 16 ones
// or more. Signed weights x become 2x, or -2x - 1 if negative. The first bit of a byte is the
// highest.
//
// The rows of a softmax add up to 1. With 4 decimals and k = 7, a row of S keys thus takes at most
// 8 S + 10000 / 128 bits: 9.2 bits a weight for S = 64, whatever the weights are.
#pragma once

#include <span>
#include <string>

#include "fovea/base/types.h"

namespace fovea {

/// The weights of one head, [queries, keys]; those that are exactly 0 are masked.
struct HeadWeights {
  std::span<const float> weights;
  index queries = 0, keys = 0;

  std::span<const float> row(index query) const {
    return weights.subspan(static_cast<std::size_t>(query * keys), static_cast<std::size_t>(keys));
  }
};

struct WeightDigits {
  int decimals = 4;       ///< a weight w is stored as w * 10^decimals, rounded; below 2^20
  bool negative = false;  ///< whether there are negative weights
  index strongest = 0;    ///< how many weights a row keeps; 0: all
};

inline constexpr index kMostCodedKeys = 65535;

std::string code_mask(const HeadWeights& head);
std::string code_weights(const HeadWeights& head, const WeightDigits& digits);

/// The bits of code_weights(), from every `step`th row.
double estimate_bits(const HeadWeights& head, const WeightDigits& digits, index step);

}  // namespace fovea
