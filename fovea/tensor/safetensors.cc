// SPDX-License-Identifier: Apache-2.0
#include "fovea/tensor/safetensors.h"

#include <algorithm>
#include <bit>
#include <tuple>
#include <utility>

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

/// Where the digits of the checksum stand in a header written by fovea, or npos. Quotes inside a
/// text are escaped, so only the key itself can look like this.
std::size_t checksum_position(std::string_view header) {
  const std::string before = fmt::format("\"{}\":\"", kChecksumKey);
  const std::size_t found = header.find(before);
  if (found == std::string_view::npos) return found;
  const std::size_t begin = found + before.size();
  return header.size() - begin < kChecksumDigits ? std::string_view::npos : begin;
}

/// The checksum of the file, with zeros where its own digits stand.
std::string checksum_of(const ByteSource& file, std::uint64_t digits) {
  constexpr std::uint64_t kPiece = std::uint64_t{1} << 20;
  std::uint64_t at = 0;
  std::string room;
  return xxh3_128_of([&]() -> std::string_view {
    const std::uint64_t begin = at;
    if (begin == digits) {
      at += kChecksumDigits;
      return kNoChecksum;
    }
    const std::uint64_t end = begin < digits ? digits : file.size();
    at += std::min(end - begin, kPiece);
    return file.view(begin, static_cast<std::size_t>(at - begin), room);
  });
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

SafetensorsSource::SafetensorsSource(const ByteSource& file, std::string where,
                                     std::uint64_t most_header_bytes)
    : file_(file),
      where_(std::move(where)),
      header_(parse_safetensors_header(file_, where_, most_header_bytes)) {
  names_.reserve(header_.entries.size());
  for (SafetensorsEntry& entry : header_.entries) names_.push_back(std::move(entry.name));
}

TensorInfo SafetensorsSource::info(std::size_t n) const {
  const SafetensorsEntry& entry = header_.entries[n];
  if (entry.type->dtype) return {names_[n], *entry.type->dtype, entry.shape};
  throw Error(
      ErrorCode::kModelWrongKind,
      fmt::format("{}: tensor {} is {}; only F32, BF16, F64, I32, I64, U8 and BOOL can be used",
                  where_, printable(names_[n]), entry.type->name),
      "convert the tensor to one of these types");
}

Tensor SafetensorsSource::read(std::size_t n) const {
  const TensorInfo known = info(n);
  Tensor tensor = Tensor::empty(known.shape, known.dtype);
  const auto bytes = tensor.bytes();
  if (!bytes.empty()) {
    file_.read(header_.data_begin + header_.entries[n].begin,
               {reinterpret_cast<char*>(bytes.data()), bytes.size()});
  }
  return tensor;
}

void SafetensorsSource::verify(ChecksumRule rule) const {
  const auto expected = header_.metadata.find(std::string(kChecksumKey));
  if (expected == header_.metadata.end()) {
    if (rule == ChecksumRule::kIfPresent) return;
    throw Error(ErrorCode::kModelDamaged, fmt::format("{}: the checksum is missing", where_),
                "the file is damaged, or was not written by fovea");
  }
  std::string room;
  const std::size_t digits =
      checksum_position(file_.view(0, static_cast<std::size_t>(header_.data_begin), room));
  const std::string got =
      digits == std::string_view::npos ? "none where it belongs" : checksum_of(file_, digits);
  if (got == expected->second) return;
  throw Error(ErrorCode::kModelDamaged,
              fmt::format("{}: wrong checksum: expected {}, got {}", where_,
                          printable(expected->second), got),
              "the file is damaged; restore it from a copy, or, if it is a model's, write it again "
              "with --resume of the command that trained it");
}

Safetensors SafetensorsSource::take() {
  Safetensors result;
  result.metadata = std::move(header_.metadata);
  result.tensors.reserve(names_.size());
  for (std::size_t n = 0; n < names_.size(); ++n) {
    Tensor tensor = read(n);
    result.tensors.push_back({std::move(names_[n]), std::move(tensor)});
  }
  return result;
}

Safetensors parse_safetensors(std::string_view bytes, std::string_view where, ChecksumRule rule) {
  const MemorySource file(bytes);
  SafetensorsSource source(file, std::string(where));
  source.verify(rule);
  return source.take();
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
