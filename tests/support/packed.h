// SPDX-License-Identifier: Apache-2.0
// Packs bytes as gzip and zstd do.
#pragma once

#include <zlib.h>
#include <zstd.h>

#include <string>
#include <string_view>

namespace fovea {

inline std::string gzip_of(std::string_view bytes, int level = 6) {
  z_stream z{};
  deflateInit2(&z, level, Z_DEFLATED, MAX_WBITS + 16, 8, Z_DEFAULT_STRATEGY);
  std::string packed(deflateBound(&z, bytes.size()), '\0');
  z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  z.avail_in = static_cast<uInt>(bytes.size());
  z.next_out = reinterpret_cast<Bytef*>(packed.data());
  z.avail_out = static_cast<uInt>(packed.size());
  deflate(&z, Z_FINISH);
  packed.resize(z.total_out);
  deflateEnd(&z);
  return packed;
}

/// A frame with a checksum; `with_size`: it says how long the text is, as a file's frame does and
/// that of a pipe does not.
inline std::string zstd_of(std::string_view bytes, bool with_size = true, int window_log = 0) {
  ZSTD_CCtx* context = ZSTD_createCCtx();
  ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1);
  ZSTD_CCtx_setParameter(context, ZSTD_c_contentSizeFlag, with_size ? 1 : 0);
  if (window_log > 0) ZSTD_CCtx_setParameter(context, ZSTD_c_windowLog, window_log);
  std::string packed(ZSTD_compressBound(bytes.size()), '\0');
  if (with_size) {
    packed.resize(
        ZSTD_compress2(context, packed.data(), packed.size(), bytes.data(), bytes.size()));
  } else {
    ZSTD_outBuffer out{packed.data(), packed.size(), 0};
    ZSTD_inBuffer in{bytes.data(), bytes.size(), 0};
    ZSTD_compressStream2(context, &out, &in, ZSTD_e_flush);
    ZSTD_compressStream2(context, &out, &in, ZSTD_e_end);
    packed.resize(out.pos);
  }
  ZSTD_freeCCtx(context);
  return packed;
}

}  // namespace fovea
