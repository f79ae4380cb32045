// SPDX-License-Identifier: Apache-2.0
// Golden values G1-G6 and G13, computed once in float64 by loops in Python that use no library:
// Q = sines(3 x 4, .7, .1), K = sines(5 x 4, .5, .3), V = sines(5 x 2, .9, .2); G6 is
// self-attention of X = sines(5 x 4, .37, .2). G13: the loss is the sum of O * sines(3 x 2, .4,
// .6).
#pragma once

#include <limits>
#include <vector>

#include "tests/attention/support/call.h"

namespace fovea::testing::golden {

using Values = std::vector<double>;

inline const Values kPlainO = {0.061313889915,  0.51924897197,   0.169088912321,
                               -0.056260290589, -0.044233974308, 0.389364037006};
inline const Values kPlainFirstWeights = {0.380236865285, 0.102089823784, 0.044192472514,
                                          0.33042315423, 0.143057684187};
inline const Values kPlainLse = {2.113260550633, 1.675709557602, 1.8736778178};
inline const Values kThreeKeysO = {0.268426896732,  0.606066705593, 0.039049976797,
                                   -0.356132479686, 0.151431324047, 0.400761230656};
inline const Values kEmptyRowO = {0.268426896732, 0.606066705593, 0, 0,
                                  0.151431324047, 0.400761230656};
inline const Values kEmptyRowLse = {1.471792996832, -std::numeric_limits<double>::infinity(),
                                    1.255445557261};
inline const Values kCausalO = {0.268426896732,  0.606066705593,  -0.020535922254,
                                -0.305352607708, -0.044233974308, 0.389364037006};
inline const Values kCausalTopLeftO = {0.198669330795, 0.891207360061, 0.77011590635,
                                       0.36693990397,  0.151431324047, 0.400761230656};
inline const Values kLocalO = {0.559300707426,  0.697296850748,  0.740917136488,  0.684257763604,
                               0.607147120377,  0.639033164662,  0.584429067951,  0.450725238573,
                               -0.31614090077,  -0.471444741659, -0.562940748413, -0.578245365743,
                               -0.623497196758, -0.670713487293, -0.627151853783, -0.498708158966,
                               -0.395337676936, -0.118589561223, 0.174209095272,  0.443429367974};
// By central differences, to 9 digits.
inline const Values kPlainDq = {0.114281039, 0.074376112, 0.01626132,  -0.045834811,
                                0.562615458, 0.481731296, 0.282902511, 0.014809325,
                                0.152982521, 0.113059891, 0.045456256, -0.033276655};
inline const Values kPlainDk = {
    -0.027722399, 0.048258323,  0.101542402, 0.107069502,  0.017629514,  -0.049155977, -0.092822644,
    -0.092833371, -0.04560704,  0.109162792, 0.212591658,  0.216035344,  0.039779658,  -0.08010421,
    -0.162313816, -0.168184698, 0.015920266, -0.028160929, -0.058997599, -0.062086777};
inline const Values kPlainDv = {0.556147632, 0.560718169, 0.399272692, 0.398366706, 0.49020958,
                                0.466016438, 0.541581393, 0.528776165, 0.371377311, 0.376942509};

/// The call of G1-G5 and G13.
template <class V>
Call<V> call() {
  Call<V> call({.T = 3, .S = 5, .D = 4, .Dv = 2});
  call.q = sines<V>(12, 0.7, 0.1);
  call.k = sines<V>(20, 0.5, 0.3);
  call.v = sines<V>(10, 0.9, 0.2);
  call.d_o = sines<V>(6, 0.4, 0.6);
  call.want_weights();
  return call;
}

/// The call of G6.
template <class V>
Call<V> self_call() {
  Call<V> call({.T = 5, .S = 5, .D = 4, .Dv = 4});
  call.q = call.k = call.v = sines<V>(20, 0.37, 0.2);
  return call;
}

/// The values of G1-G6 are to 12 digits, so a double may differ by what rounding took from them;
/// a float by a few of its rounding errors.
template <class V>
void expect_values(const std::vector<V>& values, const Values& expected) {
  const double most = sizeof(V) == sizeof(double) ? 1e-12 : 2e-6;
  EXPECT_LE(difference(std::vector<double>(values.begin(), values.end()), expected), most);
}

/// G13 is to 9 digits of a central difference.
template <class V>
void expect_gradient(const std::vector<V>& values, const Values& expected) {
  const double most = sizeof(V) == sizeof(double) ? 2e-9 : 2e-6;
  EXPECT_LE(difference(std::vector<double>(values.begin(), values.end()), expected), most);
}

template <class V>
void expect_forward(Method method) {
  Call<V> call = golden::call<V>();
  call.forward({}, method);
  expect_values(call.o, kPlainO);
  expect_values(call.lse, kPlainLse);
  expect_values(std::vector<V>(call.weights.begin(), call.weights.begin() + 5), kPlainFirstWeights);

  const std::int32_t three[] = {3};
  call.forward({.mask = mask::KeyLengths({three, 1})}, method);
  expect_values(call.o, kThreeKeysO);
  const std::uint8_t keep[] = {1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 0, 0};
  call.forward({.mask = mask::Keep(ScoreView<const std::uint8_t>::contiguous(keep, 1, 1, 3, 5))},
               method);
  expect_values(call.o, kEmptyRowO);
  expect_values(call.lse, kEmptyRowLse);
  call.forward({.mask = mask::Causal()}, method);
  expect_values(call.o, kCausalO);
  call.forward({.mask = mask::Causal(Align::kTopLeft)}, method);
  expect_values(call.o, kCausalTopLeftO);

  Call<V> self = self_call<V>();
  self.forward({.mask = mask::Window(1, 1)}, method);
  expect_values(self.o, kLocalO);
}

template <class V>
void expect_backward(Method method) {
  Call<V> call = golden::call<V>();
  call.run({}, method);
  expect_gradient(call.dq, kPlainDq);
  expect_gradient(call.dk, kPlainDk);
  expect_gradient(call.dv, kPlainDv);
}

}  // namespace fovea::testing::golden
