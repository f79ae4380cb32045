// SPDX-License-Identifier: Apache-2.0
// What a call of attention may be made of: each part is a row of a table in attention_parts.cc.
#pragma once

#include <span>
#include <string>

#include "fovea/task/attention_call.h"

namespace fovea {

/// Every tensor that attention can take, in the order in which their sizes are known.
std::span<const TensorSpec> attention_tensor_specs();

/// What --observe can ask for: "entropy, max, topk=K, ..."
std::string observed_names();

/// Adds the parts that the call's tensors and settings ask for. Throws kOptionValue (a setting that
/// makes no sense), kUsage (a tensor without its option), kShape, kInputFormat.
template <class T>
void add_parts(AttentionCall<T>& call);

/// Adds the observers that the settings ask for, and their tensors. Throws kOptionValue (with the
/// likeliest one that was meant), kOutOfMemory.
template <class T>
void add_observed(AttentionCall<T>& call);

}  // namespace fovea
