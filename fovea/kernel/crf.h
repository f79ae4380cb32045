// SPDX-License-Identifier: Apache-2.0
// The linear-chain conditional random field (Lafferty, McCallum, Pereira 2001, "Conditional random
// fields: probabilistic models for segmenting and labeling sequence data"; as the output layer of a
// tagger: Collobert et al. 2011, section 3.2.4, and Lample et al. 2016, section 2.2).
//
// A path y of K tags through a sequence of T rows x_t [K] has the score
//
//   s(y) = start[y_1] + sum_t x_t[y_t] + sum_t transitions[y_(t-1)][y_t] + end[y_T]
//
// and the probability exp(s(y)) / Z, where Z sums exp(s) over all paths that are allowed. Paths
// that are not have probability 0, exactly: nothing that they would add to is ever added to.
// An empty sequence has one path, of score 0.
//
// Sequences are packed: rows offsets[s] to offsets[s + 1] are sequence s.
// Bits: what belongs to a sequence depends on that sequence and on the scores alone, not on other
// sequences or on threads. Sums over sequences have a fixed order.
#pragma once

#include <cstdint>
#include <vector>

#include "fovea/base/context.h"
#include "fovea/kernel/shapes.h"

namespace fovea {

/// Which paths there are: 1 what is allowed, 0 what is not. Left out (empty): all is.
struct CrfAllowed {
  Vec<const std::uint8_t> transitions = {};  ///< [K K]: [a K + b], b right after a
  Vec<const std::uint8_t> start = {};        ///< [K] the first tag
  Vec<const std::uint8_t> end = {};          ///< [K] the last tag
};

/// The scores that all sequences share. A score that is not allowed is never read.
template <class T>
struct CrfScores {
  Rows<const T> transitions = {};  ///< [K, K]: [a][b] from a to b
  Vec<const T> start = {};         ///< [K]
  Vec<const T> end = {};           ///< [K]
  CrfAllowed allowed = {};
};

/// The rows of a batch.
template <class T>
struct CrfRows {
  Rows<const T> emissions = {};          ///< [N, K] x; -infinity: not allowed there
  Vec<const std::int32_t> offsets = {};  ///< [S + 1]
};

/// The targets of the loss, and the scale of its gradients.
struct CrfTargets {
  Vec<const std::int32_t> tags = {};  ///< [N]
  double scale = 1;                   ///< of the gradients
};

/// Where the gradients of a loss go; default-made: left out, all together.
template <class T>
struct CrfGradient {
  Rows<T> emissions = {};    ///< [N, K]
  Rows<T> transitions = {};  ///< [K, K]; exactly 0 where not allowed
  Vec<T> start = {};         ///< [K]
  Vec<T> end = {};           ///< [K]
};

/// log_partition[s] = log Z of sequence s; -infinity if no path is allowed. T: float, double.
/// Throws Error(kShape).
template <class T>
void crf_log_partition(const Context& ctx, const CrfScores<T>& scores, const CrfRows<T>& rows,
                       Vec<double> log_partition);

/// losses[s] = log Z - s(tags of s), the negative log-likelihood; returns their sum, in double in
/// ascending order. The gradients are those of scale x that sum: what the model expects (marginals)
/// less what is in the tags.
///
/// Throws Error(kShape), also for a tag outside of [0, K); Error(kOptionValue) for tags that are
/// not allowed, which names the sequence and the row in it.
template <class T>
double crf_loss(const Context& ctx, const CrfScores<T>& scores, const CrfRows<T>& rows,
                const CrfTargets& targets, Vec<double> losses, const CrfGradient<T>& gradient = {});

/// marginals[n][k] = the probability that row n has tag k, over all paths: [N, K]; exactly 0 where
/// no allowed path goes. Throws Error(kShape); Error(kOptionValue), which names the sequence, if
/// it has no allowed path.
template <class T>
void crf_marginals(const Context& ctx, const CrfScores<T>& scores, const CrfRows<T>& rows,
                   Rows<T> marginals);

/// The scratch memory of a call, in bytes: all of it, and what each thread takes besides.
struct CrfScratch {
  double of_call, of_thread;
};
/// For K tags and sequences of at most `longest` rows. Calls without a gradient, crf_viterbi among
/// them, take no more than crf_marginals.
template <class T>
CrfScratch crf_scratch(index tags, index longest, bool with_gradient);

// The best paths through a linear-chain CRF (crf.h): Viterbi 1967, "Error bounds for convolutional
// codes and an asymptotically optimum decoding algorithm"; the k best by keeping k for each tag
// (Seshadri, Sundberg 1994, "List Viterbi decoding algorithms with applications").
//
// Scores are summed in double, from the first row on, whatever T is. So the paths are the same bits
// on every instruction set. If the sums of paths are equal where they meet, the one that comes from
// the lower tag is first: of equal scores that with the lower last tag, then that with the lower
// tag before it, and so on. Two whose sums differ where they meet keep that order, even if rounding
// makes their scores equal later.

/// tags[n] = the tag of row n in the best path of its sequence; scores_of[s] = s(y) of that path
/// (empty: not wanted). T: float, double.
/// Throws Error(kShape); Error(kOptionValue), which names the sequence, if no path is allowed or a
/// score is NaN.
template <class T>
void crf_viterbi(const Context& ctx, const CrfScores<T>& scores, const CrfRows<T>& rows,
                 Vec<std::int32_t> tags, Vec<double> scores_of = {});

struct CrfPath {
  double score = 0;  ///< s(y); its probability is exp(score - log Z)
  std::vector<std::int32_t> tags = {};

  bool operator==(const CrfPath&) const = default;
};

/// The `count` best paths of each sequence, best first; fewer if there are fewer. The first is that
/// of crf_viterbi. Throws as that; Error(kOptionValue) unless count >= 1.
template <class T>
std::vector<std::vector<CrfPath>> crf_best_paths(const Context& ctx, const CrfScores<T>& scores,
                                                 const CrfRows<T>& rows, index count);

}  // namespace fovea
