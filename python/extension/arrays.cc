// SPDX-License-Identifier: Apache-2.0
#include "python/extension/arrays.h"

#include <nanobind/ndarray.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

namespace nb = nanobind;

namespace fovea::python {

namespace {

using AnyArray = nb::ndarray<nb::ro>;

struct KnownType {
  nb::dlpack::dtype type;
  DType dtype;
};

constexpr nb::dlpack::dtype type_of(nb::dlpack::dtype_code code, std::uint8_t bits) {
  return {static_cast<std::uint8_t>(code), bits, 1};
}

constexpr KnownType kTypes[] = {
    {type_of(nb::dlpack::dtype_code::Float, 32), DType::kFloat32},
    {type_of(nb::dlpack::dtype_code::Float, 64), DType::kFloat64},
    {type_of(nb::dlpack::dtype_code::Int, 32), DType::kInt32},
    {type_of(nb::dlpack::dtype_code::Int, 64), DType::kInt64},
    {type_of(nb::dlpack::dtype_code::UInt, 8), DType::kUInt8},
    {type_of(nb::dlpack::dtype_code::Bool, 8), DType::kUInt8},
};

std::string text_of(nb::dlpack::dtype type) {
  constexpr std::string_view kNames[] = {"int",    "uint",    "float", "object",
                                         "bfloat", "complex", "bool"};
  const std::string_view name =
      type.code < std::size(kNames) ? kNames[type.code] : "a type of its own, ";
  return fmt::format("{}{}", name, type.bits);
}

[[noreturn]] void refuse(const std::string& name, const std::string& why, const std::string& hint) {
  throw Error(ErrorCode::kUsage, fmt::format("{}: {}", name, why), hint);
}

AnyArray array_from(const std::string& name, nb::handle object) {
  AnyArray array;
  if (!nb::try_cast(object, array) || !array.is_valid()) {
    PyErr_Clear();
    refuse(name, fmt::format("expected an array; got {}", nb::inst_name(object).c_str()),
           "give a numpy array of numbers, or an object with __dlpack__ (of a torch tensor that "
           "learns, "
           "its detach(); or use fovea.torch)");
  }
  if (array.device_type() != nb::device::cpu::value) {
    refuse(name, "it is on another device", "fovea computes on the CPU: copy it there first");
  }
  return array;
}

constexpr nb::dlpack::dtype kBFloat16Type = type_of(nb::dlpack::dtype_code::Bfloat, 16);

DType dtype_from(const std::string& name, const AnyArray& array, bool takes_bfloat16) {
  if (takes_bfloat16 && array.dtype() == kBFloat16Type) return DType::kBFloat16;
  const auto* const known =
      std::find_if(std::begin(kTypes), std::end(kTypes),
                   [&](const KnownType& one) { return one.type == array.dtype(); });
  if (known != std::end(kTypes)) return known->dtype;
  refuse(name, fmt::format("it holds {}", text_of(array.dtype())),
         "numbers are float32 or float64, q, k and v also bfloat16; lengths, offsets and the like "
         "int32 or int64; masks bool");
}

// Strides of the axes, in values, or none if the values lie one after another.
std::vector<index> strides_of(const AnyArray& array) {
  std::vector<index> strides;
  index expected = 1;
  bool contiguous = true;
  for (std::size_t n = array.ndim(); n-- > 0;) {
    const auto size = static_cast<index>(array.shape(n));
    const index stride = size > 1 ? array.stride(n) : expected;  // of one row it says nothing
    contiguous = contiguous && stride == expected;
    strides.insert(strides.begin(), stride);
    expected *= std::max<index>(size, 1);
  }
  if (contiguous || array.size() == 0) strides.clear();
  return strides;
}

nb::dlpack::dtype dlpack_type(DType dtype) {
  for (const KnownType& one : kTypes) {
    if (one.dtype == dtype) return one.type;
  }
  throw Error(ErrorCode::kInternal, fmt::format("numpy has no {}", to_string(dtype)));
}

GivenTensor given(const std::string& name, nb::handle object, bool takes_bfloat16) {
  AnyArray array = array_from(name, object);
  if (array.ndim() > static_cast<std::size_t>(Shape::kMaxAxes)) {
    refuse(name, fmt::format("it has {} axes", array.ndim()),
           fmt::format("no tensor of a call has more than {}", Shape::kMaxAxes));
  }
  const DType dtype = dtype_from(name, array, takes_bfloat16);
  std::vector<index> sizes;
  for (std::size_t n = 0; n < array.ndim(); ++n)
    sizes.push_back(static_cast<index>(array.shape(n)));
  static std::byte nothing;  // an array without values may have no memory
  auto* const data = static_cast<std::byte*>(const_cast<void*>(array.data()));
  std::shared_ptr<std::byte[]> values(data == nullptr ? &nothing : data,
                                      [array](std::byte*) mutable { array = {}; });
  return {name, Tensor::borrow(std::move(values), Shape(sizes), dtype), strides_of(array)};
}

}  // namespace

GivenTensor given_tensor(const std::string& name, nb::handle object) {
  return given(name, object, false);
}

GivenTensor given_tensor_of_call(const std::string& name, nb::handle object) {
  GivenTensor of_call = given(name, object, true);
  const std::vector<index>& strides = of_call.strides;
  if (strides.size() == 4 && strides[3] != 1) {
    refuse(name, fmt::format("its last axis is not contiguous: a stride of {} values", strides[3]),
           "copy it first, as numpy.ascontiguousarray does");
  }
  return of_call;
}

nb::object array_of(const Tensor& tensor) {
  if (tensor.dtype() == DType::kBFloat16) return array_of(tensor.to(DType::kFloat32));
  auto owned = std::make_unique<Tensor>(tensor);
  std::vector<std::size_t> shape(tensor.shape().begin(), tensor.shape().end());
  void* const data = owned->bytes().data();
  const nb::capsule owner(owned.release(),
                          [](void* held) noexcept { delete static_cast<Tensor*>(held); });
  const nb::ndarray<nb::numpy> array(data, shape.size(), shape.data(), owner, nullptr,
                                     dlpack_type(tensor.dtype()));
  return nb::cast(array);
}

}  // namespace fovea::python
