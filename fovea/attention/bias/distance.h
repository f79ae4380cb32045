// SPDX-License-Identifier: Apache-2.0
// Biases of the distance of key and query alone: ALiBi, KERPLE, and T5's buckets.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fovea/attention/bias/bias.h"
#include "fovea/attention/relative/by_distance.h"
#include "fovea/base/few_numbers.h"

namespace fovea {

/// The slopes of the paper for H heads, [H] (section 3 and its code): for a power of two
/// 2^(-8 (h + 1) / H); otherwise those of the power of two below, then every other one of the power
/// of two above. T is float or double. Throws Error(kShape) unless heads > 0.
template <class T = float>
std::vector<T> alibi_slopes(index heads);

}  // namespace fovea

namespace fovea::bias {

/// score - slopes[h] * |p - j|, p the position of the query.
template <class T>
class Alibi final : public ScoreFunction<T> {
 public:
  /// slopes [H]. A call with another H throws Error(kShape).
  explicit Alibi(FewNumbers<T> slopes) : slopes_(std::move(slopes)) {}
  /// Keeps views of both, for slopes that are learned change. dslopes [H] receives their gradient
  /// in backward, or is empty.
  Alibi(Vec<const T> slopes, Vec<T> dslopes) : slopes_(slopes), dslopes_(dslopes) {}

  T value(const ScoreSite& site, T score) const override;
  index gradient_size() const override { return dslopes_.empty() ? 0 : 1; }
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
  std::string name() const override { return "alibi"; }

 private:
  FewNumbers<T> slopes_;
  Vec<T> dslopes_;
};

// Kernelized relative positions, in their logarithmic form and in their power form (Chi, Fan,
// Ramadge, Rudnicky 2022, "KERPLE: Kernelized Relative Positional Embedding for Length
// Extrapolation").

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

// Relative positions in buckets (Raffel et al. 2020, "T5", section 2.1): small distances have one
// bucket each, larger ones share buckets of logarithmic width.

enum class T5Direction {
  kBidirectional,  ///< half of the buckets for keys before the query, half for those after
  kCausal,         ///< all buckets for keys before; a later key has distance 0
};

struct T5Options {
  T5Direction direction = T5Direction::kBidirectional;
  index max_distance = 128;  ///< distances from here on share the last bucket
};

/// The bucket of the distance j - p. With N buckets per direction, n = |j - p| and E = floor(N /
/// 2), the bucket is n if n < E, and otherwise, in the float arithmetic of the published code,
///
///   min(N - 1, E + floor(ln(n / E) / ln(max_distance / E) * (N - E)))
///
/// where n / E, both logarithms, their ratio and the product are each rounded to float, which
/// decides between two buckets at their border. Bidirectional: N is floor(buckets / 2), and keys
/// after the query add N. Throws Error(kShape) for fewer than 4 buckets (causal: 2), and
/// Error(kOptionValue) unless max_distance > E.
index t5_bucket(index distance, index buckets, const T5Options& options);

/// score + table[bucket of j - p][head].
template <class T>
class T5 final : public ScoreFunction<T> {
 public:
  /// table [buckets, H]; dtable, of the same shape, receives its gradient in backward, or is empty.
  /// Views. Throws what t5_bucket() throws.
  explicit T5(Rows<const T> table, Rows<T> dtable = {}, const T5Options& options = {});

  T value(const ScoreSite& site, T score) const override;
  index gradient_size() const override { return dtable_.data == nullptr ? 0 : table_.rows; }
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
  std::string name() const override;

 private:
  index bucket(const ScoreSite& site) const {
    return t5_bucket(site.j - site.position(), table_.rows, options_);
  }
  template <class F>
  void for_each_run(const detail::TileDistances& distances, F&& f) const;
  index end_of_run(index distance) const;

  Rows<const T> table_;
  Rows<T> dtable_;
  T5Options options_;
  std::vector<index> first_;  // the shortest distance of each bucket of one direction
};

}  // namespace fovea::bias
