// SPDX-License-Identifier: Apache-2.0
// Kernelized relative positions, in their logarithmic form and in their power form (Chi, Fan,
// Ramadge, Rudnicky 2022, "KERPLE: Kernelized Relative Positional Embedding for Length
// Extrapolation").
#pragma once

#include <string>
#include <string_view>

#include "fovea/attention/bias/bias.h"
#include "fovea/base/view.h"

namespace fovea::bias {

/// The paper keeps r1 and r2 positive; as in its code, a smaller number counts as this one.
inline constexpr double kKerpleLeast = 0.01;

/// The base of both forms of KERPLE: a function of the distance is subtracted from a score, with
/// two learned numbers for each head.
template <class T>
class KerpleForm : public ScoreFunction<T> {
 public:
  T value(const ScoreSite& site, T score) const override;
  index gradient_size() const override { return dr_.data == nullptr ? 0 : 2; }
  void add_parameters(const ScoreSite& site, T score, T dscore, double* sums) const override;
  void store_gradient(const double* sums, index heads) const override;
  void apply(const TileSite& site, const TileRows<T>& rows,
             const ScoreTile<T>& tile) const override;
  void pull(const TileSite& site, const TileRows<T>& rows, const ScoreTile<T>& scores,
            const ScoreTile<T>& dscores, const TileGradients<T>& gradients) const override;
  bool needs_scores() const override { return false; }
  void name_parameters(OverlapCheck& memory) const override;
  void name_gradients(OverlapCheck& memory) const override;
  void check_shape(const AttentionSizes& sizes) const override;
  std::string name() const override { return std::string(names_.part); }

 protected:
  struct Names {
    std::string_view part, r, dr;  ///< "kerple", "r of kerple", "the gradient of r of kerple"
  };
  struct Numbers {
    double r1, r2;
  };

  KerpleForm(Rows<const T> r, Rows<T> dr, const Names& names) : r_(r), dr_(dr), names_(names) {}

 private:
  // The numbers of a head as they count.
  virtual Numbers counted(double r1, double r2) const = 0;
  // The number that is subtracted from a score at a distance of at least 0.
  virtual double term(const Numbers& of, double distance) const = 0;
  // d term / d r1 and d term / d r2.
  virtual Numbers slopes(const Numbers& of, double distance) const = 0;

  Numbers numbers(index head) const { return counted(r_[0][head], r_[1][head]); }

  Rows<const T> r_;
  Rows<T> dr_;
  Names names_;
};

/// score - r1[h] log(1 + r2[h] |p - j|), p the position of the query.
template <class T>
class Kerple final : public KerpleForm<T> {
 public:
  /// r [2, H]: row 0 is r1, row 1 is r2; dr, of the same shape, receives its gradient in backward,
  /// or is empty. Views. A number below kKerpleLeast counts as kKerpleLeast, and its gradient is
  /// the one there, not 0: so training can bring it back. A call with another H throws
  /// Error(kShape).
  explicit Kerple(Rows<const T> r, Rows<T> dr = {})
      : KerpleForm<T>(r, dr, {"kerple", "r of kerple", "the gradient of r of kerple"}) {}

 private:
  using typename KerpleForm<T>::Numbers;
  Numbers counted(double r1, double r2) const override;
  double term(const Numbers& of, double distance) const override;
  Numbers slopes(const Numbers& of, double distance) const override;
};

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
