// SPDX-License-Identifier: Apache-2.0
#include "cli/table_options.h"

#include "fovea/config/field.h"

namespace fovea::cli {

std::vector<Flag> table_flags(TableOptions& table) { return flags_of(fields_of(table)); }

std::vector<Flag> text_table_flags(TableOptions& table) {
  std::vector<Flag> flags = table_flags(table);
  std::erase_if(flags, [](const Flag& flag) {
    return flag.name == "label-column" || flag.name == "label-separator" ||
           flag.name == "second-column";
  });
  return flags;
}

std::vector<Flag> pair_table_flags(TableOptions& table) {
  std::vector<Flag> flags = table_flags(table);
  std::erase_if(flags, [](const Flag& flag) {
    return flag.name == "label-column" || flag.name == "label-separator";
  });
  return flags;
}

}  // namespace fovea::cli
