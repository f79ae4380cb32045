// SPDX-License-Identifier: Apache-2.0
// Members of an archive are read or refused; what can be read can be written, and is the same when
// read again.
#include <algorithm>
#include <vector>

#include "fovea/tensor/zip.h"
#include "tests/fuzz/fuzz.h"

namespace fovea {
namespace {

std::vector<ZipMember> members_of(std::string_view bytes) {
  const MemorySource file(bytes);
  std::vector<ZipMember> members;
  for (const ZipEntry& entry : read_zip_directory(file, "input")) {
    ZipMemberReader reader(file, entry, "input");
    std::string member(entry.size, '\0');
    reader.read(member);
    reader.finish();
    members.push_back({entry.name, member});
  }
  return members;
}

void read_twice(std::string_view file) {
  const std::vector<ZipMember> members = members_of(file);
  const std::vector<ZipMember> again = members_of(zip_bytes(members));
  require(std::equal(members.begin(), members.end(), again.begin(), again.end(),
                     [](const ZipMember& a, const ZipMember& b) {
                       return a.name == b.name && a.bytes == b.bytes;
                     }));
}

// As the packed bytes of a member, whose size is in the first two: no checksum is in the way.
void unpack(std::string_view bytes) {
  if (bytes.size() < 2) return;
  const MemorySource file(bytes);
  const auto size = static_cast<std::size_t>(static_cast<unsigned char>(bytes[0])) << 8 |
                    static_cast<unsigned char>(bytes[1]);
  const ZipEntry entry{.name = "input",
                       .method = ZipMethod::kDeflated,
                       .begin = 2,
                       .packed = bytes.size() - 2,
                       .size = size};
  ZipMemberReader reader(file, entry, "input");
  std::string member(size, '\0');
  reader.read(member);
  reader.finish();
}

}  // namespace
}  // namespace fovea

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes = fovea::text_of(data, size);
  fovea::allow_refusal([&] { fovea::read_twice(bytes); });
  fovea::allow_refusal([&] { fovea::unpack(bytes); });
  return 0;
}
