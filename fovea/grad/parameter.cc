// SPDX-License-Identifier: Apache-2.0
#include "fovea/grad/parameter.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <limits>
#include <mutex>
#include <tuple>

#include "fovea/base/check.h"
#include "fovea/simd/isa.h"

namespace fovea {

namespace {

constexpr std::int32_t kNone = -1;

// The number of rows: of all axes but the last.
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
  if (!state_) state_ = std::make_unique<State>();
  if (state_->place.empty()) state_->place.assign(static_cast<std::size_t>(V), kNone);
  check(static_cast<index>(state_->place.size()) == V,
        "gradient of rows: the table had {} rows, now {}", state_->place.size(), V);
  for (index n = 0; n < ids.size; ++n) {
    check(ids[n] >= 0 && ids[n] < V, "gradient of rows: id {} is {}; the table has rows 0 to {}", n,
          ids[n], V - 1);
  }
  state_->places.clear();
  for (const std::int32_t id : ids) {
    std::int32_t& place = state_->place[static_cast<std::size_t>(id)];
    if (place == kNone) {
      place = static_cast<std::int32_t>(state_->ids.size());
      state_->ids.push_back(id);
    }
    state_->places.push_back(place);
  }
  reserve(table, size());
  with_rows(state_->memory, [&]<class T>(Rows<T> rows) {
    context.for_ranges(
        size() - before, static_cast<double>(rows.columns),
        [&](index begin, index end) { std::fill(rows[before + begin], rows[before + end], T{0}); });
  });
  return state_->places;
}

// Rows of earlier passes of the same step stay.
void RowGradient::reserve(const Tensor& table, index rows) {
  const index room = state_->memory.defined() ? state_->memory.shape()[0] : 0;
  if (rows <= room && state_->memory.defined()) return;
  const index more = std::min(std::max(rows, room + room / 2), table.shape()[0]);
  Tensor larger = Tensor::empty({more, table.shape()[1]}, table.dtype());
  if (state_->memory.defined()) {
    std::memcpy(larger.bytes().data(), state_->memory.bytes().data(),
                static_cast<std::size_t>(state_->memory.byte_size()));
  }
  state_->memory = larger;
}

std::int32_t RowGradient::place_of(std::int32_t id) const {
  return empty() ? kNone : state_->place[static_cast<std::size_t>(id)];
}

template <class T>
Rows<T> RowGradient::rows() {
  return empty() ? Rows<T>() : state_->memory.rows<T>().slice(0, size());
}

Vec<const GradientRow> RowGradient::sorted() {
  if (empty()) return {};
  if (state_->sorted.size() == state_->ids.size()) return state_->sorted;
  state_->sorted.clear();
  for (const std::int32_t id : state_->ids) {
    state_->sorted.push_back({id, static_cast<std::int32_t>(state_->sorted.size())});
  }
  std::sort(state_->sorted.begin(), state_->sorted.end(),
            [](const GradientRow& a, const GradientRow& b) { return a.row < b.row; });
  return state_->sorted;
}

void RowGradient::add_to(Tensor& table) {
  if (empty()) return;
  with_rows(table, [&]<class T>(Rows<T> to) {
    const Rows<T> from = rows<T>();
    for (index place = 0; place < size(); ++place) {
      T* const row = to[state_->ids[static_cast<std::size_t>(place)]];
      for (index c = 0; c < to.columns; ++c) row[c] += from[place][c];
    }
  });
}

void RowGradient::clear() {
  if (!state_) return;
  for (const std::int32_t id : state_->ids) state_->place[static_cast<std::size_t>(id)] = kNone;
  state_->ids.clear();
  state_->sorted.clear();
}

template Rows<float> RowGradient::rows();
template Rows<double> RowGradient::rows();

namespace {

// A packed form and the version of the weight from which it was packed; 0: not packed yet.
template <class Matrix>
struct Packed {
  Matrix matrix;
  std::atomic<std::uint64_t> next_version{0};  // of the weight, plus one

  // Packs by pack(matrix) if need be. Any number of threads may call it at once.
  template <class Pack>
  const Matrix& get(std::mutex& mutex, std::uint64_t version, Pack&& pack) {
    const auto fresh = [&] {
      return next_version.load(std::memory_order_acquire) == version + 1 &&
             matrix.isa() == current_isa();
    };
    if (fresh()) return matrix;
    std::lock_guard lock(mutex);
    if (fresh()) return matrix;
    pack(matrix);
    next_version.store(version + 1, std::memory_order_release);
    return matrix;
  }
};

template <class T>
struct FormsOf {
  Packed<PackedMatrix<T>> plain, transposed;
  Packed<PackedGates<T>> gates;
};

}  // namespace

struct PackedWeight::Forms {
  std::mutex mutex;
  std::tuple<FormsOf<float>, FormsOf<double>> packed;
  Packed<PackedMatrix<float>> rounded_plain, rounded_transposed;

  template <class T>
  Packed<PackedMatrix<T>>& of(Form form, Precision precision) {
    const bool is_plain = form == Form::kPlain;
    if constexpr (std::is_same_v<T, float>) {
      if (precision == Precision::kBFloat16) return is_plain ? rounded_plain : rounded_transposed;
    }
    auto& forms = std::get<FormsOf<T>>(packed);
    return is_plain ? forms.plain : forms.transposed;
  }
};

PackedWeight::PackedWeight() : forms_(std::make_unique<Forms>()) {}
PackedWeight::~PackedWeight() = default;
PackedWeight::PackedWeight(PackedWeight&&) noexcept = default;
PackedWeight& PackedWeight::operator=(PackedWeight&&) noexcept = default;

template <class T>
const PackedMatrix<T>& PackedWeight::get(const Context& context, Rows<const T> weight, Form form,
                                         std::uint64_t version) {
  return forms_->of<T>(form, context.precision())
      .get(forms_->mutex, version,
           [&](PackedMatrix<T>& matrix) { matrix.pack(context, weight, form); });
}

template <class T>
const PackedGates<T>& PackedWeight::gates(const Context& context, Rows<const T> weight,
                                          RecurrentKind kind, std::uint64_t version) {
  return std::get<FormsOf<T>>(forms_->packed)
      .gates.get(forms_->mutex, version,
                 [&](PackedGates<T>& gates) { gates.pack(context, kind, weight); });
}

template const PackedMatrix<float>& PackedWeight::get(const Context&, Rows<const float>, Form,
                                                      std::uint64_t);
template const PackedMatrix<double>& PackedWeight::get(const Context&, Rows<const double>, Form,
                                                       std::uint64_t);
template const PackedGates<float>& PackedWeight::gates(const Context&, Rows<const float>,
                                                       RecurrentKind, std::uint64_t);
template const PackedGates<double>& PackedWeight::gates(const Context&, Rows<const double>,
                                                        RecurrentKind, std::uint64_t);

bool Parameter::has_magnitudes() const {
  return std::ranges::any_of(changes, [](const LowRank& one) { return one.magnitudes != nullptr; });
}

void Parameter::gather_rows() {
  if (!row_gradient.empty()) gradient_to_write();
}

const Tensor& Parameter::finished_gradient() {
  return has_gradient ? gradient : gradient_to_write();
}

Tensor& Parameter::gradient_to_write() {
  if (!gradient.defined()) gradient = Tensor::empty(value.shape(), value.dtype());
  if (!has_gradient) gradient.fill_zero();
  has_gradient = true;
  used_rows.reset();
  row_gradient.add_to(gradient);
  row_gradient.clear();
  return gradient;
}

}  // namespace fovea
