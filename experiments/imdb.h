// SPDX-License-Identifier: Apache-2.0
// Reviews as Keras prepares them (text_to_word_sequence, datasets.imdb, pad_sequences). The
// published figures of E1 to E3 (docs/REPRODUCE.md) were measured on them.
// And a heat map of one review: where a trained classifier of IMDB attends.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/base/context.h"
#include "fovea/base/types.h"
#include "fovea/model/classifier.h"
#include "fovea/text/keyed_hash.h"
#include "fovea/text/vocabulary.h"

namespace fovea {

struct Reviews {
  std::vector<std::string> texts;
  std::vector<std::int32_t> labels;  ///< 1: positive, 0: negative
};

/// Reads lines of "LABEL TAB TEXT LF", packed or not. Only LF ends a line. Throws kInputFormat,
/// "FILE:LINE: ...", for another line, and as read_text_file() does.
Reviews read_reviews(const std::filesystem::path& file);

/// The words of a text: in lower case, where each of !"#$%&()*+,-./:;<=>?@[\]^_`{|}~, TAB and LF is
/// a space, between spaces. An apostrophe belongs to its word.
std::vector<std::string> keras_words(std::string_view text);

/// The ids of Keras that are no words.
inline constexpr token kKerasPad = 0, kKerasStart = 1, kKerasUnknown = 2;

/// Words by their rank: the most frequent one has rank 1 and id 4; of equally frequent ones the one
/// seen first.
class KerasVocabulary {
 public:
  /// Words whose id would be `size` or more become kKerasUnknown.
  KerasVocabulary(std::span<const std::string> texts, index size);

  /// kKerasStart, then an id for each word.
  std::vector<token> encode(std::string_view text) const;

  index distinct_words() const { return static_cast<index>(ranks_.size()); }
  index words() const { return words_; }  ///< of all texts
  /// How often the rarest word that has an id of its own occurs; 0 without any.
  index rarest_kept() const { return rarest_kept_; }

 private:
  index size_;
  index words_ = 0, rarest_kept_ = 0;
  KeyedMap<std::string, index> ranks_;
};

/// The last `length` ids. With `pad`, shorter texts begin with kKerasPad and have `length` ids,
/// too.
std::vector<token> last_ids(std::span<const token> ids, index length, bool pad);

/// A review that is short enough to be read below a picture.
struct ShownReview {
  std::vector<token> ids;
  std::vector<std::string> words;  ///< of the ids behind those of padding
  index padding = 0;               ///< ids of padding in front
};

/// The first positive review of 30 to 60 words, or the first of all.
ShownReview choose_review(const Reviews& reviews, const KerasVocabulary& vocabulary);

/// The review as a model reads it: its last `length` ids; with `pad`, behind ids of padding.
ShownReview window_of(const ShownReview& review, index length, bool pad);

/// An SVG: for each head of the model's only attention the mean weight of each word over all
/// queries of the review. The classifier pools by the mean, so that is how much of the pooled value
/// comes from that word. The first column sums up the padding, if there is any.
std::string draw_review_attention(const Context& context, const Classifier& model,
                                  const ShownReview& review, std::string_view title);

}  // namespace fovea
