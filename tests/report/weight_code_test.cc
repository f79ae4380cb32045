// SPDX-License-Identifier: Apache-2.0
#include "fovea/report/weight_code.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "fovea/base/random.h"

namespace fovea {
namespace {

// Reads the codes as page/weights.js does.
class Reader {
 public:
  explicit Reader(std::string bytes) : bytes_(std::move(bytes)) {}

  int take(int count) {
    int value = 0;
    for (int n = 0; n < count; ++n, ++at_) {
      const auto byte = static_cast<std::uint8_t>(bytes_.at(at_ / 8));
      value = value << 1 | (byte >> (7 - at_ % 8) & 1);
    }
    return value;
  }
  int rice(int k) {
    int ones = 0;
    while (ones < 16 && take(1) == 1) ++ones;
    return ones == 16 ? take(22) : ones << k | take(k);
  }
  bool is_finished() const { return (at_ + 7) / 8 == bytes_.size(); }

 private:
  std::string bytes_;
  std::size_t at_ = 0;
};

int signed_of(int code, bool negative) {
  return !negative ? code : code % 2 != 0 ? -(code + 1) / 2 : code / 2;
}

std::vector<int> read_row(Reader& bits, std::span<const float> row, bool negative) {
  std::vector<int> numbers;
  const auto kept = static_cast<std::size_t>(
      std::count_if(row.begin(), row.end(), [](float weight) { return weight != 0; }));
  const int k = bits.take(5);
  if (k < 31) {
    for (std::size_t n = 0; n < kept; ++n) numbers.push_back(signed_of(bits.rice(k), negative));
  } else {
    const int gap_k = bits.take(5), value_k = bits.take(5);
    for (int count = bits.take(16); count > 0; --count) {
      numbers.resize(numbers.size() + static_cast<std::size_t>(bits.rice(gap_k)), 0);
      numbers.push_back(signed_of(bits.rice(value_k) + 1, negative));
    }
    EXPECT_LE(numbers.size(), kept);
    numbers.resize(kept, 0);
  }
  std::vector<int> all;
  for (std::size_t at = 0; const float weight : row) all.push_back(weight == 0 ? 0 : numbers[at++]);
  return all;
}

// [queries, keys] whose rows add up to 1: `peak` 1 is any point of the simplex, larger is steeper.
std::vector<float> rows_of(index queries, index keys, double peak, double masked = 0) {
  Random random(7, RandomUse::kTest);
  std::vector<float> weights;
  for (index query = 0; query < queries; ++query) {
    std::vector<double> row;
    double sum = 0;
    for (index key = 0; key < keys; ++key) {
      const bool is_kept = random.uniform() >= masked;
      row.push_back(is_kept ? std::pow(-std::log(random.uniform() + 1e-12), peak) : 0);
      sum += row.back();
    }
    for (const double weight : row)
      weights.push_back(static_cast<float>(weight / std::max(sum, 1e-9)));
  }
  return weights;
}

void expect_read_back(const HeadWeights& head, const WeightDigits& digits) {
  Reader bits(code_weights(head, digits));
  const double factor = std::pow(10.0, digits.decimals);
  for (index query = 0; query < head.queries; ++query) {
    const std::span<const float> row = head.row(query);
    const std::vector<int> read = read_row(bits, row, digits.negative);
    for (std::size_t key = 0; key < row.size(); ++key) {
      ASSERT_EQ(read[key], std::llround(row[key] * factor)) << query << " " << key;
    }
  }
  EXPECT_TRUE(bits.is_finished());
}

TEST(WeightCode, GivesBackEveryDecimal) {
  for (const double peak : {0.1, 1.0, 8.0, 40.0}) {
    for (const double masked : {0.0, 0.5, 1.0}) {
      const std::vector<float> weights = rows_of(5, 37, peak, masked);
      for (const int decimals : {4, 5, 6}) {
        expect_read_back({weights, 5, 37}, {.decimals = decimals});
      }
    }
  }
}

TEST(WeightCode, GivesBackNegativeAndLargeWeights) {
  std::vector<float> weights = rows_of(4, 9, 3);
  for (std::size_t n = 0; n < weights.size(); n += 2) weights[n] *= -1;
  expect_read_back({weights, 4, 9}, {.decimals = 6, .negative = true});
  for (float& weight : weights) weight *= 12345;
  expect_read_back({weights, 4, 9}, {.decimals = 1, .negative = true});
  expect_read_back({weights, 4, 9}, {.decimals = -1, .negative = true});
}

// The bound of the header: what makes 12 x 12 heads of 64 tokens fit into 1 MB.
TEST(WeightCode, ARowOfASoftmaxTakesFewBitsWhateverItsWeightsAre) {
  for (const double peak : {0.0, 0.3, 1.0, 1.5, 3.0, 10.0}) {
    const std::vector<float> weights = rows_of(64, 64, peak);
    const auto bytes = static_cast<double>(code_weights({weights, 64, 64}, {}).size());
    EXPECT_LE(bytes * 8 / (64 * 64), 9.3) << peak;
  }
}

TEST(WeightCode, KeepsTheStrongestWeightsOfARow) {
  const std::vector<float> weights = rows_of(6, 50, 1);
  for (const index strongest : {1, 7, 49, 50}) {
    Reader bits(code_weights({weights, 6, 50}, {.strongest = strongest}));
    for (index query = 0; query < 6; ++query) {
      const auto row = HeadWeights{weights, 6, 50}.row(query);
      std::vector<int> read = read_row(bits, row, false), all;
      for (const float weight : row) all.push_back(static_cast<int>(std::lround(weight * 1e4F)));
      std::sort(all.begin(), all.end(), std::greater<>());
      std::sort(read.begin(), read.end(), std::greater<>());
      std::fill(all.begin() + strongest, all.end(), 0);
      EXPECT_EQ(read, all);
    }
  }
}

TEST(WeightCode, OfEqualWeightsTheFirstAreKept) {
  const std::vector<float> weights(8, 0.125F);
  Reader bits(code_weights({weights, 1, 8}, {.strongest = 3}));
  EXPECT_EQ(read_row(bits, weights, false), (std::vector<int>{1250, 1250, 1250, 0, 0, 0, 0, 0}));
}

TEST(WeightCode, TheEstimateOfAllRowsIsExact) {
  const std::vector<float> weights = rows_of(20, 30, 2);
  const HeadWeights head{weights, 20, 30};
  for (const index strongest : {0, 5}) {
    const WeightDigits digits{.strongest = strongest};
    const double bits = estimate_bits(head, digits, 1);
    EXPECT_EQ(std::ceil(bits / 8), static_cast<double>(code_weights(head, digits).size()));
    EXPECT_NEAR(estimate_bits(head, digits, 4), bits, 0.1 * bits);
  }
}

TEST(WeightCode, AMaskIsItsRuns) {
  const std::vector<float> weights = {.5F, .5F, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, .5F, 0, .5F};
  const std::string code = code_mask({weights, 4, 4});
  EXPECT_EQ(code, std::string("\1\0\2"
                              "\1\1\1"
                              "\0"
                              "\2\1\1\1\1",
                              12));
  const std::vector<float> wide(300, 1.0F / 300);
  EXPECT_EQ(code_mask({wide, 1, 300}), std::string("\1\0\xAC\2", 4));
}

}  // namespace
}  // namespace fovea
