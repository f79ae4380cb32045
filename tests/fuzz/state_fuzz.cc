// SPDX-License-Identifier: Apache-2.0
// A checkpoint's state.json is read or refused.
#include "fovea/train/trainer.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fovea::allow_refusal([&] {
    const std::string text(fovea::text_of(data, size));
    const fovea::Checkpoint checkpoint{0, "input", {{"state.json", text}}};
    fovea::identity_of(checkpoint);
    fovea::state_of(checkpoint);
  });
  return 0;
}
