// SPDX-License-Identifier: Apache-2.0
// Texts of known rules, and the rows and models of them.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fovea/linear/fit.h"
#include "tests/support/draws.h"

namespace fovea {

/// Texts with what is true of each, in the form of LinearData.
struct LabelledSample {
  std::vector<std::string> texts;
  Examples truth;

  void add(std::string text, std::vector<std::int32_t> labels) {
    texts.push_back(std::move(text));
    truth.starts.push_back(0);
    truth.labels.insert(truth.labels.end(), labels.begin(), labels.end());
    truth.label_starts.push_back(static_cast<index>(truth.labels.size()));
  }
  void add_number(std::string text, float number) {
    add(std::move(text), {});
    truth.numbers.push_back(number);
  }
};

/// `count` words of so many that there are: "w0", "w1", ...
inline std::string draw_words(Draws& draws, index count, index words) {
  std::string text;
  for (index n = 0; n < count; ++n) text += "w" + std::to_string(draws.below(words)) + " ";
  return text;
}

/// Texts of classes in turn: a word in `one_in` is a word of the text's class, any other says
/// nothing.
inline LabelledSample drawn_texts(index texts, index classes, index one_in,
                                  std::uint64_t seed = 1) {
  Draws draws(seed);
  LabelledSample all;
  for (index i = 0; i < texts; ++i) {
    const index label = i % classes;
    std::string text;
    for (index n = 0; n < 12; ++n) {
      if (draws.below(one_in) == 0) {
        text += "c" + std::to_string(label) + "x" + std::to_string(draws.below(5)) + " ";
      } else {
        text += draw_words(draws, 1, 50);
      }
    }
    all.add(text, {static_cast<std::int32_t>(label)});
  }
  return all;
}

inline NgramRules rules_of(const std::string& words, const std::string& characters) {
  return {.words = parse_lengths(words, "--word-ngrams"),
          .characters = parse_lengths(characters, "--char-ngrams")};
}

/// What is fitted, and how.
struct Fitted {
  ClassifierTask task = ClassifierTask::kBinary;
  index classes = 2;
  NgramRules rules = rules_of("1-2", "0");
  LinearFitOptions options = {};
  std::vector<double> class_weights = {};
  int threads = 1;
  FitObserver observer = {};
};

inline std::optional<LinearFit> try_fit(const LabelledSample& of, const Fitted& how) {
  const Context context(how.threads);
  NgramFeatures features = learn_features(of.texts, how.rules, how.classes);
  const SparseRows rows = training_rows(context, of.texts, features);
  const LinearData data{.rows = rows,
                        .features = features,
                        .truth = of.truth,
                        .texts = of.texts,
                        .task = how.task,
                        .classes = how.classes,
                        .class_weights = how.class_weights};
  return fit_linear(context, data, how.options, 1, how.observer);
}

inline LinearFit fit(const LabelledSample& of, const Fitted& how) { return *try_fit(of, how); }

/// [classes] probabilities, or the number.
inline std::vector<float> predict(const LinearModel& model, const std::string& text) {
  std::vector<float> values(static_cast<std::size_t>(model.weights().classes));
  FeatureReader reader(model.features());
  model.predict(reader.read(text), values.data());
  return values;
}

/// The share of texts whose label has the largest probability.
inline double accuracy(const LinearModel& model, const LabelledSample& of) {
  double right = 0;
  for (std::size_t i = 0; i < of.texts.size(); ++i) {
    const std::vector<float> p = predict(model, of.texts[i]);
    const auto best = std::max_element(p.begin(), p.end()) - p.begin();
    right += best == of.truth.labels_of(static_cast<index>(i))[0] ? 1 : 0;
  }
  return right / static_cast<double>(of.texts.size());
}

}  // namespace fovea
