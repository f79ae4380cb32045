// SPDX-License-Identifier: Apache-2.0
// TER (Snover, Dorr, Schwartz, Micciulla, Makhoul 2006, "A study of translation edit rate with
// targeted human annotation"), as sacreBLEU computes it: without tercom's normalisation, in lower
// case.
#pragma once

#include <memory>

#include "fovea/metrics/translation.h"

namespace fovea {

/// 100 x (insertions + deletions + substitutions + shifts) / words of the reference. With several
/// references the fewest edits count, and the mean of their lengths.
std::unique_ptr<TranslationMetric> ter();

}  // namespace fovea
