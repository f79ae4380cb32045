// SPDX-License-Identifier: Apache-2.0
// An archive is read or refused; what can be read can be written, and is the same when read again.
#include <vector>

#include "fovea/tensor/npz.h"
#include "fovea/tensor/zip.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view file = fovea::text_of(data, size);
  fovea::allow_refusal([&] {
    std::vector<fovea::ZipMember> members;
    fovea::for_each_zip_member(file, "input", [&](std::string_view name, std::string_view bytes) {
      members.push_back({std::string(name), std::string(bytes)});
    });
    std::size_t read = 0;
    const std::string written = fovea::zip_bytes(members);
    fovea::for_each_zip_member(written, "written", [&](std::string_view name, std::string_view) {
      fovea::require(members[read++].name == name);
    });
    fovea::require(read == members.size());
  });
  fovea::allow_refusal([&] {
    const std::string bytes = fovea::npz_bytes(fovea::parse_npz(file, "input"));
    fovea::require(fovea::npz_bytes(fovea::parse_npz(bytes, "written")) == bytes);
  });
  return 0;
}
