// SPDX-License-Identifier: Apache-2.0
#include "fovea/reference/gradcheck.h"

#include <algorithm>
#include <cmath>

#include "fovea/base/random.h"
#include "fovea/grad/ops.h"

namespace fovea {

namespace {

using Gradients = std::vector<std::vector<double>>;

double loss_at(const Context& context, const std::function<Variable(Tape&)>& loss) {
  Tape tape(context, TapeMode::kTrain);
  return loss(tape).value<double>()[0][0];
}

double central_difference(const Context& context, Parameter& parameter, index i,
                          const std::function<Variable(Tape&)>& loss) {
  double& x = parameter.value.vec<double>()[i];
  const double middle = x, h = 1e-3 * std::max(1.0, std::abs(middle));
  const auto at = [&](double offset) {
    x = middle + offset * h;
    ++parameter.version;
    return loss_at(context, loss);
  };
  const double difference = (8 * (at(1) - at(-1)) - at(2) + at(-2)) / (12 * h);
  x = middle;
  ++parameter.version;
  return difference;
}

Gradients differences(const Context& context, std::span<Parameter* const> parameters,
                      const std::function<Variable(Tape&)>& loss) {
  Gradients all;
  for (Parameter* parameter : parameters) {
    auto& one = all.emplace_back();
    for (index i = 0; i < parameter->value.size(); ++i) {
      one.push_back(central_difference(context, *parameter, i, loss));
    }
  }
  return all;
}

// The values of a tensor of either type, in double.
std::vector<double> numbers(const Tensor& tensor) {
  const Tensor doubles = tensor.to(DType::kFloat64);
  const auto vec = doubles.vec<double>();
  return {vec.begin(), vec.end()};
}

Gradients backward(const Context& context, std::span<Parameter* const> parameters,
                   const std::function<Variable(Tape&)>& loss) {
  for (Parameter* parameter : parameters) parameter->clear_gradient();
  Tape tape(context, TapeMode::kTrain);
  tape.backward(loss(tape));
  Gradients all;
  for (Parameter* parameter : parameters) all.push_back(numbers(parameter->finished_gradient()));
  return all;
}

double largest(const std::vector<double>& values) {
  double most = 0;
  for (const double x : values) most = std::max(most, std::abs(x));
  return most;
}

GradientReport compare(std::span<Parameter* const> parameters, const Gradients& got,
                       const Gradients& expected) {
  double overall = 0;
  for (const auto& one : expected) overall = std::max(overall, largest(one));
  GradientReport report;
  for (std::size_t p = 0; p < expected.size(); ++p) {
    const double scale = std::max({largest(expected[p]), 1e-3 * overall, 1e-300});
    for (std::size_t i = 0; i < expected[p].size(); ++i) {
      const double error = std::abs(got[p][i] - expected[p][i]) / scale;
      if (error <= report.error) continue;
      report.error = std::isnan(error) ? INFINITY : error;
      report.where = fmt::format("{}[{}]: backward {}, expected {}", parameters[p]->name, i,
                                 got[p][i], expected[p][i]);
    }
  }
  return report;
}

// A case with random inputs, in one type.
class DrawnCase {
 public:
  DrawnCase(const GradientCase& c, DType dtype) : case_(c), dtype_(dtype) {
    for (const auto& [rows, columns] : c.inputs) {
      if (rows == 0) break;
      const auto number = static_cast<std::uint64_t>(owned_.size());
      auto& parameter = *owned_.emplace_back(std::make_unique<Parameter>());
      parameter.name = fmt::format("input {}", number);
      parameter.value = draw({rows, columns}, c.low, c.high, number).to(dtype);
      pointers_.push_back(&parameter);
    }
  }

  std::span<Parameter* const> parameters() const { return pointers_; }

  Variable output(Tape& tape) const {
    std::vector<Variable> inputs;
    for (Parameter* parameter : pointers_) inputs.push_back(tape.parameter(*parameter));
    return case_.function(tape, inputs);
  }

  // sum(output * weights), with a different weight for each element; an output that is a single
  // number is the loss itself.
  Variable loss(Tape& tape) {
    const Variable y = output(tape);
    if (y.rows() * y.columns() == 1) return y;
    if (!weights_.defined()) weights_ = draw({y.rows(), y.columns()}, 0.5, 1.5, 1000).to(dtype_);
    Variable weights;
    with_type(dtype_, [&]<class T>(std::type_identity<T>) {
      weights = tape.constant(std::as_const(weights_).rows<T>());
    });
    return sum(tape, multiply(tape, y, weights));
  }

  std::vector<double> output_numbers(const Context& context) const {
    Tape tape(context, TapeMode::kTrain);
    const Variable y = output(tape);
    std::vector<double> result;
    with_type(dtype_, [&]<class T>(std::type_identity<T>) {
      for (index n = 0; n < y.rows(); ++n) {
        result.insert(result.end(), y.value<T>()[n], y.value<T>()[n] + y.columns());
      }
    });
    return result;
  }

  std::vector<double> reference_numbers(std::size_t size, index columns) const {
    std::vector<Rows<const double>> inputs;
    for (const Parameter* p : pointers_) inputs.push_back(p->value.rows<double>());
    std::vector<double> result(size);
    case_.reference(inputs, {result.data(), static_cast<index>(size) / columns, columns});
    return result;
  }

  CaseNumbers numbers_of(const std::vector<double>& output, index columns,
                         Gradients gradients) const {
    CaseNumbers all{.inputs = {},
                    .weights = {},
                    .output_columns = columns,
                    .output = output,
                    .gradients = std::move(gradients)};
    for (const Parameter* p : pointers_) all.inputs.push_back(numbers(p->value));
    if (weights_.defined()) all.weights = numbers(weights_);
    return all;
  }

  index output_columns(const Context& context) const {
    Tape tape(context, TapeMode::kTrain);
    return output(tape).columns();
  }

 private:
  static Tensor draw(const Shape& shape, double low, double high, std::uint64_t number) {
    Tensor values(shape, DType::kFloat64);
    Random random(1, RandomUse::kTest, number);
    // Rounded to float32, so that both types get the same numbers.
    for (double& x : values.vec<double>()) x = static_cast<float>(random.uniform(low, high));
    return values;
  }

  const GradientCase& case_;
  DType dtype_;
  std::vector<std::unique_ptr<Parameter>> owned_;
  std::vector<Parameter*> pointers_;
  Tensor weights_;
};

double scaled_difference(const std::vector<double>& got, const std::vector<double>& expected) {
  double most = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double error = std::abs(got[i] - expected[i]);
    most = std::isnan(error) ? INFINITY : std::max(most, error);
  }
  return most / std::max(largest(expected), 1e-300);
}

}  // namespace

GradientReport check_gradients(const Context& context, std::span<Parameter* const> parameters,
                               const std::function<Variable(Tape&)>& loss) {
  return compare(parameters, backward(context, parameters, loss),
                 differences(context, parameters, loss));
}

CaseReport check_case(const Context& context, const GradientCase& c) {
  DrawnCase wide(c, DType::kFloat64), narrow(c, DType::kFloat32);
  const auto wide_loss = [&](Tape& tape) { return wide.loss(tape); };
  const auto narrow_loss = [&](Tape& tape) { return narrow.loss(tape); };
  const std::vector<double> output = wide.output_numbers(context);
  CaseReport report;
  report.gradient = check_gradients(context, wide.parameters(), wide_loss);
  report.float32_error = scaled_difference(narrow.output_numbers(context), output);
  report.exact = wide.numbers_of(output, wide.output_columns(context),
                                 backward(context, wide.parameters(), wide_loss));
  report.float32_gradient_error =
      compare(wide.parameters(), backward(context, narrow.parameters(), narrow_loss),
              report.exact.gradients)
          .error;
  if (c.reference != nullptr) {
    report.reference_error = scaled_difference(
        output, wide.reference_numbers(output.size(), wide.output_columns(context)));
  }
  return report;
}

}  // namespace fovea
