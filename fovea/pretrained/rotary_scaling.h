// SPDX-License-Identifier: Apache-2.0
// Rotary positions of models that read farther than they were first trained to: their angles are
// divided, each pair of columns by its own number.
#pragma once

#include <vector>

#include "fovea/base/types.h"
#include "fovea/pretrained/foreign_json.h"

namespace fovea {

/// How a model changes the angles of fovea/attention/score/score.h's Rotary.
struct RotaryScaling {
  std::vector<double> divisors = {};  ///< [D / 2]; empty: all are 1
  double amplitude = 1;               ///< cosines and sines times this
};

/// The sizes that a rule needs.
struct RotarySizes {
  index columns = 0;  ///< D, of a head
  double base = 10000;
  double trained = 0;  ///< the positions that the model was trained with at first
};

/// Positions times 1 / factor (Chen et al. 2023, "Extending context window of large language models
/// via positional interpolation").
RotaryScaling linear_scaling(const RotarySizes& sizes, double factor);

/// Long waves are divided by `factor`, short ones not, those between by a part of it. A wave is
/// long if fewer than `low` of it lie within the trained positions, short if more than `high` do:
/// Llama 3.1 (Grattafiori et al. 2024, "The Llama 3 herd of models", section 3.4.2, and its code).
struct Llama3Rule {
  double factor = 8, low = 1, high = 4;
};
RotaryScaling llama3_scaling(const RotarySizes& sizes, const Llama3Rule& rule);

/// YaRN (Peng et al. 2023, "YaRN: efficient context window extension of large language models",
/// section 3): the same by a ramp over the number of the pair, from `fast` to `slow` waves within
/// the trained positions.
struct YarnRule {
  double factor = 1, fast = 32, slow = 1;
  bool whole = true;  ///< the ramp begins and ends at whole numbers
};
/// The amplitude is that of equation 22, .1 ln(factor) + 1.
RotaryScaling yarn_scaling(const RotarySizes& sizes, const YarnRule& rule);

/// What "rope_scaling" or "rope_parameters" of a config.json says: default, linear, llama3 or yarn;
/// "rope_theta" in it counts more than sizes.base. `sizes.trained` is what it has if it does not
/// say "original_max_position_embeddings". Throws kModelWrongKind for another type.
struct RotaryRules {
  double base = 10000;
  double reach = 0;  ///< positions that the model can read by YaRN; 0: it does not say
  RotaryScaling scaling = {};
};
RotaryRules read_rotary_rules(const ForeignObject& rules, RotarySizes sizes);

}  // namespace fovea
