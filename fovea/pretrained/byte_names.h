// SPDX-License-Identifier: Apache-2.0
// How vocabularies of other programs name our tokens of bytes and the marks before them.
#pragma once

#include <array>
#include <string>
#include <string_view>

namespace fovea {

/// Of kPadToken, kBeginToken and kEndToken: bytes and characters have no text for them, and these
/// names occur in no usual text.
inline constexpr std::array<std::string_view, 3> kMarkNames = {"<|pad|>", "<|begin|>", "<|end|>"};

/// The letter of name_of_bytes() for a byte.
std::string character_of_byte(int byte);

/// "<0x0A>", as SentencePiece names its bytes.
std::string name_of_byte(int byte);

}  // namespace fovea
