// SPDX-License-Identifier: Apache-2.0
#include "fovea/nn/embedding_bag.h"

namespace fovea {

EmbeddingBag::EmbeddingBag(const EmbeddingBagOptions& options, const ParameterScope& scope)
    : options_(options),
      weight_(&scope.add("weight", {options.rows, options.width}, options.init)) {
  weight_->row_use = options.row_use;
}

Variable EmbeddingBag::forward(Tape& tape, Vec<const std::int32_t> ids,
                               Vec<const std::int32_t> offsets) const {
  return embedding_bag(tape, {tape.table(*weight_), ids, offsets, options_.mode, options_.padding});
}

}  // namespace fovea
