// SPDX-License-Identifier: Apache-2.0
// Products that read and write rows of bfloat16, and that multiply their result, against the same
// products of floats, bit by bit.
#include <gmock/gmock.h>

#include <cmath>
#include <limits>
#include <vector>

#include "fovea/base/precision.h"
#include "fovea/kernel/gemm.h"
#include "tests/kernel/support.h"

namespace fovea {
namespace {

Context in_bfloat16(int threads = 2) { return Context(threads).with(Precision::kBFloat16); }

// Calls f on every instruction set that multiplies pairs.
template <class F>
void for_each_isa_of_pairs(F&& f) {
  for_each_isa([&] {
    if (operands_of<float>(in_bfloat16()) == Operands::kPaired) f();
  });
}

// Rows that lie three further values apart, which no product may touch.
class RoundedMatrix {
 public:
  RoundedMatrix(index rows, index columns)
      : rows_(rows), columns_(columns), values_(std::size_t(rows * (columns + 3)), kUntouched) {}
  // As the processor rounds: it takes denormal numbers for 0.
  explicit RoundedMatrix(const Matrix<float>& x) : RoundedMatrix(x.rows(), x.columns()) {
    for (index r = 0; r < rows_; ++r) {
      for (index c = 0; c < columns_; ++c) {
        const float value = x.at(r, c);
        const bool is_denormal = std::abs(value) < std::numeric_limits<float>::min();
        view()[r][c] = to_bfloat16(is_denormal ? std::copysign(0.0f, value) : value);
      }
    }
  }
  Rows<BFloat16> view() { return {values_.data(), rows_, columns_, columns_ + 3}; }
  Matrix<float> widened() {
    Matrix<float> x(rows_, columns_);
    for (index r = 0; r < rows_; ++r) {
      for (index c = 0; c < columns_; ++c) x.at(r, c) = to_float(view()[r][c]);
    }
    return x;
  }
  bool padding_is_untouched() {
    for (index r = 0; r < rows_; ++r) {
      for (index c = columns_; c < columns_ + 3; ++c) {
        if (view()[r][c].bits != kUntouched.bits) return false;
      }
    }
    return true;
  }

 private:
  static constexpr BFloat16 kUntouched{0x4242};
  index rows_, columns_;
  std::vector<BFloat16> values_;
};

// Sizes astride vectors, pairs, register blocks, panels, tiles and blocks of k.
struct Shape {
  index M, N, K;
};
constexpr Shape kShapes[] = {
    {1, 1, 1},      {1, 64, 1},     {2, 3, 5},        {6, 16, 17},     {7, 17, 64},
    {13, 64, 33},   {40, 128, 64},  {47, 65, 100},    {48, 130, 257},  {95, 48, 31},
    {97, 96, 3},    {100, 49, 256}, {193, 32, 40},    {64, 200, 300},  {130, 257, 1537},
    {100, 80, 769}, {3, 1000, 70},  {200, 1040, 800}, {98, 1056, 384}, {5, 16, 0},
};

struct Operands32 {
  Matrix<float> a, w, bias, times;

  Operands32(const Shape& s, Random random = Random(7, RandomUse::kTest))
      : a(Matrix<float>::random(random, s.M, s.K)),
        w(Matrix<float>::random(random, s.N, s.K)),
        bias(Matrix<float>::random(random, 1, s.N)),
        times(Matrix<float>::random(random, s.M, s.N)) {}
};

// How a product ends.
struct End {
  bool bias = false, times = false;
  Activation activation = Activation::kNone;
};
constexpr End kEnds[] = {{},
                         {.bias = true},
                         {.times = true},
                         {.activation = Activation::kGelu},
                         {.bias = true, .activation = Activation::kSilu},
                         {.activation = Activation::kRelu}};

MatmulOptions<float> options_of(const End& end, Operands32& x, Matrix<float>& slope) {
  MatmulOptions<float> o{.activation = end.activation};
  if (end.bias) o.bias = x.bias.vec();
  if (end.times) o.times = x.times.in();
  if (end.activation != Activation::kNone) o.slope = slope.view();
  return o;
}

void expect_same_bits(const Shape& s, const End& end) {
  SCOPED_TRACE(testing::Message() << "[" << s.M << ", " << s.N << ", " << s.K << "]"
                                  << (end.bias ? " bias" : "") << (end.times ? " times" : "")
                                  << " activation " << static_cast<int>(end.activation));
  Operands32 x(s);
  PackedMatrix<float> packed;
  packed.pack(in_bfloat16(), x.w.in(), Form::kTransposed);
  const auto run = [&](InProductRows<float> a, OutProductRows<float> c) {
    Matrix<float> slope(s.M, s.N);
    matmul(in_bfloat16(), a, packed, c, options_of(end, x, slope));
    return slope;
  };
  Matrix<float> c(s.M, s.N), c_of_rounded(s.M, s.N);
  RoundedMatrix a(x.a), rounded(s.M, s.N), rounded_of_rounded(s.M, s.N);
  const Matrix<float> slope = run(x.a.in(), c.view());
  EXPECT_TRUE(run(x.a.in(), rounded.view()) == slope);
  EXPECT_TRUE(run(a.view(), c_of_rounded.view()) == slope);
  EXPECT_TRUE(run(a.view(), rounded_of_rounded.view()) == slope);
  EXPECT_TRUE(c_of_rounded == c) << "a is rounded";
  EXPECT_TRUE(rounded.widened() == RoundedMatrix(c).widened()) << "c is rounded";
  EXPECT_TRUE(rounded_of_rounded.widened() == rounded.widened()) << "both are rounded";
  EXPECT_TRUE(rounded.padding_is_untouched() && rounded_of_rounded.padding_is_untouched());
}

TEST(MatmulRoundedRows, GivesTheBitsOfFloatsThatAreRounded) {
  for_each_isa_of_pairs([] {
    for (const Shape& s : kShapes) expect_same_bits(s, {});
    for (const End& end : kEnds) {
      for (const Shape& s : {kShapes[4], kShapes[7], kShapes[12], kShapes[14], kShapes[17]}) {
        expect_same_bits(s, end);
      }
    }
  });
}

// times is what a multiplication of the result would give.
TEST(Matmul, MultipliesItsResult) {
  for_each_isa([] {
    for (const Precision precision : {Precision::kFloat32, Precision::kBFloat16}) {
      for (const Shape& s : {kShapes[4], kShapes[7], kShapes[14]}) {
        const Context ctx = Context(2).with(precision);
        Operands32 x(s);
        PackedMatrix<float> packed;
        packed.pack(ctx, x.w.in(), Form::kTransposed);
        Matrix<float> once(s.M, s.N), twice(s.M, s.N);
        matmul(ctx, x.a.in(), packed, once.view(), {.times = x.times.in()});
        matmul(ctx, x.a.in(), packed, twice.view());
        for (index r = 0; r < s.M; ++r) {
          for (index c = 0; c < s.N; ++c) twice.at(r, c) *= x.times.at(r, c);
        }
        EXPECT_TRUE(once == twice);
      }
    }
  });
}

TEST(MatmulAtBRoundedRows, GivesTheBitsOfFloatsThatAreRounded) {
  for_each_isa_of_pairs([] {
    for (const Shape& s : kShapes) {
      for (const Store store : {Store::kWrite, Store::kAdd}) {
        SCOPED_TRACE(testing::Message() << "[" << s.M << ", " << s.N << ", " << s.K << "]");
        Random random(8, RandomUse::kTest);
        const auto a = Matrix<float>::random(random, s.K, s.M);
        const auto b = Matrix<float>::random(random, s.K, s.N);
        const auto start = Matrix<float>::random(random, s.M, s.N);
        RoundedMatrix rounded_a(a), rounded_b(b);
        const auto run = [&](InProductRows<float> left, InProductRows<float> right) {
          Matrix<float> c = start;
          matmul_at_b(in_bfloat16(), left, right, c.view(), store);
          return c;
        };
        const Matrix<float> c = run(a.in(), b.in());
        EXPECT_TRUE(run(rounded_a.view(), b.in()) == c);
        EXPECT_TRUE(run(a.in(), rounded_b.view()) == c);
        EXPECT_TRUE(run(rounded_a.view(), rounded_b.view()) == c);
      }
    }
  });
}

TEST(ColumnSums, OfRoundedRowsAreThoseOfTheirValues) {
  for_each_isa_of_pairs([] {
    for (const index columns : kColumns) {
      Random random(9, RandomUse::kTest);
      RoundedMatrix rounded(Matrix<float>::random(random, 77, columns));
      Matrix<float> sums(1, columns), of_values(1, columns);
      column_sums(Context(2), rounded.view(), sums.vec());
      const Matrix<float> values = rounded.widened();
      column_sums(Context(2), values.in(), of_values.vec());
      EXPECT_TRUE(sums == of_values) << columns;
    }
  });
}

TEST(MatmulRoundedRows, AreRefusedWhereTheyAreNotRead) {
  Matrix<float> a(2, 3, 1), w(4, 3, 1), c(2, 4), square(3, 3);
  RoundedMatrix rounded(a), rounded_c(2, 4);
  PackedMatrix<float> packed;
  packed.pack(Context(1), w.in(), Form::kTransposed);
  const auto run = [&](InProductRows<float> left, OutProductRows<float> to,
                       const MatmulOptions<float>& o = {}) {
    matmul(Context(1), left, packed, to, o);
  };
  EXPECT_THROWS(run(rounded.view(), c.view()), kShape, "only products of pairs");
  EXPECT_THROWS(run(a.in(), rounded_c.view()), kShape, "only products of pairs");
  EXPECT_THROWS(run(a.in(), c.view(), {.times = c.in(), .store = Store::kAdd}), kShape,
                "times goes with neither");
  EXPECT_THROWS(run(a.in(), c.view(), {.times = a.in()}), kShape, "times must be [2, 4]");
  EXPECT_THROWS(matmul_at_b(Context(1), rounded.view(), a.in(), square.view()), kShape,
                "only products of pairs");
  if (operands_of<float>(in_bfloat16()) != Operands::kPaired) return;
  packed.pack(in_bfloat16(), w.in(), Form::kTransposed);
  EXPECT_THROWS(run(a.in(), rounded_c.view(), {.store = Store::kAdd}), kShape, "are not added to");
}

}  // namespace
}  // namespace fovea
