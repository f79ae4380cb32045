// SPDX-License-Identifier: Apache-2.0
// Which tokens of a source the tokens of its translation attend to.
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "fovea/base/context.h"
#include "fovea/model/translator.h"
#include "fovea/text/vocabulary.h"

namespace fovea {

/// A source with its end, and a translation behind its begin mark.
struct AlignedPair {
  std::span<const token> source;
  std::span<const token> target;
};

/// The mean of all heads' weights in a layer of the decoder (from 0) of each token of the source
/// without the end, while each token of the target is read: [target, source - 1].
std::vector<double> attention_to_source(const Context& context, const Translator& model,
                                        const AlignedPair& pair, index layer);

/// The layer of the decoder, from 0, that says how texts are aligned unless another is asked for:
/// the last but one. Deep models align best there (Garg et al. 2019, arXiv:1909.02074).
index default_alignment_layer(const TranslatorConfig& config);

/// For each token of the target behind the begin mark the token of the source, without the end, to
/// which attention gives the most weight while it is predicted, in the mean of all heads of a layer
/// of the decoder (from 0): (source, target), both from 0. The first of equal weights counts.
std::vector<std::pair<index, index>> align(const Context& context, const Translator& model,
                                           const AlignedPair& pair, index layer);

}  // namespace fovea
