// SPDX-License-Identifier: Apache-2.0
// A packed text is unpacked or refused, the same in pieces of any size.
#include <algorithm>
#include <memory>

#include "fovea/text/compressed.h"
#include "tests/fuzz/fuzz.h"

namespace fovea {
namespace {

constexpr std::size_t kMost = 1 << 20;  // a small file may unpack to gigabytes

std::string read(std::string_view packed, std::size_t piece) {
  std::string all;
  try {
    const auto stream = unpacked(std::make_unique<MemoryStream>(packed), "f");
    std::string room(piece, '\0');
    while (const std::size_t n = stream->read(room)) {
      require(n <= room.size());
      all.append(room, 0, n);
      if (all.size() >= kMost) return all.substr(0, kMost);
    }
    return all;
  } catch (const Error&) {
    return "refused";
  }
}

}  // namespace
}  // namespace fovea

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace fovea;
  const std::string_view packed = text_of(data, size);
  const std::string large = read(packed, 100'000), small = read(packed, 911);
  // Before a damaged place the one may have reached the most that is read.
  require(large == small || large == "refused" || small == "refused");
  return 0;
}
