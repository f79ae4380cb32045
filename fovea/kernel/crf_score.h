// SPDX-License-Identifier: Apache-2.0
// Shared by the kernels of a CRF: the checks of their operands, the score of one path, and its
// loss. Nothing outside crf needs this header.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
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

/// s(y), and what it was made of.
struct CrfPathScore {
  double score = 0, size = 0;  ///< the sum of its terms, and of their absolute values
  index rows = 0;

  void add(double term) {
    score += term;
    size += std::abs(term);
  }
};

/// The score of the tags of sequence s. Throws the errors that crf_loss throws for them.
template <class T>
CrfPathScore score_of_tags(const CrfScores<T>& scores, const CrfRows<T>& rows,
                           Vec<const std::int32_t> tags, index s) {
  const index K = scores.start.size, first = rows.offsets[s], last = rows.offsets[s + 1];
  CrfPathScore path{.rows = last - first};
  for (index n = first; n < last; ++n) {
    const index tag = tags[n];
    check(tag >= 0 && tag < K, "crf_loss: sequence {}, row {}: tag {} is not one of the {} tags", s,
          n - first, tag, K);
    const auto refuse = [&](const std::string& what) {
      fail(ErrorCode::kOptionValue,
           Hint{"repair tags that break their scheme first, or allow what they do"},
           "crf_loss: sequence {}, row {}: tag {} may not {}", s, n - first, tag, what);
    };
    if (n == first) {
      if (!may_start(scores.allowed, tag)) refuse("be the first");
      path.add(double{scores.start[tag]});
    } else {
      const index before = tags[n - 1];
      if (!may_follow(scores.allowed, K, before, tag)) {
        refuse(fmt::format("follow tag {}", before));
      }
      path.add(double{scores.transitions[before][tag]});
    }
    if (n + 1 == last && !may_end(scores.allowed, tag)) refuse("be the last");
    path.add(double{rows.emissions[n][tag]});
  }
  if (first < last) path.add(double{scores.end[tags[last - 1]]});
  return path;
}

/// log Z - s(y) is never below 0, but both are rounded. Where it is near 0, Z is hardly more than
/// the product along the path. So its relative error is at most that of the factors exp(x), which
/// is 2 ulp and what an ulp of x makes, and that of a sum of K terms in each row; and s(y) is a sum
/// in double. A loss below 0 by no more than that becomes 0. One further below is an error of log Z
/// (crf_chain.h says beyond which gap there is one), and stays.
template <class T>
double loss_of_path(double log_partition, const CrfPathScore& path, index K) {
  constexpr double kUlp = std::numeric_limits<T>::epsilon(),
                   kUlpOfSum = std::numeric_limits<double>::epsilon();
  const double loss = log_partition - path.score;
  const auto rows = static_cast<double>(path.rows);
  const double rounding = kUlp * (static_cast<double>(K + 8) * rows + 2 * path.size) +
                          kUlpOfSum * (rows + 1) * path.size;
  return loss < 0 && loss >= -rounding ? 0 : loss;
}

}  // namespace fovea::detail
