// SPDX-License-Identifier: Apache-2.0
#include "fovea/grad/parameter.h"

#include <atomic>
#include <mutex>
#include <tuple>

#include "fovea/simd/isa.h"

namespace fovea {

namespace {

// A packed form and the version of the weight from which it was packed; 0: not packed yet.
template <class T>
struct Packed {
  PackedMatrix<T> matrix;
  std::atomic<std::uint64_t> next_version{0};  // of the weight, plus one
};

}  // namespace

struct PackedWeight::Forms {
  std::mutex mutex;
  std::tuple<Packed<float>[2], Packed<double>[2]> packed;
};

PackedWeight::PackedWeight() : forms_(std::make_unique<Forms>()) {}
PackedWeight::~PackedWeight() = default;
PackedWeight::PackedWeight(PackedWeight&&) noexcept = default;
PackedWeight& PackedWeight::operator=(PackedWeight&&) noexcept = default;

template <class T>
const PackedMatrix<T>& PackedWeight::get(const Context& context, Rows<const T> weight, Form form,
                                         std::uint64_t version) {
  auto& packed = std::get<Packed<T>[2]>(forms_->packed)[form == Form::kTransposed ? 1 : 0];
  const auto fresh = [&] {
    return packed.next_version.load(std::memory_order_acquire) == version + 1 &&
           packed.matrix.isa() == current_isa();
  };
  if (fresh()) return packed.matrix;
  std::lock_guard lock(forms_->mutex);
  if (fresh()) return packed.matrix;
  packed.matrix.pack(context, weight, form);
  packed.next_version.store(version + 1, std::memory_order_release);
  return packed.matrix;
}

template const PackedMatrix<float>& PackedWeight::get(const Context&, Rows<const float>, Form,
                                                      std::uint64_t);
template const PackedMatrix<double>& PackedWeight::get(const Context&, Rows<const double>, Form,
                                                       std::uint64_t);

const Tensor& Parameter::finished_gradient() {
  return has_gradient ? gradient : gradient_to_write();
}

Tensor& Parameter::gradient_to_write() {
  if (!gradient.defined()) gradient = Tensor::empty(value.shape(), value.dtype());
  if (!has_gradient) gradient.fill_zero();
  has_gradient = true;
  used_rows.reset();
  return gradient;
}

}  // namespace fovea
