// SPDX-License-Identifier: Apache-2.0
// All biases. Your own score functions are lambdas (lambda/lambdas.h).
#pragma once

#include "fovea/attention/bias/dense.h"
#include "fovea/attention/bias/distance.h"
#include "fovea/attention/bias/scaling.h"
#include "fovea/attention/bias/shaw.h"
