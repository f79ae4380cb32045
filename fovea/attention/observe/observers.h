// SPDX-License-Identifier: Apache-2.0
// All observers.
#pragma once

#include "fovea/attention/observe/column_mass.h"
#include "fovea/attention/observe/dropout_keep.h"
#include "fovea/attention/observe/rows.h"
#include "fovea/attention/observe/selected_rows.h"
#include "fovea/attention/observe/top_k.h"
