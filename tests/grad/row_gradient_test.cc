// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "fovea/grad/ops.h"
#include "fovea/grad/parameter.h"
#include "tests/support/throws.h"
#include "tests/support/vectors.h"

namespace fovea {
namespace {

using testing::Each;
using testing::ElementsAre;

const Context kContext(2);

std::vector<std::int32_t> places(RowGradient& gradient, const Tensor& table,
                                 const std::vector<std::int32_t>& ids) {
  return to_vector(gradient.add(kContext, table, ids));
}

TEST(RowGradient, HasARowForEachIdAndKeepsThoseItHas) {
  const Tensor table(Shape{100, 3});
  RowGradient gradient;
  EXPECT_TRUE(gradient.empty());
  EXPECT_EQ(gradient.place_of(7), -1);
  EXPECT_THAT(places(gradient, table, {7, 99, 7, 0}), ElementsAre(0, 1, 0, 2));
  EXPECT_THAT(to_vector(gradient.rows<float>()), Each(0));
  gradient.rows<float>()[1][2] = 5;
  EXPECT_THAT(places(gradient, table, {50, 99}), ElementsAre(3, 1));
  EXPECT_EQ(gradient.rows<float>().rows, 4);
  EXPECT_EQ(gradient.rows<float>()[1][2], 5);
  EXPECT_THAT(to_vector(gradient.ids()), ElementsAre(7, 99, 0, 50));
  std::vector<std::int32_t> sorted;
  for (const auto& [row, place] : gradient.sorted()) {
    sorted.push_back(row);
    EXPECT_EQ(gradient.place_of(row), place);
  }
  EXPECT_THAT(sorted, ElementsAre(0, 7, 50, 99));
}

TEST(RowGradient, IsZeroAgainOnceItIsCleared) {
  const Tensor table(Shape{10, 2});
  RowGradient gradient;
  places(gradient, table, {3, 4});
  gradient.rows<float>()[0][0] = 1;
  gradient.clear();
  EXPECT_TRUE(gradient.empty());
  EXPECT_THAT(places(gradient, table, {5, 3}), ElementsAre(0, 1));
  EXPECT_THAT(to_vector(gradient.rows<float>()), Each(0));
  EXPECT_EQ(gradient.sorted()[0].row, 3);
}

TEST(RowGradient, IsAddedToAWholeOne) {
  Tensor table(Shape{3, 2});
  RowGradient gradient;
  gradient.add_to(table);
  places(gradient, table, {2});
  gradient.rows<float>()[0][1] = 4;
  table.vec<float>()[5] = 1;
  gradient.add_to(table);
  EXPECT_THAT(to_vector(table.vec<float>()), ElementsAre(0, 0, 0, 0, 0, 5));
}

TEST(RowGradient, RefusesAnIdThatIsNotInTheTable) {
  RowGradient gradient;
  EXPECT_THROWS(places(gradient, Tensor(Shape{3, 2}), {0, 3}), kShape, "id 1 is 3");
  EXPECT_THROWS(places(gradient, Tensor(Shape{4}), {0}), kShape, "a table has two axes");
  places(gradient, Tensor(Shape{3, 2}), {1});
  EXPECT_THROWS(places(gradient, Tensor(Shape{4, 2}), {1}), kShape, "had 3 rows, now 4");
}

// The gradient of a table, of rows or as a whole.
struct Table {
  Parameter parameter;
  Tape tape{kContext};

  explicit Table(RowUse use) {
    parameter.value = Tensor({40, 5});
    for (index i = 0; i < 200; ++i) parameter.value.vec<float>()[i] = static_cast<float>(i) / 100;
    parameter.row_use = use;
  }
  template <class F>
  void pass(F&& f) {
    tape.reset();
    const Variable y = f(tape);
    tape.backward(sum(tape, multiply(tape, y, y)));
  }
};

const std::vector<std::int32_t> kSome = {3, 39, 3, 0, 3, 17}, kBags = {0, 2, 2, 6};

// As it is after some passes, of which the last may want all of it.
std::vector<float> gradient_after(RowUse use, bool whole) {
  Table t(use);
  t.pass([&](Tape& tape) { return embedding(tape, {tape.table(t.parameter), kSome, 17, 1.5}); });
  t.pass([&](Tape& tape) {
    return embedding_bag(tape, {tape.table(t.parameter), kSome, kBags, BagMode::kMean, 0});
  });
  EXPECT_EQ(t.parameter.gradient.defined(), use == RowUse::kDense);
  if (whole) t.pass([&](Tape& tape) { return tape.parameter(t.parameter); });
  if (whole) {
    t.pass([&](Tape& tape) {
      const Variable x = tape.parameter(t.parameter);
      return split_columns(tape, x, std::array<index, 2>{2, 3})[1];
    });
    t.pass([&](Tape& tape) { return embedding(tape, {tape.table(t.parameter), kSome}); });
  }
  return to_vector(t.parameter.finished_gradient().vec<float>());
}

TEST(RowGradient, OfOpsHasTheBitsOfAWholeOne) {
  for (const bool whole : {false, true}) {
    const auto rows = gradient_after(RowUse::kSparse, whole);
    EXPECT_TRUE(rows == gradient_after(RowUse::kDense, whole));
    EXPECT_GT(*std::max_element(rows.begin(), rows.end()), 0);
  }
}

TEST(RowGradient, IsMovedWhereOnlySomeColumnsOfTheWholeAreUsed) {
  const auto run = [](RowUse use) {
    Table t(use);
    t.pass([&](Tape& tape) { return embedding(tape, {tape.table(t.parameter), kSome}); });
    t.pass([&](Tape& tape) {
      const Variable x = tape.parameter(t.parameter);
      return split_columns(tape, x, std::array<index, 2>{2, 3})[0];
    });
    return to_vector(t.parameter.finished_gradient().vec<float>());
  };
  EXPECT_TRUE(run(RowUse::kSparse) == run(RowUse::kDense));
}

}  // namespace
}  // namespace fovea
