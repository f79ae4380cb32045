// SPDX-License-Identifier: Apache-2.0
#include "fovea/kernel/adamw.h"
#include "tests/kernel/support.h"

namespace fovea {
namespace {

const Context kContext(2);

template <class T>
struct Table {
  Matrix<T> value, m, v;

  Table(Random& random, index V, index C)
      : value(Matrix<T>::random(random, V, C, 0.5)), m(V, C), v(V, C) {}
  AdamWTable<T> view() { return {value.view(), m.view(), v.view()}; }
  bool operator==(const Table&) const = default;
};

// The plain way: every row in every update, those without a gradient with zeros.
template <class T>
void update_row(Table<T>& table, index row, const Matrix<T>& gradient, const AdamWStep& step,
                double decay) {
  const index C = table.value.columns();
  const AdamWSlot<T> slot{{table.value.view()[row], C},
                          {gradient.view()[0], C},
                          {table.m.view()[row], C},
                          {table.v.view()[row], C},
                          decay};
  adamw<T>(kContext, {&slot, 1}, step);
}

struct Training {
  index rows = 12, columns = 0, updates = 0;
  double weight_decay = 0, decay = 1;
  AdamWOptions options = {};

  AdamWStep step(index number) const {
    AdamWStep s{.options = options, .step = number};
    const auto t = static_cast<double>(number), all = static_cast<double>(updates);
    // Warm-up and a cosine, as training has it; 0 at the end.
    s.options.lr *= std::min(1.0, t / 10) * 0.5 * (1 + std::cos(3.14159265 * t / all));
    s.options.weight_decay = weight_decay;
    return s;
  }
};

// Row r gets a gradient about every 2^r-th update, row 0 none; after half of the run only a few do.
bool has_gradient(Random& random, index row, index update, index updates) {
  const bool early = update < updates / 2 || row < 3;
  return row > 0 && early && random.below(index{1} << std::min<index>(row - 1, 20)) == 0;
}

template <class T>
void expect_same_bits(const Training& run) {
  SCOPED_TRACE(testing::Message() << run.columns << " columns, decay " << run.weight_decay);
  Random random(80, RandomUse::kTest, static_cast<std::uint64_t>(run.columns));
  Table<T> dense(random, run.rows, run.columns);
  dense.value.at(1, 0) = 0;
  dense.value.at(2, 0) = T(-0.0);
  Table<T> late = dense;
  AdamWHistory<T> history;
  std::vector<std::int32_t> made(static_cast<std::size_t>(run.rows), 0);
  const Matrix<T> zeros(1, run.columns);
  const auto catch_up = [&](index row) {
    const RowBehind behind{static_cast<std::int32_t>(row), made[static_cast<std::size_t>(row)]};
    adamw_catch_up<T>(kContext, late.view(), history, {&behind, 1});
    made[static_cast<std::size_t>(row)] = static_cast<std::int32_t>(history.size());
  };
  for (index u = 0; u < run.updates; ++u) {
    const AdamWStep step = run.step(u + 1);
    std::vector<bool> used;
    for (index r = 0; r < run.rows; ++r) {
      const bool is_used = has_gradient(random, r, u, run.updates);
      used.push_back(is_used);
      const auto g = is_used ? Matrix<T>::random(random, 1, run.columns, 0.1) : zeros;
      update_row(dense, r, g, step, run.decay);
      if (!is_used) continue;
      catch_up(r);
      update_row(late, r, g, step, run.decay);
    }
    history.add(step, run.decay);
    for (index r = 0; r < run.rows; ++r)
      if (used[static_cast<std::size_t>(r)]) ++made[static_cast<std::size_t>(r)];
  }
  EXPECT_FALSE(late == dense) << "rows are behind";
  for (index r = 0; r < run.rows; ++r) catch_up(r);
  EXPECT_TRUE(late.value == dense.value);
  EXPECT_TRUE(late.m == dense.m);
  EXPECT_TRUE(late.v == dense.v);
}

TEST(AdamWCatchUp, GivesTheBitsOfUpdatesOfAllRows) {
  for_each_isa([] {
    for (const index columns : {1, 5, 64, 100, 131})
      for (const double decay : {0.0, 0.01}) {
        expect_same_bits<float>({.columns = columns, .updates = 1000, .weight_decay = decay});
      }
    expect_same_bits<double>({.columns = 37, .updates = 1000, .weight_decay = 0.01});
    expect_same_bits<double>({.columns = 37, .updates = 1000});
  });
}

// Moments fall below the smallest normal number, and stay there.
TEST(AdamWCatchUp, GivesThemAfterMomentsHaveDecayedToNothing) {
  for_each_isa([] {
    for (const double decay : {0.0, 0.1}) {
      const AdamWOptions fast{.lr = 0.02, .beta1 = 0.5, .beta2 = 0.8};
      const Training run{.rows = 5, .columns = 37, .updates = 4000, .weight_decay = decay};
      Training quick = run;
      quick.options = fast;
      expect_same_bits<float>(quick);
      expect_same_bits<float>(run);
    }
  });
}

TEST(AdamWCatchUp, GivesThemForOtherBetasAndSteps) {
  for (const double beta1 : {0.0, 0.3, 0.99})
    for (const double beta2 : {0.0, 0.9, 0.99})
      for (const double lr : {1e-6, 0.3}) {
        Training run{.rows = 9, .columns = 20, .updates = 700, .weight_decay = 1e-4};
        run.options = {.lr = lr, .beta1 = beta1, .beta2 = beta2, .epsilon = 1e-3};
        expect_same_bits<float>(run);
        run.decay = 0;
        expect_same_bits<float>(run);
      }
}

TEST(AdamWCatchUp, GivesThemForValuesAtTheEdges) {
  for_each_isa([] {
    const float values[] = {0.0F, -0.0F, 1e-45F, -3e-42F, 1e-38F, 1e-20F, 1.0F, 3e38F, HUGE_VALF};
    const float moments[] = {0.0F, 1e-45F, 7e-45F, 1e-42F, 1e-38F, 1e-12F, 0.1F, 1e15F, 3e38F};
    const Matrix<float> zeros(1, 9);
    for (const double decay : {0.0, 0.5}) {
      Random random(81, RandomUse::kTest);
      Table<float> dense(random, 162, 9);
      for (index r = 0; r < 162; ++r)
        for (index c = 0; c < 9; ++c) {
          dense.value.at(r, c) = values[c];
          dense.m.at(r, c) = moments[r % 9] * (r < 81 ? 1.0F : -1.0F);
          dense.v.at(r, c) = moments[r / 9 % 9];
        }
      Table<float> late = dense;
      AdamWHistory<float> history;
      for (index u = 1; u <= 300; ++u) {
        const AdamWStep step{.options = {.lr = 1e-2, .weight_decay = decay}, .step = u};
        for (index r = 0; r < 162; ++r) update_row(dense, r, zeros, step, 1);
        history.add(step, 1);
      }
      std::vector<RowBehind> rows;
      for (std::int32_t r = 0; r < 162; ++r) rows.push_back({r, 0});
      adamw_catch_up<float>(kContext, late.view(), history, rows);
      EXPECT_TRUE(late == dense);
    }
  });
}

TEST(AdamWCatchUp, SameBitsForAnyNumberOfThreads) {
  Random random(82, RandomUse::kTest);
  Table<float> start(random, 500, 70);
  start.m = Matrix<float>::random(random, 500, 70, 0.1);
  start.v = Matrix<float>(500, 70, 0.01F);
  AdamWHistory<float> history;
  for (index u = 1; u <= 50; ++u) history.add({.options = {.weight_decay = 0.1}, .step = u}, 1);
  std::vector<RowBehind> rows;
  for (std::int32_t r = 0; r < 500; ++r) rows.push_back({499 - r, r % 50});
  expect_same_for_threads([&](const Context& ctx) {
    Table<float> table = start;
    adamw_catch_up<float>(ctx, table.view(), history, rows);
    return std::pair(table.value, std::pair(table.m, table.v));
  });
}

TEST(AdamWCatchUp, SaysWhatIsWrong) {
  Random random(83, RandomUse::kTest);
  Table<float> table(random, 3, 4);
  AdamWHistory<float> history;
  history.add({}, 1);
  const RowBehind beyond[] = {{3, 0}}, ahead[] = {{0, 2}};
  EXPECT_THROWS(adamw_catch_up<float>(kContext, table.view(), history, beyond), kShape,
                "row 3 with 0 of 1 updates; the table has rows 0 to 2");
  EXPECT_THROWS(adamw_catch_up<float>(kContext, table.view(), history, ahead), kShape,
                "row 0 with 2 of 1");
  EXPECT_FALSE(history.takes({.options = {.beta1 = 0.8}, .step = 2}));
  EXPECT_THROWS(history.add({.options = {.beta1 = 0.8}, .step = 2}, 1), kOptionValue,
                "cannot change");
  history.clear();
  EXPECT_TRUE(history.takes({.options = {.beta1 = 0.8}, .step = 2}));
}

}  // namespace
}  // namespace fovea
