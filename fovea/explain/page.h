// SPDX-License-Identifier: Apache-2.0
// An explanation as a page for a browser.
#pragma once

#include <string_view>

#include "fovea/explain/explanation.h"
#include "fovea/report/attention_page.h"

namespace fovea {

/// Every layer and head, the saliency and the prediction. `model` names the model on the page.
AttentionPage page_of(const Explanation& explanation, std::string_view model,
                      PageLanguage language);

}  // namespace fovea
