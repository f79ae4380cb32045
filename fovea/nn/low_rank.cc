// SPDX-License-Identifier: Apache-2.0
#include "fovea/nn/low_rank.h"

#include <algorithm>
#include <utility>

#include "fovea/base/check.h"
#include "fovea/base/memory.h"
#include "fovea/kernel/elementwise.h"
#include "fovea/kernel/gemm.h"

namespace fovea {

namespace {

// The rows of the change += scale B A.
template <class T>
void add_change(const Context& context, const LowRank& change, Rows<T> weight) {
  const Rows<T> a = change.a->value.rows<T>(), b = change.b->value.rows<T>();
  Scratch scratch;
  const Rows<T> scaled(scratch.allocate<T>(b.rows * b.columns), b.rows, b.columns);
  scale<T>(context, change.scale, b, scaled);
  PackedMatrix<T> panels;
  panels.pack(context, a, Form::kPlain);
  matmul<T>(context, scaled, panels.panels(), weight.slice(change.first, change.first + b.rows),
            {.store = Store::kAdd});
}

}  // namespace

LowRankAdapters::LowRankAdapters(std::span<Parameter* const> model,
                                 std::span<const LowRankTarget> targets,
                                 const LowRankOptions& options)
    : set_(
          ParameterSetOptions{.seed = options.seed,
                              .dtype = model.empty() ? DType::kFloat32 : model[0]->value.dtype()}) {
  for (Parameter* const one : model) {
    if (!std::exchange(one->frozen, true)) frozen_.push_back(one);
  }
  for (const LowRankTarget& target : targets) {
    Parameter& weight = *target.weight;
    const Shape& shape = weight.value.shape();
    check(shape.axes() == 2 && target.first >= 0 && target.rows > 0 &&
              target.first + target.rows <= shape[0],
          "adapter of {}: rows {} to {}; the weight is {}", target.name, target.first,
          target.first + target.rows, to_string(shape));
    Parameter& a = set_.add(target.name + ".lora_A.weight", {options.rank, shape[1]},
                            linear_uniform_init(shape[1]), Decay::kYes);
    Parameter& b = set_.add(target.name + ".lora_B.weight", {target.rows, options.rank},
                            Init::zeros(), Decay::kYes);
    if (weight.changes.empty()) {
      Tensor start = Tensor::empty(shape, weight.value.dtype());
      start.copy_from(weight.value);
      adapted_.push_back({&weight, std::move(start)});
    }
    weight.changes.push_back({&a, &b, target.first, options.scale});
  }
}

LowRankAdapters::~LowRankAdapters() {
  for (const Adapted& one : adapted_) one.weight->changes.clear();
  for (Parameter* const one : frozen_) one->frozen = false;
}

void LowRankAdapters::merge(const Context& given) {
  std::uint64_t versions = 0;
  for (const Parameter* const one : parameters()) versions += one->version;
  if (std::exchange(merged_, versions) == versions) return;
  const Context context = given.with(Precision::kFloat32);  // the sum is exact to float32
  for (const Adapted& one : adapted_) {
    Tensor& value = one.weight->value;
    value.copy_from(one.start);
    with_type(value.dtype(), [&]<class T>(std::type_identity<T>) {
      for (const LowRank& change : one.weight->changes)
        add_change<T>(context, change, value.rows<T>());
    });
    ++one.weight->version;
  }
}

}  // namespace fovea
