// SPDX-License-Identifier: Apache-2.0
// Arrays as numpy stores them, one to a file or to a member of an .npz:
// https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html, versions 1 to 3.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "fovea/tensor/tensor.h"

namespace fovea {

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
