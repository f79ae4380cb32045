// SPDX-License-Identifier: Apache-2.0
#include "fovea/tensor/dtype.h"

namespace fovea {

namespace {

struct DTypeInfo {
  std::string_view name;
  index byte_size;
};
constexpr DTypeInfo kInfo[] = {{"float32", 4}, {"bfloat16", 2}, {"int32", 4},
                               {"float64", 8}, {"int64", 8},    {"uint8", 1}};

}  // namespace

std::string_view to_string(DType dtype) { return kInfo[static_cast<int>(dtype)].name; }

index byte_size(DType dtype) { return kInfo[static_cast<int>(dtype)].byte_size; }

}  // namespace fovea
