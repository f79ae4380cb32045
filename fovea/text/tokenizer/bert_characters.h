// SPDX-License-Identifier: Apache-2.0
// How BERT writes a text before it looks for words (Devlin et al. 2019; the file tokenization.py of
// their code), as the library `tokenizers` does it. That decides with the classes of Unicode 8,
// which never change, so they stand here as they are.
#pragma once

#include <string>
#include <string_view>

namespace fovea {

struct BertNormalizer {
  bool clean = true;    ///< leave out controls, and write each white space as a blank
  bool cjk = true;      ///< a blank before and behind each Chinese character
  bool accents = true;  ///< take characters apart (NFD), and leave out nonspacing marks
  bool lower = true;

  friend bool operator==(const BertNormalizer&, const BertNormalizer&) = default;
};

/// The text as the normalizer writes it. Bytes that are not UTF-8 become U+FFFD, which `clean`
/// leaves out.
std::string normalized(std::string_view text, const BertNormalizer& normalizer);

/// Whether each such character is a word of its own: punctuation, and signs of ASCII.
bool is_bert_punctuation(char32_t c);

}  // namespace fovea
