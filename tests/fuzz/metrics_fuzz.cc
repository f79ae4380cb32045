// SPDX-License-Identifier: Apache-2.0
// Any bytes can stand in metrics.jsonl: lines that are no records are left out, and a curve is
// drawn of the others.
#include "fovea/train/history.h"
#include "fovea/train/run_summary.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const fovea::FuzzFile file(fovea::text_of(data, size));
  fovea::allow_refusal([&] {
    const fovea::History history(file.path(), static_cast<fovea::index>(size));
    fovea::training_curves(history, "nats per token");
  });
  return 0;
}
