// SPDX-License-Identifier: Apache-2.0
// All observers.
#pragma once

#include "fovea/attention/observe/sums.h"
#include "fovea/attention/observe/weights.h"
