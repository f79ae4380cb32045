// SPDX-License-Identifier: Apache-2.0
// The gradient checker. Our tests use it for every op and every layer; use it for your own.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/grad/tape.h"

namespace fovea {

struct GradientReport {
  /// The largest scaled error of any element of any parameter's gradient. An element's error is
  /// |backward - difference| / scale. The scale is the largest |difference| in its parameter's
  /// gradient, but at least a thousandth of the largest in any, so that a gradient that is zero by
  /// its formula is not compared with its own rounding error.
  double error = 0;
  std::string where;  ///< the element with that error, and both numbers
};

/// Compares the gradient from backward of each parameter (all float64) with central differences of
/// fourth order, f'(x) = (8 (f(x+h) - f(x-h)) - f(x+2h) + f(x-2h)) / 12h with h = 1e-3 max(1, |x|),
/// whose own error is below 1e-10 for a smooth f of moderate size. `loss` computes f [1, 1] on the
/// tape.
GradientReport check_gradients(const Context& context, std::span<Parameter* const> parameters,
                               const std::function<Variable(Tape&)>& loss);

/// An op to be checked, as a function of matrices.
struct GradientCase {
  struct Size {
    index rows = 0, columns = 0;
  };
  using Function = Variable (*)(Tape& tape, std::span<const Variable> inputs);
  using Reference = void (*)(std::span<const Rows<const double>> inputs, Rows<double> output);

  std::string_view name;
  Size inputs[6] = {};  ///< as many as have rows
  Function function = nullptr;
  Reference reference = nullptr;  ///< this function in plain loops
  double low = -1, high = 1;      ///< inputs are uniform in [low, high)
};

/// The results of a case in float64, with its inputs.
struct CaseNumbers {
  std::vector<std::vector<double>> inputs;  ///< each fits in float32
  std::vector<double> weights;  ///< of the loss sum(output * weights); empty: it is output
  index output_columns = 0;
  std::vector<double> output;
  std::vector<std::vector<double>> gradients;  ///< of the inputs
};

struct CaseReport {
  GradientReport gradient;     ///< of sum(output * fixed random weights)
  double reference_error = 0;  ///< largest |float64 output - reference|, over the largest output
  double float32_error = 0;    ///< of the float32 output against float64, scaled alike
  double float32_gradient_error = 0;  ///< of the float32 gradients, scaled as in GradientReport
  CaseNumbers exact;
};

CaseReport check_case(const Context& context, const GradientCase& c);

}  // namespace fovea
