// SPDX-License-Identifier: Apache-2.0
// The reference against values that were not computed by it: by hand, or golden.
#include "fovea/reference/kernels.h"

#include "tests/reference/support.h"

namespace fovea {
namespace {

TEST(Reference, SoftmaxByHand) {
  const auto x = row({0, std::log(2), std::log(5)});
  Matrix<double> y(1, 3), dx(1, 3);
  reference::softmax_forward<double>(x.in(), y.view());
  expect_near(y, {0.125, 0.25, 0.625});
  // y (dy - <y, dy>) for dy = (8, 0, 0): <y, dy> = 1.
  reference::softmax_backward<double>(y.in(), row({8, 0, 0}).in(), dx.view());
  expect_near(dx, {0.875, -0.25, -0.625});
}

TEST(Reference, NormsGoldenAndByHand) {
  Matrix<double> y(1, 4), saved(1, 2), z(1, 2), rms(1, 1);
  const auto x = row({1, 2, 4, 8});  // the golden row of tests/kernel/norm_test.cc
  reference::layer_norm_forward<double>(x.in(), {}, {}, y.view(), saved.view());
  expect_near(y, {-1.025754575496, -0.652752911679, 0.093250415954, 1.585257071221});
  reference::layer_norm_forward<double>(x.in(), {}, {LayerNormVariant::kUnbiased, 1e-6}, y.view(),
                                        saved.view());
  expect_near(y, {-0.88832985144, -0.565300814552, 0.080757259222, 1.37287340677});
  reference::rms_norm_forward<double>(row({3, 4}).in(), {}, 0, z.view(), rms.vec());
  expect_near(z, {3 / std::sqrt(12.5), 4 / std::sqrt(12.5)});
}

TEST(Reference, ActivationsAtOne) {
  using enum Activation;
  EXPECT_NEAR(reference::activate(kGelu, 1.0), 0.8413447460685429, 1e-15);
  EXPECT_NEAR(reference::activate_gradient(kGelu, 1.0), 1.0833154705876863, 1e-15);
  EXPECT_NEAR(reference::activate(kGeluTanh, 1.0), 0.8411919906082768, 1e-15);
  EXPECT_NEAR(reference::activate(kSilu, 1.0), 0.7310585786300049, 1e-15);
  EXPECT_NEAR(reference::activate(kTanh, 1.0), 0.7615941559557649, 1e-15);
  EXPECT_EQ(reference::activate(kRelu, -1.0), 0.0);
  EXPECT_EQ(reference::activate(kNone, -1.0), -1.0);
}

TEST(Reference, EmbeddingByHand) {
  Matrix<double> table(2, 1), dtable(2, 1), y(3, 1);
  table.at(0, 0) = 5;
  table.at(1, 0) = 7;
  const std::vector<std::int32_t> ids = {1, 0, 1};
  const Vec<const std::int32_t> view{ids.data(), 3};
  reference::embedding_forward<double>({table.view(), view, 2}, {}, y.view());
  expect_near(y, {14, 10, 14});
  reference::embedding_backward<double>(view, 2, y.in(), dtable.view());
  expect_near(dtable, {20, 56});
}

TEST(Reference, EmbeddingBagByHand) {
  Matrix<double> table(3, 1), y(3, 1);
  table.at(0, 0) = 5;
  table.at(1, 0) = 7;
  table.at(2, 0) = 100;
  const std::vector<std::int32_t> ids = {1, 0, 2, 1, 1}, offsets = {0, 4, 4, 5};
  IdBags bags{ids, offsets, BagMode::kSum, 2};
  reference::embedding_bag_forward<double>(table.in(), bags, y.view());
  expect_near(y, {19, 0, 7});
  bags.mode = BagMode::kMean;
  reference::embedding_bag_forward<double>(table.in(), bags, y.view());
  expect_near(y, {19.0 / 3, 0, 7});
  bags.mode = BagMode::kRootMean;
  reference::embedding_bag_forward<double>(table.in(), bags, y.view());
  expect_near(y, {19 / std::sqrt(3.0), 0, 7});
  bags.mode = BagMode::kMean;
  Matrix<double> dtable(3, 1), dy(3, 1);
  dy.at(0, 0) = 3;
  dy.at(1, 0) = 10;
  dy.at(2, 0) = 2;
  reference::embedding_bag_backward<double>(bags, dy.in(), dtable.view());
  expect_near(dtable, {1, 4, 0});
}

TEST(Reference, TheFirstStepOfAdamW) {
  auto value = row({1}), gradient = row({-4}), m = row({0}), v = row({0});
  const AdamWSlot<double> slot{value.vec(), gradient.vec(), m.vec(), v.vec()};
  EXPECT_EQ(reference::global_norm<double>({&slot, 1}), 4);
  reference::adamw<double>({&slot, 1}, {.options = {.lr = 0.1, .epsilon = 0, .weight_decay = 0.5}});
  expect_near(value, {1 + 0.1 - 0.05});
  expect_near(m, {-0.4});
  expect_near(v, {0.016});
}

}  // namespace
}  // namespace fovea
