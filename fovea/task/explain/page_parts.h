// SPDX-License-Identifier: Apache-2.0
// What pages of texts and of numbers call the same.
#pragma once

#include <string>
#include <string_view>

#include "fovea/report/html.h"
#include "fovea/task/explain/explanation.h"

namespace fovea {

/// "layer 1 (attention)" in the language of a page.
std::string layer_name_in(PageLanguage language, std::string_view name);

/// What the saliency is, and of what.
std::string saliency_name_in(PageLanguage language, const Saliency& saliency);

}  // namespace fovea
