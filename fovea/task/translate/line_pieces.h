// SPDX-License-Identifier: Apache-2.0
// Cuts a line that is longer than a model reads.
#pragma once

#include <span>
#include <vector>

#include "fovea/base/types.h"
#include "fovea/text/tokenizer.h"

namespace fovea {

/// Where the pieces of a line of tokens end. A piece has at most `most`, and there are as few as
/// can be, as equal in length as can be; they end between words where there are any and the pieces
/// that follow still have room. None of an empty line.
std::vector<index> ends_of_pieces(const Tokenizer& tokenizer, std::span<const token> ids,
                                  index most);

}  // namespace fovea
