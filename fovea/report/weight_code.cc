// SPDX-License-Identifier: Apache-2.0
#include "fovea/report/weight_code.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>
#include <vector>

namespace fovea {

namespace {

using Numbers = std::vector<std::uint32_t>;

constexpr int kMostOnes = 16, kEscapeBits = 22, kChoiceBits = 5, kCountBits = 16;
constexpr std::uint32_t kSparse = 31;

class BitWriter {
 public:
  void put(std::uint32_t value, int bits) {
    for (int bit = bits - 1; bit >= 0; --bit) {
      byte_ = byte_ << 1 | (value >> bit & 1);
      if (++filled_ < 8) continue;
      bytes_ += static_cast<char>(byte_);
      byte_ = 0, filled_ = 0;
    }
  }

  void put_rice(std::uint32_t value, int k) {
    const std::uint32_t ones = value >> k;
    if (ones >= kMostOnes) {
      put((1u << kMostOnes) - 1, kMostOnes);
      return put(value, kEscapeBits);
    }
    put((1u << (ones + 1)) - 2, static_cast<int>(ones) + 1);
    put(value & ((1u << k) - 1), k);
  }

  std::string finish() {
    if (filled_ > 0) put(0, 8 - filled_);
    return std::move(bytes_);
  }

 private:
  std::string bytes_;
  std::uint32_t byte_ = 0;
  int filled_ = 0;
};

struct Rice {
  int k = 0;
  std::int64_t bits = 0;
};

std::int64_t rice_bits(const Numbers& numbers, int k) {
  std::int64_t bits = 0;
  for (const std::uint32_t number : numbers) {
    const std::uint32_t ones = number >> k;
    bits += ones >= kMostOnes ? kMostOnes + kEscapeBits : static_cast<int>(ones) + 1 + k;
  }
  return bits;
}

// The best k. The cost falls, then rises; outliers move its minimum below what the mean suggests.
Rice best_rice(const Numbers& numbers) {
  double sum = 0;
  for (const std::uint32_t number : numbers) sum += number;
  const double mean = numbers.empty() ? 0 : sum / static_cast<double>(numbers.size());
  const int from = std::bit_width(static_cast<std::uint32_t>(mean));
  Rice best{from, rice_bits(numbers, from)};
  for (int k = from - 1; k >= 0; --k) {
    const std::int64_t bits = rice_bits(numbers, k);
    if (bits >= best.bits) break;
    best = {k, bits};
  }
  return best;
}

// The kept cells of a row as integers. With `strongest`, the others are 0.
class Row {
 public:
  Row(std::span<const float> weights, const WeightDigits& digits) {
    const double factor = std::pow(10.0, digits.decimals);
    for (const float weight : weights) {
      if (weight == 0) continue;
      const long long number = std::llround(weight * factor);
      const auto size = static_cast<std::uint32_t>(std::abs(number));
      cells_.push_back(!digits.negative ? size : number < 0 ? 2 * size - 1 : 2 * size);
    }
    if (digits.strongest > 0) keep(static_cast<std::size_t>(digits.strongest));
    for (std::uint32_t gap = 0; const std::uint32_t cell : cells_) {
      if (cell == 0) {
        ++gap;
        continue;
      }
      gaps_.push_back(gap), values_.push_back(cell - 1);
      gap = 0;
    }
    dense_ = best_rice(cells_), gap_ = best_rice(gaps_), value_ = best_rice(values_);
  }

  std::int64_t bits() const { return is_sparse() ? sparse_bits() : kChoiceBits + dense_.bits; }

  void write(BitWriter& to) const {
    if (!is_sparse()) {
      to.put(static_cast<std::uint32_t>(dense_.k), kChoiceBits);
      for (const std::uint32_t cell : cells_) to.put_rice(cell, dense_.k);
      return;
    }
    to.put(kSparse, kChoiceBits);
    to.put(static_cast<std::uint32_t>(gap_.k), kChoiceBits);
    to.put(static_cast<std::uint32_t>(value_.k), kChoiceBits);
    to.put(static_cast<std::uint32_t>(values_.size()), kCountBits);
    for (std::size_t n = 0; n < values_.size(); ++n) {
      to.put_rice(gaps_[n], gap_.k);
      to.put_rice(values_[n], value_.k);
    }
  }

 private:
  std::int64_t sparse_bits() const {
    return 3 * kChoiceBits + kCountBits + gap_.bits + value_.bits;
  }
  // A row that was cut must be sparse: its readers then know that cells are missing.
  bool is_sparse() const { return is_cut_ || sparse_bits() < kChoiceBits + dense_.bits; }

  // Keeps the largest cells; among equal ones, those of the first keys.
  void keep(std::size_t most) {
    Numbers order = cells_;
    if (order.size() <= most) return;
    std::nth_element(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(most), order.end(),
                     std::greater<>());
    const std::uint32_t bar = order[most];  // the largest that may go
    is_cut_ = bar > 0;
    auto ties = static_cast<std::ptrdiff_t>(most) -
                std::count_if(cells_.begin(), cells_.end(), [&](auto cell) { return cell > bar; });
    for (std::uint32_t& cell : cells_) {
      if (cell > bar || (cell == bar && ties-- > 0)) continue;
      cell = 0;
    }
  }

  Numbers cells_, gaps_, values_;
  Rice dense_, gap_, value_;
  bool is_cut_ = false;
};

void put_number(std::string& to, std::size_t number) {
  for (; number >= 128; number >>= 7) to += static_cast<char>((number & 127) | 128);
  to += static_cast<char>(number);
}

}  // namespace

std::string code_mask(const HeadWeights& head) {
  std::string code;
  for (index query = 0; query < head.queries; ++query) {
    const std::span<const float> row = head.row(query);
    std::vector<std::size_t> runs;
    for (std::size_t key = 0, end = 0; key < row.size(); key = end) {
      while (end < row.size() && row[end] == 0) ++end;
      if (end == row.size()) break;
      runs.push_back(end - key);
      const std::size_t begin = end;
      while (end < row.size() && row[end] != 0) ++end;
      runs.push_back(end - begin);
    }
    put_number(code, runs.size() / 2);
    for (const std::size_t run : runs) put_number(code, run);
  }
  return code;
}

std::string code_weights(const HeadWeights& head, const WeightDigits& digits) {
  BitWriter bits;
  for (index query = 0; query < head.queries; ++query) Row(head.row(query), digits).write(bits);
  return bits.finish();
}

double estimate_bits(const HeadWeights& head, const WeightDigits& digits, index step) {
  double bits = 0;
  index rows = 0;
  for (index query = step / 2; query < head.queries; query += step, ++rows) {
    bits += static_cast<double>(Row(head.row(query), digits).bits());
  }
  return rows == 0 ? 0 : bits * static_cast<double>(head.queries) / static_cast<double>(rows);
}

}  // namespace fovea
