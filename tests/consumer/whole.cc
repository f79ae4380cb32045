// SPDX-License-Identifier: Apache-2.0
// A program that needs every room: what is missing at the end of a link order would show.
#include <cstdio>

#include "fovea/base/error.h"
#include "fovea/task/language_model.h"

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
