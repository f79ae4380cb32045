// SPDX-License-Identifier: Apache-2.0
// The reference by hand: sums of the gates whose activation is a simple number.
#include "fovea/reference/recurrent.h"

#include "tests/kernel/support.h"

namespace fovea {
namespace {

const double kLog3 = std::log(3.0);  // sigmoid(log 3) = 3 / 4, tanh(log 3) = 4 / 5
const std::vector<std::int32_t> kTwo = {0, 2};

TEST(ReferenceRecurrent, RnnByHand) {
  Matrix<double> weight(1, 1, 2), gates(2, 1), hidden(2, 1), dy(2, 1, 1);
  gates.at(0, 0) = kLog3;
  gates.at(1, 0) = -1.6;
  const RecurrentRun<double> run{
      .offsets = kTwo, .weight = weight.view(), .gates = gates.view(), .hidden = hidden.view()};
  reference::recurrent_forward(run);
  EXPECT_NEAR(hidden.at(0, 0), 0.8, 1e-15);
  EXPECT_NEAR(hidden.at(1, 0), 0, 1e-15);
  reference::recurrent_backward<double>({run, {}, dy.view()});
  EXPECT_NEAR(gates.at(1, 0), 1, 1e-15);
  EXPECT_NEAR(gates.at(0, 0), (1 + 2 * 1) * (1 - 0.64), 1e-15);
}

TEST(ReferenceRecurrent, LstmByHand) {
  Matrix<double> weight(4, 1), gates(1, 4, kLog3), hidden(1, 1), cells(1, 1), tanh(1, 1);
  Matrix<double> first_hidden(1, 1), first_cell(1, 1), dy(1, 1, 1);
  first_cell.at(0, 0) = 4 / 3.0 * (kLog3 - 0.6);  // so that c = .75 first_cell + .75 * .8 = log 3
  const std::vector<std::int32_t> one = {0, 1};
  RecurrentRun<double> run{.kind = RecurrentKind::kLstm,
                           .offsets = one,
                           .weight = weight.view(),
                           .gates = gates.view(),
                           .hidden = hidden.view(),
                           .cells = cells.view(),
                           .cell_tanh = tanh.view(),
                           .first_hidden = first_hidden.view(),
                           .first_cell = first_cell.view()};
  reference::recurrent_forward(run);
  EXPECT_NEAR(cells.at(0, 0), kLog3, 1e-15);
  EXPECT_NEAR(hidden.at(0, 0), 0.75 * 0.8, 1e-15);
  run.first_cell = {};
  reference::recurrent_backward<double>({run, {}, dy.view()});
  const double dc = 0.75 * (1 - 0.64), slope = 0.75 * 0.25;
  EXPECT_NEAR(gates.at(0, 0), dc * 0.8 * slope, 1e-15);
  EXPECT_NEAR(gates.at(0, 1), 0, 1e-15);
  EXPECT_NEAR(gates.at(0, 2), dc * 0.75 * (1 - 0.64), 1e-15);
  EXPECT_NEAR(gates.at(0, 3), 0.8 * slope, 1e-15);
}

TEST(ReferenceRecurrent, GruByHand) {
  Matrix<double> weight(3, 1), bias(1, 1, 4 / 3.0 * kLog3), gates(1, 4, kLog3), hidden(1, 1);
  Matrix<double> first(1, 1, 2), dy(1, 1, 1);
  gates.at(0, 2) = 0;  // n = tanh(.75 * 4 / 3 log 3)
  const std::vector<std::int32_t> one = {0, 1};
  RecurrentRun<double> run{.kind = RecurrentKind::kGru,
                           .offsets = one,
                           .weight = weight.view(),
                           .bias_hn = bias.vec(),
                           .gates = gates.view(),
                           .hidden = hidden.view(),
                           .first_hidden = first.view()};
  reference::recurrent_forward(run);
  EXPECT_NEAR(hidden.at(0, 0), 0.25 * 0.8 + 0.75 * 2, 1e-15);
  run.first_hidden = {};
  reference::recurrent_backward<double>({run, {}, dy.view()});
  const double dn = 0.25 * (1 - 0.64), slope = 0.75 * 0.25;
  EXPECT_NEAR(gates.at(0, 0), dn * 4 / 3.0 * kLog3 * slope, 1e-15);
  EXPECT_NEAR(gates.at(0, 1), -0.8 * slope, 1e-15);
  EXPECT_NEAR(gates.at(0, 2), dn, 1e-15);
  EXPECT_NEAR(gates.at(0, 3), dn * 0.75, 1e-15);
}

TEST(ReferenceRecurrent, SruByHand) {
  Matrix<double> vectors(2, 1, 1), gates(2, 3), x(2, 1, 4), cells(2, 1), hidden(2, 1);
  gates.at(0, 0) = 8;
  gates.at(0, 1) = kLog3;       // f = 3 / 4: c = 2
  gates.at(1, 1) = -2 - kLog3;  // f = 1 / 4: c = .5
  gates.at(1, 2) = kLog3 - 2;   // r = 3 / 4: h = .375 + 1
  const SruRun<double> run{.offsets = kTwo,
                           .vectors = vectors.view(),
                           .gates = gates.view(),
                           .highway = x.view(),
                           .cells = cells.view(),
                           .hidden = hidden.view()};
  reference::sru_forward(run);
  EXPECT_NEAR(hidden.at(0, 0), 0.5 * 2 + 0.5 * 4, 1e-15);
  EXPECT_NEAR(hidden.at(1, 0), 0.75 * 0.5 + 0.25 * 4, 1e-15);
  Matrix<double> dy(2, 1), dvectors(2, 1), dx(2, 1);
  dy.at(1, 0) = 1;
  reference::sru_backward<double>({run, dy.view(), dx.view(), Store::kWrite, dvectors.view()});
  const double slope = 0.25 * 0.75, dr = (0.5 - 4) * slope, df = 0.75 * 2 * slope;
  EXPECT_NEAR(gates.at(1, 0), 0.75 * 0.75, 1e-15);
  EXPECT_NEAR(gates.at(1, 1), df, 1e-15);
  EXPECT_NEAR(gates.at(1, 2), dr, 1e-15);
  EXPECT_NEAR(dx.at(1, 0), 0.25, 1e-15);
  EXPECT_NEAR(dvectors.at(0, 0), df * 2, 1e-15);
  EXPECT_NEAR(dvectors.at(1, 0), dr * 2, 1e-15);
  const double dc = 0.75 * 0.25 + df + dr;
  EXPECT_NEAR(gates.at(0, 0), dc * 0.25, 1e-15);
  EXPECT_NEAR(gates.at(0, 1), -8 * dc * slope, 1e-15);
}

}  // namespace
}  // namespace fovea
