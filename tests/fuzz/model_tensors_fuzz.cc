// SPDX-License-Identifier: Apache-2.0
// Weights and moments are taken from a file of tensors that fits, and from no other.
#include <array>

#include "fovea/train/optimizer.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace fovea;
  Parameter a, b;
  a.name = "a";
  a.value = Tensor(Shape{2, 1});
  b.name = "b";
  b.value = Tensor(Shape{1});
  const std::array<Parameter*, 2> parameters = {&a, &b};
  allow_refusal([&] {
    const Safetensors tensors = parse_safetensors(text_of(data, size), "input");
    allow_refusal([&] { restore_parameters(parameters, tensors, "input"); });
    allow_refusal([&] { Optimizer(parameters).restore(tensors); });
  });
  return 0;
}
