// SPDX-License-Identifier: Apache-2.0
// Rows that products read and write: values, or values rounded to bfloat16.
#pragma once

#include <type_traits>

#include "fovea/base/bfloat16.h"
#include "fovea/base/view.h"

namespace fovea {

/// Rows of T or of bfloat16; T may be const.
template <class T>
class ProductRows {
 public:
  using Rounded = std::conditional_t<std::is_const_v<T>, const BFloat16, BFloat16>;

  ProductRows() = default;
  ProductRows(Rows<T> values) : values_(values) {}
  ProductRows(Rows<std::remove_const_t<T>> values) requires std::is_const_v<T> : values_(values) {}
  ProductRows(Rows<Rounded> rounded) : rounded_(rounded), is_rounded_(true) {}
  ProductRows(Rows<BFloat16> rounded) requires std::is_const_v<T>
      : ProductRows(Rows<const BFloat16>(rounded)) {}

  bool is_rounded() const { return is_rounded_; }
  Rows<T> values() const { return values_; }          ///< empty if is_rounded()
  Rows<Rounded> rounded() const { return rounded_; }  ///< empty if not
  index rows() const {
    return visit([](auto x) { return x.rows; });
  }
  index columns() const {
    return visit([](auto x) { return x.columns; });
  }
  ProductRows slice(index begin, index end) const {
    return visit([&](auto x) { return ProductRows(x.slice(begin, end)); });
  }
  ProductRows columns_slice(index begin, index end) const {
    return visit([&](auto x) { return ProductRows(x.columns_slice(begin, end)); });
  }
  /// f(rows), of the type that they have.
  template <class F>
  auto visit(F&& f) const {
    return is_rounded_ ? f(rounded_) : f(values_);
  }

 private:
  Rows<T> values_;
  Rows<Rounded> rounded_;
  bool is_rounded_ = false;
};

}  // namespace fovea
