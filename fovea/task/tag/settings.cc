// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/tag/settings.h"

#include <algorithm>
#include <initializer_list>

#include "fovea/base/check.h"
#include "fovea/base/words.h"
#include "fovea/config/field.h"
#include "fovea/model/encoder_spec.h"
#include "fovea/task/setting_parts.h"

namespace fovea {

namespace {

// Options for the columns of one format need a file of that format.
void check_columns(const TaggerTextOptions& text) {
  if (text.train.empty()) return;
  const TaggedOptions& table = text.table;
  const auto reads = [&](TaggedFormat format) {
    const auto has = [&](const std::string& file) { return format_of(file, table) == format; };
    return std::any_of(text.train.begin(), text.train.end(), has) ||
           std::any_of(text.valid.begin(), text.valid.end(), has);
  };
  const TaggedOptions usual;
  require_together(table.column == usual.column || reads(TaggedFormat::kConllu), "--column",
                   "has no effect: no file is CoNLL-U",
                   "leave it out, or say --format conllu if the files are");
  const bool said = table.word_column != usual.word_column ||
                    table.tag_column != usual.tag_column || table.comments;
  require_together(!said || reads(TaggedFormat::kConll), "--word-column, --tag-column, --comments",
                   "have no effect: no file is CoNLL",
                   "leave them out, or say --format conll if the files are");
}

void check_subwords(const TaggerSettings& s) {
  const TaggerTextOptions& text = s.text;
  const bool subwords = text.tokenizer == WordCut::kSubwords;
  require_together(!subwords || text.task == TagTask::kTag,
                   "--tokenizer sentencepiece, --task segment", "a segmenter reads characters",
                   "leave the first out");
  require_together(!subwords || reads_characters(s), "--tokenizer sentencepiece",
                   "has no effect with --character-reader none and without --linear",
                   "choose --character-reader conv or bilstm, which then read the subwords");
  require_subword_model(subwords, text.tokenizer_model, "--tokenizer-model");
}

void check_text(const TaggerTextOptions& text) {
  const bool segments = text.task == TagTask::kSegment;
  require_together((segments && !text.joint) || text.table.format != TaggedFormat::kWords,
                   "--format words", "such sentences have no tags",
                   "take --task segment, or a format that has tags: conll or conllu");
  const auto all_are = [&](std::initializer_list<SchemeChoice> these) {
    return std::all_of(text.scheme.begin(), text.scheme.end(), [&](SchemeChoice scheme) {
      return std::find(these.begin(), these.end(), scheme) != these.end();
    });
  };
  require_together(!segments || all_are({SchemeChoice::kAuto, SchemeChoice::kBmes}),
                   "--scheme, --task segment", "characters are tagged B, M, E and S",
                   "leave --scheme out");
  require_together(
      !segments || (text.table.tag_column.size() == 1 && text.table.column.size() == 1),
      "--tag-column, --column, --task segment", "a segmenter learns one column at most",
      "name one column");
  require_together(!all_are({SchemeChoice::kNone}) || text.metric != TaggerMetric::kSpanF1,
                   "--metric span-f1, --scheme none", "there are no spans",
                   "choose --metric accuracy or loss");
}

// The missing thing without which a field of this part has no effect; "" if it has one.
std::string_view lacks_for_effect(std::string_view part, const TaggerConfig& c) {
  if (part == "linear") return c.linear ? "" : "--linear";
  return lacks_for_effect(part, c, sized_stages(c));
}

// Without --joint a segmenter learns words alone.
void require_columns_effect(const TaggerTextOptions& text) {
  if (text.task != TagTask::kSegment || text.joint) return;
  const TaggedOptions usual;
  const auto require = [](bool is_usual, std::string_view option) {
    require_together(is_usual, option, "has no effect on --task segment without --joint",
                     "leave it out, or add --joint, to learn the tags of the words, too");
  };
  require(text.table.column == usual.column, "--column");
  require(text.table.tag_column == usual.tag_column, "--tag-column");
}

void check_tagger_base(const TaggerSettings& s) {
  require_together(s.from.base.empty() || s.text.task == TagTask::kTag, "--base, --task segment",
                   "a segmenter reads characters, and an encoder words", "leave --base out");
}

// Characters are few, and nothing is inside of them. With half of what describes each dropped, 450
// sentences of Chinese are learned best; n-grams help as linear features, and harm as a table that
// the encoder reads (docs/commands/train-tag.md).
void set_of_segmenter(TaggerSettings& settings) {
  settings.text.task = TagTask::kSegment;
  settings.text.lower = false;
  settings.model.word_width = 64;
  settings.model.character_reader = CharacterReader::kNone;
  settings.model.shape_width = 8;
  settings.model.linear = true;
  settings.model.input_dropout = 0.5;
  settings.model.encoder = "conv3,bilstm:128";
  settings.model.dropout = 0.2;
}

}  // namespace

TaggerSettings::TaggerSettings(TagTask task) {
  model.encoder = "bilstm:128";
  model.width = 128;
  model.input_dropout = 0.3;
  model.output_dropout = 0.5;
  recipe.lr = 2e-3;
  recipe.min_lr = 2e-4;
  recipe.beta2 = 0.999;
  recipe.weight_decay = 0.01;
  recipe.stop_after = recipe.eval_every = recipe.save_every = kAutoLength;
  recipe.patience = 8;
  if (task == TagTask::kSegment) set_of_segmenter(*this);
}

void apply_base_recipe(TaggerSettings& settings) {
  settings.text.batch_size = 16;
  apply_encoder_recipe(settings.recipe);
  apply_adapter_rate(settings.recipe, settings.from);
}

void take_base(TaggerSettings& settings, const std::vector<std::string>& set) {
  check_tagger_base(settings);
  EncoderBase base = read_encoder_base(settings.from.base, BertHead::kTokens);
  const std::string& where = settings.from.base;
  TaggerSettings theirs;
  theirs.model = tagger_on(base.layers);
  theirs.text.lower = false;
  theirs.text.word_dropout = 0;
  const std::vector<Field> said = fields_of(settings), has = fields_of(theirs);
  require_as_base(said, has, set, says_layers, where);
  require_none_idle(said, has, set, is_idle_with_tagger_base);
  index& longest = settings.text.max_length;
  if (!contains(set, "text.max_length")) longest = std::min(longest, base.text.max_length);
  require_length(longest, base.text, where);
  keep_dropouts(theirs.model, settings.model, set);
  if (contains(set, "model.head")) theirs.model.head = settings.model.head;
  settings.model = std::move(theirs.model);
  settings.text.lower = false;
  settings.text.word_dropout = 0;
  keep_base(settings.from, std::move(base), set);
}

bool is_idle_with_tagger_base(std::string_view field) {
  constexpr std::string_view kRead[] = {"model.dropout", "model.encoder_dropout", "model.head",
                                        "model.tags"};
  constexpr std::string_view kOfText[] = {
      "text.lower",           "text.min_count",        "text.word_dropout", "text.tokenizer",
      "text.tokenizer_model", "text.subword_sampling", "text.embeddings"};
  if (field.starts_with("model.")) return !says_layers(field) && !contains(kRead, field);
  return contains(kOfText, field);
}

bool reads_characters(const TaggerSettings& settings) {
  const TaggerConfig& model = settings.model;
  return model.character_reader != CharacterReader::kNone ||
         (model.linear && settings.text.task == TagTask::kTag);
}

std::vector<std::string> column_names(const TaggerTextOptions& text) {
  const std::string file = text.train.empty() ? "" : text.train[0];
  return tag_columns(format_of(file, text.table), text.table);
}

void check_options(const TaggerSettings& s) {
  check_recipe(s.recipe);
  check_options(s.text.table);
  check_encoder_options(s.from);
  check_fields(s, TaggerSettings(s.text.task));
  check_text(s.text);
  check_subwords(s);
  check_columns(s.text);
  check_tagger_base(s);
}

void require_effects(const TaggerSettings& settings, const TaggerConfig& resolved) {
  require_columns_effect(settings.text);
  if (resolved.has_base()) return;  // take_base() has compared all
  TaggerConfig given = settings.model, usual = TaggerSettings(settings.text.task).model;
  const std::vector<Field> fields = fields_of(given), theirs = fields_of(usual);
  for (std::size_t n = 0; n < fields.size(); ++n) {
    if (value_text(fields[n]) == value_text(theirs[n])) continue;
    require_effect(fields[n], lacks_for_effect(fields[n].traits.part, resolved));
  }
}

}  // namespace fovea
