// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/translate/translation_options.h"

#include "fovea/base/option.h"
#include "fovea/config/field.h"
#include "fovea/task/setting_parts.h"

namespace fovea {

void check_options(const TranslationOptions& o) {
  check_ranges(o);
  TranslationOptions said = o, usual;
  require_sound(fields_of(said), fields_of(usual));
  check_options(o.sampling());
  if (!o.sample) check_options(o.search);  // samples need no beam
  require_option(!o.sample || o.search.coverage_penalty == 0, Hint{"leave one of the two out"},
                 "coverage_penalty", o.search.coverage_penalty, "0 with --sample");
}

}  // namespace fovea
