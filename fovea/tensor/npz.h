// SPDX-License-Identifier: Apache-2.0
// Tensors as numpy.savez and numpy.savez_compressed write them: an archive of NAME.npy. Arrays as
// numpy stores them, one to a file or to a member of an .npz:
// https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html, versions 1 to 3.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/base/bytes.h"
#include "fovea/tensor/named_tensor.h"
#include "fovea/tensor/tensor.h"
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

/// Type and shape of an array, read before its values.
struct NpyHeader {
  DType dtype;
  Shape shape;
  std::size_t data_begin = 0;  ///< offset of its first value
};

/// The largest header, in bytes: 10000 of text, as much as numpy itself reads, and 12 before it.
inline constexpr std::size_t kMaxNpyHeaderBytes = 10012;

/// The header, from the first kMaxNpyHeaderBytes (or all) of `size` bytes: float32, float64, int32,
/// int64, uint8, or bool as uint8, in C order, little-endian, of at most 6 axes. The header is not
/// trusted: it must have exactly its three keys, and the file exactly the bytes that its shape
/// needs. `where` begins each message. Throws kInputFormat.
NpyHeader parse_npy_header(std::string_view bytes, std::uint64_t size, std::string_view where);

/// As parse_npy_header, for an array of texts ("<U5"): int32, with the characters of a text as a
/// last axis, 0 behind its end. An array of another type gives nothing. Throws as above.
std::optional<NpyHeader> parse_npy_text_header(std::string_view bytes, std::uint64_t size,
                                               std::string_view where);

/// The array. Throws as above.
Tensor parse_npy(std::string_view bytes, std::string_view where);

/// Whether numpy has this type; it does not have bfloat16.
bool has_npy_type(DType dtype);

/// The bytes of a .npy file, version 1.0; its values begin on a boundary of 64 bytes. Throws kShape
/// for bfloat16, which numpy does not know.
std::string npy_bytes(const Tensor& tensor);

}  // namespace fovea
