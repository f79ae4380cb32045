// SPDX-License-Identifier: Apache-2.0
// Kernelized relative positions in their power form (Chi, Fan, Ramadge, Rudnicky 2022, "KERPLE:
// Kernelized Relative Positional Embedding for Length Extrapolation"). The logarithmic form is
// Kerple.
#pragma once

#include "fovea/attention/bias/kerple.h"

namespace fovea::bias {

/// The paper keeps r1 positive, and r2 above 0 and at most 2. As in the logarithmic form, a smaller
/// number counts as the least.
inline constexpr double kKerplePowerLeast = kKerpleLeast, kKerplePowerMost = 2;

/// score - r1[h] |p - j|^r2[h], p the position of the query.
template <class T>
class KerplePower final : public KerpleForm<T> {
 public:
  /// r [2, H]: row 0 is r1, row 1 is r2; dr, of the same shape, receives its gradient in backward,
  /// or is empty. Views. A number below kKerplePowerLeast counts as kKerplePowerLeast, and an r2
  /// above kKerplePowerMost as kKerplePowerMost; its gradient is the one there, not 0: so training
  /// can bring it back. A call with another H throws Error(kShape).
  explicit KerplePower(Rows<const T> r, Rows<T> dr = {})
      : KerpleForm<T>(r, dr,
                      {"kerple_power", "r of kerple_power", "the gradient of r of kerple_power"}) {}

 private:
  using typename KerpleForm<T>::Numbers;
  Numbers counted(double r1, double r2) const override;
  double term(const Numbers& of, double distance) const override;
  Numbers slopes(const Numbers& of, double distance) const override;
};

}  // namespace fovea::bias
