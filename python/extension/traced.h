// SPDX-License-Identifier: Apache-2.0
// Traced functions of scores and places, as the front ends of Python hand them over.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "fovea/attention/lambda/program/planned_program.h"
#include "fovea/base/error.h"
#include "fovea/operator/attention_call.h"

namespace fovea::python {

/// The steps that _tracing.py has packed.
std::vector<detail::ScoreStep> steps_of(const nanobind::bytes& packed);

/// The error, with the name of the function behind "captured tensor 3".
Error with_function(const Error& error, std::string_view name);

/// f(), whose errors about captured tensors say which function captured them.
template <class F>
auto of_function(std::string_view name, F&& f) {
  try {
    return f();
  } catch (const Error& error) {
    throw with_function(error, name);
  }
}

/// The whole number up to which T holds all.
template <class T>
inline constexpr double kExactTo = sizeof(T) == sizeof(float) ? 0x1p24 : 0x1p53;

/// A traced function, and the arrays that it captured.
class TracedArrays {
 public:
  /// Throws as given_tensor() does.
  TracedArrays(const nanobind::bytes& steps, const std::vector<nanobind::object>& arrays,
               std::vector<bool> learns);

  /// For a call. With settings.backward, the gradient of array n becomes the tensor "captured{n}"
  /// of the call, if it learns. Throws Error(kShape) as PlannedProgram does.
  template <class T>
  std::shared_ptr<const detail::PlannedProgram> in(AttentionCall<T>& call) const;

 private:
  struct Array {
    GivenTensor given;
    double low, high;  // bounds of its values, if these are whole numbers
    bool learns;
  };

  std::vector<detail::ScoreStep> steps_;
  std::vector<Array> arrays_;
};

/// score_mod and mask_mod of a call. The first gets the scores that the other parts make; what the
/// second drops is dropped beside what the other masks drop. Throws Error(kUsage) for a packed
/// call.
class TracedParts final : public MoreParts {
 public:
  /// Null for what there is not.
  TracedParts(const TracedArrays* score_mod, const TracedArrays* mask_mod);

  void add_masks(AttentionCall<float>& call) const override { keep(call); }
  void add_masks(AttentionCall<double>& call) const override { keep(call); }
  void add_biases(AttentionCall<float>& call) const override { add(call); }
  void add_biases(AttentionCall<double>& call) const override { add(call); }

 private:
  template <class T>
  void keep(AttentionCall<T>& call) const;
  template <class T>
  void add(AttentionCall<T>& call) const;

  std::optional<TracedArrays> score_mod_, mask_mod_;
};

void bind_traced(nanobind::module_& m);

}  // namespace fovea::python
