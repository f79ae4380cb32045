// SPDX-License-Identifier: Apache-2.0
#include "fovea/model/pass_plan.h"

#include <algorithm>

namespace fovea {

namespace {

// Bytes of each thread besides the scratch memory that kernels tell of: the stack, and what its
// arena holds of earlier, smaller calls when it grows.
constexpr double kThreadBytes = 1.5 * (1 << 20);

std::vector<std::int32_t> offsets_for(const TapeLoad& load, index block) {
  std::vector<std::int32_t> offsets{0};
  if (!load.lengths.empty()) {
    for (const std::int32_t length : load.lengths) offsets.push_back(offsets.back() + length);
    return offsets;
  }
  const index tokens = load.tokens, least = (tokens + block - 1) / block;
  const index count = std::max({least, std::min(load.sequences, tokens), index{1}});
  for (index n = 0, left = tokens; n < count; ++n) {
    const index length = std::min(block, left - (count - 1 - n));
    left -= length;
    offsets.push_back(static_cast<std::int32_t>(tokens - left));
  }
  return offsets;
}

}  // namespace

TapeLoad TapeLoad::part(double share) const {
  TapeLoad load = *this;
  load.tokens = part_of(tokens, share);
  load.sequences = part_of(sequences, share);
  load.lengths.clear();
  return load;
}

PassCost larger_of_each(const PassCost& a, const PassCost& b) {
  return {.tape = std::max(a.tape, b.tape),
          .packed = std::max(a.packed, b.packed),
          .scratch = std::max(a.scratch, b.scratch),
          .sizes = a.sizes};
}

index part_of(index count, double share) {
  return std::min(count, static_cast<index>(static_cast<double>(count) * share) + 1);
}

std::vector<std::int32_t> ids_below(index count, index below) {
  std::vector<std::int32_t> ids(static_cast<std::size_t>(count));
  for (std::size_t n = 0; n < ids.size(); ++n) {
    ids[n] = static_cast<std::int32_t>(n % static_cast<std::size_t>(std::max<index>(below, 1)));
  }
  return ids;
}

PlannedRows::PlannedRows(const TapeLoad& load, index block, index vocabulary)
    : ids(ids_below(load.tokens, vocabulary)), offsets(offsets_for(load, block)) {}

void PlannedRows::separate(std::int32_t separator) {
  std::replace(ids.begin(), ids.end(), separator, 0);
  for (std::size_t s = 0; s + 1 < offsets.size(); ++s) {
    const std::int32_t middle = (offsets[s] + offsets[s + 1] - 1) / 2;
    ids[static_cast<std::size_t>(middle)] = separator;
  }
}

PassCost cost_of_plan(const Context& context, const Plan& plan, const Profile& profile,
                      const Tape& tape, std::span<Parameter* const> parameters) {
  double own = 0;  // values and gradients
  for (const Parameter* p : parameters) {
    own += static_cast<double>(p->value.byte_size() + p->gradient.byte_size() +
                               p->row_gradient.byte_size());
  }
  double flops = 0;
  for (const Profile::Part& part : profile.parts()) flops += part.work.flops;
  return {.tape = static_cast<double>(tape.peak()),
          .packed = std::max(static_cast<double>(plan.buffer_peak()) - own, 0.0),
          .scratch = static_cast<double>(plan.scratch_peak()) +
                     context.threads() * (kThreadBytes + plan.thread_bytes()),
          .flops = flops,
          .sizes = sizes_of(parameters)};
}

PassCost cost_of_refusal(const Plan& plan, const Error& error) {
  if (error.code() != ErrorCode::kOutOfMemory || plan.refused_bytes() == 0) throw;
  return {.tape = static_cast<double>(plan.refused_bytes())};
}

}  // namespace fovea
