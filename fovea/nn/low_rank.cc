// SPDX-License-Identifier: Apache-2.0
#include "fovea/nn/low_rank.h"

#include <algorithm>
#include <utility>

#include "fovea/base/check.h"
#include "fovea/base/memory.h"
#include "fovea/grad/row_norms.h"
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

// The rows of V become m V / |V|.
template <class T>
void set_magnitudes(const Context& context, const LowRank& change, Rows<T> weight) {
  const Vec<const T> m = change.magnitudes->value.vec<T>();
  context.for_ranges(m.size, 3 * static_cast<double>(weight.columns), [&](index begin, index end) {
    for (index n = begin; n < end; ++n) {
      T* const row = weight[change.first + n];
      const T factor = over_norm(m[n], norm_of_row<T>(row, weight.columns));
      for (index c = 0; c < weight.columns; ++c) row[c] *= factor;
    }
  });
}

// Adapters add up, but magnitudes are those of one sum.
void require_alone(const Parameter& weight, const LowRankTarget& target, Magnitudes magnitudes) {
  for (const LowRank& other : weight.changes) {
    const bool apart = other.first + other.b->value.shape()[0] <= target.first ||
                       target.first + target.rows <= other.first;
    if (apart || (magnitudes == Magnitudes::kNone && other.magnitudes == nullptr)) continue;
    throw Error(ErrorCode::kUsage,
                fmt::format("adapter of {}: another one changes these rows, and magnitudes (DoRA) "
                            "do not add up",
                            target.name),
                "give one of them, or merge the other into the model: fovea import");
  }
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
    require_alone(weight, target, options.magnitudes);
    if (std::ranges::find(adapted_, &weight) == adapted_.end()) adapted_.push_back(&weight);
    LowRank change{&a, &b, target.first, options.scale, options.dropout, next_mask++};
    if (options.magnitudes == Magnitudes::kLearned) add_magnitudes(change, target);
    weight.changes.push_back(std::move(change));
  }
}

void LowRankAdapters::add_magnitudes(LowRank& change, const LowRankTarget& target) {
  change.magnitudes =
      &set_.add(target.name + ".lora_magnitude_vector", {target.rows}, Init::zeros(), Decay::kNo);
  change.norms = std::make_shared<RowNorms>();
  if (set_.options().memory != ParameterMemory::kAllocate) return;
  with_type(change.a->value.dtype(), [&]<class T>(std::type_identity<T>) {
    norms_of_rows<T>(Context(), *target.weight, change, change.magnitudes->value.vec<T>());
  });
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
        if (!owns(change)) continue;
        add_change<T>(context, change, weight->value.rows<T>());
        if (change.magnitudes != nullptr) {
          set_magnitudes<T>(context, change, weight->value.rows<T>());
        }
      }
    });
    ++weight->version;
  }
  remove_changes();
}

}  // namespace fovea
