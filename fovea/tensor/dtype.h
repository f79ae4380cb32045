// SPDX-License-Identifier: Apache-2.0
// The types of a tensor's values.
#pragma once

#include <cstdint>
#include <string_view>
#include <type_traits>

#include "fovea/base/bfloat16.h"
#include "fovea/base/types.h"

namespace fovea {

enum class DType : std::uint8_t { kFloat32, kBFloat16, kInt32, kFloat64, kInt64, kUInt8 };

/// "float32", "bfloat16", "int32", "float64", "int64", "uint8".
std::string_view to_string(DType dtype);
/// Bytes of one value.
index byte_size(DType dtype);

template <class T>
struct DTypeOf;
template <>
struct DTypeOf<float> {
  static constexpr DType value = DType::kFloat32;
};
template <>
struct DTypeOf<BFloat16> {
  static constexpr DType value = DType::kBFloat16;
};
template <>
struct DTypeOf<std::int32_t> {
  static constexpr DType value = DType::kInt32;
};
template <>
struct DTypeOf<double> {
  static constexpr DType value = DType::kFloat64;
};
template <>
struct DTypeOf<std::int64_t> {
  static constexpr DType value = DType::kInt64;
};
template <>
struct DTypeOf<std::uint8_t> {
  static constexpr DType value = DType::kUInt8;
};

/// The DType whose values are T.
template <class T>
inline constexpr DType kDTypeOf = DTypeOf<std::remove_const_t<T>>::value;

}  // namespace fovea
