// SPDX-License-Identifier: Apache-2.0
#include "fovea/data/tagged/tagged_batch.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "fovea/base/check.h"
#include "fovea/base/random.h"

namespace fovea {

namespace {

constexpr index kMost = std::numeric_limits<std::int32_t>::max();

index at(const std::vector<index>& values, index i) { return values[static_cast<std::size_t>(i)]; }

// Sentences draw from streams that no epoch and no stratum has.
constexpr std::uint64_t kFirstOfSentences = std::uint64_t{1} << 62;

// Each sentence draws from a stream of its own in each update, whatever batch it is in.
void drop_words(TaggedBatch& batch, const WordDropout& dropout, index update) {
  if (dropout.probability == 0) return;
  for (index s = 0; s < batch.size(); ++s) {
    const auto n = static_cast<std::size_t>(s);
    Random random(
        dropout.seed, RandomUse::kBatches,
        kFirstOfSentences + (static_cast<std::uint64_t>(update) << 31) + batch.samples[n]);
    for (std::int32_t w = batch.offsets[n]; w < batch.offsets[n + 1]; ++w) {
      token& word = batch.words[static_cast<std::size_t>(w)];
      if (!dropout.is_rare[static_cast<std::size_t>(word)]) continue;
      if (random.uniform() < dropout.probability) word = dropout.unknown;
    }
  }
}

}  // namespace

index TaggedWords::length(index i) const { return at(starts, i + 1) - at(starts, i); }

index TaggedWords::largest(index n) const {
  std::vector<index> lengths;
  for (index i = 0; i < size(); ++i) lengths.push_back(length(i));
  return sum_of_largest(std::move(lengths), n);
}

index TaggedWords::most_characters(index n) const {
  std::vector<index> characters_of;
  for (index i = 0; i < size(); ++i) {
    characters_of.push_back(at(character_starts, at(starts, i + 1)) -
                            at(character_starts, at(starts, i)) + marks());
  }
  return sum_of_largest(std::move(characters_of), n);
}

bool TaggedBatch::lacks_tag() const {
  return std::any_of(tags.begin(), tags.end(), [](const std::vector<std::int32_t>& column) {
    return std::find(column.begin(), column.end(), kNoTag) != column.end();
  });
}

void cut_middle(std::vector<token>& characters, index begin) {
  constexpr index kMostOfWord = 256;
  const index count = std::ssize(characters) - begin;
  if (count <= kMostOfWord) return;
  const auto first = characters.begin() + begin;
  characters.erase(first + kMostOfWord / 2, first + (count - kMostOfWord / 2));
}

void append(TaggedBatch& batch, const TaggedWords& all, index i) {
  check(i >= 0 && i < all.size(), "batch: there is no sentence {} of {}", i, all.size());
  const index begin = at(all.starts, i), end = at(all.starts, i + 1);
  const index first = at(all.character_starts, begin), last = at(all.character_starts, end);
  if (batch.tokens() + end - begin > kMost ||
      static_cast<index>(batch.characters.size()) + last - first > kMost) {
    fail(ErrorCode::kOptionValue, "batch: {} words and {} characters are more than it can hold",
         batch.tokens() + end - begin, static_cast<index>(batch.characters.size()) + last - first);
  }
  const auto add = [](auto& to, const auto& from, index a, index b) {
    to.insert(to.end(), from.begin() + a, from.begin() + b);
  };
  const auto before = static_cast<index>(batch.characters.size()) - first;
  add(batch.words, all.words, begin, end);
  add(batch.shapes, all.shapes, begin, end);
  batch.tags.resize(all.tags.size());
  for (std::size_t c = 0; c < all.tags.size(); ++c) add(batch.tags[c], all.tags[c], begin, end);
  add(batch.characters, all.characters, first, last);
  for (index w = begin + 1; w <= end; ++w) {
    batch.character_offsets.push_back(
        static_cast<std::int32_t>(before + at(all.character_starts, w)));
  }
  batch.offsets.push_back(static_cast<std::int32_t>(batch.tokens()));
  batch.samples.push_back(static_cast<std::uint64_t>(i));
  batch.before = all.before;
  batch.after = all.after;
}

void WordTexts::append(std::string_view word) {
  bytes += word;
  starts.push_back(std::ssize(bytes));
}

std::string_view WordTexts::operator[](index word) const {
  const index begin = at(starts, word);
  return std::string_view(bytes).substr(static_cast<std::size_t>(begin),
                                        static_cast<std::size_t>(at(starts, word + 1) - begin));
}

TaggedTraining::TaggedTraining(TaggedWords words, WordDropout dropout,
                               const EpochOrderOptions& order)
    : words_(std::move(words)),
      dropout_(std::move(dropout)),
      batch_size_(order.batch_size),
      order_(order.of(words_.size())) {}

void TaggedTraining::cut_anew(WordTexts texts) {
  check(texts.size() == words_.word_count(), "sentences: there are texts of {} words for {}",
        texts.size(), words_.word_count());
  texts_ = std::move(texts);
  if (most_characters() <= kMost) return;
  fail(ErrorCode::kOptionValue, "subwords: a batch may have {}, at most {} are possible",
       most_characters(), kMost);
}

index TaggedTraining::most_characters() const {
  return words_.most_characters(batch_size_) * (texts_.size() > 0 ? kMostOfUsualCut : 1);
}

// Puts the cut of this epoch in the place of that of sentence i, the last of the batch.
void TaggedTraining::replace_cut(TaggedBatch& batch, index i, index epoch) const {
  const index begin = at(words_.starts, i), end = at(words_.starts, i + 1);
  const index usual = at(words_.character_starts, end) - at(words_.character_starts, begin);
  const index before = static_cast<index>(batch.characters.size()) - usual;
  std::vector<token> drawn;
  std::vector<std::int32_t> offsets;
  for (index w = begin; w < end; ++w) {
    const index first = std::ssize(drawn);
    const std::vector<token> of_word = drawn_cut(texts_.how, texts_[w], epoch, w);
    drawn.insert(drawn.end(), of_word.begin(), of_word.end());
    cut_middle(drawn, first);
    if (std::ssize(drawn) > kMostOfUsualCut * usual) return;
    offsets.push_back(static_cast<std::int32_t>(before + std::ssize(drawn)));
  }
  batch.characters.resize(static_cast<std::size_t>(before));
  batch.characters.insert(batch.characters.end(), drawn.begin(), drawn.end());
  std::copy(offsets.begin(), offsets.end(), batch.character_offsets.end() - std::ssize(offsets));
}

TaggedBatch TaggedTraining::batch(index update, index number) {
  TaggedBatch batch;
  for (const index i : order_.batch(update, number, [&](index n) { return words_.length(n); })) {
    append(batch, words_, i);
    if (texts_.size() > 0) replace_cut(batch, i, update / updates_per_epoch());
  }
  drop_words(batch, dropout_, update);
  return batch;
}

TaggedEvaluation::TaggedEvaluation(TaggedWords words, index batch_size)
    : words_(std::move(words)), batch_size_(batch_size) {
  const auto n = static_cast<std::size_t>(words_.size());
  std::vector<index> order(n);
  std::iota(order.begin(), order.end(), index{0});
  std::vector<bool> lacks(n);
  for (const std::vector<std::int32_t>& tags : words_.tags) {
    for (std::size_t i = 0; i < n; ++i) {
      const auto end = tags.begin() + words_.starts[i + 1];
      if (std::find(tags.begin() + words_.starts[i], end, kNoTag) != end) lacks[i] = true;
    }
  }
  const auto lacks_tag = [&](index i) { return bool{lacks[static_cast<std::size_t>(i)]}; };
  std::stable_sort(order.begin(), order.end(), [&](index a, index b) {
    if (lacks_tag(a) != lacks_tag(b)) return lacks_tag(b);
    return words_.length(a) > words_.length(b);
  });
  for (const index i : order) {
    const bool full = batches_.empty() ||
                      static_cast<index>(batches_.back().size()) == batch_size_ ||
                      lacks_tag(batches_.back().back()) != lacks_tag(i);
    if (full) batches_.emplace_back();
    batches_.back().push_back(i);
  }
}

TaggedBatch TaggedEvaluation::operator[](index i) const {
  check(i >= 0 && i < size(), "evaluation: there is no batch {} of {}", i, size());
  TaggedBatch batch;
  for (const index sentence : batches_[static_cast<std::size_t>(i)]) {
    append(batch, words_, sentence);
  }
  return batch;
}

}  // namespace fovea
