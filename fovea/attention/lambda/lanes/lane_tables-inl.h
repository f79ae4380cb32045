// SPDX-License-Identifier: Apache-2.0
// The steps of a program that read tables, and add to their gradients.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "fovea/attention/lambda/lanes/lane_program.h"

#if defined(FOVEA_ATTENTION_LAMBDA_LANES_LANE_TABLES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FOVEA_ATTENTION_LAMBDA_LANES_LANE_TABLES_INL_H_
#undef FOVEA_ATTENTION_LAMBDA_LANES_LANE_TABLES_INL_H_
#else
#define FOVEA_ATTENTION_LAMBDA_LANES_LANE_TABLES_INL_H_
#endif

#include "fovea/attention/lambda/lanes/lane_math-inl.h"
#include "fovea/simd/transpose-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fovea::detail {
namespace HWY_NAMESPACE {

// The places of a tile in a table: the first of them, and what a step along its lanes and its
// rows adds.
struct TableSteps {
  index first, along, down;
};
template <class T>
HWY_INLINE TableSteps StepsOf(const TableRead::Spot& spot, const LaneTile<T>& tile) {
  const bool queries = tile.lanes == TileLanes::kQueries;
  return {spot.constant + spot.of_i * tile.query + spot.of_j * tile.key,
          queries ? spot.of_i : spot.of_j, queries ? spot.of_j : spot.of_i};
}

template <class T, class V>
HWY_INLINE void LoadRow(const V* from, index along, index n, T* to) {
  if constexpr (std::is_same_v<T, V>) {
    if (along == 1) {
      ForEachLane<T>(n, [&](auto lanes, index c) { lanes.Store(lanes.Load(from + c), to + c); });
      return;
    }
  }
  if (along == 0) {
    std::fill_n(to, n, static_cast<T>(*from));
  } else if (along == 1) {
    // A lambda in an algorithm of the standard library would be called for each value: it may use
    // instructions that the algorithm may not.
    for (index c = 0; c < n; ++c) to[c] = static_cast<T>(from[c]);
  } else {
    for (index c = 0; c < n; ++c) to[c] = static_cast<T>(from[c * along]);
  }
}

// Loads rows of the table as columns of the tile: to[r][c] = from[c][r]. Values of another type
// are converted row by row first: rows whose distance is a power of two would drive one another out
// of the cache if they were read across.
template <class T, class V>
HWY_INLINE void LoadColumns(const V* from, index stride, const StripPart& part, T* to) {
  const auto turn = [&](const T* rows, index apart) {
    RowsToLanes<T>(Rows<const T>(rows, part.columns, part.rows, apart), part.columns, to,
                   part.width);
  };
  if constexpr (std::is_same_v<T, V>) {
    turn(from, stride);
  } else {
    HWY_ALIGN T converted[kStrip];
    for (index c = 0; c < part.columns; ++c) {
      LoadRow(from + c * stride, 1, part.rows, converted + c * part.rows);
    }
    turn(converted, part.rows);
  }
}

template <class T>
void LaneRun<T>::Load(const LaneStep& step, const StripPart& part) const {
  const TableRead& read = tables->program.read(step.table);
  const auto [first, along, down] = StepsOf(read.at, tile);
  T* const to = strips[step.to];
  with_values(read.table, [&, first = first, along = along, down = down](const auto* data) {
    const auto* const from = data + first + part.row * down + part.column * along;
    if (down == 1 && along > 1) return LoadColumns(from, along, part, to);
    for (index r = 0; r < part.rows; ++r) {
      T* const row = to + r * part.width;
      LoadRow(from + r * down, along, part.columns, row);
      std::fill(row + part.columns, row + part.width, T{0});
    }
  });
}

// The whole numbers of a vector as places on an axis of `size`, of which a negative one counts from
// the end; a place beyond it becomes 0, and is in `beyond`.
template <class D, class V, class M>
HWY_INLINE V OnAxis(D d, V at, index size, M& beyond) {
  const auto zero = hn::Zero(d), end = Constant(d, static_cast<double>(size));
  const auto place = hn::IfThenElse(hn::Lt(at, zero), hn::Add(at, end), at);
  const auto inside = hn::And(hn::Ge(place, zero), hn::Lt(place, end));
  beyond = hn::Or(beyond, hn::Not(inside));
  return hn::IfThenElseZero(inside, place);
}

// Places in a table as whole numbers of 32 bits, if these reach every entry.
using PlaceTag = hn::RebindToSigned<Tag<float>>;
using Places = hn::VFromD<PlaceTag>;
inline bool HasShortPlaces(const TableRead& read, const TableRead::Spot& spot) {
  index last = std::abs(spot.constant);
  for (int n = 0; n < 2; ++n) {
    last += std::max<index>(read.size[n] - 1, 0) * std::abs(spot.stride[n]);
  }
  return last <= std::numeric_limits<std::int32_t>::max();
}

// Finds vectors of indices in such a table; lanes that are beyond it are in `beyond`, too.
template <class M>
HWY_INLINE Places ShortPlaces(const TableRead& read, const TableRead::Spot& spot, const float* a,
                              const float* b, M& beyond) {
  constexpr Tag<float> d;
  constexpr PlaceTag whole;
  const auto set = [&](index x) { return hn::Set(whole, static_cast<std::int32_t>(x)); };
  const auto along = [&](const float* at, int axis) {
    const auto place = OnAxis(d, hn::LoadU(d, at), read.size[axis], beyond);
    return hn::Mul(hn::ConvertTo(whole, place), set(spot.stride[axis]));
  };
  const auto first = hn::Add(along(a, 0), set(spot.constant));
  return b == nullptr ? first : hn::Add(first, along(b, 1));
}

template <class T>
HWY_INLINE auto NoLanes() {
  return hn::FirstN(Tag<T>(), 0);
}
// Whether any of the first `count` lanes is in the mask.
template <class T, class M>
HWY_INLINE bool AnyOf(M mask, index count) {
  const auto counted =
      hn::FirstN(Tag<T>(), static_cast<std::size_t>(std::clamp<index>(count, 0, kLanes<T>)));
  return !hn::AllFalse(Tag<T>(), hn::And(mask, counted));
}

// Finds a vector of indices in a table, for `count` lanes; returns whether one is beyond it.
template <class T>
HWY_INLINE bool FindPlaces(const TableRead& read, const TableRead::Spot& spot, const T* a,
                           const T* b, index count, index* places) {
  constexpr Tag<T> d;
  auto beyond = NoLanes<T>();
  if constexpr (std::is_same_v<T, float>) {
    if (HasShortPlaces(read, spot)) {
      HWY_ALIGN std::int32_t found[kLanes<T>];
      hn::Store(ShortPlaces(read, spot, a, b, beyond), PlaceTag(), found);
      std::copy_n(found, kLanes<T>, places);
      return AnyOf<T>(beyond, count);
    }
  }
  HWY_ALIGN T first[kLanes<T>], second[kLanes<T>];
  hn::Store(OnAxis(d, hn::LoadU(d, a), read.size[0], beyond), d, first);
  if (b != nullptr) hn::Store(OnAxis(d, hn::LoadU(d, b), read.size[1], beyond), d, second);
  for (index n = 0; n < kLanes<T>; ++n) {
    places[n] = spot.constant + static_cast<index>(first[n]) * spot.stride[0];
  }
  for (index n = 0; b != nullptr && n < kLanes<T>; ++n) {
    places[n] += static_cast<index>(second[n]) * spot.stride[1];
  }
  return AnyOf<T>(beyond, count);
}

// Reads a vector of entries; returns whether one of `count` indices is beyond the table.
template <class T, class V>
HWY_INLINE bool GatherVector(const TableRead& read, const V* data, const T* a, const T* b,
                             index count, T* to) {
  if constexpr (std::is_same_v<T, float> && std::is_same_v<V, float>) {
    if (HasShortPlaces(read, read.at)) {
      auto beyond = NoLanes<T>();
      const Places places = ShortPlaces(read, read.at, a, b, beyond);
      hn::StoreU(hn::GatherIndex(Tag<float>(), data, places), Tag<float>(), to);
      return AnyOf<T>(beyond, count);
    }
  }
  index places[kLanes<T>];
  const bool beyond = FindPlaces(read, read.at, a, b, count, places);
  for (index n = 0; n < kLanes<T>; ++n) to[n] = static_cast<T>(data[places[n]]);
  return beyond;
}

#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
// A short axis in two registers, from which one instruction takes the entries of 16 places. (A
// gather takes 40 cycles on Zen 4.)
struct ShortAxis {
  static constexpr index kMost = 32;
  Vector<float> low, high;

  ShortAxis(const float* data, index size) {
    HWY_ALIGN float all[kMost] = {};
    std::copy_n(data, size, all);
    low = hn::Load(Tag<float>(), all);
    high = hn::Load(Tag<float>(), all + kMost / 2);
  }
  static bool has(const TableRead& read, const float* second) {
    return second == nullptr && read.at.stride[0] == 1 && read.size[0] <= kMost;
  }
  /// As GatherVector.
  bool Read(const TableRead& read, const float* a, index count, float* to) const {
    constexpr Tag<float> d;
    auto beyond = NoLanes<float>();
    const auto place = OnAxis(d, hn::LoadU(d, a), read.size[0], beyond);
    const auto at = hn::ConvertTo(PlaceTag(), place);
    hn::StoreU(Vector<float>{_mm512_permutex2var_ps(low.raw, at.raw, high.raw)}, d, to);
    return AnyOf<float>(beyond, count);
  }
};
#endif

template <class T>
void LaneRun<T>::Gather(const LaneStep& step, const StripPart& part) const {
  const TableRead& read = tables->program.read(step.table);
  const T* const first = strips[step.a];
  const T* const second = step.op == TapeOp::kGather2 ? strips[step.b] : nullptr;
  const auto each_vector = [&](const auto& is_beyond) {
    for (index r = 0; r < part.rows; ++r) {
      for (index c = 0; c < part.width; c += kLanes<T>) {
        const index at = r * part.width + c;
        if (is_beyond(at, part.columns - c)) tables->beyond = step.table;
      }
    }
  };
  T* const to = strips[step.to];
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
  if constexpr (std::is_same_v<T, float>) {
    if (read.table.type == LaneTable::Type::kFloat && ShortAxis::has(read, second)) {
      const ShortAxis axis(static_cast<const float*>(read.table.data) + read.at.constant,
                           read.size[0]);
      return each_vector(
          [&](index at, index count) { return axis.Read(read, first + at, count, to + at); });
    }
  }
#endif
  with_values(read.table, [&](const auto* data) {
    each_vector([&](index at, index count) {
      return GatherVector(read, data, first + at, second == nullptr ? second : second + at, count,
                          to + at);
    });
  });
}

// Adds a row of the gradient. What is 0 is not added: it may be at a place that does not exist.
template <class T, class To>
HWY_INLINE void AddRow(const T* from, index along, index n, To* to) {
  if constexpr (std::is_same_v<T, To>) {
    if (along == 1) {
      ForEachLane<T>(n, [&](auto lanes, index c) {
        lanes.Store(hn::Add(lanes.Load(to + c), lanes.Load(from + c)), to + c);
      });
      return;
    }
  }
  if (along == 0) {
    double sum = 0;
    for (index c = 0; c < n; ++c) sum += static_cast<double>(from[c]);
    *to += static_cast<To>(sum);
  } else {
    for (index c = 0; c < n; ++c) to[c * along] += static_cast<To>(from[c]);
  }
}

template <class T>
void LaneRun<T>::Store(const LaneStep& step, const StripPart& part) const {
  if (step.on_diagonals) return SumDiagonals(step, part);
  const TableRead& read = tables->program.read(step.table);
  const auto add_to = [&](auto* gradient) {
    const auto [first, along, down] = StepsOf(read.gradient_at, tile);
    for (index r = 0; r < part.rows; ++r) {
      const T* const from = strips[step.a] + r * part.width;
      if (step.op == TapeOp::kStore) {
        AddRow(from, along, part.columns,
               gradient + first + (part.row + r) * down + part.column * along);
        continue;
      }
      for (index c = 0; c < part.columns; c += kLanes<T>) {
        const index at = r * part.width + c, count = std::min(kLanes<T>, part.columns - c);
        index places[kLanes<T>];
        const T* const second = step.op == TapeOp::kScatter2 ? strips[step.c] + at : nullptr;
        FindPlaces(read, read.gradient_at, strips[step.b] + at, second, count, places);
        for (index n = 0; n < count; ++n) gradient[places[n]] += from[c + n];
      }
    }
  };
  if (read.gradient != nullptr) {
    add_to(static_cast<T*>(read.gradient));
  } else {
    add_to(tables->sums);
  }
}

template <class T>
void LaneRun<T>::SumDiagonals(const LaneStep& step, const StripPart& part) const {
  double* const own = tables->diagonal + step.to * tables->diagonals;
  for (index r = 0; r < part.rows; ++r) {
    const T* const from = strips[step.a] + r * part.width;
    double* const to = own + tile.values.rows - 1 - (part.row + r) + part.column;
    for (index c = 0; c < part.columns; ++c) to[c] += static_cast<double>(from[c]);
  }
}

// Adds the sums over the diagonals of the whole tile to the gradients of tables.
template <class T>
void LaneRun<T>::StoreDiagonals() const {
  const index count = tile.values.rows + tile.values.columns - 1;
  for (const LaneStep& step : lane_program.steps()) {
    if (!is_store(step.op) || !step.on_diagonals) continue;
    const TableRead& read = tables->program.read(step.table);
    const double* const own = tables->diagonal + step.to * tables->diagonals;
    const auto add_to = [&](auto* gradient) {
      using To = std::remove_reference_t<decltype(*gradient)>;
      const auto [first, along, down] = StepsOf(read.gradient_at, tile);
      for (index n = 0; n < count; n += kLanes<T>) {
        const index some = std::min(kLanes<T>, count - n);
        index places[kLanes<T>];
        if (step.op == TapeOp::kStore) {
          for (index m = 0; m < some; ++m) {
            places[m] = first + (n + m - (tile.values.rows - 1)) * along;
          }
        } else {
          const T* const second =
              step.op == TapeOp::kScatter2 ? diagonals.values[step.of_j] + n : nullptr;
          FindPlaces(read, read.gradient_at, diagonals.values[step.of_i] + n, second, some, places);
        }
        for (index m = 0; m < some; ++m) {
          if (own[n + m] != 0) gradient[places[m]] += static_cast<To>(own[n + m]);
        }
      }
    };
    if (read.gradient != nullptr) {
      add_to(static_cast<T*>(read.gradient));
    } else {
      add_to(tables->sums);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace fovea::detail
HWY_AFTER_NAMESPACE();

#endif  // FOVEA_ATTENTION_LAMBDA_LANES_LANE_TABLES_INL_H_
