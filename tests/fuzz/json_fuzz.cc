// SPDX-License-Identifier: Apache-2.0
// A value that can be read is the same when its text is read again.
#include "fovea/config/json.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fovea::allow_refusal([&] {
    const std::string line = fovea::parse_json(fovea::text_of(data, size), {"input"}).line();
    fovea::require(fovea::parse_json(line, {"written"}).line() == line);
  });
  return 0;
}
