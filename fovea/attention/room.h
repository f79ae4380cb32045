// SPDX-License-Identifier: Apache-2.0
// How much memory tiles take: told to the allocation and to the plan alike.
#pragma once

#include "fovea/attention/kernel.h"

namespace fovea {

/// Values of each buffer of a forward tile whose rows have `stride` values.
struct ForwardRoom {
  index qt, s, o;
  index lane;  ///< of largest, m, l and alpha each

  ForwardRoom(index D, index Dv, index stride)
      : qt(D * stride), s(kRowBlock * stride), o(Dv * stride), lane(stride) {}
  index total() const { return qt + s + o + 4 * lane; }
};

/// The widths of a call, as they are and in whole vectors.
struct BackwardWidths {
  index D, Dv, Dp, Dvp;
};

/// Values of each buffer of a backward tile of `keys` keys, whose rows have `stride` values.
struct BackwardRoom {
  index kt, vt, k;
  index s;  ///< of s and dp each
  index inputs, dk, dv;

  BackwardRoom(const BackwardWidths& widths, index keys, index stride, index kept_scores)
      : kt(widths.D * stride),
        vt(widths.Dv * stride),
        k(keys * widths.Dp),
        s(kRowBlock * stride),
        inputs(kept_scores * kRowBlock * stride),
        dk(stride * widths.Dp),
        dv(stride * widths.Dvp) {}
  index total() const { return kt + vt + k + 2 * s + inputs + dk + dv; }
};

/// Scratch of the thread that calls, and of each other that works for it.
struct ThreadScratch {
  double caller = 0;
  double worker = 0;
};

}  // namespace fovea
