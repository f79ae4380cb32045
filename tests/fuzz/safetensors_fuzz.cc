// SPDX-License-Identifier: Apache-2.0
// A file that can be read can be written, and is the same when it is read again.
#include "fovea/tensor/safetensors.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fovea::allow_refusal([&] {
    const fovea::Safetensors read = fovea::parse_safetensors(fovea::text_of(data, size), "input");
    const std::string bytes = fovea::safetensors_bytes(read.tensors, read.metadata);
    const fovea::Safetensors again = fovea::parse_safetensors(bytes, "written");
    fovea::require(again.tensors.size() == read.tensors.size());
    fovea::require(fovea::safetensors_bytes(again.tensors, again.metadata) == bytes);
  });
  return 0;
}
