// SPDX-License-Identifier: Apache-2.0
#include "fovea/attention/lambda/run_lanes.h"

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "fovea/base/memory.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "fovea/attention/lambda/run_lanes.cc"
#include "hwy/foreach_target.h"  // compiles this file once for each instruction set
//
#include "fovea/simd/simd-inl.h"

// A step runs over a strip of up to 512 values: some rows of the tile, one after another. That is
// long enough to make the dispatch of the step cheap, and short enough to keep the strips of a
// lane_program in L1. A step reads one or two strips and writes one, in about two cycles per vector
// of AVX-512. Slower are exp and tanh (25 cycles), division, and log, sin and cos, which call the C
// library for each lane.
HWY_BEFORE_NAMESPACE();
namespace fovea::detail {
namespace HWY_NAMESPACE {
namespace {

constexpr index kStrip = 512;
static_assert(kStrip % kLanes<float> == 0 && kStrip % kLanes<double> == 0);

// Rows [row, row + rows) x columns [column, column + columns) of a tile, `width` values of a strip
// to a row: whole vectors.
struct StripPart {
  index row, rows, column, columns, width;
  index size() const { return rows * width; }
};

// Values for each diagonal of the tile: column - row = 1 - rows, ...
template <class T>
struct Diagonals {
  Scratch scratch;
  const T* values[LaneTape::kMost];
};

template <class T>
struct Run {
  const LaneProgram& lane_program;
  const LaneTile<T>& tile;
  const Diagonals<T>& diagonals;
  T* strips[LaneTape::kMost + 2];
  double* sums;

  void Step(const LaneStep& step, const StripPart& part) const;
  void Unary(const LaneStep& step, index n) const;
  void Binary(const LaneStep& step, index n) const;
  void Select(const LaneStep& step, index n) const;
  void Places(const LaneStep& step, const StripPart& part) const;

  template <class F>
  HWY_INLINE void Map(const LaneStep& step, index n, F&& f) const {
    constexpr Tag<T> d;
    const T* a = strips[step.a];
    T* to = strips[step.to];
    for (index i = 0; i < n; i += kLanes<T>) hn::StoreU(f(d, hn::LoadU(d, a + i)), d, to + i);
  }
  template <class F>
  HWY_INLINE void Map2(const LaneStep& step, index n, F&& f) const {
    constexpr Tag<T> d;
    const T* a = strips[step.a];
    const T* b = strips[step.b];
    T* to = strips[step.to];
    for (index i = 0; i < n; i += kLanes<T>) {
      hn::StoreU(f(d, hn::LoadU(d, a + i), hn::LoadU(d, b + i)), d, to + i);
    }
  }
  // 1 where f is true, 0 elsewhere.
  template <class F>
  HWY_INLINE void Compare(const LaneStep& step, index n, F&& f) const {
    Map2(step, n,
         [&](auto d, auto a, auto b) { return hn::IfThenElseZero(f(a, b), hn::Set(d, T{1})); });
  }
};

// Reads rows into a strip and fills it with zeros beyond the columns.
template <class T>
void Read(Rows<const T> rows, const StripPart& part, T* strip) {
  constexpr Tag<T> d;
  for (index r = 0; r < part.rows; ++r) {
    const T* const row = rows[part.row + r] + part.column;
    T* const to = strip + r * part.width;
    ForEachLane<T>(part.columns,
                   [&](auto lanes, index c) { hn::StoreU(lanes.Load(row + c), d, to + c); });
  }
}

template <class T>
void Write(const T* strip, const StripPart& part, Rows<T> rows) {
  constexpr Tag<T> d;
  for (index r = 0; r < part.rows; ++r) {
    const T* const from = strip + r * part.width;
    T* const row = rows[part.row + r] + part.column;
    ForEachLane<T>(part.columns,
                   [&](auto lanes, index c) { lanes.Store(hn::LoadU(d, from + c), row + c); });
  }
}

// first, first + by, ... The first of a vector is a whole number of 64 bits; up to 2^24 all of them
// are exact.
template <class T>
void Count(index first, index by, index n, T* to) {
  constexpr Tag<T> d;
  const auto steps = hn::Mul(hn::Iota(d, T{0}), hn::Set(d, static_cast<T>(by)));
  for (index i = 0; i < n; i += kLanes<T>) {
    hn::StoreU(hn::Add(hn::Set(d, static_cast<T>(first + by * i)), steps), d, to + i);
  }
}

template <class T>
void Run<T>::Places(const LaneStep& step, const StripPart& part) const {
  constexpr Tag<T> d;
  const bool queries = tile.lanes == TileLanes::kQueries;
  const index along = queries ? step.of_i : step.of_j, down = queries ? step.of_j : step.of_i;
  const index origin = step.of_i * tile.query + step.of_j * tile.key + step.constant;
  for (index r = 0; r < part.rows; ++r) {
    T* const to = strips[step.to] + r * part.width;
    if (!step.on_diagonals) {
      Count(origin + down * (part.row + r) + along * part.column, along, part.width, to);
      continue;
    }
    const index first = tile.values.rows - 1 - (part.row + r) + part.column;
    const T* const from = diagonals.values[step.a] + first;
    for (index c = 0; c < part.width; c += kLanes<T>) hn::StoreU(hn::LoadU(d, from + c), d, to + c);
  }
}

template <class T>
void Run<T>::Unary(const LaneStep& step, index n) const {
  const T factor = static_cast<T>(step.value);
  const auto map = [&](auto&& f) { Map(step, n, f); };
  const auto per_lane = [&](auto&& f) {
    Map(step, n, [&](auto d, auto a) { return PerLane(d, a, f); });
  };
  switch (step.op) {
    case TapeOp::kNeg:
      return map([](auto, auto a) { return hn::Neg(a); });
    case TapeOp::kAbs:
      return map([](auto, auto a) { return hn::Abs(a); });
    case TapeOp::kExp:
      return map([&](auto d, auto a) { return Exp(d, hn::Mul(a, hn::Set(d, factor))); });
    case TapeOp::kLog:
      return per_lane([](T x) { return std::log(x); });
    case TapeOp::kTanh:
      return map([&](auto d, auto a) { return Tanh(d, hn::Mul(a, hn::Set(d, factor))); });
    case TapeOp::kTanhSlope:
      return map([](auto d, auto a) { return hn::NegMulAdd(a, a, hn::Set(d, T{1})); });
    case TapeOp::kSqrt:
      return map([](auto, auto a) { return hn::Sqrt(a); });
    case TapeOp::kSin:
      return per_lane([](T x) { return std::sin(x); });
    default:
      return per_lane([](T x) { return std::cos(x); });
  }
}

// a * b, but 0 where a is 0, even if b is NaN or infinite. It uses Eq and not Ne, which is false
// for NaN on some instruction sets: a NaN in a must be passed on.
template <class D, class V>
HWY_INLINE V PullProduct(D d, V a, V b) {
  return hn::IfThenZeroElse(hn::Eq(a, hn::Zero(d)), hn::Mul(a, b));
}

template <class T>
void Run<T>::Binary(const LaneStep& step, index n) const {
  const auto map = [&](auto&& f) { Map2(step, n, f); };
  const auto compare = [&](auto&& f) { Compare(step, n, f); };
  switch (step.op) {
    case TapeOp::kAdd:
      return map([](auto, auto a, auto b) { return hn::Add(a, b); });
    case TapeOp::kSub:
      return map([](auto, auto a, auto b) { return hn::Sub(a, b); });
    case TapeOp::kMul:
      return map([](auto, auto a, auto b) { return hn::Mul(a, b); });
    case TapeOp::kDiv:
      return map([](auto, auto a, auto b) { return hn::Div(a, b); });
    case TapeOp::kMin:
      return map([](auto, auto a, auto b) { return hn::IfThenElse(hn::Lt(b, a), b, a); });
    case TapeOp::kMax:
      return map([](auto, auto a, auto b) { return hn::IfThenElse(hn::Lt(a, b), b, a); });
    case TapeOp::kLess:
      return compare([](auto a, auto b) { return hn::Lt(a, b); });
    case TapeOp::kLessEqual:
      return compare([](auto a, auto b) { return hn::Le(a, b); });
    case TapeOp::kEqual:
      return compare([](auto a, auto b) { return hn::Eq(a, b); });
    case TapeOp::kNotEqual:
      return compare([](auto a, auto b) { return hn::Not(hn::Eq(a, b)); });
    default:
      return map([](auto d, auto a, auto b) { return PullProduct(d, a, b); });
  }
}

template <class T>
void Run<T>::Select(const LaneStep& step, index n) const {
  constexpr Tag<T> d;
  for (index i = 0; i < n; i += kLanes<T>) {
    const auto refused = hn::Eq(hn::LoadU(d, strips[step.a] + i), hn::Zero(d));
    const auto value =
        hn::IfThenElse(refused, hn::LoadU(d, strips[step.c] + i), hn::LoadU(d, strips[step.b] + i));
    hn::StoreU(value, d, strips[step.to] + i);
  }
}

template <class T>
HWY_INLINE Vector<double> LanesInDouble(Tag<T> d, Vector<T> v) {
  constexpr Tag<double> dd;
  if constexpr (std::is_same_v<T, double>) {
    return v;
  } else {
    HWY_ALIGN T lanes[kLanes<T>];
    hn::Store(v, d, lanes);
    const hn::Rebind<float, Tag<double>> half;
    auto sum = hn::PromoteTo(dd, hn::Load(half, lanes));
    if constexpr ((kLanes<T>) > kLanes<double>) {
      sum = hn::Add(sum, hn::PromoteTo(dd, hn::Load(half, lanes + kLanes<double>)));
    }
    return sum;
  }
}

// Sum of value(i) over a strip: in T four chains of four, and then in double.
template <class T, class F>
HWY_INLINE double SumOfStrip(index n, F&& value) {
  constexpr Tag<T> d;
  constexpr index kN = kLanes<T>;
  auto sum = hn::Zero(Tag<double>());
  for (index block = 0; block < n; block += 16 * kN) {
    const index end = std::min(n, block + 16 * kN);
    auto s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0;
    index i = block;
    for (; i + 4 * kN <= end; i += 4 * kN) {
      s0 = hn::Add(s0, value(i));
      s1 = hn::Add(s1, value(i + kN));
      s2 = hn::Add(s2, value(i + 2 * kN));
      s3 = hn::Add(s3, value(i + 3 * kN));
    }
    for (; i < end; i += kN) s0 = hn::Add(s0, value(i));
    sum = hn::Add(sum, LanesInDouble<T>(d, hn::Add(hn::Add(s0, s1), hn::Add(s2, s3))));
  }
  return hn::GetLane(hn::SumOfLanes(Tag<double>(), sum));
}

template <class T>
void Run<T>::Step(const LaneStep& step, const StripPart& part) const {
  constexpr Tag<T> d;
  const index n = part.size();
  if (step.to == LaneProgram::kNone) {
    const T* const a = strips[step.a];
    const T* const b = strips[step.b];
    sums[step.sum] += SumOfStrip<T>(
        n, [&](index i) { return PullProduct(d, hn::LoadU(d, a + i), hn::LoadU(d, b + i)); });
    return;
  }
  switch (operands(step.op)) {
    case 0:
      if (step.op == TapeOp::kPlace) Places(step, part);
      break;
    case 1:
      Unary(step, n);
      break;
    case 2:
      Binary(step, n);
      break;
    default:
      Select(step, n);
  }
  if (step.sum == LaneProgram::kNone) return;
  const T* const values = strips[step.to];
  sums[step.sum] += SumOfStrip<T>(n, [&](index i) { return hn::LoadU(d, values + i); });
}

template <class T>
void WriteConstants(const LaneProgram& lane_program, T* strips, index length) {
  for (const LaneStep& step : lane_program.constants()) {
    std::fill_n(strips + step.to * length, length, static_cast<T>(step.value));
  }
}

// Diagonal n is column n - (rows - 1) of row 0. A row of the tile reads whole vectors of them.
template <class T>
void RunDiagonals(const LaneProgram& lane_program, const LaneTile<T>& tile, Diagonals<T>& to) {
  constexpr index kN = kLanes<T>;
  const index rows = tile.values.rows, columns = tile.values.columns;
  const index length = (rows + columns + 2 * kN) / kN * kN;
  T* const strips = to.scratch.template allocate<T>(lane_program.strips() * length);
  WriteConstants(lane_program, strips, length);
  const bool queries = tile.lanes == TileLanes::kQueries;
  const LaneTile<T> row{{nullptr, 1, length},
                        {nullptr, 1, length},
                        tile.lanes,
                        tile.query - (queries ? rows - 1 : 0),
                        tile.key - (queries ? 0 : rows - 1)};
  double nothing = 0;  // never added to; clang-tidy warns about a null pointer
  Run<T> run{lane_program, row, to, {}, &nothing};
  for (index n = 0; n < lane_program.strips(); ++n) run.strips[n] = strips + n * length;
  for (const LaneStep& step : lane_program.steps()) run.Step(step, {0, 1, 0, length, length});
  for (std::size_t n = 0; n < lane_program.diagonals(); ++n) {
    to.values[n] = strips + lane_program.strip_of_diagonal(n) * length;
  }
}

// Rows that are whole vectors without gaps need no copy.
template <class T>
void RunPart(Run<T>& run, const StripPart& part, bool is_whole, T* own) {
  const auto& [lane_program, tile, diagonals, strips, sums] = run;
  T* const values = tile.values[part.row] + part.column;
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-const-cast): nobody writes to the strip of scores
  T* const scores = const_cast<T*>(tile.scores[part.row] + part.column);
  run.strips[LaneProgram::kScores] = is_whole ? scores : own;
  run.strips[LaneProgram::kValues] = is_whole ? values : own + kStrip;
  if (!is_whole && lane_program.reads(TapeOp::kScore)) Read(tile.scores, part, own);
  if (!is_whole && lane_program.reads(TapeOp::kDscore)) Read<T>(tile.values, part, own + kStrip);
  for (const LaneStep& step : lane_program.steps()) run.Step(step, part);
  T* const result = run.strips[lane_program.result()];
  if (!is_whole || result != values) Write<T>(result, part, tile.values);
}

template <class T>
void RunLanes(const LaneTape& program, const LaneProgram& lane_program, const LaneTile<T>& tile,
              double* sums) {
  constexpr index kN = kLanes<T>;
  const auto& values = tile.values;
  Diagonals<T> diagonals;
  if (lane_program.diagonals() > 0) {
    RunDiagonals(LaneProgram::of_diagonals(program, lane_program), tile, diagonals);
  }
  Scratch scratch;
  T* const own = scratch.allocate<T>(lane_program.strips() * kStrip);
  WriteConstants(lane_program, own, kStrip);
  std::fill_n(sums, lane_program.sums(), 0.0);
  Run<T> run{lane_program, tile, diagonals, {}, sums};
  for (index n = 0; n < lane_program.strips(); ++n) run.strips[n] = own + n * kStrip;
  for (index column = 0; column < values.columns; column += kStrip) {
    const index columns = std::min(kStrip, values.columns - column);
    const index width = (columns + kN - 1) / kN * kN, most = kStrip / width;
    const bool is_whole = columns == width && values.stride == width && tile.scores.stride == width;
    for (index row = 0; row < values.rows; row += most) {
      RunPart(run, {row, std::min(most, values.rows - row), column, columns, width}, is_whole, own);
    }
  }
}

auto RunLanesKernel() { return PerPrecision{RunLanes<float>, RunLanes<double>}; }

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace fovea::detail
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fovea::detail {

HWY_EXPORT(RunLanesKernel);

template <class T>
void run_lanes(const LaneTape& program, const LaneProgram& lane_program, const LaneTile<T>& tile,
               double* sums) {
  FOVEA_DISPATCH(RunLanesKernel)().of<T>()(program, lane_program, tile, sums);
}

template void run_lanes(const LaneTape&, const LaneProgram&, const LaneTile<float>&, double*);
template void run_lanes(const LaneTape&, const LaneProgram&, const LaneTile<double>&, double*);

}  // namespace fovea::detail
#endif  // HWY_ONCE
