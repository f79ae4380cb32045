// SPDX-License-Identifier: Apache-2.0
// A file that can be read can be written, and is the same when it is read again.
#include "fovea/tensor/npz.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fovea::allow_refusal([&] {
    const fovea::Tensor read = fovea::parse_npy(fovea::text_of(data, size), "input");
    const std::string bytes = fovea::npy_bytes(read);
    fovea::require(fovea::npy_bytes(fovea::parse_npy(bytes, "written")) == bytes);
  });
  return 0;
}
