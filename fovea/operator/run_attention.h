// SPDX-License-Identifier: Apache-2.0
// Runs the attention operator on named tensors, as `fovea attention` does.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "fovea/attention/attention.h"
#include "fovea/operator/attention_call.h"
#include "fovea/operator/attention_settings.h"
#include "fovea/operator/attention_tensors.h"
#include "fovea/report/attention_page.h"

namespace fovea {

/// Reads the tensors of a file that a call with these settings needs. Throws as AttentionTensors
/// does.
AttentionTensors read_attention_tensors(const AttentionSettings& settings, const TensorFile& file,
                                        std::string where);

/// The plan of the call, without computing it; `more` are parts beyond what settings and tensors
/// say. With settings.reference, `kernel` names the reference; the tiles are still those of the
/// fused kernel. Throws as run_attention does.
AttentionPlan plan_attention(const Context& context, const AttentionSettings& settings,
                             const AttentionTensors& tensors, const MoreParts* more = nullptr);

/// Whether the call has rows of bfloat16 and multiplies them as they are. Throws as run_attention.
bool call_multiplies_bfloat16(const AttentionSettings& settings, const AttentionTensors& tensors);

/// The kept tiles of the first sequence and head, one text for each 64 queries (tile_cover.h);
/// empty if there are more than 128 x 128 tiles. Throws as run_attention does.
std::vector<std::string> picture_attention(const AttentionSettings& settings,
                                           const AttentionTensors& tensors,
                                           const MoreParts* more = nullptr);

/// Called once with the results before they are computed: names and shapes are set, values are not.
/// It may throw to reject them.
using AcceptResults = std::function<void(std::span<const NamedTensor>)>;

/// Computes o, lse (only for softmax), what is observed and, with `backward`, the gradients, in
/// float32 or float64 as the precision says; the reference is float64. Throws kShape that begins
/// with the name of the file, kOptionValue, kInputFormat (do is missing), kOutOfMemory.
std::vector<NamedTensor> run_attention(const Context& context, const AttentionSettings& settings,
                                       const AttentionTensors& tensors,
                                       const AcceptResults& accept = {});

/// A forward whose backward may come later.
struct AttentionForward {
  std::vector<NamedTensor> results;  ///< as run_attention returns them
  Tensor lse_low;                    ///< the rounding error of lse, which the backward reads
};
/// Computes what `run_attention` does without `backward`. Throws as it does.
AttentionForward run_attention_forward(const Context& context, const AttentionSettings& settings,
                                       const AttentionTensors& tensors,
                                       const MoreParts* more = nullptr);

/// Computes the gradients of the tensors that learn. `settings` and `more` are those of the
/// forward, and `tensors` those of the forward and do. Throws as run_attention does.
std::vector<NamedTensor> run_attention_backward(const Context& context,
                                                const AttentionSettings& settings,
                                                const AttentionTensors& tensors,
                                                const AttentionForward& forward,
                                                const MoreParts* more = nullptr);

/// The page of the call: its weights, or those of some rows, and the kept tiles. Computes the
/// forward, without the observers of settings.observe. Throws as run_attention does, kShape for
/// more than kMostPageKeys keys and for a call without rows, kInputFormat for weights that are not
/// finite.
AttentionPage page_attention(const Context& context, const AttentionSettings& settings,
                             const AttentionTensors& tensors, PageLanguage language);

/// The definition as plain loops in float32: tolerances are derived from its error. Throws as
/// run_attention does, but without the name of the file.
std::vector<NamedTensor> run_plain_float32(const AttentionSettings& settings,
                                           const AttentionTensors& tensors);

/// The plan of a call as `fovea attention --plan` shows it.
struct PlannedAttention {
  AttentionPlan plan;
  std::vector<std::string> picture;

  template <class Visitor>
  void visit_fields(Visitor&& visit) {
    visit("kernel", plan.kernel, "what computes");
    visit("isa", plan.isa, "instruction set");
    visit("score", plan.score, "how a query and a key become a score");
    visit("mask", plan.mask, "what is kept");
    visit("bias", plan.bias, "what is done to scores");
    visit("norm", plan.norm, "how scores become weights");
    visit("dropout", plan.dropout, "probability of dropping a weight");
    visit("values", plan.values, "value parts");
    visit("observe", plan.observe, "observers");
    visit("packed_sequences", plan.packed_sequences, "0: the batch is not packed");
    visit("tiles", plan.tiles, "of the whole rectangles");
    visit("tiles_kept", plan.tiles_kept, "of these, computed");
    visit("tiles_masked", plan.tiles_masked, "of these, looked at score by score");
    visit("picture", picture, "of the first sequence and head");
    visit("kept_scores", plan.kept_scores, "in the tiles that are computed");
    visit("forward_flops", plan.forward_flops, "of products");
    visit("backward_flops", plan.backward_flops, "of products");
    visit("scratch_bytes", plan.scratch_bytes, "beyond the tensors");
  }
};

/// Throws as run_attention does.
inline PlannedAttention planned_attention(const Context& context, const AttentionSettings& settings,
                                          const AttentionTensors& tensors,
                                          const MoreParts* more = nullptr) {
  return {plan_attention(context, settings, tensors, more),
          picture_attention(settings, tensors, more)};
}

/// The rows of a call that a page shows: the first sequences of its batch, and some rows of q.
struct PageRows {
  index sequences = 0;
  std::vector<index> rows;  ///< ascending
};

/// The most weights that a page is made from.
inline constexpr index kMostPageWeights = index{1} << 23;
inline constexpr index kMostPageKeys = 32768;

/// All sequences and rows, if that is at most `most` weights; otherwise the first sequences; of one
/// sequence, rows that are evenly spaced, with the last. Throws kShape for more keys than a page
/// has columns.
PageRows choose_page_rows(const AttentionSizes& sizes, index most = kMostPageWeights);

/// The page of one call: adds observers to a call without any; after the forward, page() is what
/// they saw.
template <class T>
class CallPage {
 public:
  CallPage(AttentionCall<T>& call, PageLanguage language);
  CallPage(const CallPage&) = delete;
  CallPage& operator=(const CallPage&) = delete;

  /// Throws kInputFormat if a weight is not finite.
  AttentionPage page(std::string title) const;

 private:
  AttentionMap map_of(index sequence) const;
  std::vector<std::pair<std::string, std::string>> facts() const;

  const AttentionCall<T>& call_;
  PageLanguage language_;
  PageRows chosen_;
  std::vector<float> weights_;  // [sequences, H, rows, S]
};

}  // namespace fovea
