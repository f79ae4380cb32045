// SPDX-License-Identifier: Apache-2.0
#include "fovea/tensor/npz.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <utility>

#include "fovea/base/check.h"
#include "fovea/base/machine.h"
#include "fovea/base/printable.h"
#include "fovea/tensor/npy.h"
#include "fovea/tensor/zip_member.h"

namespace fovea {

namespace {

constexpr std::string_view kExtension = ".npy";

// The first bytes of a member: they contain its header.
std::string first_bytes(ZipMemberReader& member, const ZipEntry& entry) {
  std::string bytes(std::min<std::uint64_t>(entry.size, kMaxNpyHeaderBytes), '\0');
  member.read(bytes);
  return bytes;
}

}  // namespace

NpzSource::NpzSource(const ByteSource& file, std::string where)
    : file_(file), where_(std::move(where)), entries_(read_zip_directory(file_, where_)) {
  std::set<std::string_view> taken;
  names_.reserve(entries_.size());
  for (const ZipEntry& entry : entries_) {
    if (!entry.name.ends_with(kExtension)) {
      throw Error(ErrorCode::kInputFormat,
                  fmt::format("{}: member {} is no .npy file", where_, printable(entry.name)),
                  "write the file with numpy.savez");
    }
    names_.push_back(entry.name.substr(0, entry.name.size() - kExtension.size()));
    if (taken.insert(names_.back()).second) continue;
    throw Error(ErrorCode::kInputFormat,
                fmt::format("{}: tensor {} is there twice", where_, printable(names_.back())),
                "write the file again, each tensor once");
  }
}

std::string NpzSource::where_of(std::size_t n) const {
  return fmt::format("{}: tensor {}", where_, printable(names_[n]));
}

TensorInfo NpzSource::info(std::size_t n) const {
  const ZipEntry& entry = entries_[n];
  ZipMemberReader member(file_, entry, where_);
  const NpyHeader header = parse_npy_header(first_bytes(member, entry), entry.size, where_of(n));
  return {names_[n], header.dtype, header.shape};
}

Tensor NpzSource::read(std::size_t n) const { return read_as(n, false); }

Tensor NpzSource::read_texts(std::size_t n) const { return read_as(n, true); }

Tensor NpzSource::read_as(std::size_t n, bool texts) const {
  const ZipEntry& entry = entries_[n];
  ZipMemberReader member(file_, entry, where_);
  const std::string first = first_bytes(member, entry);
  const std::string where = where_of(n);
  const std::optional<NpyHeader> found =
      texts ? parse_npy_text_header(first, entry.size, where)
            : std::optional(parse_npy_header(first, entry.size, where));
  if (!found) return {};
  const NpyHeader& header = *found;
  require_memory(where, static_cast<double>(entry.size), "use smaller tensors");
  Tensor tensor = Tensor::empty(header.shape, header.dtype);
  const std::span<char> values(reinterpret_cast<char*>(tensor.bytes().data()),
                               tensor.bytes().size());
  const std::string_view begun = std::string_view(first).substr(header.data_begin);
  std::copy(begun.begin(), begun.end(), values.begin());
  member.read(values.subspan(begun.size()));
  member.finish();
  return tensor;
}

std::vector<NamedTensor> parse_npz(std::string_view bytes, std::string_view where) {
  const MemorySource file(bytes);
  const NpzSource source(file, std::string(where));
  std::vector<NamedTensor> tensors;
  for (std::size_t n = 0; n < source.names().size(); ++n) {
    tensors.push_back({source.names()[n], source.read(n)});
  }
  return tensors;
}

void check_npz(std::span<const NamedTensor> tensors) {
  constexpr std::uint64_t kMostOfHeaders = 1024;  // the headers of a member and of its array
  std::uint64_t total = 0;
  for (const NamedTensor& named : tensors) {
    if (!has_npy_type(named.tensor.dtype())) {
      fail(ErrorCode::kUsage, Hint{"write a .safetensors file, which has the type"},
           "npz: {} is {}, and numpy has no such type", named.name, named.tensor.describe());
    }
    total += named.tensor.bytes().size() + kMostOfHeaders;
  }
  check_zip_size(tensors.size(), total);
}

std::string npz_bytes(std::span<const NamedTensor> tensors) {
  std::vector<ZipMember> members;
  for (const NamedTensor& named : tensors) {
    members.push_back({named.name + std::string(kExtension), npy_bytes(named.tensor)});
  }
  std::sort(members.begin(), members.end(),
            [](const ZipMember& a, const ZipMember& b) { return a.name < b.name; });
  const auto twice =
      std::adjacent_find(members.begin(), members.end(),
                         [](const ZipMember& a, const ZipMember& b) { return a.name == b.name; });
  check(twice == members.end(), "npz: the name of a tensor is taken twice");
  return zip_bytes(members);
}

}  // namespace fovea
