// SPDX-License-Identifier: Apache-2.0
// A file of tensors, opened and looked at as `fovea attention` does; the first byte says which
// format it has.
#include "fovea/operator/attention_call.h"
#include "fovea/operator/attention_tensors.h"
#include "tests/fuzz/fuzz.h"

namespace fovea {
namespace {

void read_call(const TensorFile& file) {
  const AttentionTensors tensors(file, attention_tensor_specs(), "input");
  require(tensors.find("q") != nullptr && tensors.sizes().B >= 0);
}

// A file that is none of a call can be a file of tensors all the same.
void read_tensors(const TensorFile& file) {
  for (const NamedTensor& named : file.read()) {
    const TensorInfo info = file.info(named.name);
    require(named.tensor.dtype() == info.dtype && named.tensor.shape() == info.shape);
  }
}

}  // namespace
}  // namespace fovea

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view format = data[0] % 2 == 0 ? ".npz" : ".safetensors";
  const fovea::FuzzFile bytes(fovea::text_of(data + 1, size - 1));
  fovea::allow_refusal([&] {
    const fovea::TensorFile file(bytes.path(), format);
    fovea::allow_refusal([&] { fovea::read_call(file); });
    fovea::allow_refusal([&] { fovea::read_tensors(file); });
  });
  return 0;
}
