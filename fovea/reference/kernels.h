// SPDX-License-Identifier: Apache-2.0
// Every formula of fovea/kernel as simple loops on one thread. In double they are the reference
// of the kernels' tests. In float they are the plain implementation with whose error the
// kernels' error is compared. Arguments and results are those of the kernels of the same name.
#pragma once

#include <span>

#include "fovea/kernel/adamw.h"
#include "fovea/kernel/crf.h"
#include "fovea/kernel/cross_entropy.h"
#include "fovea/kernel/dropout.h"
#include "fovea/kernel/elementwise.h"
#include "fovea/kernel/embedding.h"
#include "fovea/kernel/gemm.h"
#include "fovea/kernel/norm.h"

namespace fovea::reference {

template <class T>
CrossEntropy cross_entropy(InRows<T> logits, const Targets& targets, double scale, Vec<T> losses,
                           Rows<T> dlogits);
template <class T>
double binary_cross_entropy(InRows<T> logits, const BinaryTargets<T>& targets, double scale,
                            Vec<T> losses, Rows<T> dlogits);
template <class T>
CrossEntropy linear_cross_entropy(const LinearCrossEntropy<T>& a);

template <class T>
void softmax_forward(InRows<T> x, Rows<T> y);
template <class T>
void softmax_backward(InRows<T> y, InRows<T> dy, Rows<T> dx);

template <class T>
void layer_norm_forward(InRows<T> x, const NormParameters<std::type_identity_t<T>>& parameters,
                        const LayerNormOptions& options, Rows<T> y, Rows<T> saved);
template <class T>
void layer_norm_backward(const LayerNormBackward<T>& a);
template <class T>
void rms_norm_forward(InRows<T> x, InVec<T> gain, double epsilon, Rows<T> y, Vec<T> saved);
template <class T>
void rms_norm_backward(const RmsNormBackward<T>& a);

/// f(x) and f'(x).
template <class T>
T activate(Activation f, T x);
template <class T>
T activate_gradient(Activation f, T x);

template <class T>
void embedding_forward(const EmbeddingTable<std::type_identity_t<T>>& tokens,
                       const EmbeddingTable<std::type_identity_t<T>>& positions, Rows<T> y);
template <class T>
void embedding_backward(Vec<const std::int32_t> ids, double scale, InRows<T> dy, Rows<T> dtable,
                        std::int32_t frozen = -1);
template <class T>
void embedding_bag_forward(InRows<T> table, const IdBags& bags, Rows<T> y);
template <class T>
void embedding_bag_backward(const IdBags& bags, InRows<T> dy, Rows<T> dtable);

/// Whether element (n, column) is kept.
bool dropout_keeps(const DropoutMask& dropout, index n, index column);
template <class T>
void dropout_forward(const DropoutMask& dropout, InRows<T> x, Rows<T> y);

template <class T>
void adamw(std::span<const AdamWSlot<T>> slots, const AdamWStep& step);
template <class T>
double global_norm(std::span<const AdamWSlot<T>> slots);

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

// The CRF, in log space.

template <class T>
void crf_log_partition(const CrfScores<T>& scores, const CrfRows<T>& rows,
                       Vec<double> log_partition);
template <class T>
double crf_loss(const CrfScores<T>& scores, const CrfRows<T>& rows, const CrfTargets& targets,
                Vec<double> losses, const CrfGradient<T>& gradient);
template <class T>
void crf_marginals(const CrfScores<T>& scores, const CrfRows<T>& rows, Rows<T> marginals);

}  // namespace fovea::reference
