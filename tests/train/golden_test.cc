// SPDX-License-Identifier: Apache-2.0
// The recipe against an independent implementation: see make_golden.py.
#include "tests/train/golden.h"

#include <gmock/gmock.h>

#include <cmath>
#include <memory>
#include <ostream>
#include <string>

#include "fovea/grad/ops.h"
#include "fovea/train/model_folder.h"
#include "fovea/train/trainer.h"
#include "tests/support/folder.h"
#include "tests/support/vectors.h"

namespace fovea::golden {

inline void PrintTo(const Recipe& recipe, std::ostream* out) { *out << recipe.name; }

namespace {

constexpr index kVocabulary = 11, kWidth = 6, kHidden = 10;

// Numbers in [-.5, .5) that every type holds exactly.
double golden_value(index number, index i) {
  return static_cast<double>((i * i * 31 + i * 7919 + number * 104729 + 13) % 8191) / 8192 - 0.5;
}

// A table, a hidden layer with GELU and an output without bias, on batches that a formula makes:
// more tokens in the first batch of an update than in the others.
class SmallNetwork final : public Objective {
 public:
  explicit SmallNetwork(index accumulate) : accumulate_(accumulate) {
    add("table", {kVocabulary, kWidth}, Decay::kYes);
    add("in.weight", {kHidden, kWidth}, Decay::kYes);
    add("in.bias", {kHidden}, Decay::kNo);
    add("out.weight", {kVocabulary, kHidden}, Decay::kYes);
  }

  std::span<Parameter* const> parameters() override { return pointers_; }
  index updates_per_epoch() const override { return 100; }

  index begin_update(index update) override {
    update_ = update;
    targets_of_update_ = 9 + 4 * (accumulate_ - 1);
    return targets_of_update_;
  }

  double forward(index batch) override {
    ids_.clear();
    targets_.clear();
    for (index n = 0; n < (batch == 0 ? 9 : 4); ++n) {
      ids_.push_back(static_cast<std::int32_t>((n * n + 5 * n + 3 * update_ + 7 * batch) % 11));
      targets_.push_back(
          static_cast<std::int32_t>((3 * n + 2 * update_ * update_ + batch + 1) % 11));
    }
    const auto rows = static_cast<index>(ids_.size());
    tape_.reset();
    const auto p = [&](std::size_t number) { return tape_.parameter(*pointers_[number]); };
    const Variable x = embedding(tape_, {p(0), {ids_.data(), rows}});
    const Variable hidden = linear(tape_, x, p(1), p(2), Activation::kGelu);
    loss_ = linear_cross_entropy(tape_, hidden, p(3), {}, {{targets_.data(), rows}},
                                 {.scale = 1.0 / static_cast<double>(targets_of_update_)});
    return double{loss_.value<float>()[0][0]};
  }

  void backward() override { tape_.backward(loss_); }
  bool has_validation() const override { return false; }
  std::optional<Validation> validate(const std::function<bool()>&) override { return std::nullopt; }

 private:
  void add(const char* name, const Shape& shape, Decay decay) {
    const auto number = static_cast<index>(owned_.size());
    Parameter& p = *owned_.emplace_back(std::make_unique<Parameter>());
    p.name = name;
    p.value = Tensor(shape);
    p.decay = decay;
    for (index i = 0; i < p.value.size(); ++i) {
      p.value.vec<float>()[i] = static_cast<float>(golden_value(number, i));
    }
    pointers_.push_back(&p);
  }

  const index accumulate_;
  std::vector<std::unique_ptr<Parameter>> owned_;
  std::vector<Parameter*> pointers_;
  Tape tape_{Context(2)};
  Variable loss_;
  std::vector<std::int32_t> ids_, targets_;
  index update_ = 0, targets_of_update_ = 0;
};

struct Updates : TrainingObserver {
  void updated(const UpdateRecord& record, double) override { all.push_back(record); }
  std::vector<UpdateRecord> all;
};

class GoldenRecipe : public testing::TestWithParam<Recipe> {
 protected:
  GoldenRecipe() : network(GetParam().options.accumulate) {
    TrainOptions options = GetParam().options;
    options.stop_after = std::to_string(GetParam().updates.size()) + "u";
    write_model_files(folder.path(), std::vector<NamedFile>{{"config.json", "{}"}});
    Trainer(Context(2), network, seen,
            {.options = options, .folder = folder.path(), .identity = {}, .attachments = {}})
        .run();
  }

  // Twice the error of the plain float32 implementation and 4 ulp of the value.
  double bound(double value) const {
    return 2 * GetParam().plain_error + 4 * 0x1p-23 * std::abs(value);
  }

  TestFolder folder;
  SmallNetwork network;
  Updates seen;
};

TEST_P(GoldenRecipe, EveryUpdateIsThatOfTheFormulas) {
  const Recipe& recipe = GetParam();
  ASSERT_EQ(seen.all.size(), recipe.updates.size());
  for (std::size_t i = 0; i < seen.all.size(); ++i) {
    SCOPED_TRACE(testing::Message() << "update " << i + 1);
    const UpdateRecord& got = seen.all[i];
    const Update& expected = recipe.updates[i];
    EXPECT_NEAR(got.loss, expected.loss, bound(expected.loss));
    EXPECT_NEAR(got.gradient_norm, expected.gradient_norm, bound(expected.gradient_norm));
    EXPECT_NEAR(got.lr, expected.lr, 4 * 0x1p-52 * expected.lr);
  }
}

TEST_P(GoldenRecipe, EndsWithTheWeightsOfTheFormulas) {
  const Recipe& recipe = GetParam();
  const auto parameters = network.parameters();
  ASSERT_EQ(parameters.size(), recipe.weights.size());
  for (std::size_t p = 0; p < parameters.size(); ++p) {
    const std::vector<float> values = to_vector(std::as_const(parameters[p]->value).vec<float>());
    double square = 0, projection = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      square += double{values[i]} * double{values[i]};
      projection +=
          double{values[i]} * golden_value(100 + static_cast<index>(p), static_cast<index>(i));
    }
    // No weight exceeds 1. What such an error of each can do to a norm, and to a sum with factors
    // of at most a half.
    const Weights& expected = recipe.weights[p];
    const auto n = static_cast<double>(values.size());
    EXPECT_EQ(parameters[p]->name, expected.name);
    EXPECT_NEAR(std::sqrt(square), expected.norm, bound(1) * std::sqrt(n)) << expected.name;
    EXPECT_NEAR(projection, expected.projection, bound(1) * n / 2) << expected.name;
  }
}

// The recipes show what they are made to show.
TEST(GoldenRecipes, ClipSomeUpdatesAndNotOthers) {
  for (const Recipe& recipe : kRecipes) {
    if (recipe.options.clip <= 0) continue;
    int clipped = 0;
    for (const Update& update : recipe.updates) {
      clipped += update.gradient_norm > recipe.options.clip ? 1 : 0;
    }
    EXPECT_GT(clipped, 2) << recipe.name;
    EXPECT_LT(clipped, 10) << recipe.name;
  }
}

INSTANTIATE_TEST_SUITE_P(Recipes, GoldenRecipe, testing::ValuesIn(kRecipes),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace fovea::golden
