// SPDX-License-Identifier: Apache-2.0
// All masks.
#pragma once

#include "fovea/attention/mask/band.h"
#include "fovea/attention/mask/given.h"
#include "fovea/attention/mask/segments.h"
#include "fovea/attention/mask/sparse.h"
