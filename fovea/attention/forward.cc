// SPDX-License-Identifier: Apache-2.0
#include "fovea/attention/reference.h"

namespace fovea {

template <class T>
void attention_forward(const Context&, const Attention<T>& attention, const AttentionInputs<T>& in,
                       const AttentionOutputs<T>& out) {
  attention_reference_forward(attention, in, out);
}

template <class T>
void attention_backward(const Context&, const Attention<T>& attention, const AttentionInputs<T>& in,
                        const AttentionSaved<T>& saved, const AttentionGradients<T>& gradients) {
  attention_reference_backward(attention, in, saved, gradients);
}

template void attention_forward(const Context&, const Attention<float>&,
                                const AttentionInputs<float>&, const AttentionOutputs<float>&);
template void attention_forward(const Context&, const Attention<double>&,
                                const AttentionInputs<double>&, const AttentionOutputs<double>&);
template void attention_backward(const Context&, const Attention<float>&,
                                 const AttentionInputs<float>&, const AttentionSaved<float>&,
                                 const AttentionGradients<float>&);
template void attention_backward(const Context&, const Attention<double>&,
                                 const AttentionInputs<double>&, const AttentionSaved<double>&,
                                 const AttentionGradients<double>&);

}  // namespace fovea
