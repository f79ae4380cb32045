// SPDX-License-Identifier: Apache-2.0
// What is said of a tensor before it is read is what it is; what can be read can be written, and is
// the same when read again.
#include "fovea/tensor/npz.h"
#include "tests/fuzz/fuzz.h"

namespace fovea {
namespace {

void read_tensors(std::string_view file) {
  const MemorySource memory(file);
  const NpzSource source(memory, "input");
  for (std::size_t n = 0; n < source.names().size(); ++n) {
    allow_refusal([&] {
      const TensorInfo info = source.info(n);
      const Tensor tensor = source.read(n);
      require(tensor.dtype() == info.dtype && tensor.shape() == info.shape);
    });
  }
}

void read_twice(std::string_view file) {
  const std::string bytes = npz_bytes(parse_npz(file, "input"));
  require(npz_bytes(parse_npz(bytes, "written")) == bytes);
}

}  // namespace
}  // namespace fovea

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view file = fovea::text_of(data, size);
  fovea::allow_refusal([&] { fovea::read_tensors(file); });
  fovea::allow_refusal([&] { fovea::read_twice(file); });
  // As a member of an archive that is whole: no checksum is in the way.
  const fovea::ZipMember member[] = {{"q.npy", std::string(file)}};
  fovea::allow_refusal([&] { fovea::read_tensors(fovea::zip_bytes(member)); });
  return 0;
}
