// SPDX-License-Identifier: Apache-2.0
#include "cli/aligned.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "fovea/report/terminal.h"

namespace fovea::cli {

namespace {

std::string padding(std::string_view text, index columns) {
  return std::string(static_cast<std::size_t>(std::max<index>(columns - display_width(text), 0)),
                     ' ');
}

}  // namespace

std::string left(std::string_view text, index columns) {
  return std::string(text) + padding(text, columns);
}

std::string right(std::string_view text, index columns) {
  return padding(text, columns) + std::string(text);
}

std::string four_digits(double number) {
  return std::isnan(number) ? "undefined" : fmt::format("{:.4f}", number);
}

}  // namespace fovea::cli
