// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "fovea/data/batcher.h"
#include "fovea/data/epoch_order.h"
#include "fovea/data/examples.h"
#include "fovea/data/parallel/pair_batch.h"
#include "fovea/data/tagged/tagged_batch.h"
#include "tests/data/support.h"
#include "tests/support/throws.h"
#include "tests/text/tokenizer/pieces.h"

namespace fovea {
namespace {

const std::string& text() {
  static const std::string all = lines_of_parts(200);
  return all;
}

const Tokenizer& pieces() {
  static const auto made = piece_tokenizer(piece_model_of(text()));
  return *made;
}

const std::vector<std::string>& lines() {
  static const std::vector<std::string> all = [] {
    std::vector<std::string> found;
    for (std::string_view rest = text(); !rest.empty();) {
      found.emplace_back(rest.substr(0, rest.find('\n')));
      rest.remove_prefix(found.back().size() + 1);
    }
    return found;
  }();
  return all;
}

// The tokens of each sequence of an epoch, by its number.
std::map<std::uint64_t, std::vector<token>> epoch_of(TrainingBatches& batches, index epoch,
                                                     const BatchOptions& options) {
  std::map<std::uint64_t, std::vector<token>> found;
  for (index u = 0; u < batches.updates_per_epoch(); ++u) {
    const Batch batch = batches.batch(epoch * batches.updates_per_epoch() + u, 0);
    expect_sound(batch, options);
    EXPECT_LE(batch.tokens(), batches.largest_batch());
    for (std::size_t s = 0; s < batch.samples.size(); ++s) {
      found[batch.samples[s]] = {batch.ids.begin() + batch.offsets[s],
                                 batch.ids.begin() + batch.offsets[s + 1]};
    }
  }
  return found;
}

TEST(CutAnew, LinesOfEachEpochAreCutAnew) {
  const BatchOptions options{
      .block = 12, .batch_size = 8, .seed = 3, .max_length = 0, .subword_sampling = 0.3};
  const auto first = shuffled_lines(text(), pieces(), options),
             second = shuffled_lines(text(), pieces(), options);
  auto plain_options = options;
  plain_options.subword_sampling = 0;
  const auto plain = shuffled_lines(text(), pieces(), plain_options);
  EXPECT_EQ(first->updates_per_epoch(), plain->updates_per_epoch());
  const auto zero = epoch_of(*first, 0, options), one = epoch_of(*first, 1, options);
  EXPECT_NE(zero, one);
  EXPECT_EQ(zero.size(), one.size());
  EXPECT_EQ(one, epoch_of(*second, 1, options)) << "as a resumed run would see it";
  EXPECT_EQ(zero, epoch_of(*first, 0, options));
  EXPECT_NE(zero, epoch_of(*plain, 0, options));
}

TEST(CutAnew, LongLinesKeepTheirNumberOfSlices) {
  std::string long_lines;
  for (std::size_t n = 0; n < lines().size(); ++n)
    long_lines += lines()[n] + (n % 8 < 7 ? " " : "\n");
  const BatchOptions options{.block = 16, .batch_size = 4, .subword_sampling = 0.5};
  const auto batches = shuffled_lines(long_lines, pieces(), options);
  const auto zero = epoch_of(*batches, 0, options);
  EXPECT_EQ(zero.size(), batches->sequences().slices.size());
  EXPECT_NE(zero, epoch_of(*batches, 1, options));
}

TEST(CutAnew, BlocksOfEachEpochAreCutAnew) {
  const BatchOptions options{.block = 10, .batch_size = 4, .seed = 3, .subword_sampling = 0.3};
  const auto first = random_blocks(text(), pieces(), options),
             second = random_blocks(text(), pieces(), options);
  const index epoch = first->updates_per_epoch();
  const auto whole = [&](TrainingBatches& batches, index update) {
    return batches.batch(update, 0).ids;
  };
  const auto later = whole(*first, epoch + 1);
  EXPECT_EQ(whole(*first, 1).size(), later.size());
  EXPECT_EQ(whole(*second, epoch + 1), later);
  std::vector<token> drawn = drawn_cut({&pieces(), 0.3, 3}, text(), 1, 0);
  EXPECT_NE(std::search(drawn.begin(), drawn.end(), later.begin(), later.begin() + 10),
            drawn.end());
}

PairTokens pairs_of_lines() {
  PairTokens pairs;
  for (std::size_t n = 1; n < lines().size(); ++n) {
    EXPECT_EQ(append(pairs, {pieces(), pieces()}, lines()[n - 1], lines()[n], 100),
              PairFit::kTaken);
  }
  return pairs;
}

TEST(CutAnew, PairsOfEachEpochAreCutAnew) {
  const auto made = [] {
    auto training = std::make_unique<PairTraining>(pairs_of_lines(), TokenDropout{}, 100, 1, 1);
    const CutAnew how{&pieces(), 0.3, 7};
    training->cut_anew({.source = {lines().begin(), lines().end() - 1},
                        .target = {lines().begin() + 1, lines().end()},
                        .of_source = how,
                        .of_target = how,
                        .block = 100});
    return training;
  };
  const auto epoch_of = [](PairTraining& training, index epoch) {
    std::map<std::uint64_t, std::pair<std::vector<token>, std::vector<token>>> found;
    for (index u = 0; u < training.updates_per_epoch(); ++u) {
      const PairBatch batch = training.batch(epoch * training.updates_per_epoch() + u, 0);
      EXPECT_LE(batch.target_count(), training.largest_target());
      EXPECT_LE(std::ssize(batch.source), training.largest_source());
      for (std::size_t s = 0; s < batch.samples.size(); ++s) {
        found[batch.samples[s]] = {{batch.source.begin() + batch.source_offsets[s],
                                    batch.source.begin() + batch.source_offsets[s + 1] - 1},
                                   {batch.targets.begin() + batch.target_offsets[s],
                                    batch.targets.begin() + batch.target_offsets[s + 1] - 1}};
      }
    }
    return found;
  };
  const auto training = made(), other = made();
  const auto zero = epoch_of(*training, 0), one = epoch_of(*training, 1);
  EXPECT_NE(zero, one);
  EXPECT_EQ(one, epoch_of(*other, 1));
  ASSERT_EQ(zero.size(), lines().size() - 1);
  for (const auto& [pair, tokens] : zero) {
    EXPECT_EQ(pieces().decode(tokens.first), lines()[pair]);
    EXPECT_EQ(pieces().decode(tokens.second), lines()[pair + 1]);
  }
}

struct TextsOfLines {
  TaggedWords sentences = {};
  WordTexts texts = {.how = {&pieces(), 0.3, 7}};
};

// A sentence a line, and its words one after another.
TextsOfLines words_of_lines() {
  TextsOfLines all;
  TaggedWords& sentences = all.sentences;
  WordTexts& texts = all.texts;
  for (std::string_view rest : lines()) {
    while (!rest.empty()) {
      const std::string_view word = rest.substr(0, rest.find(' '));
      rest.remove_prefix(std::min(rest.size(), word.size() + 1));
      pieces().append_tokens(sentences.characters, word, "word");
      sentences.character_starts.push_back(std::ssize(sentences.characters));
      sentences.words.push_back(0);
      sentences.shapes.push_back(0);
      texts.append(word);
    }
    sentences.starts.push_back(sentences.word_count());
  }
  return all;
}

TEST(CutAnew, WordsOfEachEpochAreCutAnew) {
  const TextsOfLines all = words_of_lines();
  const TaggedWords& sentences = all.sentences;
  const WordTexts& texts = all.texts;
  const auto made = [&] {
    TaggedTraining training(sentences, {}, {.batch_size = 16, .seed = 1});
    training.cut_anew(texts);
    return training;
  };
  using Words = std::vector<std::vector<token>>;
  const auto epoch_of = [&](TaggedTraining& training, index epoch) {
    std::map<std::uint64_t, Words> found;
    for (index u = 0; u < training.updates_per_epoch(); ++u) {
      const TaggedBatch batch = training.batch(epoch * training.updates_per_epoch() + u, 0);
      EXPECT_LE(std::ssize(batch.characters), training.most_characters());
      EXPECT_EQ(batch.character_offsets.back(), std::ssize(batch.characters));
      EXPECT_EQ(std::ssize(batch.character_offsets), batch.tokens() + 1);
      const auto characters = batch.characters.begin();
      for (std::size_t s = 0; s < batch.samples.size(); ++s) {
        for (auto w = static_cast<std::size_t>(batch.offsets[s]);
             w < static_cast<std::size_t>(batch.offsets[s + 1]); ++w) {
          found[batch.samples[s]].push_back({characters + batch.character_offsets[w],
                                             characters + batch.character_offsets[w + 1]});
        }
      }
    }
    return found;
  };
  TaggedTraining training = made(), other = made(),
                 plain(sentences, {}, {.batch_size = 16, .seed = 1});
  const auto zero = epoch_of(training, 0), one = epoch_of(training, 1);
  EXPECT_NE(zero, one);
  EXPECT_NE(zero, epoch_of(plain, 0));
  EXPECT_EQ(one, epoch_of(other, 1)) << "as a resumed run would see it";
  ASSERT_EQ(std::ssize(zero), sentences.size());
  for (const auto& [sentence, words] : zero) {
    std::string text;
    for (const auto& word : words) text += (text.empty() ? "" : " ") + pieces().decode(word);
    EXPECT_EQ(text, lines()[sentence]);
  }
}

// Where nearly all merges are left out, a cut may have more than twice the usual pieces.
TEST(CutAnew, ASentenceWithTooManyPiecesKeepsItsUsualCut) {
  const auto bpe = piece_tokenizer(piece_model_of(text(), {.kind = PieceAlgorithm::kBpe}));
  TaggedWords sentences;
  WordTexts texts{.how = {bpe.get(), 0.97, 1}};
  for (const char* word : {"thekatomi", "ka", "ingrensol", "thething"}) {
    bpe->append_tokens(sentences.characters, word, "word");
    sentences.character_starts.push_back(std::ssize(sentences.characters));
    sentences.words.push_back(0);
    sentences.shapes.push_back(0);
    texts.append(word);
    sentences.starts.push_back(sentences.word_count());
  }
  TaggedTraining training(sentences, {}, {.batch_size = 1, .seed = 1});
  training.cut_anew(texts);
  index longer = 0, usual = 0;
  for (index update = 0; update < 4 * 50; ++update) {
    const TaggedBatch batch = training.batch(update, 0);
    const auto i = static_cast<std::size_t>(batch.samples[0]);
    const index pieces = sentences.character_starts[i + 1] - sentences.character_starts[i];
    const auto drawn =
        drawn_cut(texts.how, texts[static_cast<index>(i)], update / 4, static_cast<index>(i));
    if (std::ssize(drawn) > kMostOfUsualCut * pieces) {
      EXPECT_TRUE(std::equal(batch.characters.begin(), batch.characters.end(),
                             sentences.characters.begin() + sentences.character_starts[i],
                             sentences.characters.begin() + sentences.character_starts[i + 1]));
      ++usual;
    } else {
      EXPECT_EQ(batch.characters, drawn);
      longer += std::ssize(drawn) > pieces;
    }
  }
  EXPECT_GT(usual, 0);
  EXPECT_GT(longer, 0);
}

TEST(CutAnew, TextsOfOtherWordsAreRefused) {
  TextsOfLines all = words_of_lines();
  all.texts.append("more");
  TaggedTraining training(all.sentences, {}, {.batch_size = 16, .seed = 1});
  EXPECT_THROWS(training.cut_anew(all.texts), kShape, "sentences: there are texts of");
}

TEST(CutAnew, ExamplesOfEachEpochAreCutAnew) {
  Examples examples;
  for (const std::string& line : lines()) {
    const std::vector<token> ids = pieces().encode(line);
    examples.stream.insert(examples.stream.end(), ids.begin(), ids.end());
    examples.starts.push_back(std::ssize(examples.stream));
    examples.numbers.push_back(1);
    examples.label_starts.push_back(0);
  }
  ExampleTraining training(examples, {TargetKind::kNumber, 1}, {.batch_size = 16, .seed = 1});
  const auto epoch_of = [&](index epoch) {
    std::map<std::uint64_t, std::vector<token>> found;
    for (index u = 0; u < training.updates_per_epoch(); ++u) {
      const ExampleBatch batch = training.batch(epoch * training.updates_per_epoch() + u, 0);
      EXPECT_LE(batch.tokens(), training.largest_batch());
      EXPECT_EQ(batch.offsets.back(), batch.tokens());
      for (std::size_t s = 0; s < batch.samples.size(); ++s) {
        found[batch.samples[s]] = {batch.ids.begin() + batch.offsets[s],
                                   batch.ids.begin() + batch.offsets[s + 1]};
      }
    }
    return found;
  };
  const auto plain = epoch_of(0);
  training.cut_anew({.texts = lines(), .how = {&pieces(), 0.3, 7}, .most = 60});
  const auto zero = epoch_of(0), one = epoch_of(1);
  EXPECT_NE(plain, zero);
  EXPECT_NE(zero, one);
  EXPECT_EQ(zero, epoch_of(0));
  for (const auto& [number, ids] : one) EXPECT_EQ(pieces().decode(ids), lines()[number]);
  training.cut_anew({.texts = lines(), .how = {&pieces(), 0.3, 7}, .most = 5});
  for (const auto& [number, ids] : epoch_of(0))
    EXPECT_LE(ids.size(), std::max<std::size_t>(5, plain.at(number).size()));
}

}  // namespace
}  // namespace fovea
