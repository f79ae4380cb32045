// SPDX-License-Identifier: Apache-2.0
#include "fovea/linear/linear_model.h"

#include <gmock/gmock.h>

#include <cmath>
#include <functional>
#include <limits>
#include <numeric>

#include "tests/linear/support.h"
#include "tests/support/throws.h"

namespace fovea {
namespace {

const std::vector<std::string>& cats() {
  static const std::vector<std::string> texts = {"the cat sat", "the cat ran ran away",
                                                 "the dog sat on the cat"};
  return texts;
}

NgramFeatures features_of_cats() {
  NgramFeatures features = learn_features(cats(), rules_of("1-2", "2-3"), 2);
  training_rows(Context(1), cats(), features);
  return features;
}

// Weights that no two columns share.
LinearModel model_of_cats(ClassifierTask task, index classes) {
  NgramFeatures features = features_of_cats();
  LinearWeights weights{.task = task, .classes = classes};
  const index size = features.columns() * weights.outputs();
  for (index n = 0; n < size; ++n) {
    weights.weights.push_back(static_cast<float>(std::sin(static_cast<double>(n + 1))));
  }
  for (index k = 0; k < weights.outputs(); ++k) {
    weights.prior.push_back(0.25F * static_cast<float>(k + 1));
  }
  if (task != ClassifierTask::kRegression) {
    weights.thresholds.assign(static_cast<std::size_t>(classes), 0.25F);
  }
  return {std::move(features), std::move(weights)};
}

TEST(NgramFeatures, OfBinaryRulesDoNotSayHowOften) {
  const std::vector<std::string> texts = {"sun sun sun rain", "sun rain", "fog"};
  NgramRules rules = rules_of("1", "0");
  for (const bool binary : {false, true}) {
    rules.binary = binary;
    NgramFeatures features = learn_features(texts, rules, 2);
    const SparseRows rows = training_rows(Context(1), texts, features);
    const auto first = rows.row(0).values, second = rows.row(1).values;
    EXPECT_EQ(std::equal(first.begin(), first.end(), second.begin(), second.end()), binary);
    FeatureReader reader(features);
    const auto read = reader.read(texts[0]).values;
    EXPECT_TRUE(std::equal(read.begin(), read.end(), first.begin(), first.end()));
  }
}

TEST(NgramFeatures, AreDampedTfidf) {
  NgramFeatures features = learn_features(cats(), rules_of("1", "0"), 2);
  const SparseRows rows = training_rows(Context(1), cats(), features);
  const NgramBlock& words = features.blocks.at(0);
  const auto idf = [](double with) { return std::log(4 / (1 + with)) + 1; };
  ASSERT_GE(words.names.find("ran"), 0);
  EXPECT_NEAR(words.idf[static_cast<std::size_t>(words.names.find("ran"))], idf(1), 1e-6);
  EXPECT_NEAR(words.idf[static_cast<std::size_t>(words.names.find("cat"))], idf(3), 1e-6);
  // Text 1 is (the, cat, ran twice, away).
  const double ran = (1 + std::log(2.0)) * idf(1);
  const double square = 2 * idf(3) * idf(3) + ran * ran + idf(1) * idf(1);
  const double length = std::sqrt(square + words.damping * words.damping);
  bool seen = false;
  for (index n = rows.starts[1]; n < rows.starts[2]; ++n) {
    const auto at = static_cast<std::size_t>(n);
    if (rows.columns[at] == words.names.find("ran")) {
      seen = true;
      EXPECT_NEAR(rows.values[at], ran / length, 1e-6);
    }
  }
  EXPECT_TRUE(seen);
  EXPECT_NEAR(rows.values[static_cast<std::size_t>(rows.starts[2] - 1)], std::sqrt(square) / length,
              1e-6);
}

// What a model is trained on is what it reads later, to the bit, with any number of threads.
TEST(NgramFeatures, OfTrainingAreThoseOfTexts) {
  const LabelledSample drawn = drawn_texts(500, 2, 4);
  for (const int threads : {1, 2, 3, 8}) {
    NgramFeatures features = learn_features(drawn.texts, rules_of("1-2", "2-3"), 2);
    const SparseRows rows = training_rows(Context(threads), drawn.texts, features);
    FeatureReader reader(features);
    for (std::size_t i = 0; i < drawn.texts.size(); ++i) {
      const SparseRow row = reader.read(drawn.texts[i]);
      const auto begin = static_cast<std::size_t>(rows.starts[i]);
      const auto size = static_cast<std::size_t>(rows.starts[i + 1]) - begin;
      EXPECT_THAT(row.columns, testing::ElementsAreArray(rows.columns.data() + begin, size));
      EXPECT_THAT(row.values, testing::ElementsAreArray(rows.values.data() + begin, size));
    }
  }
}

TEST(NgramFeatures, OfATextWithoutKnownNgramsAreNothing) {
  const NgramFeatures features = features_of_cats();
  FeatureReader reader(features);
  for (const char* text : {"", " ", "ZZZZ", "日本"}) {
    const SparseRow row = reader.read(text);
    EXPECT_THAT(row.columns, testing::ElementsAre(features.bias_column())) << text;
    EXPECT_THAT(row.values, testing::ElementsAre(0)) << text;
  }
}

TEST(NgramFeatures, NeedAnNgram) {
  const std::vector<std::string> texts = {"", "  ", "\n"};
  EXPECT_THROWS(learn_features(texts, rules_of("1-2", "1-3"), 2), kInputTooSmall, "n-gram");
}

TEST(LinearModel, PartsAddUpToTheLogit) {
  for (const auto& [task, classes] : {std::pair{ClassifierTask::kBinary, index{2}},
                                      std::pair{ClassifierTask::kSingleLabel, index{3}},
                                      std::pair{ClassifierTask::kRegression, index{1}}}) {
    const LinearModel model = model_of_cats(task, classes);
    FeatureReader reader(model.features());
    for (const std::string text : {"the cat ran, the CAT sat", "ran ran ran", "zzz", "", "cat"}) {
      std::vector<double> logits(static_cast<std::size_t>(model.weights().outputs()));
      model.logits(reader.read(text), logits);
      for (index k = 0; k < model.weights().outputs(); ++k) {
        const LogitParts parts = model.parts_of(text, k);
        double sum = parts.base;
        for (const NgramShare& share : parts.shares) sum += share.share;
        EXPECT_NEAR(sum, logits[static_cast<std::size_t>(k)], 1e-12) << text;
      }
      EXPECT_THROWS(model.parts_of(text, model.weights().outputs()), kShape, "logit");
      EXPECT_THROWS(model.parts_of(text, -1), kShape, "logit");
    }
  }
}

TEST(LinearModel, PartsNameTheirBytes) {
  const std::string text = "The  CAT";
  const LinearModel model = model_of_cats(ClassifierTask::kBinary, 2);
  std::vector<std::string> words, characters;
  for (const NgramShare& share : model.parts_of(text, 0).shares) {
    (share.name[0] == '[' ? characters : words)
        .push_back(share.name + "=" + text.substr(share.begin, share.end - share.begin));
  }
  EXPECT_THAT(words, testing::ElementsAre("the=The", "the cat=The  CAT", "cat=CAT"));
  EXPECT_THAT(characters, testing::Contains("[he ]=he"));
}

TEST(LinearModel, GivesProbabilitiesOfItsTask) {
  const auto sum = [](const std::vector<float>& p) {
    return std::accumulate(p.begin(), p.end(), 0.0);
  };
  EXPECT_NEAR(sum(predict(model_of_cats(ClassifierTask::kBinary, 2), "the cat")), 1, 1e-6);
  EXPECT_NEAR(sum(predict(model_of_cats(ClassifierTask::kSingleLabel, 20), "the cat")), 1, 1e-6);
  // Without a known n-gram the prior is all that there is.
  const float of_prior = static_cast<float>(1 / (1 + std::exp(-0.5)));
  EXPECT_FLOAT_EQ(predict(model_of_cats(ClassifierTask::kMultiLabel, 3), "zzz")[1], of_prior);
  EXPECT_FLOAT_EQ(predict(model_of_cats(ClassifierTask::kRegression, 1), "zzz")[0], 0.25F);
}

TEST(LinearModel, KnowsItsStrongestNgrams) {
  const LinearModel model = model_of_cats(ClassifierTask::kBinary, 2);
  const auto weight = [&](index column) {
    return model.weights().weights[static_cast<std::size_t>(column)];
  };
  const std::vector<index> most = model.strongest(0, 5, true), least = model.strongest(0, 5, false);
  ASSERT_EQ(most.size(), 5U);
  ASSERT_EQ(least.size(), 5U);
  for (std::size_t n = 1; n < 5; ++n) {
    EXPECT_GE(weight(most[n - 1]), weight(most[n]));
    EXPECT_LE(weight(least[n - 1]), weight(least[n]));
  }
  for (index column = 0; column < model.features().bias_column(); ++column) {
    EXPECT_LE(weight(column), weight(most[0]));
    EXPECT_GE(weight(column), weight(least[0]));
  }
  EXPECT_EQ(model.strongest(0, 1'000'000, true).size(),
            static_cast<std::size_t>(model.features().bias_column()));
}

LinearModel load(const std::vector<NamedTensor>& tensors, ClassifierTask task, index classes) {
  ClassifierConfig config;
  config.task = task;
  config.classes = classes;
  return linear_model_from({.tensors = tensors, .metadata = {}}, rules_of("1-2", "2-3"), config,
                           "model.safetensors");
}

TEST(LinearModel, IsReadAsItWasStored) {
  const LinearModel model = model_of_cats(ClassifierTask::kSingleLabel, 3);
  const LinearModel again = load(model.tensors(), ClassifierTask::kSingleLabel, 3);
  EXPECT_EQ(again.parameters(), model.parameters());
  EXPECT_EQ(again.weights().thresholds, model.weights().thresholds);
  for (const std::string text : {"the cat ran", "dog", "", "zzz"}) {
    EXPECT_EQ(predict(again, text), predict(model, text)) << text;
  }
}

// A model whose probabilities are 0.25 below log-odds of 0 and 0.5 from there on, of each class.
LinearModel mapped_model() {
  const LinearModel model = model_of_cats(ClassifierTask::kSingleLabel, 3);
  LinearWeights weights = model.weights();
  weights.isotonic.assign(3, {{-0.001F, 0.0F}, {0.25F, 0.5F}});
  return {model.features(), std::move(weights)};
}

TEST(LinearModel, MapsItsProbabilities) {
  const LinearModel model = mapped_model();
  const LinearModel again = load(model.tensors(), ClassifierTask::kSingleLabel, 3);
  const std::vector<float> p = predict(model, "the cat ran");
  for (const float one : p) EXPECT_TRUE(std::abs(one - 0.25F) < 0.1F || one > 0.3F) << one;
  EXPECT_NEAR(std::accumulate(p.begin(), p.end(), 0.0), 1, 1e-6);
  EXPECT_EQ(predict(again, "the cat ran"), p);
  EXPECT_NE(predict(model_of_cats(ClassifierTask::kSingleLabel, 3), "the cat ran"), p);
  // Nothing is known of this text, so it keeps the shares of the classes.
  EXPECT_EQ(predict(model, "zzz"), predict(model_of_cats(ClassifierTask::kSingleLabel, 3), "zzz"));
}

Tensor& tensor_of(std::vector<NamedTensor>& tensors, const std::string& name) {
  return std::find_if(tensors.begin(), tensors.end(), [&](auto& t) { return t.name == name; })
      ->tensor;
}

template <class T>
void set(std::vector<NamedTensor>& tensors, const std::string& name, index at, T value) {
  Tensor& tensor = tensor_of(tensors, name);
  tensor = tensor.clone();
  tensor.data<T>()[at] = value;
}

TEST(LinearModel, RefusesWhatIsDamaged) {
  const std::vector<NamedTensor> whole = mapped_model().tensors();
  using Damage = std::function<void(std::vector<NamedTensor>&)>;
  const auto nan = std::numeric_limits<float>::quiet_NaN();
  std::vector<Damage> all = {
      [&](auto& t) { set(t, "weight", 1, nan); },
      [&](auto& t) { set(t, "prior", 0, nan); },
      [&](auto& t) { set(t, "words.idf", 0, nan); },
      [&](auto& t) { set(t, "threshold", 0, nan); },
      [](auto& t) { set(t, "threshold", 0, 0.0F); },
      [](auto& t) { set(t, "threshold", 0, 1.5F); },
      [](auto& t) { set<std::int64_t>(t, "isotonic.ends", 0, -1); },
      [](auto& t) { set<std::int64_t>(t, "isotonic.ends", 2, 7); },
      [](auto& t) { set(t, "isotonic.log_odds", 1, -0.001F); },
      [](auto& t) { set(t, "isotonic.probability", 0, 0.75F); },
      [](auto& t) { set(t, "isotonic.probability", 0, 0.0F); },
      [](auto& t) { set(t, "words.damping", 0, std::numeric_limits<double>::infinity()); },
      [](auto& t) { set(t, "characters.damping", 0, -1.0); },
      [](auto& t) { set<std::uint8_t>(t, "words.names", 0, '\n'); },
      [](auto& t) {
        set<std::uint8_t>(t, "words.names", tensor_of(t, "words.names").size() - 1, 'x');
      },
      // A name that its own neighbour has.
      [](auto& t) {
        tensor_of(t, "words.names") = Tensor::of<std::uint8_t>(
            {4}, std::span<const std::uint8_t>(reinterpret_cast<const std::uint8_t*>("a\na\n"), 4));
      },
      [](auto& t) { std::erase_if(t, [](auto& x) { return x.name == "characters.names"; }); },
  };
  for (const NamedTensor& named : whole) {
    const std::string& name = named.name;
    // Without names there is no such block, see above; without thresholds, no thresholds.
    if (!name.ends_with(".names") && name != "threshold") {
      all.push_back([=](auto& t) { std::erase_if(t, [&](auto& x) { return x.name == name; }); });
    }
    all.push_back([=](auto& t) { tensor_of(t, name) = Tensor({3, 2}, DType::kInt32); });
    all.push_back([=](auto& t) { tensor_of(t, name) = Tensor({0}, named.tensor.dtype()); });
    all.push_back([=](auto& t) { tensor_of(t, name) = Tensor(Shape{}, named.tensor.dtype()); });
    all.push_back([=](auto& t) { tensor_of(t, name) = Tensor({2, 2, 2}, named.tensor.dtype()); });
  }
  for (std::size_t n = 0; n < all.size(); ++n) {
    std::vector<NamedTensor> tensors = whole;
    all[n](tensors);
    SCOPED_TRACE(n);
    EXPECT_THROWS(load(tensors, ClassifierTask::kSingleLabel, 3), kModelDamaged, "tensor");
  }
  EXPECT_THROWS(load(whole, ClassifierTask::kSingleLabel, 4), kModelDamaged, "model.safetensors");
  EXPECT_THROWS(load(whole, ClassifierTask::kBinary, 2), kModelDamaged, "model.safetensors");
}

}  // namespace
}  // namespace fovea
