// SPDX-License-Identifier: Apache-2.0
// Any two parts work together: the whole matrix of masks, biases, value parts and dropout, watched
// by an observer, fused against the definition, in double.
#include <gmock/gmock.h>

#include "tests/attention/table.h"
#include "tests/isa.h"

namespace fovea::testing {
namespace {

struct Parts {
  const MaskRow& mask;
  const BiasRow<double>& bias;
  const ValueRow<double>& values;
  double dropout;

  std::string text() const {
    return std::string(mask.name) + ", " + bias.name + ", values " + values.name + ", dropout " +
           std::to_string(dropout);
  }
};

// Everything that a call writes.
struct Results {
  PartData<double> parts;
  Call<double> call;
  std::vector<double> entropy;

  Results(const Parts& which, const TableData& data, Method method)
      : call({.B = data.batch,
              .T = data.most,
              .S = data.most,
              .H = 2,
              .G = 1,
              .D = 5,
              .Dv = PartData<double>::kDv}),
        entropy(call.lse.size()) {
    call.run({.bias = which.bias.make(parts),
              .mask = which.mask.make(data),
              .dropout = {.probability = which.dropout},
              .values = which.values.make(parts),
              .observe = observe::Entropy<double>(
                  RowView<double>::contiguous(entropy.data(), call.B, call.H, call.T))},
             method);
  }
};

void expect_near(const Results& fused, const Results& exact) {
  EXPECT_LE(difference(fused.call.o, exact.call.o), 1e-12);
  EXPECT_LE(difference(fused.call.lse, exact.call.lse), 1e-12);
  EXPECT_LE(difference(fused.entropy, exact.entropy), 1e-12);
  EXPECT_LE(difference(fused.call.dq, exact.call.dq), 1e-11);
  EXPECT_LE(difference(fused.call.dk, exact.call.dk), 1e-11);
  EXPECT_LE(difference(fused.call.dv, exact.call.dv), 1e-11);
  EXPECT_LE(largest_difference(fused.parts.gradients(), exact.parts.gradients()), 1e-9);
}

void expect_definition(const Parts& which, const TableData& data) {
  SCOPED_TRACE(which.text());
  expect_near(Results(which, data, Method::kFused), Results(which, data, Method::kReference));
}

TEST(AttentionPairs, EveryMaskBiasAndValuePart) {
  const TableData data;
  for (const MaskRow& mask : mask_table()) {
    for (const auto& bias : bias_table<double>()) {
      for (const auto& values : value_table<double>()) {
        for (const double dropout : {0.0, 0.3}) {
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
    for (const auto& bias : bias_table<double>()) {
      expect_definition({mask, bias, value_table<double>().back(), 0.3}, data);
    }
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
