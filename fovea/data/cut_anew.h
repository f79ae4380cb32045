// SPDX-License-Identifier: Apache-2.0
// Training texts that are cut anew in each epoch: subword regularization (Kudo 2018) and
// BPE-dropout (Provilkov, Emelianenko, Voita 2020), see text/sentencepiece/cutter.h.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "fovea/base/types.h"
#include "fovea/text/tokenizer.h"

namespace fovea {

/// How. A cut depends on the seed, the epoch and the text's number alone.
struct CutAnew {
  const Tokenizer* tokenizer = nullptr;  ///< must outlive its use
  double alpha = 0;                      ///< 0: texts keep their usual cut
  std::uint64_t seed = 0;
};

/// A drawn cut that has more tokens than so many times the usual one is not taken, so that the
/// memory of a batch is known beforehand.
inline constexpr index kMostOfUsualCut = 2;

/// The tokens of a text, without marks. Its lines, if it has several, have the numbers that follow.
std::vector<token> drawn_cut(const CutAnew& how, std::string_view text, index epoch, index number);

}  // namespace fovea
