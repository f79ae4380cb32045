// SPDX-License-Identifier: Apache-2.0
// Explanations as JSON, with every weight.
#pragma once

#include <string>

#include "fovea/explain/attention_steps.h"
#include "fovea/explain/explanation.h"
#include "fovea/explain/text.h"

namespace fovea::cli {

/// Prints one object in one line, in pieces: the weights of all heads may be large. It has the
/// layers and heads of the view, or all.
void print_json(const Explanation& explanation, const ExplainView& view);

/// One object in one line, with its end.
std::string json_of_steps(const AttentionSteps& steps);

}  // namespace fovea::cli
