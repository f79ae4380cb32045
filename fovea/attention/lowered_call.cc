// SPDX-License-Identifier: Apache-2.0
#include "fovea/attention/lowered_call.h"

#include <variant>

#include "fovea/attention/score/pair_score.h"
#include "fovea/simd/isa.h"

namespace fovea::detail {

template <class T>
bool is_linear(const Attention<T>& attention) {
  return std::holds_alternative<norm::None>(attention.norm) && attention.bias.empty() &&
         attention.values.empty() && attention.dropout.probability == 0 &&
         attention.mask.kept_prefix() != KeptPrefix::kNone;
}

template <class T>
LoweredCall<T>::LoweredCall(const Attention<W>& attention, const AttentionInputs<T>& in)
    : asked_(attention), asked_in_(in), sequences_(make_sequences(attention, in)), in_(in) {
  const Bias<W> pair = pair_score(attention.score);
  if (pair.empty() && !makes_rows()) return;
  lowered_ = attention;
  lowered_->score = score::Dot{scale_of(attention.score, in.q.width)};
  lowered_->rotary = {};
  lowered_->bias = pair + attention.bias;
  in_.q.width = in_.k.width = made_width(attention.score, in.q.width);
  if (!makes_rows()) return;
  in_.q = in_.q.without_gaps();
  in_.k = in_.k.without_gaps();
}

template <class T>
LoweredCall<T>::LoweredCall(const Context& ctx, const Attention<W>& attention,
                            const AttentionInputs<T>& in)
    : LoweredCall(attention, in) {
  if (!makes_rows()) return;
  rows_.emplace(ctx, asked_.score, asked_.rotary, asked_rows(), sequences_);
  in_.q = rows_->made().q;
  in_.k = rows_->made().k;
}

template <class T>
Kernel LoweredCall<T>::backward_kernel() const {
  return is_linear(attention()) ? Kernel::kLinear : Kernel::kFused;
}

// The linear kernel knows no single weight.
template <class T>
Kernel LoweredCall<T>::forward_kernel(const AttentionOutputs<T>& out) const {
  const bool weights = !attention().observe.empty() || !out.weights.empty();
  return weights ? Kernel::kFused : backward_kernel();
}

template <class T>
AttentionGradients<T> LoweredCall<T>::gradients(const AttentionGradients<T>& wanted) {
  if (!rows_) return wanted;
  const QueryKeyRows<T> rows = rows_->gradients({wanted.dq, wanted.dk});
  return {rows.q, rows.k, wanted.dv};
}

template <class T>
void LoweredCall<T>::pull(const Context& ctx, const AttentionGradients<T>& wanted) const {
  if (rows_) rows_->pull(ctx, {wanted.dq, wanted.dk});
}

template <class T>
double LoweredCall<T>::made_bytes() const {
  if (!makes_rows()) return 0;
  return MadeRows<T>::bytes(asked_.score, asked_.rotary, asked_rows(), sequences_);
}

bool reads_pairs(const Attention<float>& attention) {
  return has_bfloat16_products() && std::holds_alternative<score::Dot>(attention.score) &&
         !is_linear(attention);
}

template bool is_linear(const Attention<float>&);
template bool is_linear(const Attention<double>&);
template class LoweredCall<float>;
template class LoweredCall<double>;
template class LoweredCall<BFloat16>;

}  // namespace fovea::detail
