// SPDX-License-Identifier: Apache-2.0
// Calls with rows of bfloat16 on their way through float32.
#pragma once

#include <vector>

#include "fovea/attention/attention.h"

namespace fovea::detail {

/// Views of the same shapes, for functions that do not read them.
AttentionInputs<float> float32_shapes(const AttentionInputs<BFloat16>& in);

/// Convert all rows, compute the call in float32, and round its results. The call is checked.
void forward_in_float32(const Context& ctx, const Attention<float>& attention,
                        const AttentionInputs<BFloat16>& in, const AttentionOutputs<BFloat16>& out);
void backward_in_float32(const Context& ctx, const Attention<float>& attention,
                         const AttentionInputs<BFloat16>& in, const AttentionSaved<BFloat16>& saved,
                         const AttentionGradients<BFloat16>& gradients);
/// The memory that they take for rows, in the backward.
double converted_bytes(const AttentionInputs<BFloat16>& in);

/// A tensor of bfloat16 as float32, without gaps.
class Converted {
 public:
  /// Without data: room for results.
  Converted(const View<const BFloat16>& from, bool read)
      : values_(static_cast<std::size_t>(from.batch * from.length * from.heads * from.width)),
        view_(View<float>::contiguous(values_.data(), from.batch, from.length, from.heads,
                                      from.width)) {
    if (!read) return;
    for_each_row([&](index b, index l, index h, float* row) {
      const BFloat16* const bits = from.row(b, l, h);
      for (index c = 0; c < view_.width; ++c) row[c] = to_float(bits[c]);
    });
  }

  View<float> view() { return view_; }

  void round_into(const View<BFloat16>& to) const {
    for_each_row([&](index b, index l, index h, const float* row) {
      BFloat16* const bits = to.row(b, l, h);
      for (index c = 0; c < view_.width; ++c) bits[c] = to_bfloat16(row[c]);
    });
  }

 private:
  template <class F>
  void for_each_row(F&& f) const {
    for (index b = 0; b < view_.batch; ++b) {
      for (index l = 0; l < view_.length; ++l) {
        for (index h = 0; h < view_.heads; ++h) f(b, l, h, view_.row(b, l, h));
      }
    }
  }

  std::vector<float> values_;
  View<float> view_;
};

inline Converted read(const View<const BFloat16>& view) { return {view, true}; }

/// Room for the gradient of a tensor, where it is wanted.
class ConvertedGradient {
 public:
  explicit ConvertedGradient(const View<BFloat16>& wanted)
      : wanted_(wanted), room_(wanted.empty() ? View<BFloat16>{} : wanted, false) {}

  View<float> view() { return wanted_.empty() ? View<float>{} : room_.view(); }
  void store() const {
    if (!wanted_.empty()) room_.round_into(wanted_);
  }

 private:
  View<BFloat16> wanted_;
  Converted room_;
};

}  // namespace fovea::detail
