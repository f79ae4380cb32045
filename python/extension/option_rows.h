// SPDX-License-Identifier: Apache-2.0
// The options of a function, from the fields that the command reads.
#pragma once

#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "fovea/config/field.h"

namespace fovea::python {

/// (name, what it must be, what it does) of each option.
using OptionRows = std::vector<std::tuple<std::string, std::string, std::string>>;

/// The rows of the fields of `options` that are options, without the name of the part that they
/// belong to.
template <class Options>
OptionRows option_rows() {
  Options options;
  OptionRows rows;
  for (const Field& field : fields_of(options)) {
    if (!field.traits.is_option) continue;
    std::string help = field.help;
    if (field.traits.names != nullptr) help += "; " + field.traits.names();
    rows.emplace_back(field.last_name(), expected_value(field), std::move(help));
  }
  return rows;
}

}  // namespace fovea::python
