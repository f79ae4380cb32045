// SPDX-License-Identifier: Apache-2.0
// The names of metrics on pages.
#pragma once

#include <string>
#include <string_view>

#include "fovea/report/html.h"

namespace fovea {

/// In English the name itself, as in metrics.jsonl and `fovea eval --json`: "macro_f1". In Chinese
/// the usual term; of a metric of one tag column ("accuracy_upos") with the column in brackets. A
/// name that is not known stays as it is.
std::string metric_words(std::string_view name, PageLanguage language);

}  // namespace fovea
