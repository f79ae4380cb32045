// SPDX-License-Identifier: Apache-2.0
#include "python/extension/traced.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <tuple>
#include <utility>

#include "fovea/attention/lambda/program/program_parts.h"
#include "fovea/base/check.h"
#include "python/extension/arrays.h"

namespace nb = nanobind;

namespace fovea::python {

namespace {

using detail::CapturedTable;
using detail::LaneTable;
using detail::PlannedProgram;
using detail::ScoreStep;
using detail::TapeOp;

bool is_real(const Tensor& tensor) {
  return tensor.dtype() == DType::kFloat32 || tensor.dtype() == DType::kFloat64;
}

LaneTable lanes_of(const Tensor& tensor) {
  constexpr std::pair<DType, LaneTable::Type> kTypes[] = {
      {DType::kFloat32, LaneTable::Type::kFloat},
      {DType::kFloat64, LaneTable::Type::kDouble},
      {DType::kInt32, LaneTable::Type::kInt32},
      {DType::kInt64, LaneTable::Type::kInt64},
      {DType::kUInt8, LaneTable::Type::kByte}};
  const auto* const found =
      std::find_if(std::begin(kTypes), std::end(kTypes),
                   [&](const auto& one) { return one.first == tensor.dtype(); });
  return {tensor.bytes().data(), found->second};
}

// The table of a tensor of these strides, or, if there are none, of one value after another.
CapturedTable table_of(const Tensor& tensor, std::vector<index> strides) {
  CapturedTable table{lanes_of(tensor), {tensor.shape().begin(), tensor.shape().end()}, {}, 0, 1};
  table.strides = std::move(strides);
  if (!table.strides.empty()) return table;
  table.strides.resize(table.sizes.size());
  index all = 1;
  for (std::size_t axis = table.sizes.size(); axis-- > 0; all *= table.sizes[axis]) {
    table.strides[axis] = all;
  }
  return table;
}

// The least and the largest of whole numbers, one after another.
std::pair<double, double> bounds_of(const Tensor& tensor) {
  const CapturedTable table = table_of(tensor, {});
  if (tensor.size() == 0) return {0, 1};
  std::pair<double, double> bounds{table.at(0), table.at(0)};
  for (index n = 1; n < tensor.size(); ++n) {
    const double value = table.at(n);
    bounds = {std::min(bounds.first, value), std::max(bounds.second, value)};
  }
  return bounds;
}

/// A program, and the tables that it reads.
struct Held {
  std::vector<Tensor> tensors;
  std::optional<PlannedProgram> program;
};

// (name, number) of each operation of a traced function.
std::vector<std::tuple<std::string, int>> operations() {
  std::vector<std::tuple<std::string, int>> all;
  for (const detail::NamedOp& one : detail::score_ops()) {
    all.emplace_back(std::string(one.name), static_cast<int>(one.op));
  }
  return all;
}

}  // namespace

// A step is: how many numbers follow; its leaf; and then, for an operation, the operation and its
// operands, for a constant its value, for a read the table and the steps that index it. Steps come
// from _tracing.py alone: anything else is a defect there.
std::vector<ScoreStep> steps_of(const nb::bytes& packed) {
  std::vector<double> numbers(packed.size() / sizeof(double));
  std::memcpy(numbers.data(), packed.data(), numbers.size() * sizeof(double));
  std::vector<ScoreStep> steps;
  for (std::size_t n = 0; n < numbers.size(); n += 1 + static_cast<std::size_t>(numbers[n])) {
    const std::size_t end = n + 1 + static_cast<std::size_t>(numbers[n]);
    const auto whole = [&](std::size_t i) { return static_cast<int>(numbers[i]); };
    ScoreStep& step = steps.emplace_back();
    step.leaf = static_cast<ScoreStep::Leaf>(whole(n + 1));
    if (step.leaf == ScoreStep::Leaf::kConstant) step.value = numbers[n + 2];
    if (step.leaf == ScoreStep::Leaf::kNone) {
      step.op = static_cast<TapeOp>(whole(n + 2));
      int* operands[] = {&step.a, &step.b, &step.c};
      for (std::size_t i = n + 3; i < end; ++i) *operands[i - n - 3] = whole(i);
    }
    if (step.leaf == ScoreStep::Leaf::kRead) {
      step.table = whole(n + 2);
      for (std::size_t i = n + 3; i < end; ++i) step.at[i - n - 3] = whole(i);
    }
  }
  return steps;
}

Error with_function(const Error& error, std::string_view name) {
  constexpr std::string_view kWhat = "captured tensor ";
  std::string message = error.what();
  const std::size_t at = message.find(kWhat);
  if (at == std::string::npos) return error;
  const std::size_t end = message.find_first_not_of("0123456789", at + kWhat.size());
  message.insert(std::min(end, message.size()), fmt::format(" of {}", name));
  return error.with(error.code(), message, error.hint());
}

TracedArrays::TracedArrays(const nb::bytes& steps, const std::vector<nb::object>& arrays,
                           std::vector<bool> learns)
    : steps_(steps_of(steps)) {
  for (std::size_t n = 0; n < arrays.size(); ++n) {
    GivenTensor given = given_tensor(fmt::format("captured array {}", n), arrays[n]);
    std::pair<double, double> bounds{0, 0};
    if (!is_real(given.tensor)) {
      given = {given.name, contiguous(given)};
      bounds = bounds_of(given.tensor);
    }
    arrays_.push_back({std::move(given), bounds.first, bounds.second, learns[n]});
  }
}

template <class T>
std::shared_ptr<const PlannedProgram> TracedArrays::in(AttentionCall<T>& call) const {
  const auto held = std::make_shared<Held>();
  std::vector<CapturedTable> tables;
  std::vector<bool> learns;
  std::vector<void*> gradients;
  for (std::size_t n = 0; n < arrays_.size(); ++n) {
    const auto& [given, low, high, may_learn] = arrays_[n];
    const bool converted = is_real(given.tensor) && given.tensor.dtype() != kDTypeOf<T>;
    held->tensors.push_back(converted ? contiguous(given).to(kDTypeOf<T>) : given.tensor);
    tables.push_back(
        table_of(held->tensors.back(), converted ? std::vector<index>() : given.strides));
    tables.back().low = low;
    tables.back().high = high;
    learns.push_back(may_learn && call.settings.backward);
    gradients.push_back(learns.back()
                            ? call.values_out(fmt::format("captured{}", n), given.tensor.shape())
                            : nullptr);
  }
  held->program.emplace(detail::ScoreProgram(steps_, std::move(tables), std::move(learns)),
                        call.sizes, std::move(gradients), kExactTo<T>);
  return {held, &*held->program};
}

TracedParts::TracedParts(const TracedArrays* score_mod, const TracedArrays* mask_mod) {
  if (score_mod != nullptr) score_mod_ = *score_mod;
  if (mask_mod != nullptr) mask_mod_ = *mask_mod;
}

template <class T>
void TracedParts::keep(AttentionCall<T>& call) const {
  if ((score_mod_ || mask_mod_) && !call.attention.packed.empty()) {
    throw Error(ErrorCode::kUsage,
                fmt::format("attention: {} and query_offsets exclude each other",
                            score_mod_ ? "score_mod" : "mask_mod"),
                "keep sequences apart in mask_mod: ids[q_idx] == ids[kv_idx], with ids = "
                "fovea.captured(the number of each token's sequence)");
  }
  if (!mask_mod_) return;
  const auto program = of_function("mask_mod", [&] { return mask_mod_->in(call); });
  call.keep(Mask(std::make_shared<const detail::ProgramMask>(program)));
}

template <class T>
void TracedParts::add(AttentionCall<T>& call) const {
  if (!score_mod_) return;
  const auto program = of_function("score_mod", [&] { return score_mod_->in(call); });
  call.add(Bias<T>(std::make_shared<const detail::ProgramBias<T>>(program)));
}

void bind_traced(nb::module_& m) {
  nb::class_<TracedArrays>(m, "TracedArrays", "A traced function, and the arrays that it captured.")
      .def(nb::init<const nb::bytes&, const std::vector<nb::object>&, std::vector<bool>>(),
           nb::arg("steps"), nb::arg("arrays"), nb::arg("learns"));
  m.def("traced_operations", &operations, "(name, number) of each operation of a traced function.");
}

}  // namespace fovea::python
