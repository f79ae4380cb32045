// SPDX-License-Identifier: Apache-2.0
#include "fovea/tensor/gguf_writer.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "fovea/base/bytes.h"
#include "fovea/base/check.h"
#include "fovea/base/precision.h"
#include "fovea/tensor/gguf.h"

namespace fovea {

namespace {

static_assert(std::endian::native == std::endian::little, "files are little-endian");

constexpr std::size_t kTensorAlignment = 32;
constexpr std::uint32_t kVersion = 3;

template <class T>
void store(std::uint8_t* to, T value) {
  std::memcpy(to, &value, sizeof value);
}

// Round to nearest, ties to even.
std::uint16_t half_of(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = bits >> 16 & 0x8000U, magnitude = bits & 0x7fffffffU;
  if (magnitude >= 0x7f800000U) {  // infinity or NaN
    return static_cast<std::uint16_t>(sign | 0x7c00U | (magnitude > 0x7f800000U ? 0x200U : 0U));
  }
  constexpr float kLeastNormal = 0x1p-14F;
  if (std::abs(value) < kLeastNormal) {  // steps of 2^-24
    const float steps = std::nearbyint(std::abs(value) * 0x1p24F);
    return static_cast<std::uint16_t>(sign | static_cast<std::uint32_t>(steps));
  }
  const std::uint32_t rounded = magnitude + 0xfffU + (magnitude >> 13 & 1U);
  const std::uint32_t half = (rounded >> 13) - (std::uint32_t{127 - 15} << 10);
  return static_cast<std::uint16_t>(sign | std::min(half, 0x7c00U));
}

void narrow_float(const float* from, std::uint8_t* to) { store(to, *from); }
void narrow_half(const float* from, std::uint8_t* to) { store(to, half_of(*from)); }
void narrow_bfloat16(const float* from, std::uint8_t* to) { store(to, to_bfloat16(*from).bits); }

constexpr index kBlock = 32;

// 0 for steps that no half is near, whose inverse could be infinite.
float inverse_of(float step) {
  return std::abs(step) >= std::numeric_limits<float>::min() ? 1 / step : 0;
}

// Away from zero at a half, as C's roundf.
void narrow_q8_0(const float* from, std::uint8_t* to) {
  float most = 0;
  for (index n = 0; n < kBlock; ++n) most = std::max(most, std::abs(from[n]));
  const float step = most / 127, inverse = inverse_of(step);
  store(to, half_of(step));
  for (index n = 0; n < kBlock; ++n) {
    store(to + 2 + n, static_cast<std::int8_t>(std::round(from[n] * inverse)));
  }
}

// Two values a byte: value n and value n + 16.
template <class Code>
void store_halves(std::uint8_t* to, const Code& code) {
  for (index n = 0; n < kBlock / 2; ++n) {
    to[n] = static_cast<std::uint8_t>(code(n) | code(n + kBlock / 2) << 4);
  }
}

int code_of(float steps) { return std::min(15, static_cast<int>(steps)); }

void narrow_q4_0(const float* from, std::uint8_t* to) {
  float most = 0, farthest = 0;
  for (index n = 0; n < kBlock; ++n) {
    if (std::abs(from[n]) > most) {
      most = std::abs(from[n]);
      farthest = from[n];
    }
  }
  const float step = farthest / -8, inverse = inverse_of(step);
  store(to, half_of(step));
  store_halves(to + 2, [&](index n) { return code_of(from[n] * inverse + 8.5F); });
}

void narrow_q4_1(const float* from, std::uint8_t* to) {
  const auto [low, high] = std::minmax_element(from, from + kBlock);
  const float least = *low, step = (*high - least) / 15, inverse = inverse_of(step);
  store(to, half_of(step));
  store(to + 2, half_of(least));
  store_halves(to + 4, [&](index n) { return code_of((from[n] - least) * inverse + 0.5F); });
}

constexpr GgufWeightType kTypes[] = {
    {"f32", 0, 0, 1, 4, narrow_float},       {"f16", 1, 1, 1, 2, narrow_half},
    {"bf16", 30, 32, 1, 2, narrow_bfloat16}, {"q8_0", 8, 7, kBlock, 34, narrow_q8_0},
    {"q4_0", 2, 2, kBlock, 18, narrow_q4_0}, {"q4_1", 3, 3, kBlock, 20, narrow_q4_1},
};

class Writer {
 public:
  std::string take() { return std::move(out_); }
  std::size_t size() const { return out_.size(); }

  template <class T>
  requires std::is_arithmetic_v<T>
  void add(T value) { out_.append(reinterpret_cast<const char*>(&value), sizeof value); }
  void add(std::string_view text) {
    add(static_cast<std::uint64_t>(text.size()));
    out_ += text;
  }
  void add_bytes(std::string_view bytes) { out_ += bytes; }
  void pad() {
    out_.resize((out_.size() + kTensorAlignment - 1) / kTensorAlignment * kTensorAlignment);
  }

  void add_value(const auto& value) {
    using T = std::remove_cvref_t<decltype(value)>;
    constexpr std::uint32_t kArray = 9;
    if constexpr (std::is_arithmetic_v<T> || std::is_same_v<T, std::string>) {
      add(number_of<T>());
      add(value);
    } else {
      using Element = typename T::value_type;
      add(kArray);
      add(number_of<Element>());
      add(static_cast<std::uint64_t>(value.size()));
      for (const Element& one : value) add(one);
    }
  }

  void add_values(const Tensor& tensor, const GgufWeightType& type) {
    const std::size_t begin = out_.size();
    const index blocks = tensor.size() / type.block;
    out_.resize(begin + static_cast<std::size_t>(blocks * type.bytes));
    auto* const to = reinterpret_cast<std::uint8_t*>(out_.data()) + begin;
    for (index n = 0; n < blocks; ++n) {
      type.narrow(tensor.data<float>() + n * type.block, to + n * type.bytes);
    }
  }

 private:
  template <class T>
  static constexpr std::uint32_t number_of() {
    if constexpr (std::is_same_v<T, std::uint32_t>) return 4;
    if constexpr (std::is_same_v<T, std::int32_t>) return 5;
    if constexpr (std::is_same_v<T, float>) return 6;
    if constexpr (std::is_same_v<T, bool>) return 7;
    return 8;  // a text
  }

  std::string out_;
};

const GgufWeightType& type_of(const Tensor& tensor, const GgufWeightType& wanted) {
  const Shape& shape = tensor.shape();
  const bool is_matrix = shape.axes() > 1;
  return is_matrix && shape[shape.axes() - 1] % wanted.block == 0 ? wanted : kTypes[0];
}

}  // namespace

std::span<const GgufWeightType> gguf_weight_types() { return kTypes; }

namespace {

void add_tensors(Writer& out, std::span<const NamedTensor> tensors, const GgufWeightType& type) {
  std::uint64_t offset = 0;
  for (const auto& [name, tensor] : tensors) {
    const Shape& shape = tensor.shape();
    const GgufWeightType& own = type_of(tensor, type);
    out.add(name);
    out.add(static_cast<std::uint32_t>(shape.axes()));
    for (index axis = shape.axes() - 1; axis >= 0; --axis) {
      out.add(static_cast<std::uint64_t>(shape[axis]));
    }
    out.add(own.number);
    out.add(offset);
    const auto bytes = static_cast<std::uint64_t>(tensor.size() / own.block * own.bytes);
    offset += (bytes + kTensorAlignment - 1) / kTensorAlignment * kTensorAlignment;
  }
  out.pad();
  for (const NamedTensor& one : tensors) {
    out.add_values(one.tensor, type_of(one.tensor, type));
    out.pad();
  }
}

void begin_file(Writer& out, std::size_t tensors) {
  for (const char c : {'G', 'G', 'U', 'F'}) out.add(c);
  out.add(kVersion);
  out.add(static_cast<std::uint64_t>(tensors));
}

// Changes the value of a key that is a number of 32 bits, if it is there.
void set_number(std::string& metadata, std::string_view key, std::uint32_t value) {
  constexpr std::uint32_t kNumber = 4;
  Writer pair;
  pair.add(std::string(key));
  pair.add(kNumber);
  const std::string begin = pair.take();
  const std::size_t found = metadata.find(begin);
  if (found == std::string::npos) return;
  std::memcpy(metadata.data() + found + begin.size(), &value, sizeof value);
}

}  // namespace

std::string gguf_bytes(std::string_view given, std::span<const NamedTensor> tensors,
                       const GgufWeightType& type) {
  const MemorySource source(given);
  const GgufHeader header = parse_gguf_header(source, "metadata");
  if (header.alignment != kTensorAlignment) {
    throw Error(ErrorCode::kModelWrongKind,
                fmt::format("general.alignment is {}; files are written with {}", header.alignment,
                            kTensorAlignment),
                "begin from the model in another file");
  }
  std::string metadata(given.substr(0, header.metadata_end));
  set_number(metadata, "general.file_type", type.file_type);
  Writer out;
  begin_file(out, tensors.size());
  out.add_bytes(std::string_view(metadata).substr(kGgufTensorCountPlace + sizeof(std::uint64_t)));
  add_tensors(out, tensors, type);
  return out.take();
}

std::string gguf_bytes(std::span<const GgufEntry> metadata, std::span<const NamedTensor> tensors,
                       const GgufWeightType& type) {
  Writer out;
  begin_file(out, tensors.size());
  out.add(static_cast<std::uint64_t>(metadata.size()));
  for (const GgufEntry& entry : metadata) {
    out.add(entry.key);
    std::visit([&](const auto& value) { out.add_value(value); }, entry.value);
  }
  add_tensors(out, tensors, type);
  return out.take();
}

}  // namespace fovea
