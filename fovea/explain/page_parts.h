// SPDX-License-Identifier: Apache-2.0
// Names that pages of texts and of numbers share.
#pragma once

#include <string>
#include <string_view>

#include "fovea/explain/explanation.h"
#include "fovea/report/html.h"

namespace fovea {

/// "layer 1 (attention)" in the language of a page.
std::string layer_name_in(PageLanguage language, std::string_view name);

/// The name of the saliency and of its target.
std::string saliency_name_in(PageLanguage language, const Saliency& saliency);

}  // namespace fovea
