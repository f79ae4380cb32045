// SPDX-License-Identifier: Apache-2.0
#include "fovea/attention/parts.h"

#include "fovea/base/check.h"

namespace fovea::detail {

void check_part(bool is_there, std::string_view family) {
  check(is_there, "attention: {} was given as a null pointer", family);
}

}  // namespace fovea::detail
