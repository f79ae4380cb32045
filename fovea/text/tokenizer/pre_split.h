// SPDX-License-Identifier: Apache-2.0
// How byte-level BPE cuts a text before it joins bytes: no token reaches over such a cut. Models
// give these cuts as regular expressions; the scanners here do what those say, with the classes of
// Unicode.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace fovea {

enum class SplitPattern : std::uint8_t {
  /// 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+     (GPT-2)
  kGpt2,
  /// (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,n}| ?[^\s\p{L}\p{N}]+[\r\n]*|
  /// \s*[\r\n]+|\s+(?!\S)|\s+                                             (GPT-4: cl100k)
  kCl100k,
  kNone,  ///< the text is one part
};

/// A row for each name that a model gives its cuts.
struct PreSplit {
  std::string_view name;  ///< tokenizer.ggml.pre of a GGUF file: "smollm"
  SplitPattern pattern = SplitPattern::kGpt2;
  int digits = 0;              ///< kCl100k: most digits of a part, n above
  bool digits_apart = false;   ///< kGpt2: each digit is a part, before the pattern is looked for
  bool begins = false;         ///< a text begins with the mark, unless the file says otherwise
  bool ignore_merges = false;  ///< a part that is a token is that token, whatever could be joined
};

std::span<const PreSplit> pre_splits();

/// Takes the next part from the front of valid UTF-8, which must not be empty.
std::string_view take_part(std::string_view& text, const PreSplit& split);

}  // namespace fovea
