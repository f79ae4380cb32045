// SPDX-License-Identifier: Apache-2.0
// How a text is written before it is cut, by the normalizers of the library `tokenizers`.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "fovea/text/sentencepiece/normalizer.h"

namespace fovea {

/// Rewrites valid UTF-8; `growing` counts what all rules of a text make of it.
using TextRule = std::function<std::string(std::string_view text, GrowingText& growing)>;

}  // namespace fovea

namespace fovea::text_rule {

/// Puts it before a text that is not empty.
TextRule prepend(std::string front);

/// Each `from`, of which none overlaps another, becomes `to`.
std::string replaced(std::string_view text, std::string_view from, std::string_view to,
                     GrowingText& growing);
TextRule replace(std::string from, std::string to);

/// The same with the white space around it: one blank before and one behind, if they are there.
TextRule replace_with_blanks(std::string from, std::string to);

/// Each run of at least two blanks becomes `to`.
TextRule replace_runs(std::string to);

/// A blank at the beginning and at the end of a line becomes `to`.
TextRule replace_at_ends(std::string to);

enum class Ends { kLeft, kRight, kBoth };
/// Leaves out white space at the ends of a text.
TextRule strip(Ends ends);

/// The normal form C of Unicode 9, which `tokenizers` knows: marks of later versions change their
/// places with no other mark, and later letters stay whole.
std::string composed_by_unicode_9(std::string_view text);
TextRule compose();

/// The rules of SentencePiece (CharsMap) as `tokenizers` uses them: what a reader sees as one
/// character (Unicode 17), of up to 5 bytes, is replaced as a whole by the rule for its first
/// bytes; otherwise each code point by itself. Throws kModelDamaged as CharsMap does.
TextRule precompiled(std::string_view charsmap, std::string_view name);

}  // namespace fovea::text_rule
