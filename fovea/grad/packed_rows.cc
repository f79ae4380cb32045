// SPDX-License-Identifier: Apache-2.0
#include "fovea/grad/packed_rows.h"

#include <limits>

#include "fovea/grad/tape.h"
#include "fovea/kernel/dropout.h"

namespace fovea {

namespace {

void check_offsets(index rows, Vec<const std::int32_t> offsets, Vec<const std::uint64_t> samples) {
  check(offsets.size >= 1,
        "sequences: offsets need one entry more than there are sequences; got {}", offsets.size);
  const index count = offsets.size - 1;
  check(samples.empty() || samples.size == count, "sequences: {} samples for {} sequences",
        samples.size, count);
  check(offsets[0] == 0 && offsets[count] == rows,
        "sequences: offsets must run from 0 to the {} rows; they run from {} to {}", rows,
        offsets[0], offsets[count]);
  for (index s = 0; s < count; ++s) {
    check(offsets[s] <= offsets[s + 1], "sequences: sequence {} has offsets {} and {}", s,
          offsets[s], offsets[s + 1]);
  }
}

}  // namespace

std::vector<std::int32_t> offsets_of(Vec<const std::int32_t> lengths) {
  std::vector<std::int32_t> offsets{0};
  for (const std::int32_t length : lengths) {
    check(length >= 0, "sequences: a length is {}", length);
    check(length <= std::numeric_limits<std::int32_t>::max() - offsets.back(),
          "sequences: they have 2^31 rows or more");
    offsets.push_back(offsets.back() + length);
  }
  return offsets;
}

PackedRows lay_out_rows(Tape& tape, index rows, Vec<const std::int32_t> offsets,
                        Vec<const std::uint64_t> samples, index first) {
  check_offsets(rows, offsets, samples);
  auto* positions = tape.saved<std::int32_t>(rows);
  auto* names = tape.saved<SampleRow>(rows);
  for (index s = 0; s + 1 < offsets.size; ++s) {
    const std::uint64_t sample = samples.empty() ? static_cast<std::uint64_t>(s) : samples[s];
    for (index n = offsets[s]; n < offsets[s + 1]; ++n) {
      positions[n] = static_cast<std::int32_t>(first + n - offsets[s]);
      names[n] = {sample, static_cast<std::uint32_t>(positions[n])};
    }
  }
  return {offsets, samples, {positions, rows}, {names, rows}};
}

Vec<const std::int32_t> offsets_of(Tape& tape, std::string_view op, const PackedRows& rows,
                                   index N) {
  if (rows.offsets.empty()) {
    auto* const whole = tape.saved<std::int32_t>(2);
    whole[0] = 0;
    whole[1] = static_cast<std::int32_t>(N);
    return {whole, 2};
  }
  const std::int32_t last = rows.offsets[rows.count()];
  check(rows.offsets[0] == 0 && last == N,
        "{}: offsets must run from 0 to the {} rows; they run from {} to {}", op, N,
        rows.offsets[0], last);
  for (index s = 0; s < rows.count(); ++s) {
    check(rows.offsets[s] <= rows.offsets[s + 1], "{}: sequence {} has offsets {} and {}", op, s,
          rows.offsets[s], rows.offsets[s + 1]);
  }
  return rows.offsets;
}

}  // namespace fovea
