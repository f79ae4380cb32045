// SPDX-License-Identifier: Apache-2.0
// Small classifiers and batches of labelled texts.
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "fovea/base/random.h"
#include "fovea/model/classifier.h"
#include "tests/model/support.h"

namespace fovea {

inline ClassifierConfig classifier_config(ClassifierTask task = ClassifierTask::kSingleLabel,
                                          std::string encoder = {}) {
  ClassifierConfig c;
  c.task = task;
  c.encoder = std::move(encoder);
  c.classes = task == ClassifierTask::kBinary ? 2 : 3;
  c.heads = 2;
  c.width = 4;
  c.ff = 5;
  c.block = 8;
  c.vocabulary = 7;
  return c;
}

/// The model of Su 2018 (kexue.fm/4765), without or with positions.
inline ClassifierConfig published_config() {
  ClassifierConfig c;
  c.task = ClassifierTask::kBinary;
  c.classes = 2;
  c.encoder = "attention:heads=8:head-dim=16:scale=1:no-output:plain";
  c.output_dropout = 0.5;
  c.embedding_scale = 1;
  c.init = InitScheme::kKeras;
  c.block = 80;
  c.vocabulary = 20000;
  return c;
}

/// Texts of the given lengths, of random tokens, with what every task asks for.
struct OwnedTexts {
  OwnedTexts(std::vector<index> lengths, const ClassifierConfig& c)
      : tokens(std::move(lengths), c.vocabulary), classes(c.classes) {
    if (c.pair_encoder != PairEncoder::kNone) separate(pair_separator(c));
    Random random(2, RandomUse::kTest);
    for (std::size_t s = 0; s + 1 < tokens.offsets.size(); ++s) {
      labels.push_back(static_cast<std::int32_t>(random.below(c.classes)));
      for (index k = 0; k < classes; ++k) {
        const bool is_label = c.task == ClassifierTask::kMultiLabel;
        values.push_back(is_label ? static_cast<float>(random.below(2))
                                  : static_cast<float>(random.uniform(-2, 2)));
      }
    }
  }

  /// Makes pairs of the texts: a separator in the middle of each.
  void separate(std::int32_t separator) {
    std::replace(tokens.ids.begin(), tokens.ids.end(), separator, 0);
    for (std::size_t s = 0; s + 1 < tokens.offsets.size(); ++s) {
      const std::int32_t begin = tokens.offsets[s], end = tokens.offsets[s + 1];
      if (begin < end) tokens.ids[static_cast<std::size_t>((begin + end - 1) / 2)] = separator;
    }
  }

  TextRows texts() const { return tokens.view().sequences(); }
  LabelledTexts view() const {
    return {texts(), labels, {values.data(), static_cast<index>(labels.size()), classes}};
  }

  OwnedBatch tokens;
  index classes;
  std::vector<std::int32_t> labels;
  std::vector<float> values;
};

}  // namespace fovea
