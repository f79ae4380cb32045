// SPDX-License-Identifier: Apache-2.0
// Where the time of an update of the tagger of bench/tag.py goes:
//
//   fovea_bench_tagger LENGTH THREADS UPDATES
//
// 32 sentences of LENGTH words, of five characters each, with the tags O, B and I of six types. As
// in `train tag`, the best paths are found, too, which count the right tags. What makes a batch
// (order, word dropout) is left out: the sentences are the same in each update. Prints {"seconds":
// the median of an update, "fastest": the fastest, "parts": [...]}; a part is a kernel with its
// time and speed in an update.
#include "fovea/model/tagger.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "fovea/base/clock.h"
#include "fovea/base/profile.h"
#include "fovea/metrics/tag_scheme.h"
#include "fovea/train/optimizer.h"

namespace fovea {
namespace {

constexpr index kBatch = 32, kLetters = 5, kTypes = 6;

TaggerConfig config() {
  TaggerConfig c;
  c.encoder = "bilstm:200";
  c.vocabulary = 12000;
  c.characters = 100;
  c.shape_width = 0;
  c.input_dropout = .3;
  c.output_dropout = .5;
  c.bias = true;
  c.tags = {1 + 2 * kTypes};
  return c;
}

/// O, and B and I of each type.
std::vector<ParsedTag> tags() {
  std::vector<ParsedTag> all{{}};
  for (std::int32_t type = 0; type < kTypes; ++type) {
    all.push_back({TagPart::kBegin, type});
    all.push_back({TagPart::kInside, type});
  }
  return all;
}

Tagger make_model() {
  const TagRules rules = rules_of(tags(), TagScheme::kBio);
  const CrfRules of_column[] = {{rules.transitions, rules.start, rules.end}};
  return {config(), of_column, 1};
}

class Training {
 public:
  explicit Training(index length) : model_(make_model()), optimizer_(model_.parameters()) {
    Random random(1, RandomUse::kTest);
    const TaggerConfig c = config();
    const auto below = [&](index n) { return static_cast<std::int32_t>(random.below(n)); };
    for (index n = 0; n < kBatch * length; ++n) {
      words_.push_back(below(c.vocabulary));
      tags_.push_back(next_tag(below(c.tags.front()), n % length == 0));
      for (index letter = 0; letter < kLetters; ++letter)
        characters_.push_back(below(c.characters));
      ends_.push_back(static_cast<std::int32_t>(characters_.size()));
      if ((n + 1) % length == 0) offsets_.push_back(static_cast<std::int32_t>(n + 1));
    }
    for (std::uint64_t s = 0; s < kBatch; ++s) samples_.push_back(s);
  }

  void update(Tape& tape) {
    tape.reset(TapeMode::kTrain);
    const TaggerLossOptions options{
        .scale = 1 / static_cast<double>(words_.size()),
        .dropout = {.seed = 1, .step = static_cast<std::uint64_t>(step_)}};
    const TaggedRows rows = batch();
    const TagScores scores = model_.scores(tape, rows.rows, options);
    model_.best_tags(tape.context(), scores);
    tape.backward(model_.loss_of(tape, scores, rows.tags, options));
    optimizer_.gradient_norm(tape.context());
    optimizer_.step(tape.context(), {.options = {.lr = 1e-3}, .step = ++step_});
  }

 private:
  /// This tag, or the B of its type where I may not stand.
  std::int32_t next_tag(std::int32_t tag, bool is_first) const {
    const bool is_inside = tag > 0 && tag % 2 == 0;
    const bool goes_on = !is_first && (tags_.back() == tag || tags_.back() == tag - 1);
    return is_inside && !goes_on ? tag - 1 : tag;
  }
  template <class T>
  static Vec<const T> view(const std::vector<T>& values) {
    return {values.data(), static_cast<index>(values.size())};
  }
  TaggedRows batch() const {
    return {.rows = {.words = view(words_),
                     .characters = view(characters_),
                     .character_offsets = view(ends_),
                     .offsets = view(offsets_),
                     .samples = view(samples_)},
            .tags = {view(tags_)}};
  }

  Tagger model_;
  Optimizer optimizer_;
  index step_ = 0;
  std::vector<std::int32_t> words_, tags_, characters_, ends_{0}, offsets_{0};
  std::vector<std::uint64_t> samples_;
};

void print_parts(index length, int threads) {
  constexpr int kUpdates = 20;
  Training training(length);
  Profile profile;
  Tape tape(Context(threads).profiled(profile));
  for (int i = 0; i < 3; ++i) training.update(tape);  // the tape's memory settles
  profile.clear();
  for (int i = 0; i < kUpdates; ++i) training.update(tape);
  for (const Profile::Part& part : profile.parts()) {
    const auto& [rows, columns, depth] = part.work.shape;
    fmt::print(
        "  {{\"what\": \"{}\", \"shape\": [{}, {}, {}], \"seconds\": {:.3e}, \"gflops\": "
        "{:.1f}}},\n",
        part.work.what, rows, columns, depth, part.seconds / kUpdates,
        part.work.flops / part.seconds * 1e-9);
  }
  fmt::print(
      "  {{\"what\": \"waiting\", \"shape\": [0, 0, 0], \"seconds\": {:.3e}, \"gflops\": 0}}\n",
      profile.waiting_seconds() / kUpdates);
}

int run(char** arguments) {
  const auto number = [&](int i) { return index{std::atoll(arguments[i])}; };
  const int threads = static_cast<int>(number(2));
  Training training(number(1));
  Tape tape{Context(threads)};
  for (int i = 0; i < 3; ++i) training.update(tape);
  std::vector<double> seconds;
  for (index i = 0; i < number(3); ++i) {
    const double begin = monotonic_seconds();
    training.update(tape);
    seconds.push_back(monotonic_seconds() - begin);
  }
  fmt::print("{{\"seconds\": {:.4e}, \"fastest\": {:.4e}, \"parts\": [\n", median(seconds),
             *std::min_element(seconds.begin(), seconds.end()));
  print_parts(number(1), threads);
  fmt::print("]}}\n");
  return EXIT_SUCCESS;
}

}  // namespace
}  // namespace fovea

int main(int count, char** arguments) {
  if (count != 4) {
    fmt::print(stderr, "usage: {} LENGTH THREADS UPDATES\n", arguments[0]);
    return EXIT_FAILURE;
  }
  return fovea::run(arguments);
}
