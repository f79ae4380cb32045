// SPDX-License-Identifier: Apache-2.0
// A program that needs every room, by the header of all: what is missing at the end of a link order
// would show.
#include <cstdio>

#include "fovea/fovea.h"

static_assert(FOVEA_VERSION_MAJOR > 0 || FOVEA_VERSION_MINOR > 0 || FOVEA_VERSION_PATCH > 0);

int main() {
  const auto hint_of = [](auto&& f) {
    try {
      f();
    } catch (const fovea::Error& error) {
      std::printf("%s\nhint: %s\n", error.what(), error.hint().c_str());
      return !error.hint().empty();
    }
    return false;
  };
  const bool no_model = hint_of([] { fovea::load_language_model("nowhere"); });
  const bool no_text = hint_of([] { fovea::prepare_run({}); });
  return no_model && no_text ? 0 : 1;
}
