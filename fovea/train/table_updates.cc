// SPDX-License-Identifier: Apache-2.0
#include "fovea/train/table_updates.h"

#include <algorithm>
#include <utility>

#include "fovea/base/check.h"

namespace fovea {

namespace {

// So many updates are remembered. Then every row is brought up to date, which takes a few seconds
// for a table of some hundred megabytes.
constexpr index kMostUpdates = 1 << 16;
// So many rows are brought up to date at once, so that a list of them is short.
constexpr index kRowsAtOnce = 1 << 14;

}  // namespace

TableUpdates::TableUpdates(Parameter& parameter, Tensor m, Tensor v)
    : parameter_(parameter), m_(std::move(m)), v_(std::move(v)) {
  check(parameter.value.shape().axes() == 2,
        "optimizer: '{}' has rows that are used by their ids, "
        "so it has two axes; it is {}",
        parameter.name, parameter.value.describe());
  check(parameter.missed == nullptr, "optimizer: '{}' has an optimizer already", parameter.name);
  made_.assign(static_cast<std::size_t>(parameter.value.shape()[0]), 0);
  behind_.reserve(static_cast<std::size_t>(kRowsAtOnce));
  parameter.missed = this;
}

TableUpdates::~TableUpdates() {
  make_all();
  parameter_.missed = nullptr;
}

AdamWTable<float> TableUpdates::table() {
  return {parameter_.value.rows<float>(), m_.rows<float>(), v_.rows<float>()};
}

void TableUpdates::make(const Context& context, Vec<const std::int32_t> ids) {
  const auto now = static_cast<std::int32_t>(history_.size());
  const auto V = static_cast<index>(made_.size());
  behind_.clear();
  for (index n = 0; n < ids.size; ++n) {
    check(ids[n] >= 0 && ids[n] < V, "embedding: ids[{}] is {}; the table has rows 0 to {}", n,
          ids[n], V - 1);
    std::int32_t& made = made_[static_cast<std::size_t>(ids[n])];
    if (made < now) behind_.push_back({ids[n], std::exchange(made, now)});
  }
  make_behind(context);
}

void TableUpdates::make_all() {
  if (history_.size() == 0) return;
  const Context context(threads_);
  const auto now = static_cast<std::int32_t>(history_.size());
  const auto V = static_cast<index>(made_.size());
  for (index begin = 0; begin < V; begin += kRowsAtOnce) {
    behind_.clear();
    for (index row = begin; row < std::min(begin + kRowsAtOnce, V); ++row) {
      const std::int32_t made = made_[static_cast<std::size_t>(row)];
      if (made < now) behind_.push_back({static_cast<std::int32_t>(row), made});
    }
    make_behind(context);
  }
  std::fill(made_.begin(), made_.end(), 0);
  history_.clear();
}

void TableUpdates::make_behind(const Context& context) {
  if (!behind_.empty()) adamw_catch_up<float>(context, table(), history_, behind_);
}

AdamWSlot<float> TableUpdates::slot() {
  if (parameter_.has_gradient) {
    return {parameter_.value.vec<float>(), parameter_.gradient.vec<float>(), m_.vec<float>(),
            v_.vec<float>(), decay()};
  }
  RowGradient& gradient = parameter_.row_gradient;
  const Rows<float> rows = gradient.rows<float>();
  const index C = parameter_.value.shape()[1];
  return {parameter_.value.vec<float>(),
          {rows.data, rows.rows * C},
          m_.vec<float>(),
          v_.vec<float>(),
          decay(),
          gradient.sorted(),
          C};
}

AdamWSlot<float> TableUpdates::begin(const Context& context, const AdamWStep& step) {
  threads_ = context.threads();
  // Where another op has used all of the table, all of it is updated.
  if (parameter_.has_gradient || !history_.takes(step)) make_all();
  if (!parameter_.has_gradient) make(context, parameter_.row_gradient.ids());
  return slot();
}

void TableUpdates::updated(const AdamWStep& step) {
  if (parameter_.has_gradient) return;
  history_.add(step, decay());
  const auto now = static_cast<std::int32_t>(history_.size());
  for (const std::int32_t id : parameter_.row_gradient.ids()) {
    made_[static_cast<std::size_t>(id)] = now;
  }
  if (history_.size() == kMostUpdates) make_all();
}

}  // namespace fovea
