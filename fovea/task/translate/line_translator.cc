// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/translate/line_translator.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "fovea/base/check.h"
#include "fovea/base/machine.h"
#include "fovea/base/option.h"
#include "fovea/config/field.h"
#include "fovea/config/json.h"
#include "fovea/model/pass_plan.h"
#include "fovea/pretrained/translator_tokenizer.h"
#include "fovea/task/decode/sampling.h"
#include "fovea/task/setting_parts.h"
#include "fovea/text/python_text.h"
#include "fovea/text/utf8.h"
#include "fovea/text/words.h"

namespace fovea {

namespace {

// Whether token n begins a word.
bool begins_word(const Tokenizer& tokenizer, std::span<const token> ids, index n) {
  if (!tokenizer.separator().empty()) return true;
  std::string before, here;
  tokenizer.append_bytes(before, ids[static_cast<std::size_t>(n - 1)]);
  tokenizer.append_bytes(here, ids[static_cast<std::size_t>(n)]);
  return before.ends_with(' ') || here.starts_with(' ');
}

}  // namespace

void check_options(const TranslationOptions& o) {
  check_ranges(o);
  TranslationOptions said = o, usual;
  require_sound(fields_of(said), fields_of(usual));
  check_options(o.sampling());
  if (!o.sample) check_options(o.search);  // samples need no beam
  require_option(!o.sample || o.search.coverage_penalty == 0, Hint{"leave one of the two out"},
                 "coverage_penalty", o.search.coverage_penalty, "0 with --sample");
}

std::vector<index> ends_of_pieces(const Tokenizer& tokenizer, std::span<const token> ids,
                                  index most) {
  const index length = std::ssize(ids), pieces = (length + most - 1) / most;
  std::vector<index> ends;
  for (index p = 1, first = 0; p < pieces; ++p, first = ends.back()) {
    const index least = std::max(first + 1, length - most * (pieces - p)),
                furthest = std::min(first + most, length - 1),
                middle = std::clamp(length * p / pieces, least, furthest);
    index end = middle;
    for (index away = 0; away <= std::max(middle - least, furthest - middle); ++away) {
      const index back = middle - away, on = middle + away;
      if (back >= least && begins_word(tokenizer, ids, back)) {
        end = back;
        break;
      }
      if (on <= furthest && begins_word(tokenizer, ids, on)) {
        end = on;
        break;
      }
    }
    ends.push_back(end);
  }
  if (length > 0) ends.push_back(length);
  return ends;
}

std::vector<double> attention_to_source(const Context& context, const Translator& model,
                                        const AlignedPair& pair, index layer) {
  const auto M = static_cast<std::int32_t>(pair.source.size()),
             N = static_cast<std::int32_t>(pair.target.size());
  if (M < 2 || N < 1) return {};
  const std::int32_t from[] = {0, M}, to[] = {0, N};
  std::vector<HeadStatistics> seen(static_cast<std::size_t>(model.attentions()));
  HeadStatistics& cross = seen[static_cast<std::size_t>(model.cross_attention(layer))];
  cross.keeps_weights = true;
  Tape tape(context, TapeMode::kInference);
  model.logits(tape,
               {.source = {.ids = {pair.source.data(), M}, .offsets = {from, 2}},
                .target = {.ids = {pair.target.data(), N}, .offsets = {to, 2}}},
               {.attention = seen});
  const auto H = static_cast<index>(cross.weights.size()) / (index{M} * N);
  std::vector<double> mean(static_cast<std::size_t>((M - 1) * N));
  for (index n = 0; n < N; ++n) {
    for (index h = 0; h < H; ++h) {
      const float* const row = cross.weights.data() + (h * N + n) * M;
      double* const to_row = mean.data() + n * (M - 1);
      for (index m = 0; m + 1 < M; ++m) to_row[m] += double{row[m]} / static_cast<double>(H);
    }
  }
  return mean;
}

index default_alignment_layer(const TranslatorConfig& config) {
  return std::max<index>(config.decoder_layers - 2, 0);
}

std::vector<std::pair<index, index>> align(const Context& context, const Translator& model,
                                           const AlignedPair& pair, index layer) {
  std::vector<std::pair<index, index>> links;
  const auto M = std::ssize(pair.source) - 1, N = std::ssize(pair.target);
  if (M < 1 || N < 2) return links;
  const std::vector<double> weights = attention_to_source(context, model, pair, layer);
  // Row n predicts the token behind it.
  for (auto row = weights.begin(); row + M < weights.end(); row += M) {
    links.emplace_back(std::max_element(row, row + M) - row, (row - weights.begin()) / M);
  }
  return links;
}

// The decoder as the searcher sees it.
class TranslationModel final : public NextTokenModel {
 public:
  /// `layer`: whose attention covers the source.
  TranslationModel(const Context& context, const Translator& model, token begin, index layer)
      : context_(context), model_(model), begin_(begin), layer_(layer), decoder_(context, model) {}

  const Context& context() const { return context_; }
  /// The sources must outlive the search.
  void begin(const TextRows& sources) {
    sources_ = sources;
    decoder_.begin(sources);
  }
  Rows<const float> step(std::span<const index> parents, Vec<const std::int32_t> ids) override {
    return decoder_.step(parents, ids);
  }
  std::vector<double> attention(index sentence, std::span<const token> written) override {
    const std::int32_t first = sources_.offsets[sentence], behind = sources_.offsets[sentence + 1];
    const std::span source(sources_.ids.data + first, static_cast<std::size_t>(behind - first));
    std::vector<token> target{begin_};
    target.insert(target.end(), written.begin(), written.end());
    const std::vector<double> weights =
        attention_to_source(context_, model_, {source, target}, layer_);
    std::vector<double> sums(source.size() - 1);
    for (std::size_t n = 0; n < weights.size(); ++n) sums[n % sums.size()] += weights[n];
    return sums;
  }

 private:
  const Context context_;
  const Translator& model_;
  token begin_;
  index layer_;
  TextRows sources_;
  TranslatorDecoder decoder_;
};

namespace {

constexpr index kMoreTokens = 10;  // of a translation, beyond --max-ratio

// Tokens that no training text had, which a model knows nothing of; the unknown word, which says
// nothing; and what would break a line in two.
std::vector<bool> forbidden_tokens(const TranslatorVocabulary& vocabulary) {
  const Tokenizer& tokenizer = vocabulary.target();
  std::vector<bool> forbidden(static_cast<std::size_t>(tokenizer.vocabulary_size()));
  const SpecialTokens special = tokenizer.special();
  for (token id = 0; id < tokenizer.vocabulary_size(); ++id) {
    std::string bytes;
    tokenizer.append_bytes(bytes, id);
    const bool breaks = bytes.find('\n') != std::string::npos;
    forbidden[static_cast<std::size_t>(id)] =
        id != special.end && ((id == special.unknown && !vocabulary.is_foreign) || breaks ||
                              !tokenizer.occurs_in_learned_text(id));
  }
  return forbidden;
}

index layer_of(const TranslationOptions& options, const TranslatorConfig& config) {
  if (options.alignment_layer == 0) return default_alignment_layer(config);
  require_option(options.alignment_layer <= config.decoder_layers, "alignment_layer",
                 options.alignment_layer, "in 1 to {}, the layers of the decoder",
                 config.decoder_layers);
  return options.alignment_layer - 1;
}

// The most tokens of a translation, with its end.
index most_tokens(const TranslationOptions& options, index block, index source) {
  if (options.search.most_tokens > 0) block = std::min(block, options.search.most_tokens);
  const double most = std::ceil(options.max_ratio * static_cast<double>(source));
  return static_cast<index>(std::min(static_cast<double>(block), most + kMoreTokens));
}

index rows_of_line(const TranslationOptions& options) {
  return options.sample ? options.search.nbest : options.search.beam;
}

// The bytes of a batch: its sources, and keys and values of all that its hypotheses write.
double batch_bytes(const TranslatorConfig& config, const TranslationOptions& options, index lines,
                   index longest) {
  const index rows = lines * rows_of_line(options), source = lines * longest;
  const auto written =
      static_cast<double>(rows) * static_cast<double>(most_tokens(options, config.block, longest));
  const TranslationLoad load{{source, TapeMode::kInference}, {rows, TapeMode::kInference}};
  const double kept =
      4 * static_cast<double>(config.decoder_layers * config.kv_heads * config.head_dim) *
      (static_cast<double>(source) + 2 * written);
  const double logits =
      4 * static_cast<double>(rows) * static_cast<double>(config.target_vocabulary);
  const PassCost pass = plan_pass(Context(1), config, load);
  return pass.tape + pass.scratch + logits + 2 * kept;
}

// Batches of so many bytes on all threads, and the packed weights that they share.
double bytes_of_threads(const Context& context, const TranslatorConfig& config, double batch) {
  const TranslationLoad any{{1, TapeMode::kInference}, {1, TapeMode::kInference}};
  return context.threads() * batch + plan_pass(context, config, any).packed;
}

std::string decoded(const Tokenizer& tokenizer, std::span<const token> ids) {
  StreamDecoder text(tokenizer);
  std::string all;
  for (const token id : ids) all += text.push(id);
  return all + text.finish();
}

// Whether decoded text has blanks that no text has.
bool has_cut_punctuation(const TokenizerData& data) {
  return data.kind == kWordKind && data.split == WordSplit::kPunctuation;
}

// How many of a line's first tokens stand before each of its pieces of at most `most` tokens: one,
// if it is a mark such as the code of a language, which stands for no text. An unknown word is
// none.
index marks_before(const Tokenizer& tokenizer, std::span<const token> ids, index most) {
  if (most < 2 || ids.front() == tokenizer.special().unknown) return 0;
  std::string bytes;
  tokenizer.append_bytes(bytes, ids.front());
  return bytes.empty() ? 1 : 0;
}

// Where a piece stands in its line.
struct PlaceInLine {
  index marks = 0;               // tokens of the piece that are the first of the line
  index source = 0, target = 0;  // tokens before it
};

// The best translations of the pieces of a line, one behind the other, but for the text. Tokens of
// an alignment count through all pieces; ends do not count.
void join(TranslatedText& to, const TranslatedText& from, const PlaceInLine& place) {
  to.tokens += from.tokens;
  to.log_probability += from.log_probability;
  to.score += from.score;
  to.ids.insert(to.ids.end(), from.ids.begin(), from.ids.end());
  for (const auto& [source, target] : from.alignment) {
    to.alignment.emplace_back(source < place.marks ? source : place.source + source,
                              place.target + target);
  }
}

}  // namespace

LineTranslator::LineTranslator(const Context& context, const Translator& model,
                               const TranslatorVocabulary& vocabulary,
                               const TranslationOptions& options, std::string name,
                               index batch_rows)
    : context_(context),
      model_(model),
      vocabulary_(vocabulary),
      options_(options),
      name_(std::move(name)),
      batch_rows_(batch_rows),
      detokenizes_(!options.raw && has_cut_punctuation(vocabulary.target().data())),
      forbidden_(forbidden_tokens(vocabulary)),
      writers_(context, [this](const Context& own) { return make_writer(own); }) {
  check_options(options_);
  require_option(!options_.truecase || vocabulary_.target().data().lower,
                 Hint{"leave it out: this model has learned capital letters"}, "truecase", true,
                 "an option for a model that was trained with --lower");
  if (options_.alignments) layer_of(options_, model.config());
}

LineTranslator::~LineTranslator() = default;

void LineTranslator::add(const LineToTranslate& line) {
  std::vector<token> ids;
  if (!is_blank(line.text)) {
    vocabulary_.source().append_tokens(ids, line.text, fmt::format("{}:{}", name_, line.number));
  }
  const auto length = static_cast<index>(ids.size());
  const index most = model_.config().block - 1;  // and an end
  if (length > most && options_.long_lines == LongLines::kRefuse) {
    throw Error(ErrorCode::kInputFormat,
                fmt::format("{}:{}: the line has {} tokens; the model reads at most {}", name_,
                            line.number, length, most),
                "break the line in two, or add --long-lines split");
  }
  const index marks = length > most ? marks_before(vocabulary_.source(), ids, most) : 0;
  const std::span words = std::span(ids).subspan(static_cast<std::size_t>(marks));
  const std::vector<index> ends = ends_of_pieces(vocabulary_.source(), words, most - marks);
  if (ends.size() > 1) ++split_;
  auto from = static_cast<index>(tokens_.size());
  index first = 0;
  for (std::size_t p = 0; p < ends.size(); first = ends[p++]) {
    const index behind = ends[p];
    tokens_.insert(tokens_.end(), ids.begin(), ids.begin() + marks);
    tokens_.insert(tokens_.end(), words.begin() + first, words.begin() + behind);
    tokens_.push_back(vocabulary_.source().special().end);
    constexpr std::uint64_t kMostPieces = 1 << 16;
    pieces_.push_back({static_cast<index>(waiting_.size()), from,
                       static_cast<index>(tokens_.size()),
                       line.number * kMostPieces + static_cast<std::uint64_t>(p), marks});
    from = static_cast<index>(tokens_.size());
  }
  source_tokens_ += length;
  waiting_.emplace_back(detokenizes_ ? line.text : "");
  ++lines_;
}

LengthBatches LineTranslator::batches() const {
  std::vector<index> lengths;
  for (const Piece& piece : pieces_) lengths.push_back(piece.end - piece.begin);
  return {lengths,
          {.unit = BatchUnit::kInputs,
           .fewest = 8,
           .most = std::max<index>(1, batch_rows_ / rows_of_line(options_)),
           .of_thread = 2},
          context_.threads()};
}

// The first batch has the longest pieces, and no other has more of them.
void LineTranslator::require_room(std::span<const index> first) const {
  const TranslatorConfig& config = model_.config();
  const Piece& longest = pieces_[static_cast<std::size_t>(first.front())];
  const double most =
      batch_bytes(config, options_, static_cast<index>(first.size()), longest.end - longest.begin);
  require_memory("the translations", bytes_of_threads(context_, config, most),
                 "use a smaller --beam, fewer threads (--threads), or a machine with more memory");
}

std::string LineTranslator::written(std::span<const token> ids, index line) const {
  std::string text = decoded(vocabulary_.target(), ids);
  if (vocabulary_.is_foreign) {
    text = strip_both(text);
    if (vocabulary_.cleans) text = without_spare_blanks(std::move(text));
  }
  if (detokenizes_) text = detokenized(text, waiting_[static_cast<std::size_t>(line)]);
  return options_.truecase ? truecased(text) : text;
}

TranslatedText LineTranslator::text_of(const Context& context, const Piece& piece,
                                       const Hypothesis& hypothesis) const {
  const Tokenizer& tokenizer = vocabulary_.target();
  TranslatedText made{.text = written(hypothesis.tokens, piece.line),
                      .tokens = std::ssize(hypothesis.tokens) + (hypothesis.has_end ? 1 : 0),
                      .log_probability = hypothesis.log_probability,
                      .score = hypothesis.score,
                      .ids = hypothesis.tokens};
  if (!options_.alignments) return made;
  std::vector<token> target = {tokenizer.special().begin};
  target.insert(target.end(), hypothesis.tokens.begin(), hypothesis.tokens.end());
  const std::span source(tokens_.data() + piece.begin,
                         static_cast<std::size_t>(piece.end - piece.begin));
  made.alignment = align(context, model_, {source, target}, layer_of(options_, model_.config()));
  return made;
}

std::unique_ptr<TranslationModel> LineTranslator::make_writer(const Context& context) const {
  return std::make_unique<TranslationModel>(context, model_, vocabulary_.target().special().begin,
                                            layer_of(options_, model_.config()));
}

void LineTranslator::translate_batch(TranslationModel& writer, std::span<const index> batch) {
  const Context& context = writer.context();
  std::vector<token> ids;
  std::vector<std::int32_t> offsets{0};
  std::vector<index> longest;
  std::vector<std::uint64_t> numbers;
  const index block = model_.config().block;
  for (const index p : batch) {
    const Piece& piece = pieces_[static_cast<std::size_t>(p)];
    ids.insert(ids.end(), tokens_.begin() + piece.begin, tokens_.begin() + piece.end);
    offsets.push_back(static_cast<std::int32_t>(ids.size()));
    longest.push_back(most_tokens(options_, block, piece.end - piece.begin - 1));
    numbers.push_back(piece.number);
  }
  const SpecialTokens special = vocabulary_.target().special();
  writer.begin({.ids = {ids.data(), static_cast<index>(ids.size())},
                .offsets = {offsets.data(), static_cast<index>(offsets.size())}});
  const SearchTask task{.begin = special.begin,
                        .end = special.end,
                        .more_ends = vocabulary_.more_ends,
                        .forbidden = forbidden_,
                        .longest = longest};
  const SearchOptions& search = options_.search;
  const auto found =
      options_.sample
          ? sample_search(context, writer,
                          {task, search.nbest, numbers, search.free_end, search.open_end},
                          options_.sampling())
          : beam_search(context, writer, task, search);
  for (std::size_t n = 0; n < batch.size(); ++n) {
    const auto p = static_cast<std::size_t>(batch[n]);
    for (const Hypothesis& one : found[n]) {
      translated_[p].push_back(text_of(context, pieces_[p], one));
    }
  }
}

std::vector<std::vector<TranslatedText>> LineTranslator::translate() {
  try {
    auto results = translate_waiting();
    forget_waiting();
    return results;
  } catch (...) {
    forget_waiting();
    throw;
  }
}

void LineTranslator::forget_waiting() {
  tokens_.clear();
  pieces_.clear();
  waiting_.clear();
}

std::vector<std::vector<TranslatedText>> LineTranslator::translate_waiting() {
  translated_.assign(pieces_.size(), {});
  const LengthBatches batches = this->batches();
  if (batches.size() > 0) require_room(batches[0]);
  writers_.for_each(batches, [&](TranslationModel& writer, std::span<const index> batch) {
    translate_batch(writer, batch);
  });
  std::vector<std::vector<TranslatedText>> results = collect();
  for (auto& of_line : results) {
    if (of_line.empty()) of_line.emplace_back();
    target_tokens_ += of_line[0].tokens;
  }
  return results;
}

// By lines, what was translated by pieces.
std::vector<std::vector<TranslatedText>> LineTranslator::collect() {
  std::vector<std::vector<TranslatedText>> results(waiting_.size());
  for (std::size_t p = 0; p < pieces_.size();) {
    const index line = pieces_[p].line;
    auto& of_line = results[static_cast<std::size_t>(line)];
    if (p + 1 == pieces_.size() || pieces_[p + 1].line != line) {
      of_line = std::move(translated_[p++]);
      continue;
    }
    TranslatedText all;
    PlaceInLine place{.marks = pieces_[p].marks};
    for (; p < pieces_.size() && pieces_[p].line == line; ++p) {
      if (translated_[p].empty()) continue;
      const TranslatedText& best = translated_[p][0];
      join(all, best, place);
      place.source += pieces_[p].end - pieces_[p].begin - 1 - place.marks;
      place.target += std::ssize(best.ids);
    }
    all.text = written(all.ids, line);
    of_line.push_back(std::move(all));
  }
  return results;
}

double translating_bytes(const Context& context, const TranslatorConfig& config,
                         const TranslationOptions& options, index lines, index longest) {
  const index batch =
      std::min(lines, std::max<index>(1, LineTranslator::kBatchRows / rows_of_line(options)));
  return bytes_of_threads(context, config, batch_bytes(config, options, batch, longest));
}

std::optional<std::vector<std::string>> translate_all(LineTranslator& translator,
                                                      std::span<const std::string> lines,
                                                      const std::function<bool()>& interrupted) {
  constexpr std::size_t kAtOnce = 128;  // so that an interruption is seen soon
  std::vector<std::string> made;
  while (made.size() < lines.size()) {
    if (interrupted()) return std::nullopt;
    const std::size_t end = std::min(lines.size(), made.size() + kAtOnce);
    for (std::size_t n = made.size(); n < end; ++n) {
      translator.add({lines[n], static_cast<std::uint64_t>(n) + 1});
    }
    for (auto& line : translator.translate()) made.push_back(std::move(line[0].text));
  }
  return made;
}

namespace {

// A translation as an object.
Json::Object translation_object(const TranslatedText& made, bool alignments) {
  Json::Object object;
  object.emplace_back("translation", made.text);
  object.emplace_back("score", made.score);
  object.emplace_back("log_probability", made.log_probability);
  object.emplace_back("tokens", made.tokens);
  if (!alignments) return object;
  Json::Array links;
  for (const auto& [source, target] : made.alignment) links.push_back(Json::Array{source, target});
  object.emplace_back("alignment", std::move(links));
  return object;
}

}  // namespace

std::string translation_json(std::string_view source, std::span<const TranslatedText> all,
                             const TranslationOptions& options) {
  Json::Object object;
  object.emplace_back("source", source);
  for (auto& member : translation_object(all[0], options.alignments)) {
    object.push_back(std::move(member));
  }
  if (options.search.nbest > 1) {
    Json::Array best;
    for (const TranslatedText& made : all) {
      best.push_back(translation_object(made, options.alignments));
    }
    object.emplace_back("nbest", std::move(best));
  }
  return Json(std::move(object)).line();
}

}  // namespace fovea
