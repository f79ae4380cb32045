// SPDX-License-Identifier: Apache-2.0
// Observers that write more than a number for each row, against their definition. Scores are small
// whole numbers, the same in every precision: ties are ties, and the keys of a row are exact.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/attention/support/table.h"
#include "tests/isa.h"
#include "tests/support/throws.h"

namespace fovea::testing {
namespace {

// [B, H, L, W] with the queries outermost and a gap behind each row, which must stay as it was.
template <class V>
struct Gapped {
  static constexpr index kGap = 2;
  static constexpr V kOld{77};
  index B, H, L, W;
  std::vector<V> memory;

  Gapped(index b, index h, index l, index w) : B(b), H(h), L(l), W(w) {
    memory.assign(static_cast<std::size_t>(B * H * L * (W + kGap)), kOld);
  }
  ScoreView<V> view() {
    return {memory.data(), B, H, L, W, H * (W + kGap), W + kGap, B * H * (W + kGap)};
  }
  RowView<V> rows() { return {memory.data(), B, H, W, H * (W + kGap), W + kGap, 1}; }
  /// Row (b, h, i).
  std::vector<V> row(index b, index h, index i) const {
    const auto begin = memory.begin() + ((i * B + b) * H + h) * (W + kGap);
    return {begin, begin + W};
  }
  std::vector<V> values() const {
    std::vector<V> all;
    for (index n = 0; n < B * H * L; ++n) {
      const auto begin = memory.begin() + n * (W + kGap);
      all.insert(all.end(), begin, begin + W);
      EXPECT_EQ(std::count(begin + W, begin + W + kGap, kOld), kGap);
    }
    return all;
  }
};

template <class V>
struct Seen {
  Gapped<std::int32_t> keys;
  Gapped<V> weights, rows, mass;
  Gapped<std::uint8_t> keep;
};

struct Ask {
  index K, begin, end;  // how many keys; which rows
};

template <class V>
Seen<V> see(Attention<V> attention, Call<V>& call, const Ask& ask, Method method, int threads = 2) {
  const index B = call.B, H = call.H, T = call.T, S = call.S;
  Seen<V> seen{{B, H, T, ask.K},
               {B, H, T, ask.K},
               {B, H, ask.end - ask.begin, S},
               {B, H, 1, S},
               {B, H, T, S}};
  attention.observe = observe::TopK<V>(seen.keys.view(), seen.weights.view()) +
                      observe::SelectedRows<V>(ask.begin, ask.end, seen.rows.view());
  attention.observe = attention.observe + observe::ColumnMass<V>(seen.mass.rows()) +
                      observe::DropoutKeep<V>(seen.keep.view());
  call.forward(attention, method, threads);
  return seen;
}

// Whole numbers from -2 to 2.
template <class V>
Call<V> whole_numbers(const Sizes& sizes) {
  Call<V> call(sizes, 3);
  for (auto* values : {&call.q, &call.k}) {
    for (V& x : *values) x = std::clamp(std::round(x), V{-2}, V{2});
  }
  return call;
}

template <class V>
double most(double of_float) {
  return sizeof(V) == sizeof(double) ? 1e-12 : of_float;
}

template <class V>
void expect_definition(const Seen<V>& seen, const Seen<double>& exact) {
  EXPECT_EQ(seen.keys.values(), exact.keys.values());
  EXPECT_EQ(seen.keep.values(), exact.keep.values());
  const auto close = [](const Gapped<V>& a, const Gapped<double>& b, double bound) {
    const std::vector<V> values = a.values();
    EXPECT_LE(largest_difference({values.begin(), values.end()}, b.values()), bound);
  };
  close(seen.weights, exact.weights, most<V>(1e-6));
  close(seen.rows, exact.rows, most<V>(1e-6));
  close(seen.mass, exact.mass, most<V>(1e-5));
}

template <class V>
void expect_definition(const Sizes& sizes, Attention<V> fast, Attention<double> plain,
                       const Ask& ask) {
  fast.score = score::Dot{0.5};
  plain.score = score::Dot{0.5};
  Call<double> exact_call = whole_numbers<double>(sizes);
  const Seen<double> exact = see(plain, exact_call, ask, Method::kReference);
  for_each_isa([&] {
    Call<V> call = whole_numbers<V>(sizes);
    expect_definition(see(fast, call, ask, Method::kFused), exact);
  });
}

template <class V>
void expect_definition(const Sizes& sizes, const Mask& mask, const Ask& ask, double dropout) {
  expect_definition<V>(sizes, {.mask = mask, .dropout = {.probability = dropout}},
                       {.mask = mask, .dropout = {.probability = dropout}}, ask);
}

// Masks with empty rows, padding, tiles that are skipped.
TEST(Observed, EveryMask) {
  const TableData data(3, 90), longer(1, 300);
  const Sizes sizes{.B = 3, .T = 90, .S = 90, .H = 2, .G = 1, .D = 5, .Dv = 3};
  const Sizes long_sizes{.B = 1, .T = 300, .S = 300, .H = 2, .G = 1, .D = 5, .Dv = 3};
  for (const MaskRow& mask : mask_table()) {
    SCOPED_TRACE(mask.name);
    expect_definition<float>(sizes, mask.make(data), {8, 60, 70}, 0.3);
    expect_definition<float>(long_sizes, mask.make(longer), {3, 0, 300}, 0);
  }
}

TEST(Observed, AnySizes) {
  for (const double dropout : {0.0, 0.5}) {
    for (const Ask& ask : {Ask{1, 0, 1}, Ask{8, 69, 70}, Ask{300, 63, 66}, Ask{0, 5, 5}}) {
      const Sizes sizes{.B = 2, .T = 70, .S = 290, .H = 6, .G = 3, .D = 7, .Dv = 2};
      expect_definition<float>(sizes, mask::Window(140, 3), ask, dropout);
      expect_definition<double>(sizes, mask::Causal(), ask, dropout);
    }
  }
  expect_definition<float>({.T = 3, .S = 0, .D = 4}, {}, {2, 1, 3}, 0);
  expect_definition<float>({.T = 0, .S = 5, .D = 4}, {}, {2, 0, 0}, 0);
  expect_definition<float>({.T = 1, .S = 1, .D = 4}, {}, {2, 0, 1}, 0.5);
}

TEST(Observed, PackedSequences) {
  const std::int32_t queries[] = {0, 65, 65, 70, 140}, keys[] = {0, 130, 140, 140, 290};
  const Packed packed{{queries, 5}, {keys, 5}};
  const Sizes sizes{.T = 140, .S = 290, .H = 2, .G = 2, .D = 4, .Dv = 4};
  const Dropout dropout{.probability = 0.25, .seed = 5};
  expect_definition<float>(
      sizes, {.mask = mask::Window(90, 0), .dropout = dropout, .packed = packed},
      {.mask = mask::Window(90, 0), .dropout = dropout, .packed = packed}, {20, 60, 100});
}

// Sigmoid and none have no row to wait for; a sink takes its part of every row.
TEST(Observed, EveryNorm) {
  const Sizes sizes{.B = 1, .T = 70, .S = 200, .H = 2, .G = 2, .D = 4, .Dv = 2};
  const std::vector<float> sink = {0.5f, 4};
  const std::vector<double> sinks(sink.begin(), sink.end());
  const auto expect = [&](Norm norm, bool with_sink, const Mask& mask) {
    Attention<float> fast{.mask = mask, .norm = norm};
    Attention<double> plain{.mask = mask, .norm = norm};
    if (with_sink) {
      fast.sink.logits = {sink.data(), 2};
      plain.sink.logits = {sinks.data(), 2};
    }
    expect_definition<float>(sizes, fast, plain, {5, 3, 68});
  };
  const std::int32_t fifty[] = {50};  // so that twenty queries stand before the first key
  const Mask empty_rows = mask::Causal() & mask::KeyLengths({fifty, 1});
  for (const Mask& mask : {Mask(), Mask(mask::Window(90, 0)), empty_rows}) {
    expect(norm::Softmax{}, true, mask);
    expect(norm::Sigmoid{}, false, mask);
    expect(norm::None{}, false, mask);
  }
}

// Every score is the same: the first keys that the mask keeps.
TEST(Observed, TiesGoToTheSmallerKey) {
  for_each_isa([] {
    Call<float> call({.T = 70, .S = 290, .H = 1, .D = 3});
    std::fill(call.q.begin(), call.q.end(), 0.0f);
    const Attention<float> window{.mask = mask::Window(200, 0)};
    const Seen<float> seen = see(window, call, {4, 0, 0}, Method::kFused);
    for (index i = 0; i < 70; ++i) {
      const auto first = static_cast<std::int32_t>(std::max<index>(0, i + 220 - 200));
      EXPECT_THAT(seen.keys.row(0, 0, i),
                  ::testing::ElementsAre(first, first + 1, first + 2, first + 3));
    }
  });
}

// Keys that come in ascending order are inserted at the top each time, and in descending order
// never.
TEST(Observed, AscendingAndDescendingScores) {
  for_each_isa([] {
    for (const float sign : {1.0f, -1.0f}) {
      Call<float> call({.T = 17, .S = 1000});
      std::fill(call.q.begin(), call.q.end(), sign);
      for (std::size_t j = 0; j < 1000; ++j) call.k[j] = static_cast<float>(j) / 512;
      const Seen<float> seen = see({}, call, {3, 0, 0}, Method::kFused);
      const std::vector<std::int32_t> expected =
          sign > 0 ? std::vector<std::int32_t>{999, 998, 997} : std::vector<std::int32_t>{0, 1, 2};
      for (index i = 0; i < 17; ++i) EXPECT_EQ(seen.keys.row(0, 0, i), expected);
    }
  });
}

// A query that is NaN: its rows say so, and so does what it gives to the keys that it keeps.
TEST(Observed, PoisonIsPassedOn) {
  const auto nan = std::numeric_limits<float>::quiet_NaN();
  const auto check_all = [&](Method method) {
    Call<float> call({.T = 4, .S = 200, .D = 2});
    call.q[2] = nan;  // query 1, which keeps keys 0 .. 197
    const Seen<float> seen = see({.mask = mask::Causal()}, call, {2, 0, 4}, method);
    EXPECT_THAT(seen.keys.row(0, 0, 1), ::testing::ElementsAre(-1, -1));
    for (const float weight : seen.weights.row(0, 0, 1)) EXPECT_TRUE(std::isnan(weight));
    const auto row = seen.rows.row(0, 0, 1), mass = seen.mass.row(0, 0, 0);
    for (std::size_t j = 0; j < 200; ++j) {
      EXPECT_EQ(std::isnan(row[j]), j <= 197) << j;
      EXPECT_EQ(std::isnan(mass[j]), j <= 197) << j;
    }
    for (const float weight : seen.rows.row(0, 0, 2)) EXPECT_FALSE(std::isnan(weight));
    EXPECT_GE(seen.keys.row(0, 0, 2)[1], 0);
  };
  check_all(Method::kReference);
  for_each_isa([&] { check_all(Method::kFused); });
}

TEST(Observed, MaskedPoisonIsNotSeen) {
  for_each_isa([] {
    Call<float> call({.T = 3, .S = 150, .D = 2}), clean = call;
    call.k[299] = call.v[149] = std::numeric_limits<float>::quiet_NaN();
    const Attention<float> drop{.mask = mask::Where([](const ScoreSite& s) { return s.j != 149; })};
    const Seen<float> seen = see(drop, call, {5, 0, 3}, Method::kFused);
    const Seen<float> expected = see(drop, clean, {5, 0, 3}, Method::kFused);
    EXPECT_EQ(seen.keys.values(), expected.keys.values());
    EXPECT_EQ(seen.weights.values(), expected.weights.values());
    EXPECT_EQ(seen.rows.values(), expected.rows.values());
    EXPECT_EQ(seen.mass.values(), expected.mass.values());
  });
}

TEST(Observed, ChosenRowsAreRowsOfTheWeights) {
  Call<float> call({.B = 2, .T = 130, .S = 200, .H = 2, .G = 1, .D = 8, .Dv = 4});
  call.want_weights();
  const Seen<float> seen = see({.mask = mask::Causal()}, call, {1, 50, 130}, Method::kFused);
  for (index b = 0; b < 2; ++b) {
    for (index h = 0; h < 2; ++h) {
      for (index i = 50; i < 130; ++i) {
        const auto begin = call.weights.begin() + ((b * 2 + h) * 130 + i) * 200;
        EXPECT_EQ(seen.rows.row(b, h, i - 50), std::vector<float>(begin, begin + 200));
      }
    }
  }
}

TEST(Observed, ShapesAreChecked) {
  Call<float> call({.B = 2, .T = 4, .S = 5, .H = 3, .G = 3});
  std::vector<float> values(2 * 3 * 4 * 5);
  std::vector<std::int32_t> keys(values.size());
  std::vector<std::uint8_t> bytes(values.size());
  const auto with = [&](const Observe<float>& observe) { call.forward({.observe = observe}); };
  const auto of = [](auto& x, index B, index H, index T, index W) {
    return ScoreView<typename std::decay_t<decltype(x)>::value_type>::contiguous(x.data(), B, H, T,
                                                                                 W);
  };
  EXPECT_THROWS(with(observe::TopK<float>(of(keys, 2, 3, 4, 2), of(values, 2, 3, 4, 3))), kShape,
                "topk_weight must be [B=2, H=3, 4, 2]; it is [2, 3, 4, 3]");
  EXPECT_THROWS(with(observe::TopK<float>(of(keys, 2, 3, 3, 2), of(values, 2, 3, 4, 2))), kShape,
                "topk_index must be [B=2, H=3, 4, 2]; it is [2, 3, 3, 2]");
  EXPECT_THROWS(with(observe::TopK<float>(of(keys, 2, 3, 4, -1), of(values, 2, 3, 4, -1))), kShape,
                "topk_index has a negative size: -1");
  EXPECT_THROWS(with(observe::TopK<float>({}, {})), kShape, "topk_index was not given");
  EXPECT_THROWS(with(observe::SelectedRows<float>(2, 5, of(values, 2, 3, 3, 5))), kShape,
                "selected rows must be in 0..T=4; they are 2:5");
  EXPECT_THROWS(with(observe::SelectedRows<float>(3, 2, of(values, 2, 3, 3, 5))), kShape,
                "selected rows must be in 0..T=4; they are 3:2");
  EXPECT_THROWS(with(observe::SelectedRows<float>(1, 3, of(values, 2, 3, 3, 5))), kShape,
                "selected_rows must be [B=2, H=3, 2, 5]; it is [2, 3, 3, 5]");
  EXPECT_THROWS(with(observe::DropoutKeep<float>(of(bytes, 1, 3, 4, 5))), kShape,
                "dropout_keep must be [B=2, H=3, 4, 5]; it is [1, 3, 4, 5]");
  EXPECT_THROWS(
      with(observe::ColumnMass<float>(RowView<float>::contiguous(values.data(), 2, 3, 4))), kShape,
      "column_mass must be [B=2, H=3, S=5]; it is [2, 3, 4]");
  ScoreView<float> overlapping = of(values, 2, 3, 4, 5);
  overlapping.query_stride = 4;
  EXPECT_THROWS(with(observe::SelectedRows<float>(0, 4, overlapping)), kShape,
                "selected_rows is written, so its rows must not overlap");
  overlapping.query_stride = -5;
  EXPECT_THROWS(with(observe::SelectedRows<float>(0, 4, overlapping)), kShape,
                "selected_rows has a negative stride");
  overlapping.data = nullptr;
  overlapping.query_stride = 5;
  EXPECT_THROWS(with(observe::SelectedRows<float>(0, 4, overlapping)), kShape,
                "selected_rows has a shape but no data");
}

TEST(Observed, NamesSayWhat) {
  std::vector<float> values(4);
  std::vector<std::int32_t> keys(4);
  const auto of = [](auto& x) {
    return ScoreView<typename std::decay_t<decltype(x)>::value_type>::contiguous(x.data(), 1, 1, 1,
                                                                                 4);
  };
  const Observe<float> observe =
      observe::TopK<float>(of(keys), of(values)) + observe::SelectedRows<float>(2, 3, of(values));
  EXPECT_EQ(observe.name(), "topk(4) + rows(2, 3)");
}

}  // namespace
}  // namespace fovea::testing
