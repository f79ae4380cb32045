// SPDX-License-Identifier: Apache-2.0
// The parts of a call of attention (score, biases, masks, ...). Each is a row of a table in
// attention_parts.cc.
#pragma once

#include <span>
#include <string>

#include "fovea/operator/attention_call.h"

namespace fovea {

/// Every tensor that attention can take. The order matters: the first tensor with a letter among
/// its axes sets that size.
std::span<const TensorSpec> attention_tensor_specs();

/// The names that --observe accepts: "entropy, max, topk=K, ..."
std::string observed_names();

/// Adds the parts that the call's tensors and settings ask for. Throws kOptionValue (an invalid
/// setting), kUsage (a tensor without its option), kShape, kInputFormat.
template <class T>
void add_parts(AttentionCall<T>& call);

/// Adds the observers that the settings ask for, and their tensors. Throws kOptionValue for an
/// unknown name (with the nearest known one), kOutOfMemory.
template <class T>
void add_observed(AttentionCall<T>& call);

}  // namespace fovea
