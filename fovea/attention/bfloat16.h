// SPDX-License-Identifier: Apache-2.0
// Calls with rows of bfloat16 on their way through float32.
#pragma once

#include <algorithm>

#include "fovea/attention/attention.h"
#include "fovea/base/memory.h"

namespace fovea::detail {

/// Views of the same shapes, for functions that do not read them.
AttentionInputs<float> float32_shapes(const AttentionInputs<BFloat16>& in);

/// A call that is checked and has started, of rows that the kernels read as they are
/// (attention.cc). `rounded_o`: whether saved.o was rounded to bfloat16.
template <class T>
void forward_of_rows(const Context& ctx, const Attention<Wide<T>>& attention,
                     const AttentionInputs<T>& in, const AttentionOutputs<T>& out);
template <class T>
void backward_of_rows(const Context& ctx, const Attention<Wide<T>>& attention,
                      const AttentionInputs<T>& in, const AttentionSaved<T>& saved,
                      const AttentionGradients<T>& gradients, bool rounded_o);

/// These convert all rows, compute in float32, and round the results.
void forward_in_float32(const Context& ctx, const Attention<float>& attention,
                        const AttentionInputs<BFloat16>& in, const AttentionOutputs<BFloat16>& out);
void backward_in_float32(const Context& ctx, const Attention<float>& attention,
                         const AttentionInputs<BFloat16>& in, const AttentionSaved<BFloat16>& saved,
                         const AttentionGradients<BFloat16>& gradients);
/// The memory that they take for rows, in the backward.
double converted_bytes(const AttentionInputs<BFloat16>& in);

/// A tensor of bfloat16 as float32, without gaps. A small one lies in scratch memory, which the
/// thread keeps: a third of the time of a small call would go to new pages.
class Converted {
 public:
  /// Room for results of this shape.
  Converted(const View<const BFloat16>& shape, Scratch& scratch) {
    constexpr index kMostInScratch = 1 << 20;
    const index values = shape.batch * shape.length * shape.heads * shape.width;
    float* data;
    if (values <= kMostInScratch) {
      data = scratch.allocate<float>(values);
    } else {
      own_ = allocate_aligned(sizeof(float) * static_cast<std::size_t>(values));
      data = reinterpret_cast<float*>(own_.get());
    }
    view_ = View<float>::contiguous(data, shape.batch, shape.length, shape.heads, shape.width);
  }
  Converted(const Context& ctx, const View<const BFloat16>& from, Scratch& scratch)
      : Converted(from, scratch) {
    for_each_row(ctx, [&](index b, index l, index h, float* row) {
      const BFloat16* const bits = from.row(b, l, h);
      for (index c = 0; c < view_.width; ++c) row[c] = to_float(bits[c]);
    });
  }

  View<float> view() { return view_; }

  void round_into(const Context& ctx, const View<BFloat16>& to) const {
    for_each_row(ctx, [&](index b, index l, index h, const float* row) {
      BFloat16* const bits = to.row(b, l, h);
      for (index c = 0; c < view_.width; ++c) bits[c] = to_bfloat16(row[c]);
    });
  }

 private:
  template <class F>
  void for_each_row(const Context& ctx, F&& f) const {
    constexpr index kBlock = 64;
    const index blocks = (view_.length + kBlock - 1) / kBlock;
    ctx.for_each(view_.batch * blocks, [&](index item) {
      const index b = item / blocks, begin = item % blocks * kBlock;
      for (index l = begin; l < std::min(begin + kBlock, view_.length); ++l) {
        for (index h = 0; h < view_.heads; ++h) f(b, l, h, view_.row(b, l, h));
      }
    });
  }

  AlignedBytes own_;
  View<float> view_;
};

/// Room for the gradient of a tensor, where it is wanted.
class ConvertedGradient {
 public:
  ConvertedGradient(const View<BFloat16>& wanted, Scratch& scratch)
      : wanted_(wanted), room_(wanted.empty() ? View<BFloat16>{} : wanted, scratch) {}

  View<float> view() { return wanted_.empty() ? View<float>{} : room_.view(); }
  void store(const Context& ctx) const {
    if (!wanted_.empty()) room_.round_into(ctx, wanted_);
  }

 private:
  View<BFloat16> wanted_;
  Converted room_;
};

}  // namespace fovea::detail
