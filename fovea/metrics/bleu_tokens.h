// SPDX-License-Identifier: Apache-2.0
// How sacreBLEU cuts a sentence into the words that BLEU counts (Post 2018, "A call for clarity in
// reporting BLEU scores").
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "fovea/base/fields.h"

namespace fovea {

enum class BleuTokens {
  k13a,   ///< as mteval-v13a.pl, the script of WMT: ASCII punctuation stands alone
  kZh,    ///< the same, and each Chinese character stands alone
  kChar,  ///< characters
  kNone,  ///< words between white space
};
inline constexpr EnumName<BleuTokens> kBleuTokensNames[] = {{BleuTokens::k13a, "13a"},
                                                            {BleuTokens::kZh, "zh"},
                                                            {BleuTokens::kChar, "char"},
                                                            {BleuTokens::kNone, "none"}};
inline std::span<const EnumName<BleuTokens>> enum_names(BleuTokens) { return kBleuTokensNames; }

/// The tokens of valid UTF-8 with white space between them.
std::string bleu_tokens(std::string_view sentence, BleuTokens kind);

}  // namespace fovea
