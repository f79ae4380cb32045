// SPDX-License-Identifier: Apache-2.0
// The checks of operands that every kernel of a CRF makes. Nothing outside crf needs this header.
#pragma once

#include <string_view>

#include "fovea/kernel/crf.h"

namespace fovea::detail {

template <class T>
index crf_sequences(const CrfRows<T>& rows) {
  return rows.offsets.size - 1;
}

/// Throws Error(kShape) unless all shapes fit together and the offsets ascend from 0 to N.
template <class T>
void check_crf(std::string_view op, const CrfScores<T>& scores, const CrfRows<T>& rows) {
  const index N = rows.emissions.rows, K = rows.emissions.columns;
  check(K >= 1, "{}: emissions have no columns; there must be at least one tag", op);
  check_rows(op, "transitions", scores.transitions, K, K);
  check_vec(op, "start", scores.start, "K", K);
  check_vec(op, "end", scores.end, "K", K);
  check_optional(op, "allowed.transitions", scores.allowed.transitions, "K K", K * K);
  check_optional(op, "allowed.start", scores.allowed.start, "K", K);
  check_optional(op, "allowed.end", scores.allowed.end, "K", K);
  const Vec<const std::int32_t> offsets = rows.offsets;
  check(offsets.size >= 1 && offsets[0] == 0 && offsets[offsets.size - 1] == N,
        "{}: offsets must run from 0 to the {} rows", op, N);
  for (index s = 0; s + 1 < offsets.size; ++s) {
    check(offsets[s] <= offsets[s + 1], "{}: sequence {} has offsets {} and {}", op, s, offsets[s],
          offsets[s + 1]);
  }
}

inline bool may_follow(const CrfAllowed& allowed, index K, index a, index b) {
  return allowed.transitions.empty() || allowed.transitions[a * K + b] != 0;
}
inline bool may_start(const CrfAllowed& allowed, index k) {
  return allowed.start.empty() || allowed.start[k] != 0;
}
inline bool may_end(const CrfAllowed& allowed, index k) {
  return allowed.end.empty() || allowed.end[k] != 0;
}

/// Throws what the best score, or log Z, of a sequence without a path or with a NaN means.
[[noreturn]] inline void fail_without_path(std::string_view op, index sequence, bool is_nan) {
  if (is_nan) {
    fail(ErrorCode::kOptionValue, Hint{"look for what made the scores NaN or infinite"},
         "{}: a score of sequence {} is NaN or infinite", op, sequence);
  }
  fail(ErrorCode::kOptionValue,
       Hint{"allow more, or give every type all tags that its scheme asks for"},
       "{}: sequence {} has no path that is allowed", op, sequence);
}

}  // namespace fovea::detail
