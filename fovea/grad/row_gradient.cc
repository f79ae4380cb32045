// SPDX-License-Identifier: Apache-2.0
#include "fovea/grad/row_gradient.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "fovea/base/check.h"

namespace fovea {

namespace {

constexpr std::int32_t kNone = -1;

// Of all axes but the last.
index rows_of(const Tensor& table) { return table.shape().axes() == 2 ? table.shape()[0] : 0; }

template <class F>
void with_rows(Tensor& tensor, F&& f) {
  if (tensor.dtype() == DType::kFloat32)
    f(tensor.rows<float>());
  else
    f(tensor.rows<double>());
}

}  // namespace

Vec<const std::int32_t> RowGradient::add(const Context& context, const Tensor& table,
                                         Vec<const std::int32_t> ids) {
  const index V = rows_of(table), before = size();
  check(table.shape().axes() == 2, "gradient of rows: a table has two axes; it is {}",
        table.describe());
  check(V <= std::numeric_limits<std::int32_t>::max(), "gradient of rows: {} rows are too many", V);
  if (place_.empty()) place_.assign(static_cast<std::size_t>(V), kNone);
  check(static_cast<index>(place_.size()) == V, "gradient of rows: the table had {} rows, now {}",
        place_.size(), V);
  for (index n = 0; n < ids.size; ++n) {
    check(ids[n] >= 0 && ids[n] < V, "gradient of rows: id {} is {}; the table has rows 0 to {}", n,
          ids[n], V - 1);
  }
  places_.clear();
  for (const std::int32_t id : ids) {
    std::int32_t& place = place_[static_cast<std::size_t>(id)];
    if (place == kNone) {
      place = static_cast<std::int32_t>(ids_.size());
      ids_.push_back(id);
    }
    places_.push_back(place);
  }
  reserve(table, size());
  with_rows(memory_, [&]<class T>(Rows<T> rows) {
    context.for_ranges(
        size() - before, static_cast<double>(rows.columns),
        [&](index begin, index end) { std::fill(rows[before + begin], rows[before + end], T{0}); });
  });
  return places_;
}

// Rows of earlier passes of the same step stay.
void RowGradient::reserve(const Tensor& table, index rows) {
  const index room = memory_.defined() ? memory_.shape()[0] : 0;
  if (rows <= room && memory_.defined()) return;
  const index more = std::min(std::max(rows, room + room / 2), table.shape()[0]);
  Tensor larger = Tensor::empty({more, table.shape()[1]}, table.dtype());
  if (memory_.defined()) {
    std::memcpy(larger.bytes().data(), memory_.bytes().data(),
                static_cast<std::size_t>(memory_.byte_size()));
  }
  memory_ = larger;
}

std::int32_t RowGradient::place_of(std::int32_t id) const {
  return place_.empty() ? kNone : place_[static_cast<std::size_t>(id)];
}

template <class T>
Rows<T> RowGradient::rows() {
  return empty() ? Rows<T>() : memory_.rows<T>().slice(0, size());
}

Vec<const GradientRow> RowGradient::sorted() {
  if (sorted_.size() == ids_.size()) return sorted_;
  sorted_.clear();
  for (const std::int32_t id : ids_) {
    sorted_.push_back({id, static_cast<std::int32_t>(sorted_.size())});
  }
  std::sort(sorted_.begin(), sorted_.end(),
            [](const GradientRow& a, const GradientRow& b) { return a.row < b.row; });
  return sorted_;
}

void RowGradient::add_to(Tensor& table) {
  if (empty()) return;
  with_rows(table, [&]<class T>(Rows<T> to) {
    const Rows<T> from = rows<T>();
    for (index place = 0; place < size(); ++place) {
      T* const row = to[ids_[static_cast<std::size_t>(place)]];
      for (index c = 0; c < to.columns; ++c) row[c] += from[place][c];
    }
  });
}

void RowGradient::clear() {
  for (const std::int32_t id : ids_) place_[static_cast<std::size_t>(id)] = kNone;
  ids_.clear();
  sorted_.clear();
}

template Rows<float> RowGradient::rows();
template Rows<double> RowGradient::rows();

}  // namespace fovea
