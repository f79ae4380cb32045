// SPDX-License-Identifier: Apache-2.0
// The settings of a case of conformance, and the texts in them.
#include "fovea/base/option.h"
#include "fovea/config/json.h"
#include "fovea/operator/attention_settings.h"
#include "tests/fuzz/fuzz.h"

namespace fovea {
namespace {

void read(const AttentionSettings& settings) {
  allow_refusal([&] { check_settings(settings); });
  allow_refusal([&] { parse_scale(settings.scale); });
  allow_refusal([&] {
    const Reach reach = parse_window(settings.window);
    require(reach.left >= kOpen && reach.right >= kOpen);
  });
  allow_refusal([&] {
    for (const ObserveWish& wish : parse_observe(settings.observe)) parse_numbers(wish.value, ':');
  });
}

}  // namespace
}  // namespace fovea

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace fovea;
  const std::string text(text_of(data, size));
  AttentionSettings settings;
  settings.scale = settings.window = settings.observe = text;
  read(settings);
  allow_refusal([&] {
    from_json(text, {"input"}, settings, MissingKeys::kKeepTheirValue);
    read(settings);
  });
  return 0;
}
