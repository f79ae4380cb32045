// SPDX-License-Identifier: Apache-2.0
// Programs of scores and places, written step by step.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <numeric>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "fovea/attention/lambda/program/planned_program.h"
#include "tests/attention/support/call.h"

namespace fovea::testing {

using detail::CapturedTable;
using detail::LaneTable;
using detail::PlannedProgram;
using detail::ScoreProgram;
using detail::ScoreStep;
using detail::TapeOp;

/// Its functions add a step and return its number.
class Steps {
 public:
  int leaf(ScoreStep::Leaf leaf) { return add({.leaf = leaf}); }
  int score() { return leaf(ScoreStep::Leaf::kScore); }
  int batch() { return leaf(ScoreStep::Leaf::kBatch); }
  int head() { return leaf(ScoreStep::Leaf::kHead); }
  int query() { return leaf(ScoreStep::Leaf::kQuery); }
  int key() { return leaf(ScoreStep::Leaf::kKey); }
  int constant(double value) { return add({.leaf = ScoreStep::Leaf::kConstant, .value = value}); }
  int op(TapeOp op, int a, int b = -1, int c = -1) {
    return add({.leaf = ScoreStep::Leaf::kNone, .op = op, .a = a, .b = b, .c = c});
  }
  int read(int table, const std::vector<int>& at) {
    ScoreStep step{.leaf = ScoreStep::Leaf::kRead, .table = table};
    std::copy(at.begin(), at.end(), step.at.begin());
    return add(step);
  }
  const std::vector<ScoreStep>& all() const { return steps_; }

 private:
  int add(const ScoreStep& step) {
    steps_.push_back(step);
    return static_cast<int>(steps_.size()) - 1;
  }
  std::vector<ScoreStep> steps_;
};

template <class V>
CapturedTable table_of(const std::vector<V>& values, std::vector<index> sizes) {
  constexpr auto type = std::is_same_v<V, float>          ? LaneTable::Type::kFloat
                        : std::is_same_v<V, double>       ? LaneTable::Type::kDouble
                        : std::is_same_v<V, std::int32_t> ? LaneTable::Type::kInt32
                        : std::is_same_v<V, std::int64_t> ? LaneTable::Type::kInt64
                                                          : LaneTable::Type::kByte;
  std::vector<index> strides(sizes.size());
  index all = 1;
  for (std::size_t axis = sizes.size(); axis-- > 0; all *= sizes[axis]) strides[axis] = all;
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  return {{values.data(), type},
          std::move(sizes),
          std::move(strides),
          static_cast<double>(*low),
          static_cast<double>(*high)};
}

/// A function of scores with the tables that it reads, those of numbers with gradients.
template <class V>
struct TestProgram {
  std::string name;
  Steps steps;
  std::vector<std::pair<std::vector<V>, std::vector<index>>> numbers;           // tables 0, 1, ...
  std::vector<std::pair<std::vector<std::int32_t>, std::vector<index>>> whole;  // those that follow
  std::vector<std::vector<V>> gradients;

  ScoreProgram program(bool learns) const {
    std::vector<CapturedTable> tables;
    for (const auto& [values, sizes] : numbers) tables.push_back(table_of(values, sizes));
    for (const auto& [values, sizes] : whole) tables.push_back(table_of(values, sizes));
    std::vector<bool> all(tables.size());
    std::fill_n(all.begin(), numbers.size(), learns);
    return ScoreProgram(steps.all(), std::move(tables), all);
  }
  std::shared_ptr<const PlannedProgram> plan(const AttentionSizes& sizes, bool learns = true) {
    gradients.clear();
    for (const auto& one : numbers) gradients.emplace_back(one.first.size(), V(99));
    std::vector<void*> room;
    for (auto& one : gradients) room.push_back(learns ? one.data() : nullptr);
    return std::make_shared<const PlannedProgram>(program(learns), sizes, room, 0x1p24);
  }
};

template <class V>
TestProgram<V>& add_program(std::vector<TestProgram<V>>& all, const std::string& name) {
  TestProgram<V>& one = all.emplace_back();
  one.name = name;
  return one;
}

/// Programs that read each kind of table, with each way of its gradient.
template <class V>
std::vector<TestProgram<V>> programs_with_tables(const AttentionSizes& sizes) {
  const auto [B, T, S, H, G, D, Dv] = sizes;
  std::vector<TestProgram<V>> all;
  {
    auto& p = add_program(all, "a number of the head, times the distance");
    p.numbers = {{normals<V>(1, H), {H}}};
    Steps& s = p.steps;
    const int distance = s.op(TapeOp::kAbs, s.op(TapeOp::kSub, s.query(), s.key()));
    s.op(TapeOp::kSub, s.score(), s.op(TapeOp::kMul, s.read(0, {s.head()}), distance));
  }
  {
    auto& p = add_program(all, "a matrix, and its transpose");
    p.numbers = {{normals<V>(2, H * T * S), {H, T, S}}, {normals<V>(3, S * T), {S, T}}};
    Steps& s = p.steps;
    const int a = s.read(0, {s.head(), s.query(), s.key()}), b = s.read(1, {s.key(), s.query()});
    s.op(TapeOp::kAdd, s.op(TapeOp::kMul, s.score(), a), b);
  }
  {
    auto& p = add_program(all, "by distance, by query and by key");
    p.numbers = {{normals<V>(4, T + S), {T + S}},
                 {normals<V>(5, B * T), {B, T}},
                 {normals<V>(6, H * S), {H, S}}};
    Steps& s = p.steps;
    const int q = s.query(), k = s.key();
    const int at = s.op(TapeOp::kAdd, s.op(TapeOp::kSub, q, k), s.constant(double(S)));
    int sum = s.op(TapeOp::kAdd, s.score(), s.read(0, {at}));
    sum = s.op(TapeOp::kMul, sum, s.read(1, {s.batch(), q}));
    s.op(TapeOp::kSub, sum, s.read(2, {s.head(), k}));
  }
  {
    auto& p = add_program(all, "a table of kinds of pairs, and of buckets of distances");
    p.numbers = {{normals<V>(7, H * 3), {H, 3}}, {normals<V>(8, 4), {4}}};
    p.whole = {{std::vector<std::int32_t>(static_cast<std::size_t>(T * S)), {T, S}}};
    for (index n = 0; n < T * S; ++n) p.whole[0].first[static_cast<std::size_t>(n)] = n * 7 % 3;
    Steps& s = p.steps;
    const int q = s.query(), k = s.key();
    const int kind = s.read(2, {q, k});
    const int far = s.op(TapeOp::kMin, s.op(TapeOp::kAbs, s.op(TapeOp::kSub, q, k)), s.constant(3));
    const int sum = s.op(TapeOp::kAdd, s.score(), s.read(0, {s.head(), kind}));
    s.op(TapeOp::kAdd, sum, s.read(1, {far}));
  }
  return all;
}

/// Programs that use each operation.
template <class V>
std::vector<TestProgram<V>> programs_of_operations() {
  std::vector<TestProgram<V>> all;
  {
    auto& p = add_program(all, "activations");
    Steps& s = p.steps;
    const int x = s.score(), one = s.constant(1);
    const int bell = s.op(TapeOp::kExp, s.op(TapeOp::kNeg, s.op(TapeOp::kMul, x, x)));
    int sum = s.op(TapeOp::kAdd, s.op(TapeOp::kTanh, x), s.op(TapeOp::kErf, x));
    sum = s.op(TapeOp::kAdd, sum, s.op(TapeOp::kLog, s.op(TapeOp::kAdd, bell, one)));
    sum = s.op(TapeOp::kMul, sum, s.op(TapeOp::kSqrt, s.op(TapeOp::kAdd, bell, one)));
    sum =
        s.op(TapeOp::kDiv, sum, s.op(TapeOp::kAdd, one, s.op(TapeOp::kAbs, s.op(TapeOp::kSin, x))));
    sum = s.op(TapeOp::kMax, sum, s.op(TapeOp::kCos, x));
    s.op(TapeOp::kAdd, sum, s.op(TapeOp::kPower, s.op(TapeOp::kAdd, bell, one), s.constant(1.5)));
  }
  {
    auto& p = add_program(all, "whole numbers");
    Steps& s = p.steps;
    const int q = s.query(), k = s.key(), five = s.constant(5);
    const int rest = s.op(TapeOp::kModulo, s.op(TapeOp::kSub, q, k), five);
    const int part = s.op(TapeOp::kFloorDivide, s.op(TapeOp::kSub, k, q), five);
    int bits = s.op(TapeOp::kXor, q, s.op(TapeOp::kShiftLeft, k, s.constant(1)));
    bits = s.op(TapeOp::kAnd, bits, s.op(TapeOp::kOr, k, s.constant(9)));
    bits = s.op(TapeOp::kShiftRight, bits, s.constant(1));
    const int equal = s.op(TapeOp::kEqual, rest, s.constant(2));
    const int less = s.op(TapeOp::kLessEqual, part, s.op(TapeOp::kRound, s.constant(2.4)));
    const int kept = s.op(TapeOp::kMin, s.op(TapeOp::kNotEqual, rest, s.constant(1)), less);
    const int value = s.op(TapeOp::kSelect, equal, s.op(TapeOp::kMul, bits, s.constant(0.01)),
                           s.op(TapeOp::kFloor, s.op(TapeOp::kMul, part, s.constant(0.3))));
    const int sum = s.op(TapeOp::kAdd, s.score(), s.op(TapeOp::kAdd, value, rest));
    s.op(TapeOp::kSelect, kept, sum, s.op(TapeOp::kSub, sum, s.constant(2)));
  }
  return all;
}

template <class V>
std::vector<TestProgram<V>> test_programs(const AttentionSizes& sizes) {
  std::vector<TestProgram<V>> all = programs_with_tables<V>(sizes);
  for (auto& one : programs_of_operations<V>()) all.push_back(std::move(one));
  return all;
}

}  // namespace fovea::testing
