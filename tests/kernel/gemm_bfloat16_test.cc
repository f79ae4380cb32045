// SPDX-License-Identifier: Apache-2.0
// Products in bfloat16, against plain loops over rounded operands, with every instruction set: in
// pairs where the processor has them, else by conversion.
#include <gmock/gmock.h>

#include <array>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "fovea/base/precision.h"
#include "fovea/kernel/gemm.h"
#include "fovea/reference/kernels.h"
#include "tests/kernel/support.h"

namespace fovea {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

Context in_bfloat16(int threads = 2) { return Context(threads).with(Precision::kBFloat16); }

// Sizes astride vectors, pairs, register blocks, panels, tiles and blocks of k.
struct Shape {
  index M, N, K;
};
constexpr Shape kShapes[] = {
    {1, 1, 1},      {1, 64, 1},       {2, 3, 5},     {5, 15, 16},    {6, 16, 17},
    {7, 17, 64},    {12, 63, 9},      {13, 64, 33},  {40, 128, 64},  {47, 65, 100},
    {48, 130, 257}, {95, 47, 31},     {97, 96, 3},   {100, 49, 256}, {193, 33, 40},
    {64, 200, 300}, {130, 257, 1537}, {3, 1000, 70}, {4, 80, 0},
};

struct Problem {
  Shape s;
  Form form;
  Store store;
  bool bias;
  Activation activation;
};

struct Operands32 {
  Matrix<float> a, m, bias, c;

  Operands32(Random& random, const Problem& p)
      : a(Matrix<float>::random(random, p.s.M, p.s.K)),
        m(p.form == Form::kPlain ? Matrix<float>::random(random, p.s.K, p.s.N)
                                 : Matrix<float>::random(random, p.s.N, p.s.K)),
        bias(Matrix<float>::random(random, 1, p.s.N)),
        c(Matrix<float>::random(random, p.s.M, p.s.N)) {}
};

template <class T>
struct Result {
  Matrix<T> c, slope;
  Result(const Operands32& x) : c(x.c), slope(x.c.rows(), x.c.columns()) {}

  MatmulOptions<T> options(const Problem& p, const Matrix<T>& bias) {
    MatmulOptions<T> o{.activation = p.activation, .store = p.store};
    if (p.bias) o.bias = bias.vec();
    if (p.activation != Activation::kNone) o.slope = slope.view();
    return o;
  }
};

template <class T>
Result<T> plainly(const Operands32& x, const Problem& p) {
  Matrix<float> a = x.a, m = x.m;
  reference::round_to_bfloat16(a.view());
  reference::round_to_bfloat16(m.view());
  const Matrix<T> a_of_t(a), m_of_t(m), bias(x.bias);
  Result<T> r(x);
  reference::matmul<T>(a_of_t.view(), m_of_t.view(), p.form, r.c.view(), r.options(p, bias));
  return r;
}

Result<float> packed(const Context& ctx, const Operands32& x, const Problem& p) {
  PackedMatrix<float> matrix;
  matrix.pack(ctx, x.m.view(), p.form);
  Result<float> r(x);
  matmul(ctx, x.a.view(), matrix, r.c.view(), r.options(p, x.bias));
  return r;
}

Result<float> in_place(const Context& ctx, const Operands32& x, const Problem& p) {
  Result<float> r(x);
  matmul(ctx, x.a.view(), panels_in_place<float>(x.m.view(), p.form, operands_of<float>(ctx)),
         r.c.view(), r.options(p, x.bias));
  return r;
}

void expect_right(const Problem& p) {
  SCOPED_TRACE(testing::Message() << "[" << p.s.M << ", " << p.s.N << ", " << p.s.K << "]"
                                  << (p.form == Form::kPlain ? "" : " transposed")
                                  << (p.store == Store::kAdd ? " added" : "")
                                  << (p.bias ? " bias" : "") << " activation "
                                  << static_cast<int>(p.activation));
  Random random(7, RandomUse::kTest);
  const Operands32 x(random, p);
  const Context ctx = in_bfloat16();
  const Result<float> fast = packed(ctx, x, p), slow = plainly<float>(x, p);
  const Result<double> exact = plainly<double>(x, p);
  expect_no_worse(fast.c, slow.c, exact.c, "c");
  if (p.activation != Activation::kNone) {
    expect_no_worse(fast.slope, slow.slope, exact.slope, "slope");
  }
  const Result<float> unpacked = in_place(ctx, x, p);
  EXPECT_TRUE(unpacked.c == fast.c && unpacked.slope == fast.slope) << "in place";
}

TEST(MatmulBFloat16, ErrorIsAtMostTwiceThatOfPlainLoops) {
  for_each_isa([] {
    for (const Shape& s : kShapes) {
      expect_right({s, Form::kPlain, Store::kWrite, false, Activation::kNone});
      expect_right({s, Form::kTransposed, Store::kWrite, true, Activation::kNone});
      expect_right({s, Form::kTransposed, Store::kAdd, true, Activation::kNone});
    }
  });
}

TEST(MatmulBFloat16, EveryWayToFinish) {
  for_each_isa([] {
    for (const Store store : {Store::kWrite, Store::kAdd}) {
      for (const bool bias : {false, true}) {
        for (const Activation f : {Activation::kNone, Activation::kRelu, Activation::kGelu,
                                   Activation::kGeluTanh, Activation::kSilu, Activation::kTanh}) {
          expect_right({{13, 37, 801}, Form::kTransposed, store, bias, f});
          expect_right({{50, 128, 64}, Form::kPlain, store, bias, f});
        }
      }
    }
  });
}

TEST(MatmulAtBBFloat16, ErrorIsAtMostTwiceThatOfPlainLoops) {
  for_each_isa([] {
    for (const Shape& s : kShapes) {
      for (const Store store : {Store::kWrite, Store::kAdd}) {
        SCOPED_TRACE(testing::Message() << "[" << s.M << ", " << s.N << ", " << s.K << "]");
        Random random(8, RandomUse::kTest);
        auto a = Matrix<float>::random(random, s.K, s.M);
        auto b = Matrix<float>::random(random, s.K, s.N);
        auto fast = Matrix<float>::random(random, s.M, s.N), slow = fast;
        Matrix<double> exact(fast);
        matmul_at_b(in_bfloat16(), a.in(), b.in(), fast.view(), store);
        reference::round_to_bfloat16(a.view());
        reference::round_to_bfloat16(b.view());
        const Matrix<double> a64(a), b64(b);
        reference::matmul_at_b<float>(a.in(), b.in(), slow.view(), store);
        reference::matmul_at_b<double>(a64.in(), b64.in(), exact.view(), store);
        expect_no_worse(fast, slow, exact, "c");
      }
    }
  });
}

// A product of one term by 1 is the other operand as it was rounded.
TEST(MatmulBFloat16, RoundsBothOperandsOnceToNearestEven) {
  const std::vector<float> values = {1.0f,          0x1.01p0f,    0x1.03p0f,  0x1.010002p0f,
                                     0x1.00fffep0f, -0x1.fffp-3f, 3.3895e38f, 3.4e38f,
                                     -kInfinity,    0x1p-120f};
  const auto n = static_cast<index>(values.size());
  for_each_isa([&] {
    const Context ctx = in_bfloat16();
    const std::vector<float> one = {1};
    std::vector<float> left(values.size()), right(values.size()), sums(values.size());
    PackedMatrix<float> packed;
    packed.pack(ctx, Rows<const float>(one.data(), 1, 1));
    matmul(ctx, Rows<const float>(values.data(), n, 1), packed, Rows<float>(left.data(), n, 1));
    packed.pack(ctx, Rows<const float>(values.data(), n, 1), Form::kTransposed);
    matmul(ctx, Rows<const float>(one.data(), 1, 1), packed, Rows<float>(right.data(), 1, n));
    matmul_at_b(ctx, Rows<const float>(values.data(), 1, n), Rows<const float>(one.data(), 1, 1),
                Rows<float>(sums.data(), n, 1));
    for (std::size_t i = 0; i < values.size(); ++i) {
      const float rounded = to_float(to_bfloat16(values[i]));
      EXPECT_EQ(left[i], rounded) << values[i];
      EXPECT_EQ(right[i], rounded) << values[i];
      EXPECT_EQ(sums[i], rounded) << values[i];
    }
  });
}

TEST(MatmulBFloat16, InfinityAndNanStayInTheirRow) {
  for_each_isa([] {
    for (const float bad : {kInfinity, std::numeric_limits<float>::quiet_NaN()}) {
      for (const index K : {index{8}, index{9}}) {
        Random random(9, RandomUse::kTest);
        auto a = Matrix<float>::random(random, 7, K);
        const auto b = Matrix<float>::random(random, K, 21);
        Matrix<float> c(7, 21);
        a.at(3, K - 1) = bad;
        PackedMatrix<float> packed;
        packed.pack(in_bfloat16(1), b.in());
        matmul(in_bfloat16(1), a.in(), packed, c.view());
        for (index i = 0; i < 7; ++i) {
          for (index j = 0; j < 21; ++j) {
            EXPECT_EQ(std::isfinite(c.at(i, j)), i != 3) << i << ", " << j;
            EXPECT_EQ(std::isnan(c.at(i, j)), i == 3 && std::isnan(bad));
          }
        }
        EXPECT_TRUE(c.padding_is_untouched());
      }
    }
  });
}

// Rows of a matrix of M rows come out as the same rows of one of 300 do, on any number of threads.
TEST(MatmulBFloat16, ARowsBitsDependNeitherOnRowsNorOnThreads) {
  for_each_isa([] {
    for (const auto& [N, K] : {std::pair<index, index>{128, 64}, {77, 901}, {16, 3}, {200, 257}}) {
      Random random(10, RandomUse::kTest);
      const auto a = Matrix<float>::random(random, 300, K);
      const auto w = Matrix<float>::random(random, N, K);
      const auto run = [&, N = N](int threads, index M) {
        PackedMatrix<float> packed;
        packed.pack(in_bfloat16(threads), w.in(), Form::kTransposed);
        std::vector<float> c(static_cast<std::size_t>(M * N));
        matmul(in_bfloat16(threads), a.in().slice(0, M), packed, Rows<float>(c.data(), M, N),
               {.activation = Activation::kGeluTanh});
        return c;
      };
      const std::vector<float> all = run(1, 300);
      index step = 1;
      for (index M = 1; M <= 300; M += step, step = M > 20 ? 37 : 1) {
        const auto some = run(std::array{1, 2, 3, 8}[static_cast<std::size_t>(M % 4)], M);
        ASSERT_TRUE(std::equal(some.begin(), some.end(), all.begin())) << M << ", " << K;
      }
    }
  });
}

TEST(MatmulAtBBFloat16, BitsDoNotDependOnThreads) {
  Random random(11, RandomUse::kTest);
  const auto a = Matrix<float>::random(random, 1701, 150);
  const auto b = Matrix<float>::random(random, 1701, 200);
  const auto start = Matrix<float>::random(random, 150, 200);
  expect_same_for_threads([&](const Context& ctx) {
    Matrix<float> c = start;
    matmul_at_b(ctx.with(Precision::kBFloat16), a.in(), b.in(), c.view(), Store::kAdd);
    return c;
  });
}

TEST(MatmulBFloat16, DoubleIsNotRounded) {
  Random random(12, RandomUse::kTest);
  const auto a = Matrix<double>::random(random, 9, 33), w = Matrix<double>::random(random, 20, 33);
  const auto run = [&](const Context& ctx) {
    PackedMatrix<double> packed;
    packed.pack(ctx, w.in(), Form::kTransposed);
    std::pair c{Matrix<double>(9, 20), Matrix<double>(33, 33)};
    matmul(ctx, a.in(), packed, c.first.view());
    matmul_at_b(ctx, a.in(), a.in(), c.second.view());
    return c;
  };
  EXPECT_TRUE(run(Context(2)) == run(in_bfloat16()));
}

}  // namespace
}  // namespace fovea
