// SPDX-License-Identifier: Apache-2.0
// The steps of recurrent layers as simple loops on one thread, as reference/kernels.h says.
#pragma once

#include "fovea/kernel/recurrent.h"
#include "fovea/kernel/sru.h"

namespace fovea::reference {

template <class T>
void recurrent_forward(const RecurrentRun<T>& run);
/// Reads the weight of the run, not its panels.
template <class T>
void recurrent_backward(const RecurrentGradient<T>& gradient);

template <class T>
void sru_forward(const SruRun<T>& run);
template <class T>
void sru_backward(const SruGradient<T>& gradient);

}  // namespace fovea::reference
