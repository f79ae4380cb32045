// SPDX-License-Identifier: Apache-2.0
// Writes small GGUF files for tests, valid ones and others: each part is given as it shall stand
// there.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "fovea/tensor/gguf.h"

namespace fovea {

template <class T>
std::string little(T value) {
  std::string bytes(sizeof value, '\0');
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

inline std::string gguf_text(std::string_view text) {
  return little<std::uint64_t>(text.size()) + std::string(text);
}

template <class T>
constexpr GgufValueType gguf_type() {
  if constexpr (std::is_same_v<T, bool>) return GgufValueType::kBool;
  if constexpr (std::is_same_v<T, std::uint8_t>) return GgufValueType::kUInt8;
  if constexpr (std::is_same_v<T, std::int8_t>) return GgufValueType::kInt8;
  if constexpr (std::is_same_v<T, std::uint16_t>) return GgufValueType::kUInt16;
  if constexpr (std::is_same_v<T, std::int16_t>) return GgufValueType::kInt16;
  if constexpr (std::is_same_v<T, std::uint32_t>) return GgufValueType::kUInt32;
  if constexpr (std::is_same_v<T, std::int32_t>) return GgufValueType::kInt32;
  if constexpr (std::is_same_v<T, std::uint64_t>) return GgufValueType::kUInt64;
  if constexpr (std::is_same_v<T, std::int64_t>) return GgufValueType::kInt64;
  if constexpr (std::is_same_v<T, float>) return GgufValueType::kFloat32;
  if constexpr (std::is_same_v<T, double>) return GgufValueType::kFloat64;
  return GgufValueType::kString;
}

inline std::string gguf_number(GgufValueType type) {
  return little(static_cast<std::uint32_t>(type));
}

/// A pair of key and value.
template <class T>
std::string gguf_pair(std::string_view key, T value) {
  return gguf_text(key) + gguf_number(gguf_type<T>()) + little(value);
}
inline std::string gguf_pair(std::string_view key, std::string_view text) {
  return gguf_text(key) + gguf_number(GgufValueType::kString) + gguf_text(text);
}
inline std::string gguf_pair(std::string_view key, const char* text) {
  return gguf_pair(key, std::string_view(text));
}
template <class T>
std::string gguf_array(std::string_view key, const std::vector<T>& values) {
  std::string bytes = gguf_text(key) + gguf_number(GgufValueType::kArray) +
                      gguf_number(gguf_type<T>()) + little<std::uint64_t>(values.size());
  for (const T& value : values) {
    if constexpr (std::is_arithmetic_v<T>) {
      bytes += little(value);
    } else {
      bytes += gguf_text(value);
    }
  }
  return bytes;
}

/// A tensor of float32, or of blocks of another type.
struct GgufTensorText {
  std::string name;
  std::vector<std::uint64_t> sizes;  ///< as in the file: columns first
  std::string values;
  std::uint32_t type = 0;
};

inline GgufTensorText gguf_tensor(std::string name, std::vector<std::uint64_t> sizes,
                                  std::span<const float> values) {
  return {std::move(name), std::move(sizes),
          std::string(reinterpret_cast<const char*>(values.data()), values.size_bytes())};
}

inline std::string gguf_entry(const GgufTensorText& tensor, std::uint64_t offset) {
  std::string bytes =
      gguf_text(tensor.name) + little(static_cast<std::uint32_t>(tensor.sizes.size()));
  for (const std::uint64_t size : tensor.sizes) bytes += little(size);
  return bytes + little(tensor.type) + little(offset);
}

inline std::string gguf_head(std::uint64_t tensors, std::uint64_t pairs,
                             std::uint32_t version = 3) {
  return "GGUF" + little(version) + little(tensors) + little(pairs);
}

/// A whole file.
inline std::string gguf_file(const std::vector<std::string>& pairs,
                             const std::vector<GgufTensorText>& tensors,
                             std::uint64_t alignment = 32) {
  std::string header = gguf_head(tensors.size(), pairs.size()), data;
  for (const std::string& pair : pairs) header += pair;
  const auto pad = [&](std::string& bytes) {
    bytes.resize((bytes.size() + alignment - 1) / alignment * alignment);
  };
  for (const GgufTensorText& tensor : tensors) {
    header += gguf_entry(tensor, data.size());
    data += tensor.values;
    pad(data);
  }
  pad(header);
  return header + data;
}

}  // namespace fovea
