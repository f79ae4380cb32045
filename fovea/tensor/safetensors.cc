// SPDX-License-Identifier: Apache-2.0
#include "fovea/tensor/safetensors.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <tuple>

#include "fovea/base/check.h"
#include "fovea/base/file.h"
#include "fovea/base/printable.h"
#include "fovea/tensor/checksum.h"

namespace fovea {

static_assert(std::endian::native == std::endian::little,
              "values are stored as they lie in memory");

namespace {

constexpr std::size_t kChecksumDigits = 32;
const std::string kNoChecksum(kChecksumDigits, '0');

/// Where the digits of the checksum stand in a header that we wrote, or npos. Quotes inside a text
/// are escaped, so only the key itself can look like this.
std::size_t checksum_position(std::string_view header) {
  const std::string before = fmt::format("\"{}\":\"", kChecksumKey);
  const std::size_t found = header.find(before);
  if (found == std::string_view::npos) return found;
  const std::size_t begin = found + before.size();
  return header.size() - begin < kChecksumDigits ? std::string_view::npos : begin;
}

void verify_checksum(std::string_view file, const SafetensorsHeader& header, std::string_view where,
                     ChecksumRule rule) {
  const auto expected = header.metadata.find(std::string(kChecksumKey));
  if (expected == header.metadata.end()) {
    if (rule == ChecksumRule::kIfPresent) return;
    throw Error(ErrorCode::kModelDamaged, fmt::format("{}: the checksum is missing", where),
                "the file is damaged, or was not written by fovea");
  }
  const std::size_t begin = checksum_position(file.substr(0, header.data_begin));
  const std::string got =
      begin == std::string_view::npos
          ? "none where it belongs"
          : xxh3_128({file.substr(0, begin), kNoChecksum, file.substr(begin + kChecksumDigits)});
  if (got != expected->second) {
    throw Error(
        ErrorCode::kModelDamaged,
        fmt::format("{}: wrong checksum: expected {}, got {}", where, printable(expected->second),
                    got),
        "the file is damaged; restore it from a copy, or, if it is a model's, write it again "
        "with train lm --resume");
  }
}

Tensor copied_tensor(const SafetensorsEntry& entry, std::string_view values,
                     std::string_view where) {
  if (!entry.type->dtype) {
    throw Error(
        ErrorCode::kModelWrongKind,
        fmt::format("{}: tensor {} is {}; only F32, BF16, F64, I32, I64, U8 and BOOL can be "
                    "used",
                    where, printable(entry.name), entry.type->name),
        "convert the tensor to one of these types");
  }
  Tensor tensor = Tensor::empty(entry.shape, *entry.type->dtype);
  const auto bytes = values.substr(entry.begin, entry.end - entry.begin);
  if (!bytes.empty()) std::memcpy(tensor.bytes().data(), bytes.data(), bytes.size());
  return tensor;
}

/// Pointers to the tensors in the order in which their values are written.
std::vector<const NamedTensor*> in_file_order(std::span<const NamedTensor> tensors) {
  std::vector<const NamedTensor*> order;
  for (const NamedTensor& named : tensors) {
    check(named.tensor.defined(), "safetensors: {} is no tensor", printable(named.name));
    order.push_back(&named);
  }
  std::sort(order.begin(), order.end(), [](const NamedTensor* a, const NamedTensor* b) {
    const StoredType* const type_a = &stored_type(a->tensor.dtype());
    const StoredType* const type_b = &stored_type(b->tensor.dtype());
    return std::tie(type_b, a->name) < std::tie(type_a, b->name);
  });
  return order;
}

}  // namespace

const Tensor* Safetensors::find(std::string_view name) const {
  const auto found = std::find_if(tensors.begin(), tensors.end(),
                                  [&](const NamedTensor& named) { return named.name == name; });
  return found == tensors.end() ? nullptr : &found->tensor;
}

const Tensor& Safetensors::at(std::string_view name) const {
  const Tensor* tensor = find(name);
  if (tensor == nullptr)
    fail(ErrorCode::kModelDamaged, "the tensor {} is missing", printable(name));
  return *tensor;
}

Safetensors parse_safetensors(std::string_view bytes, std::string_view where, ChecksumRule rule) {
  SafetensorsHeader header = parse_safetensors_header(bytes, where);
  verify_checksum(bytes, header, where, rule);
  Safetensors result;
  result.metadata = std::move(header.metadata);
  result.tensors.reserve(header.entries.size());
  for (SafetensorsEntry& entry : header.entries) {
    Tensor tensor = copied_tensor(entry, bytes.substr(header.data_begin), where);
    result.tensors.push_back({std::move(entry.name), std::move(tensor)});
  }
  return result;
}

Safetensors read_safetensors(const std::filesystem::path& path, ChecksumRule rule) {
  return parse_safetensors(read_file(path), path.string(), rule);
}

std::string safetensors_bytes(std::span<const NamedTensor> tensors,
                              const SafetensorsMetadata& metadata) {
  SafetensorsHeader header;
  header.metadata = metadata;
  header.metadata["format"] = "pt";
  header.metadata[std::string(kChecksumKey)] = kNoChecksum;
  const std::vector<const NamedTensor*> order = in_file_order(tensors);
  std::uint64_t end = 0;
  for (const NamedTensor* named : order) {
    const auto size = static_cast<std::uint64_t>(named->tensor.byte_size());
    header.entries.push_back(
        {named->name, &stored_type(named->tensor.dtype()), named->tensor.shape(), end, end + size});
    end += size;
  }
  std::string file = safetensors_header_bytes(header);
  const std::size_t digits = checksum_position(file);
  file.reserve(file.size() + end);
  for (const NamedTensor* named : order) {
    const auto bytes = named->tensor.bytes();
    file.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  file.replace(digits, kChecksumDigits, xxh3_128(file));
  return file;
}

void write_safetensors(const std::filesystem::path& path, std::span<const NamedTensor> tensors,
                       const SafetensorsMetadata& metadata) {
  write_file_atomically(path, safetensors_bytes(tensors, metadata));
}

}  // namespace fovea
