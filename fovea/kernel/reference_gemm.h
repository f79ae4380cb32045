// SPDX-License-Identifier: Apache-2.0
// The products of gemm.h written down plainly: loops, one thread. In double they are what gemm is
// tested against; in float they are the plain implementation whose error its error is measured by.
#pragma once

#include "fovea/kernel/gemm.h"

namespace fovea::reference {

/// B is m or m^T.
template <class T>
void matmul(InRows<T> a, InRows<T> m, Form form, Rows<T> c,
            const MatmulOptions<std::type_identity_t<T>>& options = {});
template <class T>
void matmul_at_b(InRows<T> a, InRows<T> b, Rows<T> c, Store store = Store::kWrite);
template <class T>
void column_sums(InRows<T> a, Vec<T> sums, Store store = Store::kWrite);

}  // namespace fovea::reference
