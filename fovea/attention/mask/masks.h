// SPDX-License-Identifier: Apache-2.0
// All masks.
#pragma once

#include "fovea/attention/mask/band.h"
#include "fovea/attention/mask/dense.h"
#include "fovea/attention/mask/lengths.h"
#include "fovea/attention/mask/segments.h"
#include "fovea/attention/mask/sparse.h"
#include "fovea/attention/mask/where.h"
