// SPDX-License-Identifier: Apache-2.0
// Tensors as numpy.savez and numpy.savez_compressed write them: an archive of NAME.npy.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/base/byte_source.h"
#include "fovea/tensor/named_tensor.h"
#include "fovea/tensor/tensor_source.h"
#include "fovea/tensor/zip.h"

namespace fovea {

/// An .npz file. To tell the type and shape of a member, only its header is unpacked.
class NpzSource : public TensorSource {
 public:
  /// `file` must outlive it; `where` begins each message, which names the member. Throws
  /// kInputFormat as read_zip_directory does, and for a name that occurs twice or does not end in
  /// .npy.
  NpzSource(const ByteSource& file, std::string where);
  const std::vector<std::string>& names() const override { return names_; }
  /// These throw kInputFormat as parse_npy_header and ZipMemberReader do.
  TensorInfo info(std::size_t n) const override;
  Tensor read(std::size_t n) const override;
  /// An array of texts as numbers of characters (parse_npy_text_header); no memory: it is another.
  Tensor read_texts(std::size_t n) const;

 private:
  Tensor read_as(std::size_t n, bool texts) const;
  std::string where_of(std::size_t n) const;

  const ByteSource& file_;
  std::string where_;
  std::vector<ZipEntry> entries_;
  std::vector<std::string> names_;
};

/// All arrays of a file that is in memory, in the order of the file. Throws as NpzSource does.
std::vector<NamedTensor> parse_npz(std::string_view bytes, std::string_view where);

/// Throws kUsage if numpy lacks the type of a tensor, and kShape if they are too large for such a
/// file.
void check_npz(std::span<const NamedTensor> tensors);

/// The bytes of such a file. Members are not compressed and are sorted by name, so the same tensors
/// give the same bytes. Throws kShape for bfloat16, for a name that occurs twice, and from 4 GiB
/// on.
std::string npz_bytes(std::span<const NamedTensor> tensors);

}  // namespace fovea
