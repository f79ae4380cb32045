// SPDX-License-Identifier: Apache-2.0
// The HTML of an attention page: what can be read without its scripts, and what they fill.
#pragma once

#include <string>
#include <string_view>

#include "fovea/report/attention_page.h"
#include "fovea/report/weight_code.h"

namespace fovea {

/// A token as it can be seen: spaces at its ends, control characters and those that turn the
/// direction of writing are named; an empty token is U+2205.
std::string visible(std::string_view token);

std::string attention_body(const AttentionPage& page, const WeightDigits& digits,
                           const PageLimits& limits);

}  // namespace fovea
