// SPDX-License-Identifier: Apache-2.0
// Muon, which moves a matrix along the nearest orthogonal one to its momentum (Jordan et al. 2024,
// "Muon: An optimizer for hidden layers in neural networks",
// https://kellerjordan.github.io/posts/muon).
#pragma once

#include "fovea/base/context.h"
#include "fovea/base/view.h"
#include "fovea/kernel/adamw.h"

namespace fovea {

inline constexpr double kMuonMomentum = 0.95;
inline constexpr int kNewtonSchulzSteps = 5;
inline constexpr double kNewtonSchulz[] = {3.4445, -4.7750, 2.0315};

/// A matrix with its gradient and momentum, of one shape [R,C]. `decay` multiplies the weight
/// decay.
template <class T>
struct MuonSlot {
  Rows<T> value = {};
  Rows<const T> gradient = {};
  Rows<T> m = {};
  double decay = 1;
};

/// out [R,C] = x with its singular values brought to about 1 (.7 to 1.2): five steps of
///   X <- (a I + b A + c A A) X,  A = X X^T,  from x / |x| (Frobenius), of the lower side of x,
/// with (a, b, c) of kNewtonSchulz. Zeros stay zeros. The products are those of T, whatever the
/// precision of ctx. `out` may be x.
template <class T>
void orthogonalise(const Context& ctx, Rows<const T> x, Rows<T> out);

/// The most bytes of scratch memory of an update of [R,C] in float32, but for what threads take.
double muon_scratch_bytes(double rows, double columns);

/// One update, with Nesterov's momentum:
///   g = gradient_scale * gradient;  m = .95 m + g;  O = orthogonalise(g + .95 m);
///   value -= lr (.2 sqrt(max(R, C)) O + decay weight_decay value).
/// The factor makes the root mean square of an update about .2, as that of AdamW is, so that both
/// share one learning rate and weight decay (Liu et al. 2025, "Muon is Scalable for LLM Training",
/// section 2.2). Betas, epsilon and the number of the step are not read. Throws Error(kShape) if
/// the shapes of the slot disagree.
template <class T>
void muon(const Context& ctx, const MuonSlot<T>& slot, const AdamWStep& step);

}  // namespace fovea
