// SPDX-License-Identifier: Apache-2.0
// What explanations of models of any kind have in common.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "fovea/base/view.h"
#include "fovea/model/encoder_sizes.h"
#include "fovea/task/explain/explanation.h"

namespace fovea {

/// In quotes, escaped.
std::string in_quotes(std::string_view text);

/// Throws kModelWrongKind.
void require_attention(bool has_attention);

/// Throws kInputTooSmall.
void require_tokens(bool has_tokens);

/// Throws kOptionValue for a target of a saliency that has none.
void require_target_counts(const ExplainOptions& options);

/// The numbers of the values, the largest first; of equal ones the first.
std::vector<index> descending(Vec<const float> values);

/// Adds what rollout leaves out of such a model, if it does.
void note_rollout(const std::vector<SizedStage>& stages, Explanation& explanation);

}  // namespace fovea
