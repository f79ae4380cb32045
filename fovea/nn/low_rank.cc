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

// The masks of adapters have numbers that no layer has.
constexpr std::uint32_t kFirstMask = std::uint32_t{1} << 31;

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
    : set_(ParameterSetOptions{.seed = options.seed,
                               .dtype = model.empty() ? DType::kFloat32 : model[0]->value.dtype(),
                               .memory = options.memory}) {
  for (Parameter* const one : model) {
    if (!std::exchange(one->frozen, true)) frozen_.push_back(one);
  }
  std::uint32_t next_mask = kFirstMask;
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
    if (std::ranges::find(adapted_, &weight) == adapted_.end()) adapted_.push_back(&weight);
    weight.changes.push_back({&a, &b, target.first, options.scale, options.dropout, next_mask++});
  }
}

LowRankAdapters::~LowRankAdapters() {
  remove_changes();
  for (Parameter* const one : frozen_) one->frozen = false;
}

// A weight may have several adapters.
bool LowRankAdapters::owns(const LowRank& change) const {
  return set_.find(change.a->name) == change.a;
}

void LowRankAdapters::remove_changes() {
  for (Parameter* const weight : adapted_) {
    std::erase_if(weight->changes, [&](const LowRank& change) { return owns(change); });
  }
  adapted_.clear();
}

void LowRankAdapters::merge(const Context& given) {
  const Context context = given.with(Precision::kFloat32);  // the sum is exact to float32
  for (Parameter* const weight : adapted_) {
    check(weight->blocks == nullptr, "adapters are merged into values; {} lies in blocks",
          weight->name);
    with_type(weight->value.dtype(), [&]<class T>(std::type_identity<T>) {
      for (const LowRank& change : weight->changes) {
        if (owns(change)) add_change<T>(context, change, weight->value.rows<T>());
      }
    });
    ++weight->version;
  }
  remove_changes();
}

}  // namespace fovea
