// SPDX-License-Identifier: Apache-2.0
#include "experiments/imdb_attention.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "fovea/base/check.h"
#include "fovea/grad/tape.h"
#include "fovea/report/heat_map.h"

namespace fovea {

namespace {

constexpr std::size_t kFewestWords = 30, kMostWords = 60;

}  // namespace

ShownReview choose_review(const Reviews& reviews, const KerasVocabulary& vocabulary) {
  check(!reviews.texts.empty(), "reviews: there are none to show");
  std::size_t chosen = 0;
  for (std::size_t i = 0; i < reviews.texts.size(); ++i) {
    const std::size_t words = keras_words(reviews.texts[i]).size();
    if (reviews.labels[i] != 1 || words < kFewestWords || words > kMostWords) continue;
    chosen = i;
    break;
  }
  ShownReview review{vocabulary.encode(reviews.texts[chosen]), keras_words(reviews.texts[chosen])};
  review.words.insert(review.words.begin(), "(start)");
  return review;
}

ShownReview window_of(const ShownReview& review, index length, bool pad) {
  ShownReview window{.ids = last_ids(review.ids, length, pad), .words = review.words};
  const auto kept = static_cast<std::ptrdiff_t>(std::min(review.ids.size(), window.ids.size()));
  window.words.erase(window.words.begin(), window.words.end() - kept);
  window.padding = static_cast<index>(window.ids.size()) - kept;
  return window;
}

std::string draw_review_attention(const Context& context, const Classifier& model,
                                  const ShownReview& review, std::string_view title) {
  const auto M = static_cast<index>(review.ids.size());
  const index P = review.padding, words = M - P;
  check(model.attentions() == 1 && static_cast<index>(review.words.size()) == words,
        "a heat map of a review: expected one attention and a word for each of {} ids; got {}, {}",
        words, model.attentions(), review.words.size());
  const std::array<std::int32_t, 2> offsets{0, static_cast<std::int32_t>(M)};
  HeadStatistics seen{.sees_keys = true};
  Tape tape(context, TapeMode::kInference);
  model.logits(tape, {.ids = {review.ids.data(), M}, .offsets = {offsets.data(), 2}},
               {.attention = {&seen, 1}});
  HeatMap map{.title = std::string(title),
              .subtitle = "mean weight of each word over the queries of a review, for each head",
              .columns = review.words,
              .values = {}};
  if (P > 0) map.columns.insert(map.columns.begin(), "(padding)");
  const auto heads = static_cast<index>(seen.received.size()) / M;
  for (index head = 0; head < heads; ++head) {
    map.rows.push_back(fmt::format("head {}", head + 1));
    const double* const weights = seen.received.data() + head * M;
    if (P > 0) map.values.push_back(std::accumulate(weights, weights + P, 0.0));
    map.values.insert(map.values.end(), weights + P, weights + M);
  }
  for (double& weight : map.values) weight /= static_cast<double>(M);
  return draw_heat_map(map);
}

}  // namespace fovea
