// SPDX-License-Identifier: Apache-2.0
// A heat map of one review: where a trained classifier of IMDB attends.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "experiments/imdb_text.h"
#include "fovea/base/context.h"
#include "fovea/model/classifier.h"

namespace fovea {

/// A review that is short enough to be read below a picture.
struct ShownReview {
  std::vector<token> ids;
  std::vector<std::string> words;  ///< of the ids behind those of padding
  index padding = 0;               ///< ids of padding in front
};

/// The first positive review of 30 to 60 words, or the first of all.
ShownReview choose_review(const Reviews& reviews, const KerasVocabulary& vocabulary);

/// The review as a model reads it: its last `length` ids; with `pad`, behind ids of padding.
ShownReview window_of(const ShownReview& review, index length, bool pad);

/// An SVG: for each head of the model's only attention the mean weight of each word over all
/// queries of the review. The classifier pools by the mean, so that is how much of the pooled value
/// comes from that word. The first column sums up the padding, if there is any.
std::string draw_review_attention(const Context& context, const Classifier& model,
                                  const ShownReview& review, std::string_view title);

}  // namespace fovea
