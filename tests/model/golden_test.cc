// SPDX-License-Identifier: Apache-2.0
// The model against an independent implementation: see make_golden.py.
#include "tests/model/golden.h"

#include <gmock/gmock.h>

#include <cmath>
#include <ostream>
#include <string>

#include "fovea/model/language_model.h"
#include "tests/isa.h"
#include "tests/model/golden_values.h"
#include "tests/support/vectors.h"

namespace fovea::golden {

inline void PrintTo(const Form& form, std::ostream* out) { *out << form.name; }

namespace {

using Numbers = std::vector<double>;

constexpr std::uint64_t kSeed = 11;
constexpr double kScale = 0.125;
constexpr double kUlp = 0x1p-23;  // of a float near 1

// Sequences of 3, 0, 5 and 8 tokens; two of their names differ in the upper half alone.
struct GoldenBatch {
  GoldenBatch() {
    for (std::int32_t n = 0; n < 16; ++n) {
      ids.push_back((n * n * 5 + 3 * n + 1) % 11);
      targets.push_back(n % 5 == 4 ? -1 : (n * 7 + 3) % 11);
    }
  }
  TokenBatch view() const {
    return {{ids.data(), 16}, {targets.data(), 16}, {offsets, 5}, {samples, 4}};
  }

  std::vector<std::int32_t> ids, targets;
  std::int32_t offsets[5] = {0, 3, 3, 8, 16};
  std::uint64_t samples[4] = {5, 6, (1ull << 40) + 5, 9};
};

struct Step {
  double loss = 0;
  std::vector<std::string> names;
  std::vector<Numbers> gradients;
};

Numbers numbers(const Tensor& tensor) {
  return to_vector(tensor.to(DType::kFloat64).vec<double>());
}

LanguageModelConfig config_of(const Form& form) {
  LanguageModelConfig c = form.config;
  c.layers = 2;
  c.width = 8;
  c.block = 8;
  c.vocabulary = 11;
  return c;
}

Step step(const Form& form, DType dtype) {
  const LanguageModel model(config_of(form), 1, dtype);
  index number = 0;
  for (Parameter* p : model.parameters()) fill(*p, number++);
  const GoldenBatch batch;
  Tape tape{Context(2)};
  const Variable loss =
      model.loss(tape, batch.view(), {.scale = kScale, .dropout = {kSeed, form.step, 0}});
  tape.backward(loss);
  Step result;
  with_type(dtype, [&]<class T>(std::type_identity<T>) {
    result.loss = static_cast<double>(loss.value<T>()[0][0]);
  });
  for (Parameter* p : model.parameters()) {
    result.names.push_back(p->name);
    result.gradients.push_back(numbers(p->finished_gradient()));
  }
  return result;
}

// Twice the error of the plain float32 implementation and 4 ulp; a double is 2^29 times finer than
// a float, and so are its errors.
double bound_in_double(const Form& form) { return (2 * form.plain_largest + 4 * kUlp) * 0x1p-29; }

class GoldenModel : public testing::TestWithParam<Form> {};

TEST_P(GoldenModel, LossAndGradientsAreThoseOfTheFormulas) {
  const Form& form = GetParam();
  const double bound = bound_in_double(form);
  for_each_isa([&] {
    const Step got = step(form, DType::kFloat64);
    EXPECT_NEAR(got.loss, form.loss, bound * form.loss);
    ASSERT_EQ(got.gradients.size(), form.gradients.size());
    for (std::size_t p = 0; p < got.gradients.size(); ++p) {
      const Gradient& expected = form.gradients[p];
      const Numbers& gradient = got.gradients[p];
      const auto n = static_cast<double>(gradient.size());
      double square = 0, projection = 0;
      for (std::size_t i = 0; i < gradient.size(); ++i) {
        square += gradient[i] * gradient[i];
        projection +=
            gradient[i] * golden_value(100 + static_cast<index>(p), static_cast<index>(i));
      }
      EXPECT_EQ(got.names[p], expected.name);
      // What an error of `bound` in every element can do to a norm, and to a sum with weights of at
      // most a half.
      const double error = bound * expected.largest;
      EXPECT_NEAR(std::sqrt(square), expected.norm, error * std::sqrt(n)) << expected.name;
      EXPECT_NEAR(projection, expected.projection, error * n / 2) << expected.name;
    }
  });
}

// By the norm of all errors: the largest of a few hundred is luck.
TEST_P(GoldenModel, InFloat32ItErrsNoMoreThanThePlainImplementation) {
  const Form& form = GetParam();
  const Step exact = step(form, DType::kFloat64);
  for_each_isa([&] {
    const Step got = step(form, DType::kFloat32);
    EXPECT_NEAR(got.loss, exact.loss, (2 * form.plain_largest + 4 * kUlp) * exact.loss);
    double error = 0, whole = 0;
    for (std::size_t p = 0; p < got.gradients.size(); ++p) {
      for (std::size_t i = 0; i < got.gradients[p].size(); ++i) {
        const double g = exact.gradients[p][i];
        error += (got.gradients[p][i] - g) * (got.gradients[p][i] - g);
        whole += g * g;
      }
    }
    EXPECT_LE(std::sqrt(error / whole), 2 * form.plain_norm + 4 * kUlp);
  });
}

INSTANTIATE_TEST_SUITE_P(Forms, GoldenModel, testing::ValuesIn(kForms),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace fovea::golden
