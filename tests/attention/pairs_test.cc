// SPDX-License-Identifier: Apache-2.0
// Any two parts work together: the whole matrix of masks, biases, value parts, norms, scores and
// dropout, watched by observers, fused against the definition, in double.
#include <gmock/gmock.h>

#include "tests/attention/support/table.h"
#include "tests/isa.h"

namespace fovea::testing {
namespace {

struct Parts {
  const MaskRow& mask;
  const BiasRow<double>& bias;
  const ValueRow<double>& values;
  double dropout;
  const NormRow<double>& norm = norm_table<double>().front();
  const ScoreRow<double>& score = score_table<double>().front();

  std::string text() const {
    return std::string(mask.name) + ", " + bias.name + ", values " + values.name + ", dropout " +
           std::to_string(dropout) + ", " + norm.name + ", " + score.name;
  }
};

constexpr index kD = 6;

// The part of the rows that a bias sees.
index row_width(const ScoreRow<double>& score) {
  PartData<double> parts;
  Attention<double> attention;
  score.set(attention, parts, kD);
  return detail::made_width(attention.score, kD);
}

// Everything that a call writes.
struct Results {
  PartData<double> parts;
  Call<double> call;
  std::vector<double> entropy, maximum;

  Results(const Parts& which, const TableData& data, Method method)
      : parts{.most = data.most, .width = row_width(which.score)},
        call({.B = data.batch,
              .T = data.most,
              .S = data.most,
              .H = 2,
              .G = 1,
              .D = kD,
              .Dv = PartData<double>::kDv}),
        entropy(call.lse.size()),
        maximum(call.lse.size()) {
    Attention<double> attention{.bias = which.bias.make(parts),
                                .mask = which.mask.make(data),
                                .dropout = {.probability = which.dropout},
                                .values = which.values.make(parts)};
    which.norm.set(attention, parts);
    which.score.set(attention, parts, call.D);
    attention.observe = observe::Maximum<double>(rows(maximum));
    if (std::holds_alternative<norm::Softmax>(attention.norm)) {
      attention.observe = attention.observe + observe::Entropy<double>(rows(entropy));
    }
    call.run(attention, method);
  }

  RowView<double> rows(std::vector<double>& numbers) const {
    return RowView<double>::contiguous(numbers.data(), call.B, call.H, call.T);
  }
};

// Without a norm, values are sums of hundreds of scores: the bounds are those of values of size 1.
void expect_near(const char* name, const std::vector<double>& fused,
                 const std::vector<double>& exact, double bound) {
  EXPECT_LE(largest_difference(fused, exact), bound * std::max(1.0, largest_magnitude(exact)))
      << name;
}

void expect_near(const Results& fused, const Results& exact) {
  expect_near("o", fused.call.o, exact.call.o, 1e-12);
  expect_near("lse", fused.call.lse, exact.call.lse, 1e-12);
  expect_near("entropy", fused.entropy, exact.entropy, 1e-12);
  expect_near("maximum", fused.maximum, exact.maximum, 1e-12);
  expect_near("dq", fused.call.dq, exact.call.dq, 1e-11);
  expect_near("dk", fused.call.dk, exact.call.dk, 1e-11);
  expect_near("dv", fused.call.dv, exact.call.dv, 1e-11);
  expect_near("parameters", fused.parts.gradients(), exact.parts.gradients(), 1e-9);
}

void expect_definition(const Parts& which, const TableData& data) {
  SCOPED_TRACE(which.text());
  expect_near(Results(which, data, Method::kFused), Results(which, data, Method::kReference));
}

// Under the sanitizers, what costs most once only.
#ifdef FOVEA_FEW_PROBLEMS
const std::vector<double> kDropouts = {0.3};
const std::vector<BiasRow<double>> kLongBiases = {bias_table<double>().back()};
constexpr std::size_t kMaskStep = 4;
#else
const std::vector<double> kDropouts = {0.0, 0.3};
const std::vector<BiasRow<double>> kLongBiases = bias_table<double>();
constexpr std::size_t kMaskStep = 1;
#endif

TEST(AttentionPairs, EveryMaskBiasAndValuePart) {
  const TableData data;
  for (const MaskRow& mask : mask_table()) {
    for (const auto& bias : bias_table<double>()) {
      for (const auto& values : value_table<double>()) {
        for (const double dropout : kDropouts) {
          expect_definition({mask, bias, values, dropout}, data);
        }
      }
    }
  }
}

// Long enough for several blocks of keys in the forward, and several chunks in the backward.
constexpr index kLong = 300;

TEST(AttentionPairs, EveryMaskAndBiasOverSeveralBlocks) {
  const TableData data(1, kLong);
  for (const MaskRow& mask : mask_table()) {
    for (const auto& bias : kLongBiases) {
      expect_definition({mask, bias, value_table<double>().back(), 0.3}, data);
    }
  }
}

TEST(AttentionPairs, EveryNormWithEveryMask) {
  const TableData data(1, kLong);
  for (std::size_t n = 0; n < mask_table().size(); n += kMaskStep) {
    const MaskRow& mask = mask_table()[n];
    for (const auto& norm : norm_table<double>()) {
      for (const double dropout : kDropouts) {
        expect_definition(
            {mask, bias_table<double>().back(), value_table<double>().back(), dropout, norm}, data);
      }
    }
  }
}

TEST(AttentionPairs, EveryNormWithEveryBiasAndValuePart) {
  const TableData data;
  for (const auto& norm : norm_table<double>()) {
    for (const auto& bias : bias_table<double>()) {
      for (const auto& values : value_table<double>()) {
        expect_definition({mask_table()[1], bias, values, 0.3, norm}, data);
      }
    }
  }
}

TEST(AttentionPairs, EveryScoreWithEveryMask) {
  const TableData data(1, kLong);
  for (std::size_t n = 0; n < mask_table().size(); n += kMaskStep) {
    const MaskRow& mask = mask_table()[n];
    for (const auto& score : score_table<double>()) {
      expect_definition({mask, bias_table<double>().back(), value_table<double>().back(), 0.3,
                         norm_table<double>().front(), score},
                        data);
    }
  }
}

TEST(AttentionPairs, EveryScoreWithEveryBiasAndNorm) {
  const TableData data;
  for (const auto& score : score_table<double>()) {
    for (const auto& bias : bias_table<double>()) {
      for (const auto& norm : norm_table<double>()) {
        expect_definition({mask_table()[1], bias, value_table<double>().front(), 0.3, norm, score},
                          data);
      }
    }
  }
}

TEST(AttentionPairs, EveryNormOnEveryInstructionSet) {
  const TableData data(1, kLong);
  for (const auto& norm : norm_table<double>()) {
    const Parts which{mask_table()[1], bias_table<double>().front(), value_table<double>().front(),
                      0.0, norm};
    SCOPED_TRACE(which.text());
    const Results exact(which, data, Method::kReference);
    for_each_isa([&] { expect_near(Results(which, data, Method::kFused), exact); });
  }
}

TEST(AttentionPairs, EveryMaskOnEveryInstructionSet) {
  const TableData data(1, kLong);
  for (const MaskRow& mask : mask_table()) {
    const Parts which{mask, bias_table<double>().back(), value_table<double>().back(), 0.3};
    SCOPED_TRACE(which.text());
    const Results exact(which, data, Method::kReference);
    for_each_isa([&] { expect_near(Results(which, data, Method::kFused), exact); });
  }
}

}  // namespace
}  // namespace fovea::testing
