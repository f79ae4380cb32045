// SPDX-License-Identifier: Apache-2.0
// The products of gemm.h as simple loops on one thread. In double they are the reference of gemm's
// tests. In float they are the plain implementation with whose error gemm's error is compared.
#pragma once

#include "fovea/kernel/gemm.h"

namespace fovea::reference {

/// B is m or m^T.
template <class T>
void matmul(InRows<T> a, InRows<T> m, Form form, Rows<T> c,
            const MatmulOptions<std::type_identity_t<T>>& options = {});
template <class T>
void matmul_at_b(InRows<T> a, InRows<T> b, Rows<T> c, Store store = Store::kWrite);
/// Rounds m as a product in bfloat16 reads it: each value to nearest even. The product itself is
/// that of the rounded matrices.
template <class T>
void round_to_bfloat16(Rows<T> m);
template <class T>
void column_sums(InRows<T> a, Vec<T> sums, Store store = Store::kWrite);

}  // namespace fovea::reference
