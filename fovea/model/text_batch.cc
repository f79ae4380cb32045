// SPDX-License-Identifier: Apache-2.0
#include "fovea/model/text_batch.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "fovea/base/check.h"

namespace fovea {

namespace {

// Offsets of sequences, and the numbers that name their dropout masks, on the tape.
struct Sequences {
  std::int32_t* offsets;
  std::uint64_t* samples;
  index count;

  Sequences(Tape& tape, index size)
      : offsets(tape.saved<std::int32_t>(size + 1)),
        samples(tape.saved<std::uint64_t>(size)),
        count(size) {
    offsets[0] = 0;
  }
  void set(index n, index length, std::uint64_t sample) {
    offsets[n + 1] = offsets[n] + static_cast<std::int32_t>(length);
    samples[n] = sample;
  }
  PackedRows lay_out(Tape& tape, index rows) const {
    return lay_out_rows(tape, rows, {offsets, count + 1}, {samples, count});
  }
};

struct Sample {
  index begin, length;  // in time steps
  std::uint64_t number;
};

Sample sample_at(const TextRows& samples, index s) {
  const index begin = samples.offsets[s];
  return {begin, samples.offsets[s + 1] - begin,
          samples.samples.empty() ? static_cast<std::uint64_t>(s) : samples.samples[s]};
}

// The joints of each time step as sequences.
const RowsAcross* lay_out_across(Tape& tape, const TextRows& samples, const FrameShape& shape) {
  const index J = shape.joints, frames = samples.ids.size, rows = frames * J;
  Sequences steps(tape, frames);
  auto* const order = tape.saved<std::int32_t>(rows);
  auto* const back = tape.saved<std::int32_t>(rows);
  const auto block = static_cast<std::uint64_t>(shape.block);
  for (index s = 0; s + 1 < samples.offsets.size; ++s) {
    const auto [begin, length, number] = sample_at(samples, s);
    for (index t = 0; t < length; ++t) {
      steps.set(begin + t, J, number * block + static_cast<std::uint64_t>(t));
      for (index j = 0; j < J; ++j) {
        const index here = (begin + t) * J + j, there = begin * J + j * length + t;
        order[here] = static_cast<std::int32_t>(there);
        back[there] = static_cast<std::int32_t>(here);
      }
    }
  }
  auto* const across = tape.saved<RowsAcross>(1);
  return new (across) RowsAcross{steps.lay_out(tape, rows), {order, rows}, {back, rows}};
}

void check_samples(const TextRows& samples, const FrameShape& shape) {
  const index R = shape.rows_of_frame();
  check(samples.ids.size <= std::numeric_limits<std::int32_t>::max() / R,
        "model: {} time steps of {} joints are too many rows for one batch", samples.ids.size, R);
  for (index s = 0; s + 1 < samples.offsets.size; ++s) {
    const index length = samples.offsets[s + 1] - samples.offsets[s];
    check(length <= shape.block, "model: sample {} has {} time steps; the model sees at most {}", s,
          length, shape.block);
  }
}

template <class T>
void copy_values(const TextRows& samples, const FrameShape& shape, Rows<T> y) {
  const index F = shape.features, R = shape.rows_of_frame();
  for (index s = 0; s + 1 < samples.offsets.size; ++s) {
    const auto [begin, length, number] = sample_at(samples, s);
    for (index t = 0; t < length; ++t) {
      const float* const frame = samples.frames[samples.ids[begin + t]];
      for (index j = 0; j < R; ++j) {
        std::copy_n(frame + j * F, F, y[begin * R + j * length + t]);
      }
    }
  }
}

template <class T>
bool all_finite(const T* values, index count) {
  return std::all_of(values, values + count, [](T x) { return std::isfinite(x); });
}

[[noreturn]] void fail_not_finite(std::string_view what) {
  fail(ErrorCode::kModelDamaged, Hint{"train the model again, or use an earlier checkpoint"},
       "{} is not finite", what);
}

}  // namespace

PackedRows lay_out_texts(Tape& tape, const TextRows& texts, index block) {
  const PackedRows rows = lay_out_rows(tape, texts.ids.size, texts.offsets, texts.samples);
  for (index s = 0; s < rows.count(); ++s) {
    const index length = rows.offsets[s + 1] - rows.offsets[s];
    check(length <= block, "model: sequence {} has {} tokens; the model sees at most {}", s, length,
          block);
  }
  return rows;
}

Variable zero_loss(Tape& tape) {
  const Variable loss = tape.result(1, 1, DType::kFloat32);
  loss.value<float>()[0][0] = 0;
  return loss;
}

FrameLayout lay_out_frames(Tape& tape, const TextRows& samples, const FrameShape& shape) {
  // The offsets are checked here, so that what follows can rely on them.
  const PackedRows steps = lay_out_rows(tape, samples.ids.size, samples.offsets, samples.samples);
  check_samples(samples, shape);
  if (shape.joints == 0) return {steps, steps, {}};
  const index J = shape.joints, count = steps.count(), rows = samples.ids.size * J;
  Sequences over_time(tape, count * J), whole(tape, count);
  auto* const joints = tape.saved<std::int32_t>(rows);
  for (index s = 0; s < count; ++s) {
    const auto [begin, length, number] = sample_at(samples, s);
    whole.set(s, length * J, number);
    for (index j = 0; j < J; ++j) {
      const auto joint = static_cast<std::uint64_t>(j);
      over_time.set(s * J + j, length, number * static_cast<std::uint64_t>(J) + joint);
      std::fill_n(joints + begin * J + j * length, length, static_cast<std::int32_t>(j));
    }
  }
  FrameLayout layout{over_time.lay_out(tape, rows), whole.lay_out(tape, rows), {joints, rows}};
  layout.rows.across = lay_out_across(tape, samples, shape);
  return layout;
}

Variable frame_values(Tape& tape, const TextRows& samples, const FrameShape& shape, DType dtype) {
  const index R = shape.rows_of_frame(), columns = R * shape.features;
  check(samples.frames.columns == columns, "model: frames must have {} columns; they have {}",
        columns, samples.frames.columns);
  for (const std::int32_t id : samples.ids) {
    check(id >= 0 && id < samples.frames.rows, "model: there is no frame {} of {}", id,
          samples.frames.rows);
  }
  const Variable y = tape.result(samples.ids.size * R, shape.features, dtype);
  with_type(dtype,
            [&]<class T>(std::type_identity<T>) { copy_values<T>(samples, shape, y.value<T>()); });
  return y;
}

bool is_finite(Variable x) {
  bool finite = true;
  with_type(x.dtype(), [&]<class T>(std::type_identity<T>) {
    const Rows<const T> rows = x.value<T>();
    for (index n = 0; n < rows.rows; ++n) finite = finite && all_finite(rows[n], rows.columns);
  });
  return finite;
}

void require_finite(Variable x, std::string_view what) {
  if (!is_finite(x)) fail_not_finite(what);
}

void require_finite(const Parameter& parameter) {
  const Vec<const float> values = parameter.value.vec<float>();
  if (!all_finite(values.data, values.size)) fail_not_finite(parameter.name);
}

}  // namespace fovea
