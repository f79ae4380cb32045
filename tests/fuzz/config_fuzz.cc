// SPDX-License-Identifier: Apache-2.0
// A config.json that can be read is written and read again; what is read can be checked.
#include "fovea/task/language_model/language_model.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fovea::allow_refusal([&] {
    const auto settings = fovea::settings_from_text(fovea::text_of(data, size), "config.json");
    const std::string written = fovea::config_text(settings);
    fovea::require(fovea::config_text(fovea::settings_from_text(written, "written")) == written);
    fovea::check_options(settings);
  });
  return 0;
}
