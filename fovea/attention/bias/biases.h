// SPDX-License-Identifier: Apache-2.0
// All biases. Your own score functions are lambdas (lambda/lambdas.h).
#pragma once

#include "fovea/attention/bias/alibi.h"
#include "fovea/attention/bias/dense.h"
#include "fovea/attention/bias/kerple.h"
#include "fovea/attention/bias/log_n_scale.h"
#include "fovea/attention/bias/shaw.h"
#include "fovea/attention/bias/softcap.h"
#include "fovea/attention/bias/t5.h"
