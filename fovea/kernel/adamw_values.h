// SPDX-License-Identifier: Apache-2.0
// AdamW of a part of a parameter, by the calling thread: for who holds the moments in another form.
#pragma once

#include "fovea/kernel/adamw.h"

namespace fovea {

/// adamw() of this slot, which is not checked, on no other thread; with the same bits, wherever the
/// part of a parameter begins.
template <class T>
void adamw_values(const AdamWSlot<T>& slot, const AdamWStep& step);

}  // namespace fovea
