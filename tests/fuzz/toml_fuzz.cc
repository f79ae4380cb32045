// SPDX-License-Identifier: Apache-2.0
// A configuration that can be read is the same when its text is read again.
#include <string>
#include <vector>

#include "fovea/config/toml.h"
#include "tests/fuzz/fuzz.h"

namespace fovea {
namespace {

struct Settings {
  bool on = false;
  int layers = 4;
  double rate = 0.5;
  std::string name = "a";
  std::vector<std::string> files;

  std::vector<Field> fields() {
    return {{"on", "", &on},
            {"layers", "", &layers},
            {"rate", "", &rate},
            {"model.name", "", &name},
            {"model.files", "", &files}};
  }
};

void read_twice(std::string_view text) {
  Settings settings;
  set_from_toml(settings.fields(), text, "input");
  const std::string written = toml_text(settings.fields());
  Settings again;
  set_from_toml(again.fields(), written, "written");
  require(toml_text(again.fields()) == written);
}

}  // namespace
}  // namespace fovea

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fovea::allow_refusal([&] { fovea::read_twice(fovea::text_of(data, size)); });
  return 0;
}
