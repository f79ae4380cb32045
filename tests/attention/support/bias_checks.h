// SPDX-License-Identifier: Apache-2.0
// Whole calls with one bias: against the definition, for any number of threads, packed and padded.
//
// The bias is given as a template `Numbers<V>`: its numbers and gradients for 2 heads, with
// bias(mask), mask that of the call, and gradient(). Each test gives it a name of its own: gcc
// merges the checks of two templates of one name, though their namespaces are unnamed.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/attention/support/call.h"
#include "tests/attention/support/problem_parts.h"
#include "tests/isa.h"

namespace fovea::testing {

/// A call with a bias of its own.
template <template <class> class Numbers, class V>
struct BiasedCall {
  Numbers<V> numbers;
  Call<V> call;

  BiasedCall(const Sizes& sizes, std::uint64_t seed) : call(sizes, seed) {}
  void run(const Mask& mask, Method method = Method::kFused, int threads = 1,
           const Packed& packed = {}) {
    call.run({.bias = numbers.bias(mask), .mask = mask, .packed = packed}, method, threads);
  }
};

/// Fused in float, against the definition in double and in float.
template <template <class> class Numbers>
void expect_no_worse_than_plain(const Mask& mask) {
  SCOPED_TRACE(mask.name());
  const Sizes sizes{.B = 2, .T = 140, .S = 270, .H = 2, .G = 1, .D = 16, .Dv = 8};
  BiasedCall<Numbers, double> exact(sizes, 5);
  exact.run(mask, Method::kReference);
  BiasedCall<Numbers, float> plain(sizes, 5), fused(sizes, 5);
  plain.run(mask, Method::kReference);
  const auto compare = [](const char* name, const auto& fast, const auto& slow, const auto& right) {
    const double error = largest_difference(doubles(slow), right);
    EXPECT_TRUE(no_worse_than_plain(name, doubles(fast), error, right));
  };
  for_each_isa([&] {
    fused.run(mask);
    compare("o", fused.call.o, plain.call.o, exact.call.o);
    compare("lse", fused.call.lse, plain.call.lse, exact.call.lse);
    compare("dq", fused.call.dq, plain.call.dq, exact.call.dq);
    compare("dk", fused.call.dk, plain.call.dk, exact.call.dk);
    compare("dv", fused.call.dv, plain.call.dv, exact.call.dv);
    compare("gradient", fused.numbers.gradient(), plain.numbers.gradient(),
            doubles(exact.numbers.gradient()));
  });
}

template <template <class> class Numbers>
void expect_same_bits_for_threads(const Mask& mask) {
  const Sizes sizes{.T = 300, .S = 600, .H = 2, .G = 2, .D = 8, .Dv = 8};
  BiasedCall<Numbers, float> once(sizes, 6);
  once.run(mask);
  for (const int threads : {2, 3, 8}) {
    BiasedCall<Numbers, float> again(sizes, 6);
    again.run(mask, Method::kFused, threads);
    EXPECT_TRUE(same_results(once.call, again.call)) << threads << " threads";
    EXPECT_EQ(once.numbers.gradient(), again.numbers.gradient()) << threads << " threads";
  }
}

/// Two sequences of a padded batch, and the same one after another.
template <template <class> class Numbers>
void expect_packed_is_padded(const Mask& mask) {
  const std::vector<std::int32_t> queries = {65, 130}, keys = {97, 260};
  const std::vector<std::int32_t> query_offsets = {0, 65, 195}, key_offsets = {0, 97, 357};
  BiasedCall<Numbers, float> padded({.B = 2, .T = 130, .S = 260, .H = 2, .G = 1, .D = 8, .Dv = 4},
                                    7);
  BiasedCall<Numbers, float> packed({.T = 195, .S = 357, .H = 2, .G = 1, .D = 8, .Dv = 4}, 8);
  // The rows of sequence b, in both.
  const auto for_each_pair = [&](auto&& f, std::size_t b, auto... tensors) {
    const auto one = [&](std::vector<float> Call<float>::*x) {
      const bool of_queries = x == &Call<float>::q || x == &Call<float>::dq ||
                              x == &Call<float>::o || x == &Call<float>::d_o;
      const index rows = of_queries ? padded.call.T : padded.call.S;
      const auto& tensor = padded.call.*x;
      const index width = static_cast<index>(tensor.size()) / (2 * rows);
      const index n = of_queries ? queries[b] : keys[b];
      const index to = of_queries ? query_offsets[b] : key_offsets[b];
      f((padded.call.*x).begin() + static_cast<index>(b) * rows * width, n * width,
        (packed.call.*x).begin() + to * width);
    };
    (one(tensors), ...);
  };
  using C = Call<float>;
  for (const std::size_t b : {0, 1}) {
    for_each_pair([](auto from, index n, auto to) { std::copy_n(from, n, to); }, b, &C::q, &C::k,
                  &C::v, &C::d_o);
  }
  padded.run(mask & mask::QueryLengths(view_of(queries)) & mask::KeyLengths(view_of(keys)));
  packed.run(mask, Method::kFused, 2, {view_of(query_offsets), view_of(key_offsets)});
  for (const std::size_t b : {0, 1}) {
    for_each_pair([](auto from, index n, auto to) { EXPECT_TRUE(std::equal(from, from + n, to)); },
                  b, &C::o, &C::dq, &C::dk, &C::dv);
  }
  EXPECT_EQ(padded.numbers.gradient(), packed.numbers.gradient());
}

/// The tiles of a form of KERPLE, near and far from the query and in both layouts, are its values
/// one by one.
template <class Form, class V>
void expect_tiles_of_form() {
  const Sequence sequence{.queries = 400, .keys = 500};
  const std::vector<V> r = {V(0.5), V(1.5), V(2), V(0.25)};
  std::vector<V> dr = r;
  const Form form({r.data(), 2, 2}, {dr.data(), 2, 2});
  for (const index key : {0, 64, 128, 192, 448}) {
    for (const TileLanes lanes : {TileLanes::kQueries, TileLanes::kKeys}) {
      const TileSite site{sequence, 1, 64, 60, key, 52};
      std::vector<V> tile(64 * 64, V(1.25)), slopes = normals<V>(4, 64 * 64);
      const std::vector<V> before = slopes;
      const ScoreTile<V> scores{tile.data(), 64, lanes}, dscores{slopes.data(), 64, lanes};
      std::vector<double> sums(2), expected(2);
      form.apply(site, {}, scores);
      form.pull(site, {}, {}, dscores, {{}, {}, sums.data()});
      for (index r0 = 0; r0 < site.queries; ++r0) {
        for (index c = 0; c < site.keys; ++c) {
          ASSERT_EQ(scores.at(r0, c), form.value(site.at(r0, c), V(1.25)));
          form.add_parameters(site.at(r0, c), 0, dscores.at(r0, c), expected.data());
        }
      }
      EXPECT_EQ(slopes, before) << "it is only added";
      EXPECT_NEAR(sums[0], expected[0], 1e-9);
      EXPECT_NEAR(sums[1], expected[1], 1e-9);
    }
  }
}

}  // namespace fovea::testing
