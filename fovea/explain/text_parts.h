// SPDX-License-Identifier: Apache-2.0
// Shared by explanations of texts and of numbers on a terminal.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/explain/explanation.h"

namespace fovea {

/// Tokens or time steps, from 0, without the last.
struct TokenWindow {
  index begin = 0, end = 0;
};

/// "A-B" or "A" of an option, of so many tokens that count from `first`. Throws kOptionValue.
TokenWindow window_of(const std::string& text, std::string_view option, index first, index tokens);

/// Words in lines of at most so many columns, with their ends.
std::string wrapped(std::string_view text, index columns);

/// Cut, or with blanks at the end: so many columns.
std::string sized(std::string_view text, index columns);

double largest_of(const std::vector<float>& values);

/// [queries, keys] of a layer: one head, from 1, or the mean of all (0), in one sequence or (-1)
/// their mean. Summed in double, in order.
std::vector<float> mean_weights(const ExplainedLayer& layer, index head, index sequence = -1);

/// "head 2", "mean of 4 heads", "its only head".
std::string heads_shown(const ExplainedLayer& layer, index head);

/// The most probable labels or next tokens, the number, or the translation.
std::string prediction_lines(const Explanation& explanation, index columns);

/// Where the largest weight of a head is.
using StrongestText = std::function<std::string(const ExplainedLayer& layer, index head)>;

/// A line for each head: of many, those of one layer (from 1; 0: the one that is shown) alone.
/// Names of layers are cut so that lines fit.
std::string head_table(const Explanation& explanation, index layer, index columns,
                       const StrongestText& strongest);

/// The name of the numbers beside a map.
std::string side_name_of(SaliencyMethod method);

/// The name of the saliency, and its source; nothing without one.
std::string saliency_lines(const Explanation& explanation, index columns);

/// kWeightsAreNoExplanation where there are weights.
std::string warning_of_weights(const Explanation& explanation, index columns);

/// The token in a terminal: control and bidirectional characters are escaped, a space is a sign,
/// and what would be blank is shown as on pages (token_text.h).
std::string shown_token(std::string_view token);

}  // namespace fovea
