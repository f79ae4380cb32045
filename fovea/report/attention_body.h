// SPDX-License-Identifier: Apache-2.0
// The HTML of an attention page: what can be read without its scripts, and what they fill.
#pragma once

#include <string>

#include "fovea/report/attention_page.h"
#include "fovea/report/weight_code.h"

namespace fovea {

std::string attention_body(const AttentionPage& page, const WeightDigits& digits,
                           const PageLimits& limits);

}  // namespace fovea
