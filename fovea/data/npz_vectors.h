// SPDX-License-Identifier: Apache-2.0
// Vectors of words from an .npz file:
//
//   words    texts ("<U.."): [N]
//   vectors  float32, float64: [N, D]
//
// Other arrays are not read.
#pragma once

#include <span>
#include <string>

#include "fovea/data/vector_table.h"

namespace fovea {

/// As read_word_vectors. All vectors are checked, also those of words that are not wanted. Throws
/// kOptionValue, which names --width; kEmptyInput for a file without bytes or words; kInputFormat,
/// which names file, array and word: no .npz file, a damaged one, an array that is missing or of
/// another type or shape, a number that is not finite; kOutOfMemory; what FileSource throws.
WordVectors read_npz_vectors(const std::string& file, std::span<const std::string> words,
                             index width = 0);

}  // namespace fovea
