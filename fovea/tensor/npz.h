// SPDX-License-Identifier: Apache-2.0
// Tensors as numpy.savez and numpy.savez_compressed write them: an archive of NAME.npy.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/tensor/named_tensor.h"

namespace fovea {

/// All arrays, in the order of the archive. `where` begins each message, which names the member.
/// Throws kInputFormat as for_each_zip_member and parse_npy do, and for a name that is there twice
/// or does not end in .npy.
std::vector<NamedTensor> parse_npz(std::string_view bytes, std::string_view where);

/// Throws kShape if tensors of these shapes do not fit into such a file, whatever their values.
void check_npz_size(std::span<const NamedTensor> tensors);

/// The bytes of such a file, members stored, in the order of their names: the same tensors give the
/// same bytes. Throws kShape for bfloat16, for a name that is taken twice, and from 4 GiB on.
std::string npz_bytes(std::span<const NamedTensor> tensors);

}  // namespace fovea
