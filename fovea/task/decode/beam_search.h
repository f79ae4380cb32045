// SPDX-License-Identifier: Apache-2.0
// Beam search over any model that gives scores for the next token: many sentences at once.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "fovea/base/context.h"
#include "fovea/base/fields.h"
#include "fovea/base/view.h"
#include "fovea/text/vocabulary.h"

namespace fovea {

/// The model that continues hypotheses.
class NextTokenModel {
 public:
  virtual ~NextTokenModel() = default;

  /// Hypothesis i becomes what hypothesis parents[i] of the call before was, with ids[i] behind it;
  /// in the first call parents are numbers of sentences. Returns the logits [N, V] of what follows,
  /// valid until the next call.
  virtual Rows<const float> step(std::span<const index> parents, Vec<const std::int32_t> ids) = 0;

  /// For --coverage-penalty: how much attention each token of what a sentence is written from gets
  /// while these tokens and their end are written, summed over them. A model that writes from
  /// nothing has none.
  virtual std::vector<double> attention(index /*sentence*/, std::span<const token> /*written*/) {
    return {};
  }
};

/// By what the log probability of a hypothesis is divided; |Y| are its tokens with the end.
enum class LengthNorm : std::uint8_t {
  kGnmt,    ///< ((5 + |Y|) / 6)^a (Wu et al. 2016, equation 14)
  kMarian,  ///< |Y|^a (Junczys-Dowmunt et al. 2018): the mean where a is 1
};
inline constexpr EnumName<LengthNorm> kLengthNormNames[] = {{LengthNorm::kGnmt, "gnmt"},
                                                            {LengthNorm::kMarian, "marian"}};
inline std::span<const EnumName<LengthNorm>> enum_names(LengthNorm) { return kLengthNormNames; }

/// What an unfinished hypothesis may still score, and with what that is compared. The last two are
/// transformers' early_stopping "never" and false: `beam` hypotheses must have ended, each better
/// than that; a beam of one ends with the first end.
enum class Prospect : std::uint8_t {
  kAtBestLength,  ///< its log probability at the length that suits it best; the last of `nbest`
  kOfBeamAtBestLength,
  kOfBeamAtThisLength,  ///< its log probability at its present length: a guess
};

inline constexpr index kMostBeam = 1024;
inline constexpr double kMostPenalty = 100;

struct SearchOptions {
  index beam = 5;
  index nbest = 1;
  double length_penalty = 0.6;
  LengthNorm length_norm = LengthNorm::kGnmt;
  double coverage_penalty = 0;
  double patience = 1;
  // No fields: how models from elsewhere are searched.
  index most_tokens = 0;  ///< of a hypothesis, with its end; 0: as many as the model writes
  Prospect prospect = Prospect::kAtBestLength;
  bool free_end = false;     ///< an end that comes because there is no more room costs nothing
  bool open_end = false;     ///< where there is no more room, a hypothesis has ended without an end
  bool shares_rest = false;  ///< the probability of forbidden tokens goes to the others

  template <class Visitor>
  void visit_fields(Visitor&& visit) {
    visit("beam", beam, "hypotheses of a sentence that are kept; 1: always the likeliest token",
          {.range = ValueRange::in(1, kMostBeam)});
    visit("nbest", nbest, "how many translations of a sentence to give, the best first",
          {.range = ValueRange::in(1, kMostBeam)});
    visit(
        "length_penalty", length_penalty,
        "exponent a of the length by which log probabilities are divided (--length-norm); 0: none",
        {.range = ValueRange::in(-kMostPenalty, kMostPenalty)});
    visit("length_norm", length_norm,
          "the length of --length-penalty: ((5 + tokens) / 6)^a, or tokens^a");
    visit("coverage_penalty", coverage_penalty,
          "factor b of log(min(attention, 1)) of each source token, added to the score; 0: none",
          {.range = ValueRange::in(0, kMostPenalty)});
    visit("patience", patience,
          "a sentence is done when this many times --beam hypotheses have ended, or when no other "
          "can win; 0: only when no other can win",
          {.range = ValueRange::from(0)});
  }
};

/// Throws kOptionValue, which names the option, for an invalid value.
void check_options(const SearchOptions& options);

/// The divisor of a log probability of so many tokens.
double length_divisor(const SearchOptions& options, index tokens);

/// The term of the score for sources that got too little attention: b times the sum of
/// log(min(attention, 1)) (Wu et al. 2016, equation 14); none counts as 1e-9, so that every score
/// is finite.
double coverage_score(const SearchOptions& options, std::span<const double> attention);

/// The tokens between which a search runs.
struct SearchTask {
  token begin = kNoToken;               ///< with which every hypothesis begins
  token end = kNoToken;                 ///< with which it ends; none: when it is as long as may be
  std::vector<token> more_ends = {};    ///< each of these ends it, too, and stays its last token
  std::vector<bool> forbidden = {};     ///< [V] tokens that are never chosen; empty: none
  std::span<const index> longest = {};  ///< [sentences] most tokens, with the end; at least 1
};

struct Hypothesis {
  std::vector<token> tokens = {};  ///< without begin and end
  double log_probability = 0;      ///< of these and the end, in nats
  double score = 0;                ///< that, divided by length_divisor(), and coverage_score()
  /// False: it has no end, which counts nowhere; with open_end, or behind one of more_ends.
  bool has_end = true;
};

/// The best hypotheses of each sentence, at most `nbest`, the best first. In every step a sentence
/// keeps its `beam` likeliest hypotheses that go on; one that ends is finished if it is among the
/// first `beam` of all. A sentence leaves the search when no unfinished hypothesis of it can become
/// one of the `nbest` any more, whatever follows, or by --patience. A hypothesis of `longest` - 1
/// tokens can only end with `end` (without an end or with open_end, one of `longest` has ended).
/// Coverage counts in scores, which choose among those that have ended, and not in what stays in
/// the beam. Among equal scores the hypothesis that stood first wins, then the lower token. Nothing
/// depends on the other sentences or on the number of threads. Throws kModelDamaged for logits
/// without a finite sum.
std::vector<std::vector<Hypothesis>> beam_search(const Context& context, NextTokenModel& model,
                                                 const SearchTask& task,
                                                 const SearchOptions& options);

}  // namespace fovea
