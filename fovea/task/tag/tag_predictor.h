// SPDX-License-Identifier: Apache-2.0
// Predictions of a tagger for many sentences: fast, and with the same bits however they come.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/base/context.h"
#include "fovea/data/tagged/tagged_reader.h"
#include "fovea/task/length_batches.h"
#include "fovea/task/tag/tagger.h"

namespace fovea {

/// Whether the probabilities of the tags are computed, too.
enum class TagProbabilities { kNo, kYes };

/// The tags of a sentence in one tag column.
struct TaggedByModel {
  std::vector<std::int32_t> tags;    ///< [words]
  std::vector<float> probabilities;  ///< [words, tags of the model], or none
};

/// Cuts sentences into batches of about the same length and gives each thread batches of its own.
/// No bit of a result depends on the other sentences, their order or the number of threads. Belongs
/// to one thread; the memory of one call is kept for the next.
class TagPredictor {
 public:
  /// How many sentences, words or bytes of them are well read before they are tagged: enough to
  /// sort them by length, and little memory.
  static constexpr std::size_t kSentencesAtOnce = 4096, kWordsAtOnce = std::size_t{1} << 17,
                               kBytesAtOnce = std::size_t{16} << 20;

  /// `batch_words`: a batch ends before it would have more words than this (of a model from
  /// elsewhere, tokens). `model` must outlive
  /// the predictor. Throws kOutOfMemory if there is no room for such batches.
  TagPredictor(const Context& context, const LoadedTagger& model, index batch_words = 2048);

  /// The tags of each sentence, which has any number of words: [tag columns]. Sentences longer than
  /// LoadedTagger::longest() are read in pieces. A model that is, or began, from elsewhere says of
  /// a word what it says of its first subword; one without a subword, which it does not read, has
  /// the tag O, or else the first one. Throws kModelDamaged for scores that are not finite.
  std::vector<std::vector<TaggedByModel>> tag(
      std::span<const std::vector<std::string>> sentences,
      TagProbabilities probabilities = TagProbabilities::kNo);

  index sentences() const { return sentences_; }
  index words() const { return words_; }
  index cut() const { return cut_; }  ///< sentences that were read in pieces
  /// The seconds of all calls so far, without reading words into numbers.
  double model_seconds() const { return tapes_.seconds(); }

 private:
  void read(std::span<const std::vector<std::string>> sentences);
  void read_own(std::span<const std::string> words);
  void read_subwords(std::span<const std::string> words);
  index length_of(index piece) const;
  using Results = std::vector<std::vector<TaggedByModel>>;  // [sentences], [tag columns]

  TaggedByModel untagged(std::size_t words, std::size_t column,
                         TagProbabilities probabilities) const;
  void tag_batch(Tape& tape, std::span<const index> batch, TagProbabilities probabilities,
                 Results& results) const;
  // The words of a batch, one after another.
  struct BatchTags {
    std::vector<std::int32_t> tags;
    std::vector<double> probabilities{};  // [words, tags], or none
  };

  BatchTags tags_by_model(const Context& context, const TagScores& scores, std::size_t column,
                          TagProbabilities probabilities) const;
  // Stores the tags of a batch's sentences in a column.
  void hand_out(const Tape& tape, const TaggedBatch& batch, const TagScores& scores,
                std::size_t column, TagProbabilities probabilities, Results& results) const;

  const Context context_;
  const LoadedTagger& model_;
  const index batch_words_;
  BatchTapes tapes_;
  TaggedWords read_;  // a sentence for each piece; subwords of a model from elsewhere
  std::vector<std::size_t> sentence_of_;  // of each piece
  std::vector<index> place_of_;           // of each word that is read, in its sentence
  index sentences_ = 0, words_ = 0, cut_ = 0;
};

/// A word that a segmenter found: bytes `begin` to `end` of the line.
struct FoundWord {
  std::size_t begin = 0, end = 0;
  std::string tag = {};  ///< of a segmenter that has learned tags, too

  bool operator==(const FoundWord&) const = default;
};

/// The words of a line by the tags of its characters (characters_of()). White space ends a word,
/// and none begins within a grapheme cluster, whatever the tags say.
std::vector<FoundWord> words_of(std::string_view line, const TagSet& tags,
                                const TaggedByModel& found);

/// The line, each of its characters as it was, with a blank before each word that does not stand at
/// the front or behind white space, and "/TAG" behind one that has a tag.
std::string segmented(std::string_view line, std::span<const FoundWord> words);

/// The words of plain text as a sentence of one column.
TaggedSentence sentence_of(std::string_view text, WordSplit split);

struct TagLineOptions {
  TaggedFormat format = TaggedFormat::kConll;
  TagProbabilities probabilities = TagProbabilities::kNo;  ///< kYes: a column behind each of tags
};

/// The tags of a column, and those that the model found.
struct TaggedColumn {
  const TagSet& tags;
  const TaggedByModel& found;
  std::string_view name = {};  ///< of one among several
};

/// The lines of a sentence with a column of tags for each of these. Beside lines of no word stands
/// O; of CoNLL-U _.
std::string tagged_lines(const TaggedSentence& sentence, std::span<const TaggedColumn> columns,
                         const TagLineOptions& options);

/// An object in one line: "words", "tags"; with a scheme "spans", each with "type", "begin", "end"
/// and "text"; "probabilities" of the tags, if there are any. With several columns "words" and
/// "columns", each with "column", its name, and the rest.
std::string tagged_json(const TaggedSentence& sentence, std::span<const TaggedColumn> columns);
/// The object of a segmenter: "text", "words", "tags" if it has learned them; "probabilities" of
/// the tags of the characters.
std::string segmented_json(std::string_view line, const TagSet& tags, const TaggedByModel& found);

}  // namespace fovea
