// SPDX-License-Identifier: Apache-2.0
// The vectors of a corpus, kept in a file beside it, and those nearest to a query.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "fovea/base/context.h"
#include "fovea/task/embed/embedder.h"
#include "fovea/tensor/tensor.h"

namespace fovea {

struct CorpusVectors {
  Tensor vectors;                    ///< [lines, columns], each of length 1
  bool made = false;                 ///< and not read from the file
  std::vector<std::string> notes{};  ///< why the file could not be written
};

/// The vectors of the lines of `file`: from FILE.vectors.safetensors, if that was made of the same
/// lines by the same model and rules, else made, and written there. `done` is called with the
/// number of lines that are embedded. Throws kOutputExists for such a file that fovea has not
/// written, kOutOfMemory, and what Embedder::embed throws.
CorpusVectors corpus_vectors(Embedder& embedder, const SentenceModel& model,
                             const std::string& file, std::span<const std::string> lines,
                             const std::function<void(index)>& done);

struct Hit {
  index row = 0;
  float score = 0;  ///< the cosine
};

/// For each query the rows with the highest cosines, best first, equal ones in their order.
std::vector<std::vector<Hit>> nearest(const Context& context, const CorpusVectors& corpus,
                                      Rows<const float> queries, index top);

/// Of two vectors; 0 if one is 0.
double cosine(Vec<const float> a, Vec<const float> b);

}  // namespace fovea
