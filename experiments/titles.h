// SPDX-License-Identifier: Apache-2.0
// The titles of chapter 7 of Hands-on NLP as its code reads them.
#pragma once

#include <string>
#include <vector>

#include "fovea/data/parallel/pair_reader.h"

namespace fovea {

/// Line n of one belongs to line n of the other. In lower case, without marks above letters, a
/// blank before each of , . ! ?; the Chinese without blanks. Pairs of which both have fewer than 30
/// characters or words stay.
SentencePairs titles_of(const std::vector<std::string>& chinese,
                        const std::vector<std::string>& english);

}  // namespace fovea
