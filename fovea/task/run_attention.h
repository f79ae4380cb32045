// SPDX-License-Identifier: Apache-2.0
// The attention operator on tensors by name: what `fovea attention` does.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "fovea/attention/attention.h"
#include "fovea/task/attention_settings.h"
#include "fovea/task/attention_tensors.h"

namespace fovea {

/// Those of a file that such a call needs. Throws as AttentionTensors does.
AttentionTensors read_attention_tensors(const AttentionSettings& settings, const TensorFile& file,
                                        std::string where);

/// What would be done. Of the reference, `kernel` says so, and the tiles are those of the fused
/// kernel. Throws as run_attention does.
AttentionPlan plan_attention(const Context& context, const AttentionSettings& settings,
                             const AttentionTensors& tensors);

/// The tiles of the first sequence and head, a text for each 64 queries (kept_tiles.h); none of
/// more than 128 x 128 tiles. Throws as run_attention does.
std::vector<std::string> picture_attention(const AttentionSettings& settings,
                                           const AttentionTensors& tensors);

/// May look at the results, for their names and shapes, before anything is computed, and throw.
using AcceptResults = std::function<void(std::span<const NamedTensor>)>;

/// Computes o, lse (of softmax), what is to be observed and, with `backward`, the gradients:
/// tensors of float32 or float64, as the precision says; the reference is float64. Throws kShape
/// that begins with the name of the file, kOptionValue, kInputFormat (do is missing), kOutOfMemory.
std::vector<NamedTensor> run_attention(const Context& context, const AttentionSettings& settings,
                                       const AttentionTensors& tensors,
                                       const AcceptResults& accept = {});

/// The definition in float32: "the plain implementation" that tolerances are derived from. Throws
/// as run_attention does, without the name of the file.
std::vector<NamedTensor> run_plain_float32(const AttentionSettings& settings,
                                           const AttentionTensors& tensors);

}  // namespace fovea
