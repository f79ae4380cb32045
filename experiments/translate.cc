// SPDX-License-Identifier: Apache-2.0
// E7: the translators of chapter 7 of Hands-on NLP, of 2,003 Chinese titles of books and their
// English translations. All are learned, and none is held out, as there: the source reads a pair at
// a time for 20 epochs; here a batch has about 256 target tokens (of the GRU 128), and there are 40
// epochs. E14: a Transformer with and without positions, of English captions of pictures and their
// German translations.
#include "experiments/translate.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "experiments/experiment.h"
#include "fovea/base/check.h"
#include "fovea/base/file.h"
#include "fovea/base/types.h"
#include "fovea/base/words.h"
#include "fovea/data/table/line_reader.h"
#include "fovea/metrics/translation.h"
#include "fovea/task/translate/evaluate.h"
#include "fovea/task/translate/line_translator.h"
#include "fovea/task/translate/run.h"
#include "fovea/text/python_text.h"
#include "fovea/text/utf8.h"

namespace fovea {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kTitlesOrigin =
    "Hands-on NLP (github boyu-ai/Hands-on-NLP, commit 3a511b8), chapter 7";
constexpr DataFile kTitlesChinese{
    "zh_en_handson/zh.txt", "4e0b45454b546ed46379d83ee592fc3e",
    "26cc4cbfd179da8ee6e32fa168cd271a5960353f783d0f0d6f95e064b60ba013", kTitlesOrigin};
constexpr DataFile kEnglish{"zh_en_handson/en.txt", "597a437801d51db73b4b383d370f78f6",
                            "ab40432953366555a89400f2c885b02865d5c7774d144250c9a546df1c3453f7",
                            kTitlesOrigin};

constexpr std::string_view kCaptionsOrigin =
    "Multi30k (github multi30k/dataset, commit a3d2e0d), data/task1/raw";
struct CaptionFiles {
  std::string_view name;
  DataFile source, target;
};
constexpr CaptionFiles kCaptionsTrain{
    "train",
    {"multi30k/train.en.gz", "d81a497676bb2220a820801dd7bf8c28",
     "d79cfa999dd4c51d2cb42499b6796d5a882c3a8a961923c25a898c90f8bbd56f", kCaptionsOrigin},
    {"multi30k/train.de.gz", "9b609b7975c01f4ccfcf7e4717686545",
     "726e39b2fa9eb9ffb6dc763fb35a179f80fae06ffc5d28b6ace5faa883de28a6", kCaptionsOrigin}};
constexpr CaptionFiles kCaptionsValid{
    "valid",
    {"multi30k/val.en.gz", "31331f0cf7f86a71ba5fe51e744459ef",
     "14f7d25ddd868909a9213e361768460edcacdd6ab9d1e77b92560dc10c10dc28", kCaptionsOrigin},
    {"multi30k/val.de.gz", "8290970b2871e9a4804ec75fdc6d1dba",
     "f0cba2f995189cf5770f29a8a9a537a3ad3f51657ad873405082ff6863a5e75a", kCaptionsOrigin}};
constexpr CaptionFiles kCaptionsTest{
    "test",
    {"multi30k/test_2016_flickr.en.gz", "974f6af120b665c3fdcbeadbe3f2f761",
     "611d361c6334bc7246101d48097c13cf5c4413c5befc793cc629934359d532d9", kCaptionsOrigin},
    {"multi30k/test_2016_flickr.de.gz", "922331e1007034ed76ac77d9079e3cf8",
     "9204244e408ccb38d2a55cfcd344df15005fc42a07a6e55ca6c52b6ababb8cc8", kCaptionsOrigin}};

// Sentences as words with spaces between them, and the tables of pairs that a run reads.
struct Texts {
  std::string train, valid;
  SentencePairs measured;
};

// A file of pairs, a tab between the two.
std::string write_table(const fs::path& file, const SentencePairs& pairs) {
  std::string table;
  for (std::size_t n = 0; n < pairs.source.size(); ++n) {
    table += pairs.source[n] + '\t' + pairs.target[n] + '\n';
  }
  write_file_atomically(file, table);
  return fs::absolute(file).string();
}

// A trial takes a part of the pairs.
std::size_t share_of(const ReproduceOptions& options, std::size_t all) {
  constexpr std::size_t kLeast = 16;
  const auto part = static_cast<std::size_t>(std::lround(options.share * static_cast<double>(all)));
  return std::clamp(part, std::min(kLeast, all), all);
}

Texts titles(const ReproduceOptions& options) {
  const std::vector<std::string> chinese =
      read_text_lines(require_data(options.data, kTitlesChinese).string());
  SentencePairs pairs =
      titles_of(chinese, read_text_lines(require_data(options.data, kEnglish).string()));
  const std::size_t kept = share_of(options, pairs.source.size());
  pairs.source.resize(kept);
  pairs.target.resize(kept);
  const std::string table = write_table(options.output / "titles.tsv", pairs);
  return {table, table, std::move(pairs)};  // the validation loss is that of the learned titles
}

// Words as BLEU's 13a has them, so that a word and the comma behind it are two tokens, and BLEU of
// what is written, cut no further, is that of 13a.
SentencePairs captions_of(const ReproduceOptions& options, const CaptionFiles& files) {
  const auto side = [&](const DataFile& file) {
    std::vector<std::string> lines = read_text_lines(require_data(options.data, file).string());
    lines.resize(share_of(options, lines.size()));
    for (std::string& line : lines) {  // of which one has a tab
      const std::string tokens = bleu_tokens(line, BleuTokens::k13a);
      line = joined(python_words(tokens));
    }
    return lines;
  };
  return {.source = side(files.source), .target = side(files.target)};
}

Texts captions(const ReproduceOptions& options) {
  const auto table = [&](const CaptionFiles& files) {
    return write_table(options.output / fmt::format("captions-{}.tsv", files.name),
                       captions_of(options, files));
  };
  return {table(kCaptionsTrain), table(kCaptionsValid), captions_of(options, kCaptionsTest)};
}

constexpr auto kTransformer = TranslatorKind::kTransformer;
constexpr auto kSinusoids = PositionKind::kSinusoidal, kNowhere = PositionKind::kNone;

struct Variant {
  std::string_view name;
  TranslatorKind kind = kTransformer;
  PositionKind of_source = kSinusoids, of_target = kSinusoids;
  std::optional<double> published = {};  // the loss of the last step
};

TranslatorSettings settings_of(const Variant& variant, const Texts& texts, index seed) {
  TranslatorSettings s;
  s.text.train = {texts.train};
  s.text.valid = {texts.valid};
  s.model.kind = variant.kind;
  s.model.position = variant.of_source;
  s.model.width = 128;
  if (variant.kind == kTransformer) {
    s.model.encoder_layers = s.model.decoder_layers = 1;
    if (variant.of_target != variant.of_source) {
      s.model.decoder_position = to_string(variant.of_target);
    }
  } else {  // starts as in the source, with embeddings from normal(0, 1): no logits come from these
    s.model.init = InitScheme::kSource;
    s.model.tie = false;
    s.text.batch_tokens = 128;
  }
  s.recipe.lr = 2e-3;
  s.recipe.patience = 0;
  s.recipe.seed = static_cast<std::uint64_t>(seed);
  s.recipe.eval_every = s.recipe.save_every = "1e";
  return s;
}

// The setting of the source: a layer on each side, 4 heads, width 128, no dropout or smoothing. Its
// vocabularies have every word of the titles.
void set_titles(TranslatorSettings& s) {
  s.text.tokenizer = "char";
  s.text.target_tokenizer = kWordKind;
  s.text.min_count = 1;
  if (s.model.kind == kTransformer) s.text.batch_tokens = 256;
  s.text.label_smoothing = 0;
  s.model.dropout = 0;
  s.recipe.min_lr = 1e-4;
  s.recipe.schedule = ScheduleKind::kCosine;
  s.recipe.warmup = 200;
  s.recipe.weight_decay = 0;
  s.recipe.eval_every = s.recipe.save_every = "5e";
}

void set_captions(TranslatorSettings& s) {
  s.text.min_count = 5;
  s.text.batch_tokens = 1024;
  s.recipe.warmup = 300;
}

constexpr std::array kE7 = {
    Variant{"bahdanau-gru", TranslatorKind::kBahdanauGru, kNowhere, kNowhere, 0.0094},
    Variant{"transformer"},
};
constexpr std::array kE14 = {
    Variant{"positions-in-both"},
    Variant{"positions-in-the-decoder", kTransformer, kNowhere, kSinusoids},
    Variant{"positions-in-the-encoder", kTransformer, kSinusoids, kNowhere},
    Variant{"no-positions", kTransformer, kNowhere, kNowhere},
};

struct TranslationExperiment {
  std::string_view name;
  std::span<const Variant> variants;
  Texts (*texts)(const ReproduceOptions& options);
  void (*set)(TranslatorSettings& settings);
  index epochs;
  bool learned_by_heart;  // what is measured was learned
};

constexpr std::array kExperiments = {
    TranslationExperiment{"E7", kE7, titles, set_titles, 40, true},
    TranslationExperiment{"E14", kE14, captions, set_captions, 3, false},
};

// Runs one model, from its settings to its results.
class Measurement : Reproduction {
 public:
  using Reproduction::Reproduction;

  void run(const TranslationExperiment& experiment, const Texts& texts, const Variant& variant,
           index seed) {
    TranslatorSettings settings = settings_of(variant, texts, seed);
    experiment.set(settings);
    settings.recipe.stop_after = fmt::format("{}e", experiment.epochs);
    row_ = {.experiment = std::string(experiment.name),
            .variant = std::string(variant.name),
            .seed = seed,
            .metric = {}};
    tell(fmt::format("{}: {} epochs", run_name(row_), experiment.epochs));
    const fs::path folder = options_.output / run_name(row_);
    const TranslatorRun prepared = prepare_run(std::move(settings));
    train_in(folder, observer_, cost_of(prepared).updates,
             [&](StartAt start, TrainingObserver& watching) {
               return train_translator(context_, prepared, folder, std::move(start), watching);
             });
    measure(load_translator(folder), texts.measured, variant, experiment.learned_by_heart);
  }

 private:
  void measure(const LoadedTranslator& loaded, const SentencePairs& pairs, const Variant& variant,
               bool learned_by_heart) {
    report(learned_by_heart ? "frozen_token_loss" : "test_loss",
           evaluate_translator(context_, loaded, pairs).loss, variant.published);
    const std::vector<std::string> greedy = translations(loaded, pairs, 1);
    report("bleu_greedy", bleu(greedy, pairs));
    report("word_order", word_order(greedy, pairs.target));
    if (learned_by_heart) return report("returned", returned(greedy, pairs));
    report("bleu_beam_5", bleu(translations(loaded, pairs, 5), pairs));
  }

  void report(std::string metric, double value, std::optional<double> published = {}) {
    row_.metric = std::move(metric);
    row_.ours = value;
    row_.published = options_.share == 1 ? published : std::nullopt;
    observer_.measured(row_);
  }

  std::vector<std::string> translations(const LoadedTranslator& loaded, const SentencePairs& pairs,
                                        index beam) const {
    TranslationOptions options;
    options.search.beam = beam;
    LineTranslator translator(context_, *loaded.model, loaded.vocabulary, options, "texts");
    auto made =
        translate_all(translator, pairs.source, [&] { return observer_.stop && observer_.stop(); });
    if (!made) throw ReproduceStopped();
    return std::move(*made);
  }

  double bleu(const std::vector<std::string>& made, const SentencePairs& pairs) const {
    const auto metric = translation_metrics()[0].make({.tokens = BleuTokens::kNone});
    return corpus_score(*metric, TranslationCounts(context_, *metric, {made, {pairs.target}}));
  }

  // The share of titles whose translation comes back word by word.
  static double returned(const std::vector<std::string>& made, const SentencePairs& pairs) {
    index same = 0;
    for (std::size_t n = 0; n < made.size(); ++n) {
      same +=
          bleu_tokens(made[n], BleuTokens::kNone) == bleu_tokens(pairs.target[n], BleuTokens::kNone)
              ? 1
              : 0;
    }
    return static_cast<double>(same) / static_cast<double>(made.size());
  }

  ReproduceRow row_;
};

}  // namespace

void reproduce_translate(const Context& context, const ReproduceOptions& options,
                         const ReproduceObserver& observer) {
  create_folders(options.output);
  Measurement measurement(context, options, observer);
  for (const TranslationExperiment& experiment : kExperiments) {
    const Texts texts = experiment.texts(options);
    for (const Variant& variant : experiment.variants) {
      for (index seed = 1; seed <= options.seeds; ++seed) {
        measurement.run(experiment, texts, variant, seed);
      }
    }
  }
}

namespace {

constexpr index kMostTitleTokens = 29;

// The published code decomposes characters and leaves marks out; of those that these titles have,
// this changes one.
std::string normalised(const std::string& line) {
  std::string text;
  const std::string lower = python_lower(line);
  std::string_view rest = strip_both(lower);
  constexpr std::string_view kGrave = "\u00e8";
  while (!rest.empty()) {
    if (rest.starts_with(kGrave)) {
      text += 'e';
      rest.remove_prefix(kGrave.size());
      continue;
    }
    if (std::string_view(",.!?").find(rest.front()) != std::string_view::npos) text += ' ';
    text += rest.front();
    rest.remove_prefix(1);
  }
  return text;
}

// The place of each word that stands there once.
std::map<std::string_view, index> places_of(std::string_view text) {
  std::map<std::string_view, index> places, counts;
  index n = 0;
  for (const std::string_view word : python_words(text)) {
    ++counts[word];
    places[word] = n++;
  }
  std::erase_if(places, [&](const auto& place) { return counts[place.first] > 1; });
  return places;
}

// The places in the reference of the words of a translation, in its order.
std::vector<index> shared_places(std::string_view translation, std::string_view reference) {
  const auto made = places_of(translation), wanted = places_of(reference);
  std::vector<std::pair<index, index>> both;
  for (const auto& [word, place] : made) {
    const auto found = wanted.find(word);
    if (found != wanted.end()) both.emplace_back(place, found->second);
  }
  std::sort(both.begin(), both.end());
  std::vector<index> places;
  for (const auto& [place, in_reference] : both) places.push_back(in_reference);
  return places;
}

}  // namespace

SentencePairs titles_of(const std::vector<std::string>& chinese,
                        const std::vector<std::string>& english) {
  check(chinese.size() == english.size(), "titles: {} lines and {}", chinese.size(),
        english.size());
  SentencePairs pairs;
  for (std::size_t n = 0; n < chinese.size(); ++n) {
    std::string source = normalised(chinese[n]), target = normalised(english[n]);
    std::erase(source, ' ');
    const auto words = static_cast<index>(parts_between(target, ' ').size());
    if (count_characters(source) > kMostTitleTokens || words > kMostTitleTokens) continue;
    pairs.source.push_back(std::move(source));
    pairs.target.push_back(std::move(target));
  }
  return pairs;
}

double word_order(std::span<const std::string> translations,
                  std::span<const std::string> references) {
  check(translations.size() == references.size(), "word order: {} translations and {} references",
        translations.size(), references.size());
  index kept = 0, all = 0;
  for (std::size_t n = 0; n < translations.size(); ++n) {
    const std::vector<index> places = shared_places(translations[n], references[n]);
    for (std::size_t a = 0; a < places.size(); ++a) {
      for (std::size_t b = a + 1; b < places.size(); ++b) {
        ++all;
        kept += places[a] < places[b] ? 1 : 0;
      }
    }
  }
  return all == 0 ? 1 : static_cast<double>(kept) / static_cast<double>(all);
}

}  // namespace fovea
