// SPDX-License-Identifier: Apache-2.0
#include "fovea/kernel/gemm.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "fovea/reference/kernels.h"
#include "tests/isa.h"

namespace fovea {
namespace {

// Values in (-1, 1), without a pattern that a stride could hide.
template <class T>
std::vector<T> values(index n, std::uint32_t seed) {
  std::vector<T> x(static_cast<std::size_t>(n));
  std::uint32_t state = seed * 2654435761u + 1;
  for (T& v : x) {
    state = state * 1664525u + 1013904223u;
    v = static_cast<T>(static_cast<double>(state >> 8) / (1 << 23) - 1);
  }
  return x;
}

constexpr int kUntouched = 77;

// Memory of a matrix whose rows are `gap` longer than its columns.
template <class T>
struct Matrix {
  Matrix(index rows, index columns, index gap, std::uint32_t seed)
      : data(values<T>(rows * (columns + gap) + 1, seed)),
        view(data.data(), rows, columns, columns + gap) {
    for (index r = 0; r < rows; ++r) std::fill_n(view[r] + columns, gap, T{kUntouched});
  }
  template <class U>
  Matrix<U> as() const {
    Matrix<U> copy(view.rows, view.columns, view.stride - view.columns, 0);
    std::copy(data.begin(), data.end(), copy.data.begin());
    return copy;
  }
  Matrix(const Matrix& other) : data(other.data), view(other.view) { view.data = data.data(); }
  Matrix(Matrix&&) = default;

  std::vector<T> data;
  Rows<T> view;
};

// The fast result is at most twice as far from the exact one as plain float is, plus 4 ulp of the
// largest value, and nothing between the rows was written.
template <class T, class Exact>
void expect_no_worse(Rows<T> fast, Rows<T> plain, Rows<Exact> exact) {
  Exact largest = 0, plain_error = 0, error = 0;
  for (index i = 0; i < fast.rows; ++i) {
    for (index j = 0; j < fast.columns; ++j) {
      largest = std::max(largest, std::fabs(exact[i][j]));
      plain_error = std::max(plain_error, std::fabs(Exact(plain[i][j]) - exact[i][j]));
      const Exact e = std::fabs(Exact(fast[i][j]) - exact[i][j]);
      ASSERT_FALSE(std::isnan(e)) << i << ", " << j;
      error = std::max(error, e);
    }
    for (index j = fast.columns; j < fast.stride; ++j) ASSERT_EQ(fast[i][j], T{kUntouched});
  }
  EXPECT_LE(error, 2 * plain_error + 4 * std::numeric_limits<T>::epsilon() * largest);
}

struct Shape {
  index M, N, K;
  friend std::ostream& operator<<(std::ostream& out, const Shape& s) {
    return out << "[M=" << s.M << ", N=" << s.N << ", K=" << s.K << "]";
  }
};

// Sizes astride vectors, register blocks, panels, tiles and blocks of k.
const std::vector<Shape> kShapes = {
    {1, 1, 1},   {1, 64, 1},     {2, 40, 9},    {5, 15, 16},    {6, 16, 17},     {7, 17, 64},
    {12, 63, 9}, {8, 64, 33},    {40, 128, 64}, {14, 70, 400},  {48, 130, 257},  {95, 47, 31},
    {98, 96, 3}, {100, 49, 256}, {193, 33, 40}, {64, 200, 300}, {130, 257, 515}, {3, 1000, 1100},
};

template <class T>
void expect_matmul(const Shape& s, Form form, Store store, bool bias, Activation activation) {
  SCOPED_TRACE(testing::Message() << s << (form == Form::kPlain ? "" : " transposed")
                                  << (store == Store::kAdd ? " added" : "") << (bias ? " bias" : "")
                                  << " activation " << int(activation));
  const Matrix<T> a(s.M, s.K, 3, 1);
  const Matrix<T> m = form == Form::kPlain ? Matrix<T>(s.K, s.N, 2, 2) : Matrix<T>(s.N, s.K, 2, 2);
  const Matrix<T> b(1, s.N, 0, 3), c(s.M, s.N, 5, 4), before(s.M, s.N, 1, 5);
  const auto run = [&]<class U>(U, auto&& product) {
    auto in = a.template as<U>(), weight = m.template as<U>(), vector = b.template as<U>();
    std::pair out{c.template as<U>(), before.template as<U>()};
    MatmulOptions<U> options{.activation = activation, .store = store};
    if (bias) options.bias = {vector.view.data, s.N};
    if (activation != Activation::kNone) options.slope = out.second.view;
    product(in.view, weight.view, out.first.view, options);
    return out;
  };
  const auto plainly = [&](auto x, auto w, auto y, const auto& options) {
    reference::matmul(x, w, form, y, options);
  };
  using Exact = std::conditional_t<std::is_same_v<T, float>, double, long double>;
  const auto exact = run(Exact{}, plainly);
  const auto plain = run(T{}, plainly);
  const auto fast = run(T{}, [&](auto x, auto w, auto y, const auto& options) {
    PackedMatrix<T> packed;
    packed.pack(Context(2), w, form);
    matmul(Context(2), x, packed, y, options);
  });
  expect_no_worse(fast.first.view, plain.first.view, exact.first.view);
  expect_no_worse(fast.second.view, plain.second.view, exact.second.view);
}

TEST(Matmul, ErrorIsAtMostTwiceThatOfPlainLoops) {
  for_each_isa([] {
    for (const Shape& s : kShapes) {
      expect_matmul<float>(s, Form::kPlain, Store::kWrite, false, Activation::kNone);
      expect_matmul<float>(s, Form::kTransposed, Store::kAdd, true, Activation::kGelu);
      expect_matmul<double>(s, Form::kTransposed, Store::kWrite, true, Activation::kNone);
    }
  });
}

// The matrix ends where its last row does: a sanitizer sees what is read beyond it.
template <class T>
void expect_same_in_place(const Shape& s, Form form) {
  const Matrix<T> a(s.M, s.K, 1, 1);
  const std::vector<T> memory = values<T>(s.K * s.N, 2);
  const bool plain = form == Form::kPlain;
  const Rows<const T> b(memory.data(), plain ? s.K : s.N, plain ? s.N : s.K);
  Matrix<T> packed(s.M, s.N, 3, 3), in_place(s.M, s.N, 3, 4);
  PackedMatrix<T> copy;
  copy.pack(Context(2), b, form);
  matmul(Context(2), a.view, copy, packed.view);
  matmul(Context(2), a.view, panels_in_place<T>(b, form), in_place.view);
  for (index r = 0; r < s.M; ++r) {
    ASSERT_TRUE(std::equal(packed.view[r], packed.view[r] + s.N, in_place.view[r])) << s << r;
    ASSERT_EQ(in_place.view[r][s.N], T{kUntouched});
  }
}

TEST(Matmul, TogetherIsOneAfterTheOther) {
  const index N = 100, in = 70, out = 200;
  const Matrix<float> dy(N, out, 1, 1), x(N, in, 2, 2), weight(out, in, 0, 3);
  Matrix<float> dx(N, in, 3, 4), dw(out, in, 1, 5), dx2 = dx, dw2 = dw;
  PackedMatrix<float> packed;
  packed.pack(Context(2), weight.view);
  const MatmulItems<float> first(Context(2), dy.view, packed.panels(), dx.view, {});
  const MatmulAtBItems<float> second(Context(2), dy.view, x.view, dw.view, Store::kAdd);
  run_together(Context(2), first, second);
  matmul(Context(2), dy.view, packed, dx2.view);
  matmul_at_b(Context(2), dy.view, x.view, dw2.view, Store::kAdd);
  EXPECT_EQ(dx.data, dx2.data);
  EXPECT_EQ(dw.data, dw2.data);
}

TEST(Matmul, ReadsWholeVectorsInPlaceWhereRowsAreNearAndPanelsWide) {
  for_each_isa([] {
    const auto reads = [](index columns, index stride) {
      return reads_well_in_place<float>({nullptr, 8, columns, stride});
    };
    const bool is_wide = current_isa() >= Isa::kAvx512;  // than a cache line
    EXPECT_EQ(reads(64, 2048), is_wide);
    EXPECT_FALSE(reads(64, 2049));
    EXPECT_FALSE(reads_well_in_place<float>({nullptr, 64, 64, 64}, Form::kTransposed));
    EXPECT_FALSE(reads(765, 768));
    EXPECT_EQ(reads_well_in_place<double>({nullptr, 8, 64, 1024}), is_wide);
    EXPECT_FALSE(reads_well_in_place<double>({nullptr, 8, 64, 1025}));
  });
}

// Bits do not tell where B lies.
TEST(Matmul, ReadsItsRightHandSideInPlaceOrPacked) {
  for_each_isa([] {
    for (const Shape& s : {Shape{1, 16, 3}, Shape{4, 17, 5}, Shape{7, 80, 300}, Shape{13, 37, 600},
                           Shape{40, 512, 128}, Shape{100, 130, 70}}) {
      for (const Form form : {Form::kPlain, Form::kTransposed}) {
        expect_same_in_place<float>(s, form);
        expect_same_in_place<double>(s, form);
      }
    }
  });
}

TEST(Matmul, EveryWayToFinish) {
  for_each_isa([] {
    for (const Shape& s : {Shape{13, 37, 300}, Shape{50, 128, 64}}) {
      for (const Store store : {Store::kWrite, Store::kAdd}) {
        for (const bool bias : {false, true}) {
          for (const Activation activation :
               {Activation::kNone, Activation::kRelu, Activation::kGelu, Activation::kGeluTanh,
                Activation::kSilu, Activation::kTanh}) {
            expect_matmul<float>(s, Form::kTransposed, store, bias, activation);
            expect_matmul<double>(s, Form::kPlain, store, bias, activation);
          }
        }
      }
    }
  });
}

template <class T>
void expect_at_b(const Shape& s, Store store) {
  SCOPED_TRACE(testing::Message() << s << (store == Store::kAdd ? " added" : ""));
  const Matrix<T> a(s.K, s.M, 3, 1), b(s.K, s.N, 2, 2), c(s.M, s.N, 5, 4);
  const auto run = [&]<class U>(U, auto&& product) {
    auto x = a.template as<U>(), y = b.template as<U>(), out = c.template as<U>();
    product(x.view, y.view, out.view);
    return out;
  };
  const auto plainly = [&](auto x, auto y, auto out) { reference::matmul_at_b(x, y, out, store); };
  const auto exact = run(double{}, plainly);
  const auto plain = run(T{}, plainly);
  const auto fast =
      run(T{}, [&](auto x, auto y, auto out) { matmul_at_b(Context(2), x, y, out, store); });
  expect_no_worse(fast.view, plain.view, exact.view);
}

TEST(MatmulAtB, ErrorIsAtMostTwiceThatOfPlainLoops) {
  for_each_isa([] {
    for (const Shape& s : kShapes) {
      for (const Store store : {Store::kWrite, Store::kAdd}) {
        expect_at_b<float>(s, store);
        expect_at_b<double>(s, store);
      }
    }
  });
}

template <class T>
std::vector<T> at_b_of_rows_apart(index stride) {
  const index M = 500, N1 = 68, N2 = 128;
  Matrix<T> a(M, N1, stride - N1, 1), b(M, N2, stride - N2, 2), c(N1, N2, 3, 3);
  for (index i = 0; i < M * N1; ++i) a.view[i / N1][i % N1] = T(0.01) * T(i * 7 % 31);
  for (index i = 0; i < M * N2; ++i) b.view[i / N2][i % N2] = T(0.01) * T(i * 5 % 37);
  matmul_at_b(Context(2), a.view, b.view, c.view);
  return c.data;
}

TEST(MatmulAtB, BitsDoNotDependOnStrides) {
  for_each_isa([] {
    for (const index stride : {1024, 2048, 2056}) {  // rows are copied
      EXPECT_EQ(at_b_of_rows_apart<float>(stride), at_b_of_rows_apart<float>(200));
      EXPECT_EQ(at_b_of_rows_apart<double>(stride), at_b_of_rows_apart<double>(200));
    }
  });
}

TEST(ColumnSums, MatchPlainLoops) {
  for_each_isa([] {
    for (const Store store : {Store::kWrite, Store::kAdd}) {
      const Matrix<float> a(3000, 77, 3, 1), start(1, 77, 0, 2);
      auto fast = start, plain = start;
      auto exact = start.as<double>();
      auto a64 = a.as<double>();
      column_sums(Context(2), a.view, Vec<float>{fast.view.data, 77}, store);
      reference::column_sums(a.view, Vec<float>{plain.view.data, 77}, store);
      reference::column_sums(a64.view, Vec<double>{exact.view.data, 77}, store);
      expect_no_worse(fast.view, plain.view, exact.view);
    }
  });
}

std::vector<float> run_matmul(int threads, index M, index N, index K) {
  const Matrix<float> a(M, K, 0, 1), w(N, K, 0, 2), bias(1, N, 0, 3);
  Matrix<float> c(M, N, 0, 4);
  PackedMatrix<float> packed;
  packed.pack(Context(threads), w.view, Form::kTransposed);
  matmul(Context(threads), a.view, packed, c.view,
         {.bias = {bias.view.data, N}, .activation = Activation::kGeluTanh});
  return {c.view.data, c.view.data + M * N};
}

// Rows of a matrix of M rows come out as the same rows of one of 300 do, on any number of threads.
TEST(Matmul, ARowsBitsDependNeitherOnRowsNorOnThreads) {
  for_each_isa([] {
    for (const auto& [N, K] : {std::pair<index, index>{128, 64}, {77, 600}, {16, 3}, {200, 257}}) {
      const auto all = run_matmul(1, 300, N, K);
      index step = 1;
      for (index M = 1; M <= 300; M += step, step = M > 100 ? 7 : 1) {
        const auto some = run_matmul(std::array{1, 2, 3, 8}[std::size_t(M % 4)], M, N, K);
        ASSERT_EQ(std::memcmp(some.data(), all.data(), some.size() * sizeof(float)), 0)
            << "M=" << M << ", N=" << N << ", K=" << K;
      }
      for (const int threads : {2, 3, 8}) ASSERT_EQ(run_matmul(threads, 300, N, K), all);
    }
  });
}

TEST(MatmulAtB, BitsDoNotDependOnThreads) {
  const index N1 = 150, N2 = 200;
  const Matrix<float> a(700, N1, 0, 1), b(700, N2, 0, 2);
  for_each_isa([&] {
    const auto run = [&](int threads) {
      Matrix<float> c(N1, N2, 0, 4), sums(1, N1, 0, 4);
      matmul_at_b(Context(threads), a.view, b.view, c.view, Store::kAdd);
      column_sums(Context(threads), a.view, Vec<float>{sums.view.data, N1}, Store::kAdd);
      c.data.insert(c.data.end(), sums.data.begin(), sums.data.end());
      return c.data;
    };
    const auto one = run(1);
    const index before = Context::items_run_by_helpers();
    const auto alone = [&] { return Context::items_run_by_helpers() == before; };
    for (int round = 0; round < 9 || (alone() && round < 300); ++round)
      ASSERT_EQ(run(std::array{2, 3, 8}[std::size_t(round % 3)]), one) << round;
    EXPECT_FALSE(alone()) << "no other thread took part";
  });
}

TEST(Matmul, EmptySizes) {
  PackedMatrix<float> packed;
  const Matrix<float> none(0, 5, 0, 1), a(4, 0, 0, 1), bias(1, 3, 0, 2);
  Matrix<float> c(4, 3, 0, 3);
  packed.pack(Context(1), Rows<const float>(nullptr, 0, 3));
  matmul(Context(1), a.view, packed, c.view, {.bias = {bias.view.data, 3}});
  for (index j = 0; j < 3; ++j) EXPECT_EQ(c.view[3][j], bias.view[0][j]);
  matmul_at_b(Context(1), Rows<const float>(nullptr, 0, 4), Rows<const float>(nullptr, 0, 3),
              c.view);
  for (index j = 0; j < 3; ++j) EXPECT_EQ(c.view[3][j], 0);
  packed.pack(Context(1), Rows<const float>(bias.view.data, 3, 1));
  matmul(Context(1), Rows<const float>(nullptr, 0, 3), packed, Rows<float>(nullptr, 0, 1));
}

// Columns beyond the end of B are zeros in the last panel; times infinity they would be NaN.
TEST(Matmul, InfinityStaysInItsRow) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for_each_isa([] {
    Matrix<float> a(7, 9, 0, 1), c(7, 21, 4, 2);
    const Matrix<float> b(9, 21, 0, 3);
    a.view[3][4] = kInfinity;
    PackedMatrix<float> packed;
    packed.pack(Context(1), b.view);
    matmul(Context(1), a.view, packed, c.view);
    for (index i = 0; i < 7; ++i) {
      for (index j = 0; j < 21; ++j) EXPECT_EQ(std::isfinite(c.view[i][j]), i != 3);
      EXPECT_EQ(c.view[i][22], kUntouched);
    }
  });
}

TEST(Matmul, PackingAgainUsesTheSameMemory) {
  const Matrix<float> large(64, 100, 0, 1), small(10, 7, 0, 2);
  PackedMatrix<float> packed;
  packed.pack(Context(1), large.view);
  const float* const memory = packed.panels().panel(0);
  packed.pack(Context(1), small.view, Form::kTransposed);
  EXPECT_EQ(packed.panels().panel(0), memory);
  EXPECT_EQ(packed.rows(), 7);
  EXPECT_EQ(packed.columns(), 10);
}

std::string error_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(Matmul, NamesTheShapesInItsErrors) {
  Matrix<float> a(2, 3, 0, 1), b(3, 4, 0, 2), c(2, 5, 0, 3);
  PackedMatrix<float> packed;
  packed.pack(Context(1), b.view);
  const Context ctx(1);
  EXPECT_EQ(error_of([&] { matmul(ctx, a.view, packed, c.view); }),
            "matmul: c must be [2, 4]; it is [2, 5]");
  EXPECT_EQ(error_of([&] { matmul(ctx, c.view, packed, a.view); }),
            "matmul: the columns of a must be the rows of b; a is [2, 5], b [3, 4]");
  EXPECT_EQ(error_of([&] { matmul_at_b(ctx, a.view, b.view, c.view); }),
            "matmul_at_b: a and b must have as many rows; a is [2, 3], b [3, 4]");
  EXPECT_EQ(error_of([&] {
              column_sums(ctx, a.view, Vec<float>{c.view.data, 4});
            }),
            "column_sums: sums must be [N=3]; it is [4]");
}

TEST(Matmul, RefusesWhatWasPackedForAnotherInstructionSet) {
  if (available_isas().size() < 2) GTEST_SKIP() << "one instruction set only";
  for_each_isa([] {
    const Matrix<float> a(2, 3, 0, 1), b(3, 4, 0, 2);
    Matrix<float> c(2, 4, 0, 3);
    PackedMatrix<float> packed;
    packed.pack(Context(1), b.view);
    const Isa here = current_isa();
    pin_isa(here == Isa::kScalar ? available_isas().back() : Isa::kScalar);
    EXPECT_THAT(error_of([&] { matmul(Context(1), a.view, packed, c.view); }),
                testing::HasSubstr("b was packed for " + std::string(isa_name(here))));
  });
}

}  // namespace
}  // namespace fovea
