// SPDX-License-Identifier: Apache-2.0
// A function of one's own, x gelu(x), against its plain loop and against central differences.
#include <cstdio>

#include "fovea/grad/ops.h"
#include "fovea/reference/gradcheck.h"
#include "fovea/reference/kernels.h"

int main() {
  const fovea::GradientCase own = {
      "x gelu(x)",
      {{3, 5}},
      [](fovea::Tape& tape, std::span<const fovea::Variable> in) {
        return multiply(tape, in[0], activation(tape, fovea::Activation::kGelu, in[0]));
      },
      [](std::span<const fovea::Rows<const double>> in, fovea::Rows<double> y) {
        for (fovea::index r = 0; r < y.rows; ++r) {
          for (fovea::index c = 0; c < y.columns; ++c) {
            const double x = in[0][r][c];
            y[r][c] = x * fovea::reference::activate(fovea::Activation::kGelu, x);
          }
        }
      }};
  const fovea::CaseReport report = check_case(fovea::Context(1), own);
  std::printf("error of the gradient %.1e, of the value %.1e\n", report.gradient.error,
              report.reference_error);
  return report.gradient.error < 1e-8 && report.reference_error < 1e-12 ? 0 : 1;
}
