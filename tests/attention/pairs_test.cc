// SPDX-License-Identifier: Apache-2.0
// Any two parts work together: the whole matrix of masks, biases and dropout, fused against the
// definition, in double.
#include <gmock/gmock.h>

#include "tests/attention/table.h"
#include "tests/isa.h"

namespace fovea::testing {
namespace {

TEST(AttentionPairs, EveryMaskWithEveryBias) {
  const TableData data;
  constexpr index kMost = TableData::kMost;
  const Sizes sizes{.B = 3, .T = kMost, .S = kMost, .H = 2, .G = 1, .D = 5, .Dv = 3};
  for (const MaskRow& mask_row : mask_table()) {
    for (const BiasRow<double>& bias_row : bias_table<double>()) {
      for (const double dropout : {0.0, 0.3}) {
        SCOPED_TRACE(::testing::Message()
                     << mask_row.name << ", " << bias_row.name << ", dropout " << dropout);
        BiasData<double> of_fused, of_exact;
        Call<double> fused(sizes), exact(sizes);
        const auto attention = [&](BiasData<double>& of) {
          return Attention<double>{.bias = bias_row.make(of),
                                   .mask = mask_row.make(data),
                                   .dropout = {.probability = dropout}};
        };
        exact.run(attention(of_exact), Method::kReference);
        fused.run(attention(of_fused));
        EXPECT_LE(difference(fused.o, exact.o), 1e-12);
        EXPECT_LE(difference(fused.lse, exact.lse), 1e-12);
        EXPECT_LE(difference(fused.dq, exact.dq), 1e-11);
        EXPECT_LE(difference(fused.dk, exact.dk), 1e-11);
        EXPECT_LE(difference(fused.dv, exact.dv), 1e-11);
        EXPECT_LE(largest_difference(of_fused.gradients(), of_exact.gradients()), 1e-9);
      }
    }
  }
}

}  // namespace
}  // namespace fovea::testing
