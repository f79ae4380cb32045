// SPDX-License-Identifier: Apache-2.0
// Functions of the caller as parts: lambdas that are recorded for each tile, and traced functions,
// which read tables.
#pragma once

#include "fovea/attention/lambda/of.h"
#include "fovea/attention/lambda/trace.h"
