// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <type_traits>

#include "fovea/attention/lambda/lanes/lane_program.h"
#include "fovea/base/memory.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "fovea/attention/lambda/lanes/run_lanes.cc"
#include "hwy/foreach_target.h"  // compiles this file once for each instruction set
//
#include "fovea/attention/lambda/lanes/lane_math-inl.h"
#include "fovea/attention/lambda/lanes/lane_tables-inl.h"

// A step runs over a strip of up to 1024 values: some rows of the tile, one after another. That is
// long enough to make the dispatch of the step cheap, and short enough to keep the strips of a
// lane_program in L1. A step reads one or two strips and writes one, in about two cycles per vector
// of AVX-512. Slower are exp and tanh (25 cycles), division, and log, sin and cos, which call the C
// library for each lane.
HWY_BEFORE_NAMESPACE();
namespace fovea::detail {
namespace HWY_NAMESPACE {

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
void LaneRun<T>::Places(const LaneStep& step, const StripPart& part) const {
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
void LaneRun<T>::Step(const LaneStep& step, const StripPart& part) const {
  constexpr Tag<T> d;
  const index n = part.size();
  if (is_store(step.op)) return Store(step, part);
  if (step.to == LaneProgram::kNone) {
    const T* const a = strips[step.a];
    const T* const b = strips[step.b];
    sums[step.sum] += SumOfStrip<T>(
        n, [&](index i) { return PullProduct(d, hn::LoadU(d, a + i), hn::LoadU(d, b + i)); });
    return;
  }
  const bool gathers = step.op == TapeOp::kGather || step.op == TapeOp::kGather2;
  if (gathers) Gather(step, part);
  switch (gathers ? -1 : operands(step.op)) {
    case -1:
      break;
    case 0:
      if (step.op == TapeOp::kPlace || step.on_diagonals) {
        Places(step, part);
      } else if (step.op == TapeOp::kLoad) {
        Load(step, part);
      }
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
void RunDiagonals(const LaneProgram& lane_program, const LaneTile<T>& tile, LaneTables& tables,
                  Diagonals<T>& to) {
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
  LaneRun<T> run{lane_program, row, to, {}, &nothing, &tables};
  for (index n = 0; n < lane_program.strips(); ++n) run.strips[n] = strips + n * length;
  const index columns_of_row = rows + columns - 1;
  for (const LaneStep& step : lane_program.steps()) {
    run.Step(step, {0, 1, 0, columns_of_row, length});
  }
  for (std::size_t n = 0; n < lane_program.diagonals(); ++n) {
    to.values[n] = strips + lane_program.strip_of_diagonal(n) * length;
  }
}

// Rows that are whole vectors without gaps need no copy into `own`, the strips of scores and
// values.
template <class T>
void RunPart(LaneRun<T>& run, const StripPart& part, bool is_whole, Rows<T> own) {
  const LaneProgram& lane_program = run.lane_program;
  const LaneTile<T>& tile = run.tile;
  T* const values = tile.values[part.row] + part.column;
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-const-cast): nobody writes to the strip of scores
  T* const scores = const_cast<T*>(tile.scores[part.row] + part.column);
  run.strips[LaneProgram::kScores] = is_whole ? scores : own[0];
  run.strips[LaneProgram::kValues] = is_whole ? values : own[1];
  if (!is_whole && lane_program.reads(TapeOp::kScore)) Read(tile.scores, part, own[0]);
  if (!is_whole && lane_program.reads(TapeOp::kDscore)) Read<T>(tile.values, part, own[1]);
  for (const LaneStep& step : lane_program.steps()) run.Step(step, part);
  T* const result = run.strips[lane_program.result()];
  if (!is_whole || result != values) Write<T>(result, part, tile.values);
}

template <class T>
int RunLanes(const LaneTape& program, const LaneProgram& lane_program, const LaneTile<T>& tile,
             double* sums, double* table_sums) {
  constexpr index kN = kLanes<T>;
  const auto& values = tile.values;
  LaneTables tables{program, table_sums, -1, nullptr, values.rows + values.columns + kN};
  Diagonals<T> diagonals;
  if (lane_program.diagonals() > 0) {
    RunDiagonals(LaneProgram::of_diagonals(program, lane_program), tile, tables, diagonals);
  }
  Scratch scratch;
  const index of_diagonals = static_cast<index>(lane_program.diagonal_stores()) * tables.diagonals;
  tables.diagonal = scratch.allocate<double>(of_diagonals);
  std::fill_n(tables.diagonal, of_diagonals, 0.0);
  const index strip = StripLength(lane_program);
  const Rows<T> own(scratch.allocate<T>(lane_program.strips() * strip), lane_program.strips(),
                    strip);
  WriteConstants(lane_program, own.data, strip);
  std::fill_n(sums, lane_program.sums(), 0.0);
  LaneRun<T> run{lane_program, tile, diagonals, {}, sums, &tables};
  for (index n = 0; n < lane_program.strips(); ++n) run.strips[n] = own[n];
  for (index column = 0; column < values.columns; column += strip) {
    const index columns = std::min(strip, values.columns - column);
    const index width = (columns + kN - 1) / kN * kN, most = strip / width;
    const bool is_whole = columns == width && values.stride == width && tile.scores.stride == width;
    for (index row = 0; row < values.rows; row += most) {
      RunPart(run, {row, std::min(most, values.rows - row), column, columns, width}, is_whole, own);
    }
  }
  if (of_diagonals > 0) run.StoreDiagonals();
  return tables.beyond;
}

auto RunLanesKernel() { return PerPrecision{RunLanes<float>, RunLanes<double>}; }

}  // namespace HWY_NAMESPACE
}  // namespace fovea::detail
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fovea::detail {

HWY_EXPORT(RunLanesKernel);

template <class T>
int run_lanes(const LaneTape& program, const LaneProgram& lane_program, const LaneTile<T>& tile,
              double* sums, double* table_sums) {
  return FOVEA_DISPATCH(RunLanesKernel)().of<T>()(program, lane_program, tile, sums, table_sums);
}

template int run_lanes(const LaneTape&, const LaneProgram&, const LaneTile<float>&, double*,
                       double*);
template int run_lanes(const LaneTape&, const LaneProgram&, const LaneTile<double>&, double*,
                       double*);

}  // namespace fovea::detail
#endif  // HWY_ONCE
