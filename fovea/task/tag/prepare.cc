// SPDX-License-Identifier: Apache-2.0
// Prepares a run from its options.
#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "fovea/base/check.h"
#include "fovea/base/machine.h"
#include "fovea/config/json.h"
#include "fovea/task/setting_parts.h"
#include "fovea/task/tag/read_sentences.h"
#include "fovea/task/tag/run.h"
#include "fovea/tensor/checksum.h"

namespace fovea {

namespace {

// Checks the sizes before any file is read.
TaggerConfig check_sizes(const TaggerSettings& settings) {
  TaggerConfig probe = settings.model;
  if (probe.has_base()) {
    probe.tags.assign(column_names(settings.text).size(), 2);
    return resolve(probe);
  }
  probe.vocabulary = probe.characters = kFirstLearnedToken;
  const std::size_t columns = column_names(settings.text).size();
  probe.tags.assign(columns, 2);
  // The vectors, which have not been read yet, set this width.
  if (!settings.text.embeddings.empty() && probe.word_width == 0) {
    probe.word_width = TaggerConfig().word_width;
  }
  probe.block = settings.text.max_length;
  return resolve(probe);
}

constexpr std::string_view kLessText = "use less text, or a machine with more memory";

// The bytes of all words, with a number or a newline for each.
double text_bytes(const TaggedSet& set) {
  double bytes = 0;
  for (const TaggedSentence& sentence : set.sentences) {
    for (const std::string& word : sentence.words) {
      bytes += static_cast<double>(word.size() + sizeof(index));
    }
  }
  return bytes;
}

// The words to train on, a line each.
std::string training_words(const TaggedSet& set) {
  const double bytes = text_bytes(set);
  require_memory("the sentences as one text", bytes, kLessText);
  std::string all;
  all.reserve(static_cast<std::size_t>(bytes));
  for (std::size_t i = 0; i < set.sentences.size(); ++i) {
    if (set.validates[i]) continue;
    for (const std::string& word : set.sentences[i].words) all.append(word).append(1, '\n');
  }
  return all;
}

// Where words are characters: what these are parts of. A word ends where S and E are.
std::string training_segments(const TaggedSet& set) {
  std::string all;
  for (std::size_t i = 0; i < set.sentences.size(); ++i) {
    if (set.validates[i]) continue;
    const TaggedSentence& sentence = set.sentences[i];
    for (std::size_t c = 0; c < sentence.words.size(); ++c) {
      all += sentence.words[c];
      const char part = sentence.tags[0][c].front();
      if (part == 'S' || part == 'E') all += '\n';
    }
  }
  return all;
}

TaggerVocabulary learn_vocabulary(const TaggedSet& set, const TaggerSettings& settings) {
  constexpr std::string_view kTexts = "training sentences";
  const std::string words = training_words(set);
  TaggerVocabulary vocabulary;
  vocabulary.words = learn_tokenizer(kWordKind, words, kTexts,
                                     {.lower = settings.text.lower,
                                      .marks = false,
                                      .split = WordSplit::kSpaces,
                                      .min_count = settings.text.min_count});
  if (reads_characters(settings)) {
    const std::string_view kind =
        settings.text.tokenizer == WordCut::kSubwords ? kPieceKind : "char";
    vocabulary.characters = learn_tokenizer(
        kind, words, kTexts, with_subword_model({.marks = false}, settings.text.tokenizer_model));
  }
  if (settings.text.task == TagTask::kSegment) {
    vocabulary.known = learn_tokenizer(kWordKind, training_segments(set), kTexts,
                                       {.marks = false, .min_count = 1});
  }
  return vocabulary;
}

struct TaggedHalf {
  TaggedWords words;
  index cut = 0;     // sentences that are read in parts
  index unread = 0;  // words without a subword
};

TaggedHalf make_half(const TaggedSet& set, const TaggerVocabulary& vocabulary, index most,
                     bool validates) {
  TaggedHalf made;
  TaggedWords& half = made.words;
  half.tags.resize(set.tags.size());
  std::vector<std::vector<std::int32_t>> tags(set.tags.size());
  for (std::size_t i = 0; i < set.sentences.size(); ++i) {
    if (set.validates[i] != validates) continue;
    const TaggedSentence& sentence = set.sentences[i];
    for (std::size_t c = 0; c < tags.size(); ++c) {
      tags[c].clear();
      for (const std::string& tag : sentence.tags[c]) tags[c].push_back(set.tags[c].find(tag));
    }
    if (!vocabulary.reads_pieces()) {
      append(half, vocabulary, sentence.words, tags);
      continue;
    }
    const index before = half.size();
    const auto places =
        append_subwords(half, *vocabulary.pieces.tokenizer, most, sentence.words, tags);
    made.cut += half.size() > before + 1 ? 1 : 0;
    made.unread += std::ssize(sentence.words) - std::ssize(places);
  }
  return made;
}

// The words of make_half(set, vocabulary, false).
WordTexts texts_to_train(const TaggedSet& set, CutAnew how) {
  require_memory("the words as text", text_bytes(set), kLessText);
  WordTexts texts{.how = how};
  for (std::size_t i = 0; i < set.sentences.size(); ++i) {
    if (set.validates[i]) continue;
    for (const std::string& word : set.sentences[i].words) texts.append(word);
  }
  return texts;
}

WordDropout dropout_of(const TaggerVocabulary& vocabulary, const TaggerSettings& settings) {
  if (vocabulary.reads_pieces()) return {};
  WordDropout dropout{
      .probability = settings.text.word_dropout,
      .is_rare = std::vector<bool>(static_cast<std::size_t>(vocabulary.words->vocabulary_size())),
      .unknown = vocabulary.words->special().unknown,
      .seed = settings.recipe.seed};
  const TokenizerData data = vocabulary.words->data();
  const std::size_t first = special_words(data.marks).size();
  for (std::size_t n = 0; n < data.words.size(); ++n) {
    dropout.is_rare[first + n] = data.words[n].count == 1;
  }
  return dropout;
}

std::string fingerprint(const TaggedWords& w) {
  std::vector<std::string_view> pieces = {bytes_of(w.words), bytes_of(w.shapes),
                                          bytes_of(w.characters), bytes_of(w.character_starts)};
  for (const std::vector<std::int32_t>& tags : w.tags) pieces.push_back(bytes_of(tags));
  pieces.push_back(bytes_of(w.starts));
  std::erase(pieces, "");
  pieces.emplace_back();  // the end
  return xxh3_128_of([next = pieces.begin()]() mutable { return *next++; });
}

std::string length_line(std::string_view name, const TaggedWords& words, std::string_view word) {
  std::vector<index> lengths(static_cast<std::size_t>(words.size()));
  for (index i = 0; i < words.size(); ++i) lengths[static_cast<std::size_t>(i)] = words.length(i);
  std::sort(lengths.begin(), lengths.end());
  const std::size_t n = lengths.size();
  return fmt::format("{}: {} sentence{}, {} {}s; median {}, 90 % at most {}, longest {}", name, n,
                     n == 1 ? "" : "s", words.word_count(), word, lengths[(n - 1) / 2],
                     lengths[(9 * (n - 1)) / 10], lengths.back());
}

std::string unknown_line(const TaggedWords& words, token unknown, std::string_view word) {
  const auto count = std::count(words.words.begin(), words.words.end(), unknown);
  return fmt::format("unknown {}s: {:.1f} % of the validation", word,
                     100 * static_cast<double>(count) /
                         static_cast<double>(std::max<index>(words.word_count(), 1)));
}

std::string subword_line(const TaggedWords& words) {
  return fmt::format("{:.2f} subwords a word, in training",
                     static_cast<double>(words.characters.size()) /
                         static_cast<double>(std::max<index>(words.word_count(), 1)));
}

void describe(TaggerRun& run) {
  const std::string_view word = run.settings.text.task == TagTask::kSegment ? "character" : "word";
  run.overview.push_back(length_line("training", run.training->words(), word));
  if (run.settings.text.tokenizer == WordCut::kSubwords || run.vocabulary.reads_pieces()) {
    run.overview.push_back(subword_line(run.training->words()));
  }
  if (run.validation) {
    const TaggedWords& words = run.validation->words();
    run.overview.push_back(length_line("validation", words, word));
    if (run.vocabulary.words)
      run.overview.push_back(unknown_line(words, run.vocabulary.words->special().unknown, word));
  }
  note_no_validation(run, "--patience has");
}

// Takes the sizes of the model that follow from the sentences.
void take_sizes(TaggerRun& run, TaggerSettings& settings) {
  TaggerConfig& model = settings.model;
  model.tags.clear();
  for (const TagSet& tags : run.tags) model.tags.push_back(tags.size());
  if (model.has_base()) {
    model = resolve(model);
    return;
  }
  model.vocabulary = run.vocabulary.words->vocabulary_size();
  model.characters = run.vocabulary.characters ? run.vocabulary.characters->vocabulary_size() : 0;
  model.block = settings.text.max_length;
  model = resolve(model);
}

// The tokenizer of a base, or of a run that began from one.
TaggerVocabulary vocabulary_of_base(const TaggerSettings& settings) {
  TaggerVocabulary vocabulary;
  vocabulary.kept = tokenizer_of_encoder(settings.from.base);
  vocabulary.pieces = text_of_kept(vocabulary.kept, settings.model, settings.from.base);
  return vocabulary;
}

// A sentence is read as a whole, and then cut by its subwords.
TaggerTextOptions options_to_read(const TaggerSettings& settings) {
  TaggerTextOptions options = settings.text;
  if (settings.model.has_base()) options.max_length = kLargestSize;
  return options;
}

void note_parts(TaggerRun& run, std::string_view text, const TaggedHalf& half, index most) {
  if (half.cut > 0) {
    run.notes.push_back(fmt::format(
        "{} sentences of more than {} tokens: {}; they are read in parts", text, most, half.cut));
  }
  if (half.unread == 0) return;
  const std::string unread = fmt::format("{} words without a subword: {}", text, half.unread);
  if (half.words.size() == 0) {
    throw Error(ErrorCode::kInputTooSmall, fmt::format("{}, which are all", unread),
                "give sentences whose words the tokenizer of --base reads");
  }
  run.notes.push_back(unread + "; they are left out");
}

std::string vocabulary_fingerprint(const TaggerVocabulary& vocabulary) {
  if (vocabulary.reads_pieces()) return xxh3_128(to_text(vocabulary.kept));
  const auto text_of = [](const std::unique_ptr<Tokenizer>& tokenizer) {
    return tokenizer ? to_text(tokenizer->data()) : std::string();
  };
  return xxh3_128(
      {text_of(vocabulary.words), text_of(vocabulary.characters), text_of(vocabulary.known)});
}

}  // namespace

TaggerRun prepare_run(TaggerSettings settings, std::optional<TaggerVocabulary> known,
                      RunWeights weights) {
  check_options(settings);
  const TaggerConfig resolved = check_sizes(settings);
  if (!known) require_effects(settings, resolved);
  require_update({settings.text.batch_size, settings.text.max_length, settings.recipe.accumulate},
                 "word", "choose smaller sizes: an update holds fewer than 2^31 words");
  const TaggedSet set = read_tagged_set(options_to_read(settings), settings.recipe.seed);
  TaggerRun run;
  run.tags = set.tags;
  for (const TagSet& tags : set.tags) {
    run.outputs.tags.insert(run.outputs.tags.end(), tags.names().begin(), tags.names().end());
  }
  run.overview = set.overview;
  run.notes = set.notes;
  settings.text.scheme.clear();
  for (const TagSet& tags : set.tags) settings.text.scheme.push_back(choice_of(tags.scheme()));
  run.vocabulary = known                       ? std::move(*known)
                   : settings.model.has_base() ? vocabulary_of_base(settings)
                                               : learn_vocabulary(set, settings);
  if (!settings.text.embeddings.empty() && weights == RunWeights::kNew) {
    read_vectors(run, *run.vocabulary.words, settings.text.embeddings, settings.model.word_width);
  }
  const index most = settings.text.max_length;
  TaggedHalf training = make_half(set, run.vocabulary, most, false),
             validation = make_half(set, run.vocabulary, most, true);
  note_parts(run, "training", training, most);
  note_parts(run, "validation", validation, most);
  TaggedWords trains = std::move(training.words), validates = std::move(validation.words);
  take_sizes(run, settings);
  run.identity = identity_of_run(to_json(settings.model),
                                 xxh3_128({fingerprint(trains), fingerprint(validates)}),
                                 vocabulary_fingerprint(run.vocabulary));
  run.training =
      std::make_unique<TaggedTraining>(std::move(trains), dropout_of(run.vocabulary, settings),
                                       EpochOrderOptions{.batch_size = settings.text.batch_size,
                                                         .accumulate = settings.recipe.accumulate,
                                                         .seed = settings.recipe.seed});
  if (settings.text.subword_sampling > 0) {
    run.training->cut_anew(texts_to_train(
        set,
        {run.vocabulary.characters.get(), settings.text.subword_sampling, settings.recipe.seed}));
  }
  if (validates.size() > 0) run.validation.emplace(std::move(validates), settings.text.batch_size);
  if (settings.recipe.evaluate_training) {
    run.trained.emplace(run.training->words(), settings.text.batch_size);
  }
  if (settings.model.has_base()) {
    resolve_encoder_recipe(settings.recipe, run.training->updates_per_epoch(),
                           settings.from.warmup);
  } else {
    resolve_lengths(settings.recipe, run.training->updates_per_epoch(), {.epochs = kTaggerEpochs});
  }
  run.settings = std::move(settings);
  if (run.settings.model.has_base()) {
    const Tagger shapes(run.settings.model, {},
                        ParameterSetOptions{.memory = ParameterMemory::kUnwritten});
    begin_from_base(run, shapes.parameters(), weights, run.vocabulary.kept, BertHead::kTokens);
  }
  describe(run);
  return run;
}

}  // namespace fovea
