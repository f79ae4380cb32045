// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace fovea::detail {

/// Whether the processor has AMX with bfloat16, AVX-512 with vdpbf16ps beside it, and the operating
/// system lets this process use it: Linux wants to be asked, once, which the first call does.
bool may_use_amx();

}  // namespace fovea::detail
