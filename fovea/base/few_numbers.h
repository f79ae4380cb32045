// SPDX-License-Identifier: Apache-2.0
// The few numbers of a part of attention: lengths, offsets, a number for each head.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "fovea/base/view.h"

namespace fovea {

/// Those of a std::vector, std::array or array are copied: they may change or end. Those of a Vec,
/// a std::span, or a pointer and a size are views, which must outlive the calls.
template <class T>
class FewNumbers : public Vec<const T> {
 public:
  constexpr FewNumbers() noexcept {}
  constexpr FewNumbers(Vec<const T> view) : Vec<const T>(view) {}
  constexpr FewNumbers(const T* first, index n) : Vec<const T>(first, n) {}
  template <class Values>
  requires ContiguousValues<Values> FewNumbers(Values&& values)  // NOLINT: they are copied
      : Vec<const T>(values) {
    if constexpr (!kIsSpan<std::remove_cvref_t<Values>>) {
      copy_ = std::make_shared<const std::vector<T>>(this->begin(), this->end());
      this->data = copy_->data();
    }
  }

 private:
  std::shared_ptr<const std::vector<T>> copy_;  // null: a view of the caller's
};

}  // namespace fovea
