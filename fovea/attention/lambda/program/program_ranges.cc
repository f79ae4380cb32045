// SPDX-License-Identifier: Apache-2.0
#include "fovea/attention/lambda/program/program_ranges.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace fovea::detail {

namespace {

using Leaf = ScoreStep::Leaf;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr Range kAll = {-kInfinity, kInfinity}, kUnknown = {0, 1}, kTrue = {1, 1}, kFalse = {0, 0};

Range one(double x) { return {x, x}; }

// A bound that is no number says nothing.
Range safe(double low, double high) {
  return {std::isnan(low) ? -kInfinity : low, std::isnan(high) ? kInfinity : high};
}

Range hull(const Range& a, const Range& b) {
  return {std::min(a.low, b.low), std::max(a.high, b.high)};
}

Range product(const Range& a, const Range& b) {
  const auto times = [](double x, double y) { return x == 0 || y == 0 ? 0 : x * y; };
  const double all[] = {times(a.low, b.low), times(a.low, b.high), times(a.high, b.low),
                        times(a.high, b.high)};
  return {*std::min_element(std::begin(all), std::end(all)),
          *std::max_element(std::begin(all), std::end(all))};
}

Range quotient(const Range& a, const Range& b) {
  if (b.has_zero()) return kAll;
  return product(a, {1 / b.high, 1 / b.low});
}

// Not by 1 / b, which is rounded.
Range floor_quotient(const Range& a, const Range& b) {
  if (b.has_zero()) return kAll;
  const double all[] = {a.low / b.low, a.low / b.high, a.high / b.low, a.high / b.high};
  const auto [low, high] = std::minmax_element(std::begin(all), std::end(all));
  return safe(std::floor(*low), std::floor(*high));
}

Range modulo(const Range& a, const Range& b, bool whole) {
  if (!b.is_one() || !(b.low > 0)) return kAll;
  const double first = std::floor(a.low / b.low), last = std::floor(a.high / b.low);
  if (first == last) return safe(a.low - first * b.low, a.high - first * b.low);
  return {0, whole ? b.low - 1 : b.low};
}

Range comparison(bool is_true, bool is_false) {
  if (is_true) return kTrue;
  return is_false ? kFalse : kUnknown;
}

// Whole numbers from low to high agree in the bits above the highest in which low and high differ.
struct KnownBits {
  std::int64_t known, open;  // the bits that agree; a mask of the others
};
KnownBits known_bits(const Range& a) {
  const auto low = static_cast<std::uint64_t>(a.low), high = static_cast<std::uint64_t>(a.high);
  std::uint64_t open = low ^ high;
  for (const unsigned by : {1U, 2U, 4U, 8U, 16U, 32U}) open |= open >> by;
  return {static_cast<std::int64_t>(low & ~open), static_cast<std::int64_t>(open)};
}

bool has_bits(const Range& a) { return a.low >= 0 && a.high < 0x1p53; }

Range bits(TapeOp op, const Range& a, const Range& b) {
  if (a.is_one() && b.is_one()) return one(bits_of(op, a.low, b.low));
  if (op == TapeOp::kShiftLeft || op == TapeOp::kShiftRight) {
    if (!b.is_one() || !std::isfinite(a.low) || !std::isfinite(a.high)) return kAll;
    return {bits_of(op, a.low, b.low), bits_of(op, a.high, b.low)};
  }
  if (!has_bits(a) || !has_bits(b)) {
    // An operand that is never negative bounds the result of `and`.
    if (op == TapeOp::kAnd && has_bits(a)) return {0, a.high};
    return op == TapeOp::kAnd && has_bits(b) ? Range{0, b.high} : kAll;
  }
  const KnownBits x = known_bits(a), y = known_bits(b);
  const auto as_range = [](std::int64_t low, std::int64_t high) {
    return Range{static_cast<double>(low), static_cast<double>(high)};
  };
  if (op == TapeOp::kAnd)
    return as_range(x.known & y.known, (x.known | x.open) & (y.known | y.open));
  if (op == TapeOp::kOr) return as_range(x.known | y.known, x.known | x.open | y.known | y.open);
  const std::int64_t open = x.open | y.open, known = (x.known ^ y.known) & ~open;
  return as_range(known, known | open);
}

Range absolute(const Range& a) {
  const double low = std::abs(a.low), high = std::abs(a.high);
  return {a.has_zero() ? 0 : std::min(low, high), std::max(low, high)};
}

Range unary(TapeOp op, const Range& a) {
  const auto at = [&](double x) { return tape_value(op, x, 0, 0); };
  switch (op) {
    case TapeOp::kNeg:
      return {-a.high, -a.low};
    case TapeOp::kAbs:
      return absolute(a);
    case TapeOp::kSin:
    case TapeOp::kCos:
      return {-1, 1};
    case TapeOp::kLog:
    case TapeOp::kSqrt:
      return a.low < 0 ? kAll : safe(at(a.low), at(a.high));
    default:  // those that ascend
      return safe(at(a.low), at(a.high));
  }
}

Range binary(TapeOp op, const Range& a, const Range& b, bool whole) {
  switch (op) {
    case TapeOp::kAdd:
      return safe(a.low + b.low, a.high + b.high);
    case TapeOp::kSub:
      return safe(a.low - b.high, a.high - b.low);
    case TapeOp::kMul:
      return product(a, b);
    case TapeOp::kDiv:
      return quotient(a, b);
    case TapeOp::kFloorDivide:
      return floor_quotient(a, b);
    case TapeOp::kModulo:
      return modulo(a, b, whole);
    case TapeOp::kMin:
      return {std::min(a.low, b.low), std::min(a.high, b.high)};
    case TapeOp::kMax:
      return {std::max(a.low, b.low), std::max(a.high, b.high)};
    case TapeOp::kLess:
      return comparison(a.high < b.low, a.low >= b.high);
    case TapeOp::kLessEqual:
      return comparison(a.high <= b.low, a.low > b.high);
    case TapeOp::kEqual:
      return comparison(a.is_one() && b.is_one() && a.low == b.low,
                        a.high < b.low || b.high < a.low);
    case TapeOp::kNotEqual:
      return comparison(a.high < b.low || b.high < a.low,
                        a.is_one() && b.is_one() && a.low == b.low);
    case TapeOp::kAnd:
    case TapeOp::kOr:
    case TapeOp::kXor:
    case TapeOp::kShiftLeft:
    case TapeOp::kShiftRight:
      return bits(op, a, b);
    default:
      return kAll;
  }
}

bool is_comparison(TapeOp op) { return op >= TapeOp::kLess && op <= TapeOp::kNotEqual; }

// With room for what the lanes round in float.
Range wider(const Range& a) {
  constexpr double kRoom = 1e-5;
  return safe(a.low - kRoom * std::abs(a.low), a.high + kRoom * std::abs(a.high));
}

// The part of [0, size) that indices of a range can mean. A range with negative ones may mean any.
Range places_on_axis(const Range& at, index size) {
  const Range axis{0, static_cast<double>(size - 1)};
  if (at.high < 0) {
    const Range moved{at.low + static_cast<double>(size), at.high + static_cast<double>(size)};
    return {std::clamp(moved.low, 0.0, axis.high), std::clamp(moved.high, 0.0, axis.high)};
  }
  if (at.low < 0) return axis;
  return {std::min(at.low, axis.high), std::min(at.high, axis.high)};
}

}  // namespace

PlaceRanges ranges_of(const TileSite& site) {
  const auto from = [](index first, index count) {
    return Range{static_cast<double>(first), static_cast<double>(first + count - 1)};
  };
  return {from(site.sequence.number, 1), from(site.head, 1), from(site.query, site.queries),
          from(site.key, site.keys)};
}

ProgramRanges::ProgramRanges(const ScoreProgram& program)
    : program_(program), blocks_(program.tables().size()) {
  for (std::size_t n = 0; n < blocks_.size(); ++n) find_blocks(n);
}

void ProgramRanges::find_blocks(std::size_t number) {
  const CapturedTable& table = program_.tables()[number];
  const index count = table.count();
  if (!table.is_whole() || table.sizes.empty() || count == 0 || count > kMostEntries) return;
  const index last = table.sizes.back(), rows = count / last;
  Blocks& to = blocks_[number];
  to.blocks = (last + kBlock - 1) / kBlock;
  for (index row = 0; row < rows; ++row) {
    index offset = 0, rest = row;
    for (std::size_t axis = table.sizes.size() - 1; axis-- > 0;) {
      offset += rest % table.sizes[axis] * table.strides[axis];
      rest /= table.sizes[axis];
    }
    for (index begin = 0; begin < last; begin += kBlock) {
      Range range = one(table.at(offset + begin * table.strides.back()));
      for (index j = begin + 1; j < std::min(last, begin + kBlock); ++j) {
        range = hull(range, one(table.at(offset + j * table.strides.back())));
      }
      to.low.push_back(range.low);
      to.high.push_back(range.high);
    }
  }
}

bool ProgramRanges::is_inside(int read, std::size_t axis, std::span<const Range> ranges) const {
  const ScoreStep& s = program_.step(read);
  const Range& at = ranges[static_cast<std::size_t>(s.at[axis])];
  return at.low >= 0 && at.high < static_cast<double>(program_.table(s.table).sizes[axis]);
}

Range ProgramRanges::read(int n, std::span<const Range> ranges) const {
  const ScoreStep& s = program_.step(n);
  const CapturedTable& table = program_.table(s.table);
  const Range whole = table.is_whole() ? Range{table.low, table.high} : kAll;
  const auto axes = table.sizes.size();
  index row = 0, offset = 0;
  for (std::size_t axis = 0; axis < axes; ++axis) {
    const index size = table.sizes[axis];
    if (size == 0) return whole;
    const Range at = places_on_axis(ranges[static_cast<std::size_t>(s.at[axis])], size);
    const auto first = static_cast<index>(at.low), last = static_cast<index>(at.high);
    offset += first * table.strides[axis];
    if (axis + 1 < axes) {
      if (first != last) return whole;
      row = row * size + first;
      continue;
    }
    if (first == last) return one(table.at(offset));
    const Blocks& blocks = blocks_[static_cast<std::size_t>(s.table)];
    if (blocks.low.empty()) return whole;
    const auto of_row = static_cast<std::ptrdiff_t>(row * blocks.blocks);
    const auto begin = of_row + first / kBlock, end = of_row + last / kBlock + 1;
    return {*std::min_element(blocks.low.begin() + begin, blocks.low.begin() + end),
            *std::max_element(blocks.high.begin() + begin, blocks.high.begin() + end)};
  }
  return axes == 0 ? one(table.at(0)) : whole;
}

Range ProgramRanges::step(int n, const PlaceRanges& places, std::span<const Range> ranges) const {
  const ScoreStep& s = program_.step(n);
  const auto of = [&](int read) { return ranges[static_cast<std::size_t>(read)]; };
  switch (s.leaf) {
    case Leaf::kConstant:
      return std::isnan(s.value) ? kAll : one(s.value);
    case Leaf::kScore:
      return kAll;
    case Leaf::kBatch:
      return places.batch;
    case Leaf::kHead:
      return places.head;
    case Leaf::kQuery:
      return places.query;
    case Leaf::kKey:
      return places.key;
    case Leaf::kRead:
      return read(n, ranges);
    default:
      break;
  }
  if (operands(s.op) == 1) return unary(s.op, of(s.a));
  if (operands(s.op) == 2) {
    const bool exact = program_.is_whole(s.a) && program_.is_whole(s.b);
    if (is_comparison(s.op) && !exact) return binary(s.op, wider(of(s.a)), wider(of(s.b)), false);
    return binary(s.op, of(s.a), of(s.b), program_.is_whole(n));
  }
  if (of(s.a).is_zero()) return of(s.c);
  return of(s.a).has_zero() ? hull(of(s.b), of(s.c)) : of(s.b);
}

void ProgramRanges::evaluate(const PlaceRanges& places, std::span<Range> ranges) const {
  for (int n = 0; n < program_.size(); ++n) {
    ranges[static_cast<std::size_t>(n)] = step(n, places, ranges);
  }
}

Range ProgramRanges::result(const PlaceRanges& places) const {
  constexpr int kFew = 256;
  if (program_.size() <= kFew) {
    std::array<Range, kFew> ranges;
    evaluate(places, {ranges.data(), static_cast<std::size_t>(program_.size())});
    return ranges[static_cast<std::size_t>(program_.result())];
  }
  std::vector<Range> ranges(static_cast<std::size_t>(program_.size()));
  evaluate(places, ranges);
  return ranges.back();
}

}  // namespace fovea::detail
