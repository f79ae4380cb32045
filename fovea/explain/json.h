// SPDX-License-Identifier: Apache-2.0
// An explanation as JSON: the object of `fovea explain --json`.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/config/json.h"
#include "fovea/explain/explanation.h"
#include "fovea/explain/text.h"

namespace fovea {

/// Writes one object in one line with its end, in pieces: the weights of all heads may be large. It
/// has the layers and heads of the view, or all. Once `write` returns false, nothing more.
void write_json(const Explanation& explanation, const ExplainView& view,
                const std::function<bool(std::string_view)>& write);

/// Tokens, of which one may be a byte that is no text.
Json json_of_tokens(const std::vector<std::string>& tokens);

/// [rows, columns]
template <class T>
Json json_of_matrix(const T* values, std::size_t rows, std::size_t columns) {
  Json::Array array;
  for (std::size_t r = 0; r < rows; ++r) {
    array.emplace_back(Json::Array(values + r * columns, values + (r + 1) * columns));
  }
  return Json(std::move(array));
}

}  // namespace fovea
