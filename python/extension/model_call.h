// SPDX-License-Identifier: Apache-2.0
// What calls of all models in memory share.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "fovea/base/context.h"
#include "fovea/base/option.h"
#include "fovea/base/precision.h"
#include "fovea/config/field.h"
#include "fovea/train/options.h"

namespace fovea::python {

/// Options by name, as the command would be given them.
using Texts = std::map<std::string, std::string>;

/// Options that were given; the others have the values of `options`. Throws kOptionValue.
template <class Options>
Options options_from(const Texts& given, Options options = {}) {
  for (Field& field : fields_of(options)) {
    const auto text = given.find(std::string(field.last_name()));
    if (text != given.end()) set_from_text(field, text->second, text->first);
  }
  return options;
}

struct LoadOptions {
  Precision precision = Precision::kFloat32;

  template <class Visitor>
  void visit_fields(Visitor&& visit) {
    visit("precision", precision, "of products");
  }
};

inline Precision precision_from(const std::string& text) {
  return options_from<LoadOptions>({{"precision", text}}).precision;
}

}  // namespace fovea::python
