// SPDX-License-Identifier: Apache-2.0
// Translates many lines: fast, and with the same bits however they come.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fovea/base/context.h"
#include "fovea/base/types.h"
#include "fovea/model/translator.h"
#include "fovea/task/decode/beam_search.h"
#include "fovea/task/decode/sampling.h"
#include "fovea/task/length_batches.h"
#include "fovea/task/translate/translator.h"
#include "fovea/text/tokenizer.h"
#include "fovea/text/vocabulary.h"

namespace fovea {

/// The way to treat a line that is longer than the model reads.
enum class LongLines : std::uint8_t {
  kRefuse,  ///< an error
  kSplit,   ///< it is translated in pieces
};
inline constexpr EnumName<LongLines> kLongLinesNames[] = {{LongLines::kRefuse, "refuse"},
                                                          {LongLines::kSplit, "split"}};
inline std::span<const EnumName<LongLines>> enum_names(LongLines) { return kLongLinesNames; }

struct TranslationOptions {
  SearchOptions search;
  double max_ratio = 2;
  bool sample = false;
  double temperature = 1;
  index top_k = 0;
  double top_p = 1;
  std::uint64_t seed = 1;
  bool alignments = false;
  index alignment_layer = 0;
  LongLines long_lines = LongLines::kRefuse;
  bool raw = false;
  bool truecase = false;

  template <class Visitor>
  void visit_fields(Visitor&& visit) {
    search.visit_fields(visit);
    visit("max_ratio", max_ratio,
          "most tokens of a translation, for each of its source; there may be 10 more",
          {.range = ValueRange::over(0, 1000)});
    const auto visit_sampling = under("Sampling", visit),
               visit_alignments = under("Alignments", visit);
    visit_sampling("sample", sample,
                   "draw translations by their probability, --nbest of them, no search");
    visit_sampling("temperature", temperature,
                   "--sample: divides the logits; below 1 prefers likely tokens",
                   {.needs = {"sample"}});
    visit_sampling("top_k", top_k, "--sample: from the k likeliest tokens; 0: from all",
                   {.needs = {"sample"}});
    visit_sampling("top_p", top_p,
                   "--sample: from the likeliest tokens whose probabilities sum to this",
                   {.needs = {"sample"}});
    visit_sampling("seed", seed, "--sample: same seed, same translations");
    visit_alignments(
        "alignments", alignments,
        "say which source token each token of the translation attends to most: 0-0 1-2 ...");
    visit_alignments(
        "alignment_layer", alignment_layer,
        "the layer of the decoder, from 1, whose attention --alignments and --coverage-penalty "
        "read; 0: the last but one",
        {.range = ValueRange::from(0, "the last but one"),
         .needs = {"alignments|coverage_penalty"}});
    visit("long_lines", long_lines,
          "a line longer than the model reads is an error, or is translated in pieces");
    visit("raw", raw,
          "words as the model says them; else those of --words punctuation are put together: no "
          "blank before a full stop, and so on");
    visit("truecase", truecase,
          "of a model trained with --lower: begin each sentence with a capital letter");
  }

  SamplingOptions sampling() const {
    return {.temperature = temperature, .top_k = top_k, .top_p = top_p, .seed = seed};
  }
};

/// Throws kOptionValue, which names the option, for an invalid value.
void check_options(const TranslationOptions& options);

/// Where the pieces of a line of tokens end. A piece has at most `most`, and there are as few as
/// can be, as equal in length as can be; they end between words where there are any and the pieces
/// that follow still have room. None of an empty line.
std::vector<index> ends_of_pieces(const Tokenizer& tokenizer, std::span<const token> ids,
                                  index most);

/// A source with its end, and a translation behind its begin mark.
struct AlignedPair {
  std::span<const token> source;
  std::span<const token> target;
};

/// The mean of all heads' weights in a layer of the decoder (from 0) of each token of the source
/// without the end, while each token of the target is read: [target, source - 1].
std::vector<double> attention_to_source(const Context& context, const Translator& model,
                                        const AlignedPair& pair, index layer);

/// The layer of the decoder, from 0, that says how texts are aligned unless another is asked for:
/// the last but one. Deep models align best there (Garg et al. 2019, arXiv:1909.02074).
index default_alignment_layer(const TranslatorConfig& config);

/// For each token of the target behind the begin mark the token of the source, without the end, to
/// which attention gives the most weight while it is predicted, in the mean of all heads of a layer
/// of the decoder (from 0): (source, target), both from 0. The first of equal weights counts.
std::vector<std::pair<index, index>> align(const Context& context, const Translator& model,
                                           const AlignedPair& pair, index layer);

class TranslationModel;

struct TranslatedText {
  std::string text;
  index tokens = 0;             ///< with the end, if it has one
  double log_probability = 0;   ///< of these, in nats
  double score = 0;             ///< see Hypothesis; of pieces the sum
  std::vector<token> ids = {};  ///< the tokens, without the end
  /// With alignments: (token of the source, token of the translation), both from 0.
  std::vector<std::pair<index, index>> alignment = {};
};

/// A line to translate.
struct LineToTranslate {
  std::string_view text;
  std::uint64_t number = 0;  ///< from 1: names it in errors, and what is drawn for it
};

/// Cuts lines into batches of about the same length and gives each thread batches of its own. No
/// bit of a result depends on the other lines, their order or the number of threads. Keeps the
/// memory of its largest batches. Belongs to one thread.
class LineTranslator {
 public:
  /// How many lines or bytes of them are well read before they are translated.
  static constexpr std::size_t kLinesAtOnce = 2048, kBytesAtOnce = std::size_t{4} << 20;
  static constexpr index kBatchRows = 128;

  /// Model and vocabulary must outlive the translator. `name` is that of the file, in errors.
  /// `batch_rows`: hypotheses that are written at once, about. Throws kOptionValue for the options.
  LineTranslator(const Context& context, const Translator& model,
                 const TranslatorVocabulary& vocabulary, const TranslationOptions& options,
                 std::string name, index batch_rows = kBatchRows);
  ~LineTranslator();

  /// Takes a line for the next call of translate(). Throws kInputFormat, "NAME:LINE: ...", for one
  /// that is too long, with LongLines::kRefuse, and kEncoding: then it is not taken.
  void add(const LineToTranslate& line);
  index waiting() const { return static_cast<index>(waiting_.size()); }  ///< lines that were taken

  /// The translations of each line that was taken, the best first; an empty line (or white space
  /// alone) has one that is empty, and a line in pieces the best alone. Throws kModelDamaged,
  /// kOutOfMemory. In any case no line waits then.
  std::vector<std::vector<TranslatedText>> translate();

  index lines() const { return lines_; }
  index source_tokens() const { return source_tokens_; }
  index target_tokens() const { return target_tokens_; }  ///< of the best translations
  index split() const { return split_; }                  ///< lines that were translated in pieces
  double model_seconds() const { return writers_.seconds(); }  ///< of all calls so far

 private:
  // Some tokens of a line, with an end, as one of the pieces that are translated.
  struct Piece {
    index line;            // of those that wait
    index begin, end;      // of tokens_
    std::uint64_t number;  // names what is drawn
    index marks = 0;       // its first tokens, which the line has once and each piece has
  };

  std::vector<std::vector<TranslatedText>> translate_waiting();
  void forget_waiting();
  LengthBatches batches() const;
  std::vector<std::vector<TranslatedText>> collect();
  std::unique_ptr<TranslationModel> make_writer(const Context& context) const;
  void translate_batch(TranslationModel& writer, std::span<const index> batch);
  void require_room(std::span<const index> first) const;
  std::string written(std::span<const token> ids, index line) const;
  TranslatedText text_of(const Context& context, const Piece& piece,
                         const Hypothesis& hypothesis) const;

  const Context context_;
  const Translator& model_;
  const TranslatorVocabulary& vocabulary_;
  const TranslationOptions options_;
  const std::string name_;
  const index batch_rows_;
  const bool detokenizes_;
  std::vector<bool> forbidden_;
  BatchWorkers<TranslationModel> writers_;
  std::vector<std::string> waiting_;  // the lines, if detokenizes_
  std::vector<token> tokens_;
  std::vector<Piece> pieces_;
  std::vector<std::vector<TranslatedText>> translated_;  // [pieces]
  index lines_ = 0, source_tokens_ = 0, target_tokens_ = 0, split_ = 0;
};

/// Bytes that a translator of `lines`, of at most `longest` tokens with the end, takes at most.
double translating_bytes(const Context& context, const TranslatorConfig& config,
                         const TranslationOptions& options, index lines, index longest);

/// The best translation of each line. Nothing if `interrupted` returns true between some lines and
/// the next. Throws as the translator does.
std::optional<std::vector<std::string>> translate_all(LineTranslator& translator,
                                                      std::span<const std::string> lines,
                                                      const std::function<bool()>& interrupted);

/// An object in one line: "source", and of the best "translation", "score", "log_probability" and
/// "tokens", with alignments "alignment"; of several all of them in "nbest".
std::string translation_json(std::string_view source, std::span<const TranslatedText> all,
                             const TranslationOptions& options);

}  // namespace fovea
