// SPDX-License-Identifier: Apache-2.0
#include "fovea/kernel/block_matrix.h"

#include <gmock/gmock.h>

#include <cmath>
#include <fstream>
#include <numeric>

#include "fovea/base/bytes.h"
#include "fovea/base/profile.h"
#include "fovea/base/random.h"
#include "fovea/tensor/quantized.h"
#include "tests/isa.h"
#include "tests/support/folder.h"
#include "tests/support/throws.h"

namespace fovea {
namespace {

struct Kind {
  BlockType type;
  std::uint32_t number;  // in GGUF files
};
constexpr Kind kKinds[] = {{BlockType::kQ4_0, 2},    {BlockType::kQ4_1, 3},
                           {BlockType::kQ8_0, 8},    {BlockType::kQ4_K, 12},
                           {BlockType::kQ5_K, 13},   {BlockType::kQ6_K, 14},
                           {BlockType::kFloat16, 1}, {BlockType::kBFloat16, 30}};

constexpr index kColumns = 512;

// Any numbers, but scales and halves between 2^-7 and 2, of either sign.
std::vector<std::uint8_t> noise(BlockType type, index rows, std::uint64_t seed) {
  Random random(seed, RandomUse::kTest);
  const auto byte = [&] { return static_cast<std::uint8_t>(random.below(256)); };
  const BlockLayout layout = layout_of(type);
  std::vector<std::uint8_t> bytes(
      static_cast<std::size_t>(rows * kColumns / layout.values * layout.bytes));
  for (std::uint8_t& one : bytes) one = byte();
  const bool is_brain = type == BlockType::kBFloat16;
  const auto set_half = [&](std::size_t at) {
    const auto exponent = static_cast<int>(random.below(8));
    const int bits = is_brain ? (120 + exponent) << 7 | byte() % 128
                              : (8 + exponent) << 10 | (byte() * 4) % 1024;
    const int sign = byte() % 2 << 15;
    bytes[at] = static_cast<std::uint8_t>((bits | sign) & 255);
    bytes[at + 1] = static_cast<std::uint8_t>((bits | sign) >> 8);
  };
  for (std::size_t at = 0; at < bytes.size(); at += static_cast<std::size_t>(layout.bytes)) {
    if (type == BlockType::kQ6_K) {
      set_half(at + 208);
      continue;
    }
    set_half(at);
    const bool has_two =
        type == BlockType::kQ4_1 || type == BlockType::kQ4_K || type == BlockType::kQ5_K;
    if (has_two) set_half(at + 2);
  }
  return bytes;
}

std::vector<float> widened(const Kind& kind, const std::vector<std::uint8_t>& bytes, index rows) {
  std::vector<float> values(static_cast<std::size_t>(rows * kColumns));
  widen_blocks(*quantized_type(kind.number), bytes, values);
  return values;
}

std::vector<float> normals(index n, std::uint64_t seed) {
  Random random(seed, RandomUse::kTest);
  std::vector<float> values(static_cast<std::size_t>(n));
  for (float& x : values) x = static_cast<float>(random.normal());
  return values;
}

// Two parts of different types, and the values that they stand for.
struct Case {
  BlockMatrix matrix{kColumns};
  std::vector<float> values;

  Case(const Kind& first, index rows, const Kind& second, index more) {
    append(first, rows, 1);
    append(second, more, 2);
  }
  void append(const Kind& kind, index rows, std::uint64_t seed) {
    std::vector<std::uint8_t> bytes = noise(kind.type, rows, seed);
    const std::vector<float> some = widened(kind, bytes, rows);
    values.insert(values.end(), some.begin(), some.end());
    matrix.append(kind.type, rows, std::move(bytes));
  }
  std::vector<float> product(const std::vector<float>& x, const std::vector<float>& bias,
                             int threads) const {
    const index N = std::ssize(x) / kColumns, M = matrix.rows();
    std::vector<float> y(static_cast<std::size_t>(N * M), NAN);
    matmul(Context(threads), Rows<const float>(x.data(), N, kColumns), matrix, Form::kTransposed,
           Rows<float>(y.data(), N, M), {.bias = {bias.data(), std::ssize(bias)}});
    return y;
  }
};

// Expects y [N, columns] to be x W, times a factor of each value, plus what stood there.
void expect_plain(const Case& c, const std::vector<float>& x, const std::vector<float>& times,
                  const std::vector<float>& before, const std::vector<float>& y) {
  const index M = c.matrix.rows();
  for (std::size_t at = 0; at < y.size(); ++at) {
    const auto n = static_cast<index>(at) / kColumns, k = static_cast<index>(at) % kColumns;
    double sum = before.empty() ? 0 : before[at], largest = std::abs(sum);
    for (index m = 0; m < M; ++m) {
      const double term = double{x[static_cast<std::size_t>(n * M + m)]} *
                          c.values[static_cast<std::size_t>(m * kColumns + k)];
      sum += term;
      largest += std::abs(term);
    }
    const double factor = times.empty() ? 1 : times[at];
    ASSERT_NEAR(y[at], factor * sum, std::abs(factor) * 1e-6 * largest + 1e-6) << n << ", " << k;
  }
}

TEST(BlockMatrix, WidensRowsToTheBitsOfTheFile) {
  for (const Kind& kind : kKinds) {
    for_each_isa([&] {
      const Case c(kind, 7, kKinds[7], 3);
      const std::vector<std::int32_t> ids = {9, 0, 6, 7, 6};
      std::vector<float> rows(ids.size() * kColumns);
      widen_rows(Context(2), c.matrix, {ids.data(), std::ssize(ids)},
                 {rows.data(), std::ssize(ids), kColumns});
      for (std::size_t n = 0; n < ids.size(); ++n) {
        const auto from = c.values.begin() + ids[n] * kColumns;
        EXPECT_TRUE(std::equal(from, from + kColumns,
                               rows.begin() + static_cast<std::ptrdiff_t>(n) * kColumns))
            << quantized_type(kind.number)->name << " row " << ids[n];
      }
    });
  }
}

// Few rows go by blocks, many are widened: both are the product with the widened values, to the
// rounding of a sum, for any number of threads.
TEST(BlockMatrix, ProductsAreThoseOfTheValues) {
  for (const Kind& kind : kKinds) {
    SCOPED_TRACE(quantized_type(kind.number)->name);
    const Case c(kind, 150, kKinds[2], 21);
    const std::vector<float> bias = normals(c.matrix.rows(), 5);
    for_each_isa([&] {
      for (const index N : {index{1}, kRowsByBlocks, kRowsByBlocks + 1, index{33}}) {
        const std::vector<float> x = normals(N * kColumns, 3);
        const std::vector<float> y = c.product(x, bias, 1);
        EXPECT_EQ(y, c.product(x, bias, 3));
        for (index n = 0; n < N; ++n) {
          for (index m = 0; m < c.matrix.rows(); ++m) {
            double sum = bias[static_cast<std::size_t>(m)], largest = 0;
            for (index k = 0; k < kColumns; ++k) {
              const double term = double{x[static_cast<std::size_t>(n * kColumns + k)]} *
                                  c.values[static_cast<std::size_t>(m * kColumns + k)];
              sum += term;
              largest += std::abs(term);
            }
            ASSERT_NEAR(y[static_cast<std::size_t>(n * c.matrix.rows() + m)], sum,
                        1e-6 * largest + 1e-6)
                << n << ", " << m;
          }
        }
      }
    });
  }
}

// What a backward needs: the matrix is widened in several parts, each of which adds to all of y.
TEST(BlockMatrix, ProductsWithTheMatrixItselfAreThoseOfTheValues) {
  const Case c(kKinds[1], 900, kKinds[5], 210);
  for_each_isa([&] {
    for (const index N : {index{1}, index{33}}) {
      const std::vector<float> x = normals(N * c.matrix.rows(), 3), some = normals(N * kColumns, 4);
      const Rows<const float> in(x.data(), N, c.matrix.rows());
      std::vector<float> y(some.size(), NAN), again = y;
      const Rows<float> out(y.data(), N, kColumns);
      matmul(Context(1), in, c.matrix, Form::kPlain, out);
      expect_plain(c, x, {}, {}, y);
      matmul(Context(3), in, c.matrix, Form::kPlain, Rows<float>(again.data(), N, kColumns));
      EXPECT_EQ(y, again);
      matmul(Context(2), in, c.matrix, Form::kPlain, out, {.times = {some.data(), N, kColumns}});
      expect_plain(c, x, some, {}, y);
      y = some;
      matmul(Context(2), in, c.matrix, Form::kPlain, out, {.store = Store::kAdd});
      expect_plain(c, x, {}, some, y);
    }
  });
}

// Few rows and many, with all that a forward adds.
TEST(BlockMatrix, ActivationsAndSumsAreThoseOfProductsOfValues) {
  const Case c(kKinds[0], 500, kKinds[3], 101);
  const index M = c.matrix.rows();
  const std::vector<float> bias = normals(M, 5);
  for (const index N : {kRowsByBlocks, index{19}}) {
    const std::vector<float> x = normals(N * kColumns, 3), before = normals(N * M, 4);
    std::vector<float> y = before, expected = before;
    const MatmulOptions<float> options{
        .bias = {bias.data(), M}, .activation = Activation::kGelu, .store = Store::kAdd};
    matmul(Context(2), Rows<const float>(x.data(), N, kColumns), c.matrix, Form::kTransposed,
           Rows<float>(y.data(), N, M), options);
    PackedMatrix<float> packed;
    packed.pack(Context(1), {c.values.data(), M, kColumns}, Form::kTransposed);
    matmul<float>(Context(1), Rows<const float>(x.data(), N, kColumns), packed,
                  Rows<float>(expected.data(), N, M), options);
    for (std::size_t at = 0; at < y.size(); ++at) {
      ASSERT_NEAR(y[at], expected[at], 1e-3 + 1e-5 * std::abs(expected[at])) << at;
    }
  }
}

TEST(BlockMatrix, APlanNeedsNoBytes) {
  BlockMatrix matrix(kColumns);
  matrix.append_planned(BlockType::kQ4_1, 700);
  EXPECT_EQ(matrix.byte_size(), 700 * kColumns / 32 * 20);
  Plan plan;
  const Context context = Context(2).planned(plan);
  std::vector<float> x(9 * kColumns), y(9 * 700);
  matmul(context, Rows<const float>(x.data(), 9, kColumns), matrix, Form::kTransposed,
         Rows<float>(y.data(), 9, 700));
  matmul(context, Rows<const float>(y.data(), 9, 700), matrix, Form::kPlain,
         Rows<float>(x.data(), 9, kColumns));
  EXPECT_GT(plan.scratch_peak(), 4 * kColumns * 400);  // a part of the matrix, widened
}

TEST(BlockMatrix, ARowOfAResultDependsOnItsRowAlone) {
  const Case c(kKinds[1], 40, kKinds[0], 24);
  const std::vector<float> x = normals(kRowsByBlocks * kColumns, 3);
  const std::vector<float> together = c.product(x, {}, 2);
  for (index n = 0; n < kRowsByBlocks; ++n) {
    const auto row = x.begin() + n * kColumns;
    const auto begin = together.begin() + n * c.matrix.rows();
    EXPECT_EQ(std::vector<float>(begin, begin + c.matrix.rows()),
              c.product({row, row + kColumns}, {}, 2));
  }
}

// The matrix has fewer rows than are widened at once. Rows of ones sum its rows.
TEST(BlockMatrix, AMatrixOfFewRowsIsWidenedAtOnce) {
  const Case c(kKinds[0], 2, kKinds[5], 1);
  const std::vector<float> ones((kRowsByBlocks + 1) * kColumns, 1.F);
  const std::vector<float> y = c.product(ones, {}, 2);
  ASSERT_EQ(std::ssize(y), (kRowsByBlocks + 1) * c.matrix.rows());
  for (std::size_t n = 0; n < y.size(); ++n) {
    const auto row = c.values.begin() + static_cast<index>(n) % c.matrix.rows() * kColumns;
    const double sum = std::accumulate(row, row + kColumns, 0.0);
    const double largest = std::accumulate(
        row, row + kColumns, 0.0, [](double all, float one) { return all + std::abs(one); });
    EXPECT_NEAR(y[n], sum, 1e-6 * largest) << n;
  }
}

// A file that is mapped gives the bits of a copy; once it was written, no product of it counts.
TEST(BlockMatrix, MayLieInAFile) {
  const TestFolder folder;
  const std::vector<std::uint8_t> bytes = noise(BlockType::kQ4_1, 40, 1);
  const auto write = [&](std::size_t count) {
    std::ofstream(folder / "weight", std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(count));
  };
  write(bytes.size());
  BlockMatrix copied(kColumns), mapped(kColumns);
  copied.append(BlockType::kQ4_1, 40, bytes);
  mapped.append(BlockType::kQ4_1, 40, FileSource(folder / "weight").share(0, bytes.size()));
  EXPECT_TRUE(mapped.parts()[0].blocks.is_mapped());
  const auto product = [&](const BlockMatrix& w, index rows) {
    const std::vector<float> x = normals(rows * kColumns, 3);
    std::vector<float> y(static_cast<std::size_t>(rows * 40));
    matmul(Context(2), Rows<const float>(x.data(), rows, kColumns), w, Form::kTransposed,
           Rows<float>(y.data(), rows, 40));
    return y;
  };
  for (const index rows : {1, 30}) EXPECT_EQ(product(mapped, rows), product(copied, rows));
  write(bytes.size() / 2);
  for (const index rows : {1, 30}) EXPECT_THROWS(product(mapped, rows), kRead, "was written");
  const std::int32_t id = 0;
  std::vector<float> row(kColumns);
  EXPECT_THROWS(widen_rows(Context(1), mapped, {&id, 1}, {row.data(), 1, kColumns}), kRead, "");
}

TEST(BlockMatrix, RefusesWhatDoesNotFit) {
  BlockMatrix odd(40);
  EXPECT_THROWS(odd.append(BlockType::kQ8_0, 1, std::vector<std::uint8_t>(34)), kShape,
                "40 columns are no blocks of 32");
  BlockMatrix matrix(kColumns);
  EXPECT_THROWS(matrix.append(BlockType::kQ8_0, 2, std::vector<std::uint8_t>(34)), kShape,
                "2 rows take 1088 bytes; got 34");
  matrix.append(BlockType::kQ8_0, 1, noise(BlockType::kQ8_0, 1, 1));
  EXPECT_EQ(matrix.byte_size(), 544);
  std::vector<float> row(kColumns);
  const std::int32_t beyond = 1;
  EXPECT_THROWS(widen_rows(Context(1), matrix, {&beyond, 1}, {row.data(), 1, kColumns}), kShape,
                "row 1 of 1");
  EXPECT_THROWS(matmul(Context(1), Rows<const float>(row.data(), 1, 32), matrix, Form::kTransposed,
                       Rows<float>(row.data(), 1, 1)),
                kShape, "x [N, 512], y [N, 1]; they are [1, 32]");
}

}  // namespace
}  // namespace fovea
