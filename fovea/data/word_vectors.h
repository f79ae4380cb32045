// SPDX-License-Identifier: Apache-2.0
// Vectors of words from a file of text: word2vec's text format, fastText's .vec and GloVe, packed
// by gzip or zstd or not.
//
//     2 3              the number of vectors and their width; GloVe's files lack this line
//     the .1 -.2 3e-1
//     Paris 1 0 .5
//
// A file whose name ends in .npz holds arrays (data/npz_vectors.h).
#pragma once

#include <memory>
#include <span>
#include <string>

#include "fovea/base/byte_stream.h"
#include "fovea/data/vector_table.h"

namespace fovea {

/// Reads the vectors of `words`; an empty word has none. The file is read once, line by line, so it
/// may have any length or be a pipe; only vectors of words in `words` are kept. If a word occurs
/// twice, the first counts. Lines of other words must have `width` columns; their numbers are not
/// read.
///
/// `width`: which the vectors must have (kOptionValue, which names --width); 0: any.
/// Throws kEmptyInput; kEncoding; kInputFormat, "FILE:LINE: ...", for another number of columns,
/// for what is no finite number, a line of more than 4 MiB, a header that gives another number of
/// vectors, and binary files; kOutOfMemory; and what open_text and read_npz_vectors throw.
WordVectors read_word_vectors(const std::string& file, std::span<const std::string> words,
                              index width = 0);
/// Reads the vectors from a stream. `name` begins messages.
WordVectors read_word_vectors(std::unique_ptr<ByteStream> stream, const std::string& name,
                              std::span<const std::string> words, index width = 0);

}  // namespace fovea
