// SPDX-License-Identifier: Apache-2.0
#include "fovea/tensor/npz.h"

#include <algorithm>
#include <cstdint>
#include <set>

#include "fovea/base/check.h"
#include "fovea/base/printable.h"
#include "fovea/tensor/npy.h"
#include "fovea/tensor/zip.h"

namespace fovea {

namespace {

constexpr std::string_view kExtension = ".npy";

}  // namespace

std::vector<NamedTensor> parse_npz(std::string_view bytes, std::string_view where) {
  std::vector<NamedTensor> tensors;
  std::set<std::string> names;
  for_each_zip_member(bytes, where, [&](std::string_view name, std::string_view array) {
    if (!name.ends_with(kExtension)) {
      throw Error(ErrorCode::kInputFormat,
                  fmt::format("{}: member {} is no .npy file", where, printable(name)),
                  "write the file with numpy.savez");
    }
    const std::string tensor(name.substr(0, name.size() - kExtension.size()));
    if (!names.insert(tensor).second) {
      throw Error(ErrorCode::kInputFormat,
                  fmt::format("{}: tensor {} is there twice", where, printable(tensor)),
                  "write the file again, each tensor once");
    }
    tensors.push_back(
        {tensor, parse_npy(array, fmt::format("{}: tensor {}", where, printable(tensor)))});
  });
  return tensors;
}

void check_npz_size(std::span<const NamedTensor> tensors) {
  constexpr std::uint64_t kMostOfHeaders = 1024;  // of a member and its array
  std::uint64_t total = 0;
  for (const NamedTensor& named : tensors) total += named.tensor.bytes().size() + kMostOfHeaders;
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
