// SPDX-License-Identifier: Apache-2.0
// The ops of taggers as cases of the gradient checker.
#pragma once

#include "tests/grad/op_cases.h"

namespace fovea {

// The cases have three sequences of 2, 0 and 4 rows, with 5 tags.
inline constexpr std::int32_t kTags[] = {3, 1, 0, 4, 4, 1};
// After tag 2 only tags 0 and 1; tag 2 not first, tag 0 not last.
inline constexpr std::uint8_t kMayFollow[] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0,
                                              0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
inline constexpr std::uint8_t kMayStart[] = {1, 1, 0, 1, 1}, kMayEnd[] = {0, 1, 1, 1, 1};

/// in: emissions, transitions, start, end. quarters / 4 of the sum of -log p.
template <int quarters, bool forbids>
struct CrfFormula {
  template <class T>
  static void run(Matrices<T> in, Rows<T> y) {
    using std::exp, std::log;
    const Rows<const T> x = in[0], transitions = in[1], start = in[2], end = in[3];
    const auto allowed = [](const std::uint8_t* flags, index i) {
      return !forbids || flags[i] != 0;
    };
    y[0][0] = T(0);
    for (std::size_t s = 0; s < 3; ++s) {
      const index first = kOffsets[s], last = kOffsets[s + 1];
      if (first == last) continue;
      std::vector<T> sums(5), next(5);
      T score = start[0][kTags[first]] + end[0][kTags[last - 1]];
      for (index n = first; n < last; ++n) {
        score += x[n][kTags[n]];
        if (n > first) score += transitions[kTags[n - 1]][kTags[n]];
        for (index b = 0; b < 5; ++b) {
          T sum = n == first && allowed(kMayStart, b) ? exp(start[0][b]) : T(0);
          for (index a = 0; a < 5 && n > first; ++a) {
            if (!allowed(kMayFollow, 5 * a + b)) continue;
            sum += sums[static_cast<std::size_t>(a)] * exp(transitions[a][b]);
          }
          next[static_cast<std::size_t>(b)] = sum * exp(x[n][b]);
        }
        sums = next;
      }
      T z = T(0);
      for (index b = 0; b < 5; ++b) {
        if (allowed(kMayEnd, b)) z += sums[static_cast<std::size_t>(b)] * exp(end[0][b]);
      }
      y[0][0] += T(quarters / 4.0) * (log(z) - score);
    }
  }
};

/// in: emissions, transitions, and one row that is both start and end.
struct CrfSharedFormula {
  template <class T>
  static void run(Matrices<T> in, Rows<T> y) {
    const Rows<const T> all[] = {in[0], in[1], in[2], in[2]};
    CrfFormula<1, false>::run<T>(all, y);
  }
};

inline constexpr OpCase kTaggerOpCases[] = {
    {"crf_loss",
     {{6, 5}, {5, 5}, {1, 5}, {1, 5}},
     [](Tape& t, Inputs in) {
       return crf_loss(t, in[0], {in[1], in[2], in[3]}, {kTags, 6}, three_sequences(t), 0.25);
     },
     by<CrfFormula<1, false>>,
     -2,
     2},
    {"crf_loss_with_forbidden_paths_scaled_afterwards",
     {{6, 5}, {5, 5}, {1, 5}, {1, 5}},
     [](Tape& t, Inputs in) {
       const CrfAllowed allowed{{kMayFollow, 25}, {kMayStart, 5}, {kMayEnd, 5}};
       return scale(
           t, crf_loss(t, in[0], {in[1], in[2], in[3], allowed}, {kTags, 6}, three_sequences(t)),
           -2);
     },
     by<CrfFormula<-8, true>>,
     -2,
     2},
    {"crf_loss_with_one_row_for_start_and_end",
     {{6, 5}, {5, 5}, {1, 5}},
     [](Tape& t, Inputs in) {
       return crf_loss(t, in[0], {in[1], in[2], in[2]}, {kTags, 6}, three_sequences(t), 0.25);
     },
     by<CrfSharedFormula>},
};

}  // namespace fovea
