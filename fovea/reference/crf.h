// SPDX-License-Identifier: Apache-2.0
// The CRF as simple loops in log space on one thread, as reference/kernels.h says.
#pragma once

#include "fovea/kernel/crf.h"

namespace fovea::reference {

template <class T>
void crf_log_partition(const CrfScores<T>& scores, const CrfRows<T>& rows,
                       Vec<double> log_partition);
template <class T>
double crf_loss(const CrfScores<T>& scores, const CrfRows<T>& rows, const CrfTargets& targets,
                Vec<double> losses, const CrfGradient<T>& gradient);
template <class T>
void crf_marginals(const CrfScores<T>& scores, const CrfRows<T>& rows, Rows<T> marginals);

}  // namespace fovea::reference
