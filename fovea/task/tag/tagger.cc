// SPDX-License-Identifier: Apache-2.0
// The files of a tagger, and what loading one takes.
#include "fovea/task/tag/tagger.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "fovea/base/check.h"
#include "fovea/config/json.h"
#include "fovea/data/label_set.h"
#include "fovea/model/text_batch.h"
#include "fovea/pretrained/pretrained.h"
#include "fovea/pretrained/sentence_model.h"
#include "fovea/task/encoder_adapters.h"
#include "fovea/task/encoder_peft.h"
#include "fovea/task/load_parts.h"
#include "fovea/task/tag/run.h"
#include "fovea/text/keyed_hash.h"
#include "fovea/text/words.h"
#include "fovea/train/model_folder.h"

namespace fovea {

namespace {

std::vector<TagPart> parts_of(TagScheme scheme) {
  using enum TagPart;
  const bool ends = scheme == TagScheme::kBioes || scheme == TagScheme::kBmes;
  return ends ? std::vector{kBegin, kInside, kEnd, kSingle} : std::vector{kBegin, kInside};
}

token only_token(const Tokenizer& tokenizer, const std::string& text) {
  const std::vector<token> ids = tokenizer.encode(text, "word");
  return ids.size() == 1 ? ids[0] : tokenizer.special().unknown;
}

}  // namespace

TagSet::TagSet(std::vector<std::string> names, std::optional<TagScheme> scheme)
    : names_(std::move(names)), scheme_(scheme) {
  for (std::size_t k = 0; k < names_.size(); ++k) {
    numbers_.emplace(names_[k], static_cast<std::int32_t>(k));
    if (scheme_) parsed_.push_back(parse_tag(names_[k], *scheme_, types_));
  }
}

std::int32_t TagSet::find(const std::string& name) const {
  const auto found = numbers_.find(name);
  return found == numbers_.end() ? -1 : found->second;
}

CrfRules TagSet::rules() const {
  if (!scheme_) return {};
  TagRules rules = rules_of(parsed_, *scheme_);
  return {std::move(rules.transitions), std::move(rules.start), std::move(rules.end)};
}

std::vector<CrfRules> crf_rules(const TaggerConfig& config, std::span<const TagSet> columns) {
  std::vector<CrfRules> rules(columns.size());
  for (std::size_t c = 0; c < columns.size(); ++c) {
    if (head_of(config, c) == TagHead::kCrf) rules[c] = columns[c].rules();
  }
  return rules;
}

namespace {

constexpr std::pair<SchemeChoice, TagScheme> kChosenSchemes[] = {
    {SchemeChoice::kIob1, TagScheme::kIob1},
    {SchemeChoice::kBio, TagScheme::kBio},
    {SchemeChoice::kBioes, TagScheme::kBioes},
    {SchemeChoice::kBmes, TagScheme::kBmes}};

}  // namespace

std::optional<TagScheme> scheme_of(SchemeChoice choice) {
  for (const auto& [chosen, scheme] : kChosenSchemes) {
    if (chosen == choice) return scheme;
  }
  return std::nullopt;
}

SchemeChoice choice_of(const std::optional<TagScheme>& scheme) {
  for (const auto& [choice, chosen] : kChosenSchemes) {
    if (chosen == scheme) return choice;
  }
  return SchemeChoice::kNone;
}

std::optional<TagScheme> find_scheme(std::span<const std::string> names) {
  const bool marks =
      std::any_of(names.begin(), names.end(), [](const std::string& name) { return name != "O"; });
  if (!marks) return std::nullopt;
  for (const TagScheme scheme : {TagScheme::kBio, TagScheme::kBioes, TagScheme::kBmes}) {
    const bool all = std::all_of(names.begin(), names.end(),
                                 [&](const std::string& name) { return is_tag(name, scheme); });
    if (all) return scheme;
  }
  return std::nullopt;
}

std::vector<std::string> complete_tags(std::vector<std::string> names,
                                       const std::optional<TagScheme>& scheme) {
  if (scheme) {
    TagTypes types;
    std::vector<std::string> all;
    for (const std::string& name : names) {
      if (parse_tag(name, *scheme, types).part == TagPart::kOutside) all.push_back(name);
    }
    for (index type = 0; type < types.size(); ++type) {
      for (const TagPart part : parts_of(*scheme)) {
        all.push_back(tag_name({part, static_cast<std::int32_t>(type)}, *scheme, types));
      }
    }
    names = std::move(all);
  }
  return LabelSet(std::move(names)).names();
}

token TaggerVocabulary::word(const std::string& text) const { return only_token(*words, text); }

bool TaggerVocabulary::knows(const std::string& text) const {
  return only_token(*known, text) != known->special().unknown;
}

void append(TaggedWords& all, const TaggerVocabulary& vocabulary,
            std::span<const std::string> words, std::span<const std::vector<std::int32_t>> tags) {
  for (const std::string& word : words) {
    all.words.push_back(vocabulary.word(word));
    all.shapes.push_back(word_shape(word));
    if (vocabulary.characters) {
      const auto begin = static_cast<index>(all.characters.size());
      vocabulary.characters->append_tokens(all.characters, word, "word");
      cut_middle(all.characters, begin);
    }
    all.character_starts.push_back(static_cast<index>(all.characters.size()));
  }
  all.tags.resize(tags.size());
  for (std::size_t c = 0; c < tags.size(); ++c) {
    all.tags[c].insert(all.tags[c].end(), tags[c].begin(), tags[c].end());
  }
  all.starts.push_back(static_cast<index>(all.words.size()));
}

std::vector<WordRange> pieces_of(index length, index most) {
  std::vector<WordRange> pieces;
  for (index begin = 0; begin < length; begin += most) {
    pieces.push_back({begin, std::min(length, begin + most)});
  }
  return pieces;
}

std::vector<index> append_subwords(TaggedWords& all, const EncoderTokenizer& tokenizer, index most,
                                   std::span<const std::string> words,
                                   std::span<const std::vector<std::int32_t>> tags) {
  const index room = most - tokenizer.marks(), count = std::ssize(words);
  all.before = tokenizer.around().before;
  all.after = tokenizer.around().after;
  all.tags.resize(tags.size());
  std::vector<index> places;
  index held = 0;
  for (index w = 0; w < count; ++w) {
    const index begin = std::ssize(all.characters);
    tokenizer.append_word(all.characters, words[static_cast<std::size_t>(w)]);
    const index of_word = std::min(std::ssize(all.characters) - begin, room);
    if (of_word == 0) continue;
    all.characters.resize(static_cast<std::size_t>(begin + of_word));
    if (held + of_word > room) {
      all.starts.push_back(all.word_count());
      held = 0;
    }
    held += of_word;
    places.push_back(w);
    all.words.push_back(0);  // the subwords are all that is read of it
    all.shapes.push_back(0);
    all.character_starts.push_back(begin + of_word);
    for (std::size_t c = 0; c < tags.size(); ++c) {
      all.tags[c].push_back(tags[c][static_cast<std::size_t>(w)]);
    }
  }
  if (!places.empty()) all.starts.push_back(all.word_count());
  return places;
}

namespace {

namespace fs = std::filesystem;

// config.json: the kind of the model, what it says, then all its settings.
struct TaggerFile {
  std::string kind{kTaggerKind};
  TaggerOutputs outputs = {};
  TaggerSettings settings = {};

  template <class Visitor>
  void visit_fields(Visitor&& visit) {
    visit("kind", kind, "what the model does");
    visit("tags", outputs.tags, "the tags, in the order of the scores");
    visit("embeddings", outputs.vectors, "words that began with a vector of --embeddings");
    settings.visit_fields(visit);
  }
};

ModelSizes sizes_of(const TaggerConfig& config) {
  const TaggerConfig c = resolve(config);
  const auto matrix = [](index rows, index columns) {
    return static_cast<double>(rows) * static_cast<double>(columns);
  };
  return {.layers = layer_count(sized_stages(c)) + c.base.layers,
          .largest_matrix =
              std::max({matrix(c.vocabulary, c.has_base() ? c.width : c.word_width),
                        matrix(c.features, c.width), matrix(c.characters, c.character_width),
                        matrix(c.buckets, c.ngram_width), matrix(c.linear_buckets, tag_count(c))}),
          .parameters = [c] { return parameter_count(c); },
          .bytes = [c] { return model_memory(c); }};
}

void check_config(const TaggerConfigFile& file, const std::string& name) {
  const index most = file.settings.text.max_length;
  if (most < 1 || most > file.settings.model.block) {
    fail(ErrorCode::kModelDamaged, "{}: expected a max_length in 1 to {}, got {}", name,
         file.settings.model.block, most);
  }
  check_stored(name, [&] { check_options(file.settings.text.table); });
}

// Throws unless there are as many of everything as tag columns.
void check_columns(const TaggerConfigFile& file, const std::string& name) {
  const TaggerSettings& settings = file.settings;
  const std::size_t columns = column_names(settings.text).size();
  const auto require = [&](std::string_view what, std::size_t count) {
    if (count == columns) return;
    fail(ErrorCode::kModelDamaged, "{}: expected {} for {} tag columns, got {}", name, what,
         columns, count);
  };
  require("numbers of tags", settings.model.tags.size());
  require("schemes", settings.text.scheme.size());
  const std::vector<SchemeChoice>& schemes = settings.text.scheme;
  if (std::find(schemes.begin(), schemes.end(), SchemeChoice::kAuto) != schemes.end()) {
    fail(ErrorCode::kModelDamaged, "{}: expected a scheme, got auto", name);
  }
  const std::vector<index>& tags = settings.model.tags;
  const auto held = static_cast<index>(file.outputs.tags.size());
  const bool fits = std::all_of(tags.begin(), tags.end(),
                                [&](index count) { return count >= 1 && count <= held; });
  if (!fits || tag_count(settings.model) != held) {
    fail(ErrorCode::kModelDamaged, "{}: expected {} tags, got {}", name, fmt::join(tags, " + "),
         held);
  }
}

std::unique_ptr<Tokenizer> load_named(const fs::path& folder, std::string_view file) {
  const std::string name(file);
  return make_tokenizer(read_tokenizer_data(folder, name));
}

TaggerVocabulary load_vocabulary(const fs::path& folder, const TaggerSettings& settings) {
  const TaggerConfig& config = settings.model;
  TaggerVocabulary vocabulary;
  if (config.has_base()) {
    vocabulary.kept = read_tokenizer_data(folder);
    vocabulary.pieces = text_of_kept(vocabulary.kept, config, (folder / "tokenizer.txt").string());
    check_stored((folder / "config.json").string(), [&] {
      require_length(settings.text.max_length, vocabulary.pieces, folder.string());
    });
    return vocabulary;
  }
  vocabulary.words = load_tokenizer(folder, config.vocabulary);
  if (reads_characters(settings)) {
    vocabulary.characters = load_named(folder, kCharactersName);
    if (vocabulary.characters->vocabulary_size() != config.characters) {
      fail(ErrorCode::kModelDamaged, "{}: {} has {} characters, the model {}", folder.string(),
           kCharactersName, vocabulary.characters->vocabulary_size(), config.characters);
    }
  }
  if (settings.text.task == TagTask::kSegment) {
    vocabulary.known = load_named(folder, kKnownWordsName);
  }
  for (const Tokenizer* tokenizer : {vocabulary.words.get(), vocabulary.known.get()}) {
    if (tokenizer == nullptr || tokenizer->special().unknown != kNoToken) continue;
    fail(ErrorCode::kModelDamaged, "{}: expected a tokenizer of words", folder.string());
  }
  return vocabulary;
}

}  // namespace

std::string config_text(const TaggerSettings& settings, const TaggerOutputs& outputs) {
  TaggerFile config{.outputs = outputs, .settings = settings};
  return to_json(config);
}

TaggerConfigFile tagger_config_from_text(std::string_view text, const std::string& name) {
  TaggerFile config = config_from_text(TaggerFile{}, text, name, "a tagger");
  return {config.settings, config.outputs};
}

std::vector<TagSet> tag_sets(const TaggerConfigFile& file, const std::string& name) {
  check_columns(file, name);
  std::vector<TagSet> sets;
  auto begin = file.outputs.tags.begin();
  for (std::size_t c = 0; c < file.settings.model.tags.size(); ++c) {
    const std::vector<std::string> tags(begin, begin + file.settings.model.tags[c]);
    begin += file.settings.model.tags[c];
    const KeyedSet<std::string> different(tags.begin(), tags.end());
    if (different.size() != tags.size()) {
      fail(ErrorCode::kModelDamaged, "{}: expected tags that differ from each other", name);
    }
    try {
      sets.emplace_back(tags, scheme_of(file.settings.text.scheme[c]));
    } catch (const Error& error) {
      fail(ErrorCode::kModelDamaged, "{}: {}", name, error.what());
    }
  }
  return sets;
}

namespace {

// A model from elsewhere. Its settings say what predictions and their messages ask for.
LoadedTagger load_foreign_tagger(const fs::path& folder, const EncoderPeft& peft) {
  EncoderFolder read(peft.head() == nullptr ? folder : transformer_folder(folder),
                     BertHead::kTokens, peft.head());
  LoadedTagger loaded;
  const std::optional<TagScheme> scheme = find_scheme(read.labels);
  loaded.settings.text.scheme = {choice_of(scheme)};
  loaded.settings.text.max_length = read.text.max_length;
  TaggerConfig& config = loaded.settings.model;
  config = tagger_on(read.config);
  config.tags = {read.config.outputs};
  loaded.model =
      std::make_unique<Tagger>(config, std::span<const CrfRules>(),
                               ParameterSetOptions{.memory = ParameterMemory::kUnwritten});
  read.read(loaded.model->parameters());
  peft.apply(loaded.model->parameters());
  loaded.tags.emplace_back(std::move(read.labels), scheme);
  loaded.vocabulary.pieces = std::move(read.text);
  loaded.is_foreign = true;
  return loaded;
}

}  // namespace

index LoadedTagger::parameters() const { return parameter_count(settings.model); }

std::string LoadedTagger::longest() const {
  const index most = settings.text.max_length;
  return reads_pieces() ? fmt::format("{} tokens", most) : fmt::format("--max-length ({})", most);
}

namespace {

// Scores of a CRF are other ones, and several columns have several heads.
void require_one_softmax(const TaggerConfig& config, const fs::path& folder) {
  if (config.tags.size() == 1 && head_of(config, 0) == TagHead::kSoftmax) return;
  throw Error(
      ErrorCode::kModelWrongKind,
      fmt::format("--adapter: {}: the model has {}, and adapters hold a head of transformers",
                  folder.string(), config.tags.size() > 1 ? "several tag columns" : "a CRF"),
      "name the encoder that it began from as the model");
}

}  // namespace

LoadedTagger load_tagger(const fs::path& folder, std::span<const std::string> adapters) {
  const EncoderPeft peft(folder, adapters, BertHead::kTokens);
  if (is_hugging_face(folder) || (peft.head() != nullptr && is_encoder(folder))) {
    return load_foreign_tagger(folder, peft);
  }
  const std::string name = (folder / "config.json").string();
  const TaggerConfigFile file =
      tagger_config_from_text(read_model_file(folder, "config.json"), name);
  check_config(file, name);
  LoadedTagger loaded{
      .settings = file.settings, .vocabulary = {}, .tags = tag_sets(file, name), .model = nullptr};
  const TaggerConfig& config = loaded.settings.model;
  loaded.vocabulary = load_vocabulary(folder, loaded.settings);
  loaded.model =
      load_on_encoder<Tagger>(folder, BertHead::kTokens, loaded.settings.from, sizes_of, config,
                              crf_rules(config, loaded.tags), loaded.settings.recipe.seed);
  if (peft.head() != nullptr) require_one_softmax(config, folder);
  peft.apply(loaded.model->parameters());
  for (const Parameter* const parameter : loaded.model->parameters()) require_finite(*parameter);
  return loaded;
}

}  // namespace fovea
