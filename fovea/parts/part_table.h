// SPDX-License-Identifier: Apache-2.0
// The table of the parts of attention: one row says all that a part is. The command `attention`,
// the op of the tape, the layers, the positions of models, the conformance kit, the tests and the
// help read it, so a new learned bias is its sources, a row here, its tests and its documentation.
#pragma once

#include <array>
#include <limits>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "fovea/attention/attention.h"
#include "fovea/parts/variant.h"

namespace fovea {

/// The tensor of a part: its values, and where its gradient goes. A vector is one row. Without a
/// gradient the tensor is a constant. A tensor of four axes has `scores` instead of `values`.
template <class T>
struct PartViews {
  Rows<const T> values = {};
  Rows<T> gradient = {};
  ScoreView<const T> scores = {};
  ScoreView<T> dscores = {};

  bool is_given() const { return values.data != nullptr || scores.data != nullptr; }
  Vec<const T> vec() const { return {values.data, values.rows * values.columns}; }
  Vec<T> gradient_vec() const { return {gradient.data, gradient.rows * gradient.columns}; }
};

/// Adds a part to a call.
struct AddPart {
  template <class F>
  constexpr AddPart(F add) : f32(add), f64(add) {}

  void operator()(Attention<float>& attention, const PartViews<float>& views,
                  const AttentionVariant& variant) const {
    f32(attention, views, variant);
  }
  void operator()(Attention<double>& attention, const PartViews<double>& views,
                  const AttentionVariant& variant) const {
    f64(attention, views, variant);
  }

  void (*f32)(Attention<float>&, const PartViews<float>&, const AttentionVariant&);
  void (*f64)(Attention<double>&, const PartViews<double>&, const AttentionVariant&);
};

/// The values from which a learned tensor starts.
enum class PartStart {
  kNone,    ///< a layer does not learn it
  kZeros,   ///< the part does nothing at first
  kNormal,  ///< normal, with the deviation of the other weights
  kOnes,
  kSlopes,  ///< the published slopes of ALiBi
};

/// Numbers below `least` or above `most` count as the nearest of these, with the gradient there.
struct PartRange {
  double least = -std::numeric_limits<double>::infinity();
  double most = std::numeric_limits<double>::infinity();
};

struct PartSource {
  std::string_view authors = {};
  int year = 0;
};

struct AttentionPart {
  /// The name of its tensor, in files, in models and as the op's operand; the gradient has this
  /// name behind a "d". Empty: there is no tensor, and the part is as the variant says.
  std::string_view tensor;
  /// The axes of the tensor, a word each: "buckets H". A letter is one size throughout a call: B T
  /// S H G D Dv, or one that this tensor alone has. "H|1" is H or 1, "2s+1" one more than twice s.
  std::string_view axes;
  /// The formula of the part, as docs/formulas.md writes it.
  std::string_view formula;
  PartSource source = {};
  AddPart add;
  PartStart start = PartStart::kNone;
  /// The score that the tensor belongs to, alone.
  std::optional<AttentionScoreKind> score = {};
  /// The name for `train lm --position`. A model learns the tensor, but leaves slopes as published.
  /// Empty: no position encoding.
  std::string_view position = {};
  /// The tensor of another part that this position learns, too.
  std::string_view and_tensor = {};
  /// In which every number of the tensor counts as it is. Tests draw it from here.
  PartRange range = {};
};

/// In the order in which they are added to a call.
std::span<const AttentionPart> attention_parts();

/// The sizes of the axes of a part's tensor; `own` is that of the letter that it alone has.
std::vector<index> part_shape(const AttentionPart& part, const AttentionSizes& sizes, index own);

/// The tensors of a call, by the number of the row.
template <class T>
using PartTensors = std::array<PartViews<T>, kMostAttentionParts>;

/// The call without dropout, packing and observers. Throws kUsage for the tensor of a score
/// that the variant does not choose.
template <class T>
Attention<T> make_attention(const AttentionVariant& variant, const PartTensors<T>& tensors,
                            const Mask& mask = {});

}  // namespace fovea
