// SPDX-License-Identifier: Apache-2.0
// The translator against an independent implementation: see make_translator_golden.py.
#include "tests/model/translator_golden.h"

#include <gtest/gtest.h>

#include <cmath>
#include <ostream>
#include <string>

#include "fovea/model/translator.h"
#include "tests/isa.h"
#include "tests/model/golden_values.h"

namespace fovea::golden {

inline void PrintTo(const TranslatorForm& form, std::ostream* out) { *out << form.name; }

namespace {

TranslatorConfig config_of(const TranslatorForm& form) {
  TranslatorConfig c;
  c.encoder_layers = c.decoder_layers = 2;
  c.heads = 2;
  c.width = c.block = 8;
  c.ff = 12;
  c.dropout = 0;
  c.norm_position = form.norm_position;
  c.position = form.position;
  c.tie = form.tie;
  c.share_embeddings = form.share;
  c.vocabulary = 11;
  c.target_vocabulary = form.share ? 11 : 9;
  return c;
}

// Pairs of 3 and 4, 1 and 2, 5 and 3 tokens.
struct GoldenPairs {
  explicit GoldenPairs(std::int32_t target) {
    for (std::int32_t n = 0; n < 9; ++n) {
      read.push_back((n * n * 5 + 3 * n + 1) % 11);
      written.push_back((n * n * 3 + n + 2) % target);
      targets.push_back(n % 5 == 4 ? -1 : (n * 7 + 3) % target);
    }
  }
  TranslationBatch view() const {
    return {.source = {.ids = {read.data(), 9}, .offsets = {from, 4}},
            .target = {.ids = {written.data(), 9}, .offsets = {to, 4}},
            .targets = {targets.data(), 9}};
  }

  std::vector<std::int32_t> read, written, targets;
  std::int32_t from[4] = {0, 3, 4, 9}, to[4] = {0, 4, 6, 9};
};

class GoldenTranslator : public testing::TestWithParam<TranslatorForm> {};

// In float64: what is left is the order of sums.
TEST_P(GoldenTranslator, LossAndGradientsAreThoseOfTheFormulas) {
  const TranslatorForm& form = GetParam();
  for_each_isa([&] {
    const Translator model(config_of(form), 1, DType::kFloat64);
    index number = 0;
    for (Parameter* p : model.parameters()) fill(*p, number++);
    const GoldenPairs pairs(static_cast<std::int32_t>(model.config().target_vocabulary));
    Tape tape{Context(2)};
    const Variable loss =
        model.loss(tape, pairs.view(), {.scale = 0.125, .smoothing = form.smoothing});
    tape.backward(loss);
    constexpr double kError = 1e-13;
    EXPECT_NEAR(loss.value<double>()[0][0], form.loss, kError * form.loss);
    ASSERT_EQ(model.parameters().size(), form.gradients.size());
    for (std::size_t n = 0; n < form.gradients.size(); ++n) {
      const TranslatorGradient& expected = form.gradients[n];
      Parameter& p = *model.parameters()[n];
      EXPECT_EQ(p.name, expected.name);
      double square = 0, projection = 0;
      index i = 0;
      for (const double g : p.finished_gradient().vec<double>()) {
        square += g * g;
        projection += g * golden_value(100 + static_cast<index>(n), i++);
      }
      EXPECT_NEAR(std::sqrt(square), expected.norm, kError) << p.name;
      EXPECT_NEAR(projection, expected.projection, kError) << p.name;
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Forms, GoldenTranslator, testing::ValuesIn(kTranslatorForms),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace fovea::golden
