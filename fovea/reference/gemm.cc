// SPDX-License-Identifier: Apache-2.0
#include "fovea/reference/gemm.h"

#include "fovea/base/bfloat16.h"
#include "fovea/reference/kernels.h"

namespace fovea::reference {

template <class T>
void matmul(InRows<T> a, InRows<T> m, Form form, Rows<T> c,
            const MatmulOptions<std::type_identity_t<T>>& options) {
  for (index i = 0; i < c.rows; ++i) {
    for (index j = 0; j < c.columns; ++j) {
      T s = options.store == Store::kAdd ? c[i][j] : T{0};
      for (index k = 0; k < a.columns; ++k) {
        s += a[i][k] * (form == Form::kPlain ? m[k][j] : m[j][k]);
      }
      if (!options.bias.empty()) s += options.bias[j];
      if (options.slope.data != nullptr)
        options.slope[i][j] = activate_gradient(options.activation, s);
      c[i][j] = activate(options.activation, s);
    }
  }
}

template <class T>
void matmul_at_b(InRows<T> a, InRows<T> b, Rows<T> c, Store store) {
  for (index i = 0; i < c.rows; ++i) {
    for (index j = 0; j < c.columns; ++j) {
      T s = store == Store::kAdd ? c[i][j] : T{0};
      for (index m = 0; m < a.rows; ++m) s += a[m][i] * b[m][j];
      c[i][j] = s;
    }
  }
}

template <class T>
void round_to_bfloat16(Rows<T> m) {
  for (index i = 0; i < m.rows; ++i) {
    for (index j = 0; j < m.columns; ++j) m[i][j] = to_float(to_bfloat16(m[i][j]));
  }
}

template <class T>
void column_sums(InRows<T> a, Vec<T> sums, Store store) {
  for (index j = 0; j < a.columns; ++j) {
    T s = store == Store::kAdd ? sums[j] : T{0};
    for (index m = 0; m < a.rows; ++m) s += a[m][j];
    sums[j] = s;
  }
}

template void matmul(InRows<float>, InRows<float>, Form, Rows<float>, const MatmulOptions<float>&);
template void matmul(InRows<double>, InRows<double>, Form, Rows<double>,
                     const MatmulOptions<double>&);
template void matmul(InRows<long double>, InRows<long double>, Form, Rows<long double>,
                     const MatmulOptions<long double>&);  // the reference for double
template void matmul_at_b(InRows<float>, InRows<float>, Rows<float>, Store);
template void matmul_at_b(InRows<double>, InRows<double>, Rows<double>, Store);
template void round_to_bfloat16(Rows<float>);
template void round_to_bfloat16(Rows<double>);
template void column_sums(InRows<float>, Vec<float>, Store);
template void column_sums(InRows<double>, Vec<double>, Store);

}  // namespace fovea::reference
