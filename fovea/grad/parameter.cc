// SPDX-License-Identifier: Apache-2.0
#include "fovea/grad/parameter.h"

#include <atomic>
#include <mutex>
#include <tuple>

#include "fovea/simd/isa.h"

namespace fovea {

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
