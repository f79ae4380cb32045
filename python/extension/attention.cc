// SPDX-License-Identifier: Apache-2.0
// The operator with parts by name: the tensors and options of the command `fovea attention`.
#include "python/extension/attention.h"

#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "fovea/base/option.h"
#include "fovea/config/field.h"
#include "fovea/config/json.h"
#include "fovea/config/suggest.h"
#include "fovea/operator/attention_call.h"
#include "fovea/operator/run_attention.h"
#include "python/extension/arrays.h"
#include "python/extension/option_rows.h"
#include "python/extension/signals.h"
#include "python/extension/team.h"
#include "python/extension/traced.h"

namespace nb = nanobind;

namespace fovea::python {

namespace {

using Texts = std::map<std::string, std::string>;
constexpr std::string_view kWhere = "attention";

AttentionSettings settings_from(const Texts& options) {
  AttentionSettings settings;
  for (Field& field : fields_of(settings)) {
    const auto given = options.find(field.name);
    if (given != options.end()) set_from_text(field, given->second, field.name);
  }
  check_settings(settings);
  return settings;
}

bool is_operand(std::string_view name) { return name == "q" || name == "k" || name == "v"; }

// The gradient of a result; check_gradient_type() says which types it may have.
bool is_of_result(std::string_view name) { return name == "do" || name == "dlse"; }

bool may_be_bfloat16(std::string_view name) { return is_operand(name) || name == "do"; }

bool is_real(const GivenTensor& given) {
  const DType dtype = given.tensor.dtype();
  return dtype == DType::kFloat32 || dtype == DType::kFloat64 ||
         (dtype == DType::kBFloat16 && may_be_bfloat16(given.name));
}

// Tensors of numbers share the type of q: another would be converted, which copies it. Beside q, k
// and v of bfloat16 they are float32.
void check_types(const std::vector<GivenTensor>& given) {
  const GivenTensor* const q = find_named(given, "q");
  for (const GivenTensor& one : given) {
    const TensorSpec* const spec = find_named(attention_tensor_specs(), one.name);
    if (spec == nullptr || spec->values != TensorValues::kReal) continue;
    const DType dtype = one.tensor.dtype();
    const bool operand = is_operand(one.name);
    if (!is_real(one)) {
      throw Error(ErrorCode::kUsage,
                  fmt::format("attention: {} must hold {}; it holds {}", one.name,
                              may_be_bfloat16(one.name) ? "float32, float64 or bfloat16"
                                                        : "float32 or float64",
                              to_string(dtype)),
                  "convert it, as array.astype(numpy.float32) does");
    }
    if (q == nullptr || is_of_result(one.name)) continue;
    const bool beside_rounded = q->tensor.dtype() == DType::kBFloat16 && !operand;
    if (dtype == (beside_rounded ? DType::kFloat32 : q->tensor.dtype())) continue;
    throw Error(ErrorCode::kUsage,
                fmt::format("attention: q holds {} and {} {}", to_string(q->tensor.dtype()),
                            one.name, to_string(dtype)),
                beside_rounded ? "beside q, k and v of bfloat16, give numbers in float32"
                               : "give all numbers in one type: convert one of them");
  }
}

// A gradient has the type of q, or of the result that it is of: as arrays_of() hands that out, or
// bfloat16 as it is.
void check_gradient_type(const GivenTensor& gradient, DType of_q, std::string_view of,
                         const Tensor& result) {
  const DType dtype = gradient.tensor.dtype();
  const DType handed = result.dtype() == DType::kBFloat16 ? DType::kFloat32 : result.dtype();
  if (!is_real(gradient) || dtype == of_q || dtype == handed || dtype == result.dtype()) return;
  throw Error(ErrorCode::kUsage,
              fmt::format("attention: {} holds {} and {} {}", of, to_string(handed), gradient.name,
                          to_string(dtype)),
              "give the gradient of a result in its type");
}

// There is no file here: what is wrong with one, is wrong with an argument.
template <class F>
auto about_arguments(F&& f) {
  try {
    return f();
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kShape) {
      // The name of the file, which here is that of the operator, stands in front of its own.
      std::string_view message = error.what();
      constexpr std::string_view kTwice = "attention: attention: ";
      if (message.starts_with(kTwice)) message.remove_prefix(kTwice.size() / 2);
      throw error.with(ErrorCode::kShape, std::string(message),
                       "help(fovea.attend) lists the tensors and their shapes");
    }
    if (error.code() != ErrorCode::kInputFormat) throw;
    throw Error(ErrorCode::kUsage, error.what(),
                "give all tensors that the parts need, under their names");
  }
}

AttentionTensors tensors_from(std::vector<GivenTensor> given) {
  check_types(given);
  return about_arguments([&] {
    return AttentionTensors::of(std::move(given), attention_tensor_specs(), std::string(kWhere));
  });
}

NamedArrays arrays_of(const std::vector<NamedTensor>& tensors) {
  NamedArrays arrays;
  for (const NamedTensor& named : tensors) arrays[named.name.c_str()] = array_of(named.tensor);
  return arrays;
}

/// A forward, and what its backward needs.
class Call {
 public:
  Call(const NamedArrays& arrays, const Texts& options, int threads, const TracedArrays* score_mod,
       const TracedArrays* mask_mod)
      : settings_(settings_from(options)),
        context_(context_of(threads)),
        traced_(score_mod, mask_mod) {
    for (const auto& [name, array] : arrays) {
      given_.push_back(given_tensor_of_call(nb::cast<std::string>(name), array));
    }
    const AttentionTensors tensors = tensors_from(given_);
    forward_ = while_others_run([&] {
      return about_arguments(
          [&] { return run_attention_forward(context_, settings_, tensors, &traced_); });
    });
  }

  NamedArrays results() const { return arrays_of(forward_.results); }

  /// The gradients of the tensors named in `learns`, and as "captured{n}" those of score_mod.
  NamedArrays backward(const nb::object& d_o, const nb::object& d_lse,
                       const std::vector<std::string>& learns) const {
    std::vector<GivenTensor> given = given_;
    for (GivenTensor& one : given) {
      one.learns = std::find(learns.begin(), learns.end(), one.name) != learns.end();
    }
    const auto add = [&](const char* name, const nb::object& gradient, std::string_view of) {
      given.push_back(given_tensor_of_call(name, gradient));
      const NamedTensor* const result = find_named(forward_.results, of);
      if (result == nullptr) return;
      check_gradient_type(given.back(), find_named(given, "q")->tensor.dtype(), of, result->tensor);
    };
    add("do", d_o, "o");
    if (!d_lse.is_none()) add("dlse", d_lse, "lse");
    const AttentionTensors tensors = tensors_from(std::move(given));
    return arrays_of(while_others_run([&] {
      return about_arguments(
          [&] { return run_attention_backward(context_, settings_, tensors, forward_, &traced_); });
    }));
  }

  /// The object of `fovea attention --plan --json`.
  std::string plan() const {
    const AttentionTensors tensors = tensors_from(given_);
    return while_others_run(
        [&] { return to_json_line(planned_attention(context_, settings_, tensors, &traced_)); });
  }

 private:
  AttentionSettings settings_;
  Context context_;
  TracedParts traced_;
  std::vector<GivenTensor> given_;
  AttentionForward forward_;
};

// (name, axes, "float", "int" or "bool", what it does) of each tensor.
std::vector<std::tuple<std::string, std::string, std::string, std::string>> tensors() {
  constexpr std::string_view kKinds[] = {"float", "int", "bool"};
  std::vector<std::tuple<std::string, std::string, std::string, std::string>> rows;
  for (const TensorSpec& spec : attention_tensor_specs()) {
    rows.emplace_back(spec.name, axes_text(spec.axes), kKinds[static_cast<int>(spec.values)],
                      std::string(spec.what));
  }
  return rows;
}

}  // namespace

void bind_attention(nb::module_& m) {
  nb::class_<Call>(m, "Call", "A forward of attention, and what its backward needs.")
      .def(nb::init<const NamedArrays&, const Texts&, int, const TracedArrays*,
                    const TracedArrays*>(),
           nb::arg("tensors"), nb::arg("options"), nb::arg("threads"),
           nb::arg("score_mod").none() = nb::none(), nb::arg("mask_mod").none() = nb::none())
      .def("results", &Call::results, "What OUT of the command holds, by name.")
      .def("backward", &Call::backward, nb::arg("do"), nb::arg("dlse").none(), nb::arg("learns"),
           "The gradients of the tensors in `learns`, by name, and of each array n that score_mod "
           "captured, as \"captured{n}\".")
      .def("plan", &Call::plan, "The JSON object of `fovea attention --plan --json`.");
  m.def("attention_options", &option_rows<AttentionSettings>,
        "(name, what it must be, what it does) of each option.");
  m.def("attention_tensors", &tensors, "(name, axes, kind, what it does) of each tensor.");
  m.def("observed_names", &observed_names, "What `observe` takes, as a text.");
  m.def(
      "did_you_mean",
      [](const std::string& word, const std::vector<std::string>& known) {
        return did_you_mean(word, known);
      },
      nb::arg("word"), nb::arg("known"), "\"did you mean X?\", or \"\".");
}

}  // namespace fovea::python
