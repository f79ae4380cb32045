// SPDX-License-Identifier: Apache-2.0
// A linear model in a few megabytes: the n-grams that matter most, in bytes.
#pragma once

#include <string>
#include <vector>

#include "fovea/linear/linear_model.h"
#include "fovea/tensor/named_tensor.h"
#include "fovea/tensor/safetensors.h"

namespace fovea {

/// The model with the n-grams whose contributions are largest in the mean square over texts like
/// those that it was trained on; as many as compact_tensors() has room for in `bytes`, names in
/// alphabetical order. What the others add in the mean, and to the length of a text, stays: so a
/// text has about the same logits. Throws kOptionValue if there is room for none.
LinearModel pruned(const LinearModel& model, index bytes);

/// The tensors of a compact file, which holds them instead of LinearModel::tensors():
///   "weight.levels" [n-grams, K] uint8: of a level l the weight is  largest_k s |s|, with
///       s = (l - 128) / 127;  "weight.largest" [K] float32, "weight.bias" [K] float32
///   "prior", "threshold"         as there
///   of each block "words.sorted_names" uint8: of each name in alphabetical order a byte, how many
///       of its first bytes are those of the name before, then the others and a line feed;
///       "words.idf_levels" [names] uint8 between both numbers of "words.idf_range" [2] float32;
///       "words.damping"        as there; or the same of "characters"
/// The names of the model must be in alphabetical order.
std::vector<NamedTensor> compact_tensors(const LinearModel& model);

/// Whether a file holds those.
bool is_compact(const Safetensors& tensors);

/// The tensors that LinearModel::tensors() would store of the model, from those of a compact file;
/// `where` names it. Throws kModelDamaged for all that does not fit.
Safetensors unpacked(const Safetensors& compact, const std::string& where);

}  // namespace fovea
