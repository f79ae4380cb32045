// SPDX-License-Identifier: Apache-2.0
// Prepares a run from its options.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "fovea/base/check.h"
#include "fovea/base/machine.h"
#include "fovea/config/json.h"
#include "fovea/data/label_set.h"
#include "fovea/data/parallel/pair_reader.h"
#include "fovea/task/setting_parts.h"
#include "fovea/task/translate/run.h"
#include "fovea/tensor/checksum.h"
#include "fovea/train/schedule.h"

namespace fovea {

namespace {

// Checks the sizes before any file is read.
void check_sizes(const TranslatorSettings& settings) {
  TranslatorConfig probe = settings.model;
  probe.vocabulary = probe.target_vocabulary = kFirstLearnedToken;
  resolve(probe);
}

// Pairs, and which of them validate.
struct PairSet {
  SentencePairs pairs;
  std::vector<bool> validates;
};

PairSet read_set(const TranslatorTextOptions& text, std::uint64_t seed) {
  const PairFiles trains{text.source, text.target, text.train},
      validates{text.valid_source, text.valid_target, text.valid};
  if (trains.empty()) {
    throw Error(ErrorCode::kUsage, "no sentences to train on",
                "name two files: --source FILE --target FILE, or one of pairs: --train FILE");
  }
  PairSet set;
  read_pairs(set.pairs, trains);
  const auto trained = static_cast<std::size_t>(set.pairs.size());
  if (trained == 0) {
    throw Error(ErrorCode::kInputTooSmall,
                fmt::format("there is no pair to train on: {} have an empty side", set.pairs.empty),
                "give files with sentences and their translations");
  }
  if (validates.empty()) {
    set.validates = draw_stratified(std::vector<index>(trained), text.valid_fraction, seed);
    return set;
  }
  read_pairs(set.pairs, validates);
  set.validates.assign(static_cast<std::size_t>(set.pairs.size()), true);
  std::fill_n(set.validates.begin(), trained, false);
  return set;
}

// One side of the pairs to train on, a line each.
std::string joined(const PairSet& set, const std::vector<std::string>& side) {
  std::string all;
  for (std::size_t i = 0; i < side.size(); ++i) {
    if (!set.validates[i]) all.append(side[i]).append(1, '\n');
  }
  return all;
}

constexpr std::string_view kTrainingTargets = "training targets";

std::unique_ptr<Tokenizer> learn(const std::string& kind_name, const std::string& text,
                                 const TranslatorTextOptions& options, std::string_view name) {
  const TokenizerKind& kind = tokenizer_kind(kind_name);
  const bool own = name == kTrainingTargets && !options.target_tokenizer_model.empty();
  const std::string& model = own ? options.target_tokenizer_model : options.tokenizer_model;
  return learn_tokenizer(kind_name, text, name,
                         with_subword_model({.lower = options.lower,
                                             .marks = true,
                                             .split = options.words,
                                             .min_count = options.min_count},
                                            kind.has_model ? model : ""));
}

TranslatorVocabulary learn_vocabulary(const PairSet& set, const TranslatorTextOptions& options) {
  const std::string source = joined(set, set.pairs.source), target = joined(set, set.pairs.target);
  TranslatorVocabulary vocabulary;
  if (options.shared_vocabulary) {
    vocabulary.of_source = learn(options.tokenizer, source + target, options, "training sentences");
    return vocabulary;
  }
  vocabulary.of_source = learn(options.tokenizer, source, options, "training sources");
  vocabulary.of_target = learn(options.target_tokenizer, target, options, kTrainingTargets);
  return vocabulary;
}

// The tokens of one half, and how many of its pairs have no tokens or more than the model reads.
struct PairHalf {
  PairTokens tokens;
  SentencePairs texts;  // of these
  index empty = 0, too_long = 0;
};

PairHalf make_half(const PairSet& set, const TranslatorVocabulary& vocabulary, bool validates,
                   const TranslatorSettings& settings) {
  const index block = settings.model.block;
  const bool keeps_texts = validates || settings.text.subword_sampling > 0;
  PairHalf half;
  for (std::size_t i = 0; i < set.validates.size(); ++i) {
    if (set.validates[i] != validates) continue;
    const PairFit fit =
        append(half.tokens, vocabulary.both(), set.pairs.source[i], set.pairs.target[i], block);
    half.empty += fit == PairFit::kEmpty;
    half.too_long += fit == PairFit::kTooLong;
    if (fit != PairFit::kTaken || !keeps_texts) continue;
    half.texts.source.push_back(set.pairs.source[i]);
    half.texts.target.push_back(set.pairs.target[i]);
  }
  return half;
}

void require_pairs(const PairHalf& half, std::string_view name, index block) {
  if (half.tokens.size() > 0) return;
  throw Error(ErrorCode::kInputTooSmall,
              fmt::format("{}: no pair is left ({} are longer than the {} tokens of --block)", name,
                          half.too_long, block),
              "give more pairs, or a larger --block");
}

std::string fingerprint(const PairTokens& p) {
  return xxh3_128({bytes_of(p.source), bytes_of(p.target), bytes_of(p.source_starts),
                   bytes_of(p.target_starts)});
}

std::string vocabulary_fingerprint(const TranslatorVocabulary& vocabulary) {
  const std::string target =
      vocabulary.of_target ? to_text(vocabulary.of_target->data()) : std::string();
  return xxh3_128({to_text(vocabulary.source().data()), target});
}

std::string length_line(std::string_view name, const PairTokens& pairs) {
  const auto longest = [&](auto length) {
    index most = 0;
    for (index i = 0; i < pairs.size(); ++i) most = std::max(most, length(i));
    return most;
  };
  return fmt::format("{}: {} pair{}, {} source and {} target tokens; longest {} and {}", name,
                     pairs.size(), pairs.size() == 1 ? "" : "s", pairs.source_count(),
                     pairs.target_count(), longest([&](index i) { return pairs.source_length(i); }),
                     longest([&](index i) { return pairs.target_length(i); }));
}

// Adds the share of unknown tokens of a side, without `marks`: "1.2 % of the source", if any.
void add_unknown(std::vector<std::string>& shares, const std::vector<token>& tokens, index marks,
                 const Tokenizer& tokenizer, std::string_view side) {
  const token unknown = tokenizer.special().unknown;
  if (unknown == kNoToken) return;
  const auto count = std::count(tokens.begin(), tokens.end(), unknown);
  shares.push_back(fmt::format(
      "{:.1f} % of the {}",
      100 * static_cast<double>(count) / static_cast<double>(std::ssize(tokens) - marks), side));
}

void describe(TranslatorRun& run, index empty, index too_long) {
  run.overview.push_back(length_line("training", run.training->pairs()));
  if (run.validation) {
    const PairTokens& pairs = run.validation->pairs();
    run.overview.push_back(length_line("validation", pairs));
    std::vector<std::string> shares;
    add_unknown(shares, pairs.source, pairs.size(), run.vocabulary.source(), "source");
    add_unknown(shares, pairs.target, 2 * pairs.size(), run.vocabulary.target(), "target");
    if (!shares.empty()) {
      run.overview.push_back(
          fmt::format("unknown words of the validation: {}", fmt::join(shares, ", ")));
    }
  }
  note_no_validation(run, "--patience and --metric have");
  if (empty > 0) {
    run.notes.push_back(fmt::format("pairs with an empty side: {}; they are left out", empty));
  }
  if (too_long > 0) {
    run.notes.push_back(fmt::format("pairs longer than --block ({} tokens): {}; they are left out",
                                    run.settings.model.block, too_long));
  }
}

// The token that replaces one that is dropped.
token dropped_token(const Tokenizer& tokenizer) {
  const token unknown = tokenizer.special().unknown;
  return unknown == kNoToken ? kPadToken : unknown;
}

std::unique_ptr<PairTraining> training_of(PairTokens pairs, const TranslatorVocabulary& vocabulary,
                                          const TranslatorSettings& s) {
  const TokenDropout dropout{.probability = s.text.token_dropout,
                             .source = dropped_token(vocabulary.source()),
                             .target = dropped_token(vocabulary.target()),
                             .seed = s.recipe.seed};
  return std::make_unique<PairTraining>(std::move(pairs), dropout, s.text.batch_tokens,
                                        s.recipe.accumulate, s.recipe.seed);
}

}  // namespace

TranslatorRun prepare_run(TranslatorSettings settings, std::optional<TranslatorVocabulary> known,
                          RunWeights weights) {
  if (settings.text.target_tokenizer.empty()) {
    settings.text.target_tokenizer = settings.text.tokenizer;
  }
  check_options(settings);
  check_sizes(settings);
  const PairSet set = read_set(settings.text, settings.recipe.seed);
  TranslatorRun run;
  const std::string& base = settings.from.base;
  run.from_base = !base.empty() && weights == RunWeights::kNew;
  run.vocabulary = known          ? std::move(*known)
                   : base.empty() ? learn_vocabulary(set, settings.text)
                                  : load_vocabulary(base, settings);
  TranslatorConfig& model = settings.model;
  model.vocabulary = run.vocabulary.source().vocabulary_size();
  model.target_vocabulary = run.vocabulary.target().vocabulary_size();
  model = resolve(model);
  PairHalf trains = make_half(set, run.vocabulary, false, settings),
           validates = make_half(set, run.vocabulary, true, settings);
  require_pairs(trains, "training", model.block);
  if (validates.too_long + validates.empty > 0) {
    require_pairs(validates, "validation", model.block);
  }
  run.identity = identity_of_run(
      to_json(model), xxh3_128({fingerprint(trains.tokens), fingerprint(validates.tokens)}),
      vocabulary_fingerprint(run.vocabulary));
  const index batch = settings.text.batch_tokens;
  run.training = training_of(std::move(trains.tokens), run.vocabulary, settings);
  if (settings.text.subword_sampling > 0) {
    const auto how = [&](const Tokenizer& tokenizer) {
      return CutAnew{&tokenizer, settings.text.subword_sampling, settings.recipe.seed};
    };
    run.training->cut_anew({.source = std::move(trains.texts.source),
                            .target = std::move(trains.texts.target),
                            .of_source = how(run.vocabulary.source()),
                            .of_target = how(run.vocabulary.target()),
                            .block = model.block});
  }
  run.validation_texts = std::move(validates.texts);
  if (validates.tokens.size() > 0) run.validation.emplace(std::move(validates.tokens), batch);
  if (settings.recipe.evaluate_training) run.trained.emplace(run.training->pairs(), batch);
  resolve_lengths(settings.recipe, run.training->updates_per_epoch(),
                  {.epochs = base.empty() ? kTranslatorEpochs : kEpochsFromBase});
  run.settings = std::move(settings);
  note_warmup(run);
  describe(run, set.pairs.empty + trains.empty + validates.empty,
           trains.too_long + validates.too_long);
  return run;
}

}  // namespace fovea
