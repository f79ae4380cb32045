// SPDX-License-Identifier: Apache-2.0
// Reading comprehension: which sentence of a passage answers a question? The sentences are the
// queries, the words of the question the keys and values (n sentences, m words), so each sentence
// gets an aligned question embedding: the mean of the question's words, weighted by how much they
// concern it (Su 2018; Seo et al. 2017, "Bidirectional attention flow"). Trained by the tape and
// AdamW on passages that are drawn at random, and tested on new ones.
#include <algorithm>
#include <array>
#include <cstdio>

#include "fovea/base/random.h"
#include "fovea/grad/ops.h"
#include "fovea/nn/attention.h"
#include "fovea/nn/embedding_bag.h"
#include "fovea/train/optimizer.h"

namespace {

using fovea::index;
using fovea::Variable;

// A sentence is a person and a place; a question names both among words that say nothing. Other
// sentences share the person or the place, so neither alone finds the answer.
constexpr index kPeople = 6, kPlaces = 6, kFillers = 4, kSentences = 7, kAsked = 5, kWidth = 32;
constexpr index kWords = kPeople + kPlaces + kFillers;

struct Problems {
  std::vector<std::int32_t> words, word_offsets{0};  // of all sentences; a sentence each
  std::vector<std::int32_t> sentences{0};            // offsets of the passages
  std::vector<std::int32_t> question, questions{0};  // words, and offsets of the questions
  std::vector<float> answers;                        // [sentences] 1: it is the answer
  std::vector<index> answer;                         // [passages]
};

Problems draw(index count, std::uint64_t number) {
  fovea::Random random(1, fovea::RandomUse::kTest, number);
  Problems p;
  for (index n = 0; n < count; ++n) {
    const auto who = static_cast<index>(random.below(kPeople));
    const auto where = static_cast<index>(random.below(kPlaces));
    const auto answer = static_cast<index>(random.below(kSentences));
    for (index s = 0; s < kSentences; ++s) {
      index person = who, place = where;
      if (s != answer && s % 3 != 0) person = (who + 1 + random.below(kPeople - 1)) % kPeople;
      if (s != answer && s % 3 != 1) place = (where + 1 + random.below(kPlaces - 1)) % kPlaces;
      p.words.push_back(static_cast<std::int32_t>(person));
      p.words.push_back(static_cast<std::int32_t>(kPeople + place));
      p.word_offsets.push_back(static_cast<std::int32_t>(p.words.size()));
      p.answers.push_back(s == answer ? 1.0f : 0.0f);
    }
    std::vector<index> asked{who, kPeople + where};
    while (asked.size() < kAsked) asked.push_back(kWords - 1 - random.below(kFillers));
    std::rotate(asked.begin(), asked.begin() + random.below(kAsked), asked.end());
    for (const index word : asked) p.question.push_back(static_cast<std::int32_t>(word));
    p.sentences.push_back(static_cast<std::int32_t>((n + 1) * kSentences));
    p.questions.push_back(static_cast<std::int32_t>(p.question.size()));
    p.answer.push_back(answer);
  }
  return p;
}

template <class T>
fovea::Vec<const T> view(const std::vector<T>& values) {
  return {values.data(), static_cast<index>(values.size())};
}

class Reader {
 public:
  explicit Reader(const fovea::ParameterScope& scope)
      : words_(scope.add("words", {kWords, kWidth}, fovea::Init::normal(0.3))),
        align_({.width = kWidth,
                .context = kWidth,
                .input_init = fovea::linear_uniform_init(kWidth),
                .output_init = fovea::linear_uniform_init(kWidth)},
               scope["align"]),
        hidden_({.in = 3 * kWidth, .out = kWidth, .weight = fovea::linear_uniform_init(3 * kWidth)},
                scope["hidden"]),
        score_({.in = kWidth, .out = 1, .weight = fovea::linear_uniform_init(kWidth)},
               scope["score"]) {}

  // The aligned question embedding of each sentence: [sentences, width].
  Variable align(fovea::Tape& tape, Variable sentences, const Problems& p) const {
    const Variable question =
        embedding(tape, {.table = tape.parameter(words_), .ids = view(p.question)});
    const auto passages = lay_out_rows(tape, sentences.rows(), view(p.sentences), {});
    const auto questions = lay_out_rows(tape, question.rows(), view(p.questions), {});
    return align_.forward(tape, sentences, passages, question, questions);
  }

  // A logit for each sentence, from it, its aligned question, and their products.
  Variable logits(fovea::Tape& tape, const Problems& p) const {
    const Variable sentences = embedding_bag(tape, {.table = tape.parameter(words_),
                                                    .ids = view(p.words),
                                                    .offsets = view(p.word_offsets),
                                                    .mode = fovea::BagMode::kSum});
    const Variable aligned = align(tape, sentences, p);
    const std::array parts{sentences, aligned, multiply(tape, sentences, aligned)};
    const Variable x = hidden_.forward(tape, concat_columns(tape, parts), fovea::Activation::kRelu);
    return score_.forward(tape, x);
  }

 private:
  fovea::Parameter& words_;
  fovea::MultiHeadAttention align_;
  fovea::Linear hidden_, score_;
};

double accuracy(fovea::Tape& tape, const Reader& reader, const Problems& p) {
  tape.reset(fovea::TapeMode::kInference);
  const auto logits = reader.logits(tape, p).value<float>();
  index right = 0;
  for (std::size_t n = 0; n < p.answer.size(); ++n) {
    const float* const first = logits.data + static_cast<index>(n) * kSentences;
    right += std::max_element(first, first + kSentences) - first == p.answer[n] ? 1 : 0;
  }
  return static_cast<double>(right) / static_cast<double>(p.answer.size());
}

void train(fovea::Tape& tape, const Reader& reader, fovea::ParameterSet& set) {
  constexpr index kUpdates = 1200, kBatch = 64;
  fovea::Optimizer optimizer(set.parameters());
  for (index update = 1; update <= kUpdates; ++update) {
    const Problems batch = draw(kBatch, static_cast<std::uint64_t>(update));
    tape.reset(fovea::TapeMode::kTrain);
    const fovea::Rows<const float> answers{batch.answers.data(), kBatch * kSentences, 1};
    tape.backward(binary_cross_entropy(tape, reader.logits(tape, batch), tape.constant(answers), {},
                                       1.0 / kBatch));
    optimizer.step(tape.context(), {.options = {.lr = 3e-3}, .step = update});
  }
}

}  // namespace

int main() {
  fovea::ParameterSet set({.seed = 1});
  const Reader reader{fovea::ParameterScope(set)};
  fovea::Tape tape(fovea::Context(1), fovea::TapeMode::kTrain);
  const Problems test = draw(1000, 0);
  const double before = accuracy(tape, reader, test);
  train(tape, reader, set);
  const double after = accuracy(tape, reader, test);
  std::printf("sentences that answer: %.3f found before training, %.3f after (chance: %.3f)\n",
              before, after, 1.0 / kSentences);
  return before < 0.35 && after > 0.98 ? 0 : 1;
}
