// SPDX-License-Identifier: Apache-2.0
#include "fovea/model/pass_plan.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "fovea/base/profile.h"
#include "fovea/model/classifier.h"
#include "fovea/model/language_model.h"
#include "fovea/model/tagger.h"
#include "fovea/model/translator.h"

namespace fovea {

namespace {

// Bytes of each thread besides the scratch memory that kernels tell of: the stack, and what its
// arena holds of earlier, smaller calls when it grows.
constexpr double kThreadBytes = 1.5 * (1 << 20);

// Where the sequences of the batch begin. If nobody says how long they are: as many as it can have,
// the first ones as long as a sequence can be.
std::vector<std::int32_t> offsets_for(const TapeLoad& load, index block) {
  std::vector<std::int32_t> offsets{0};
  if (!load.lengths.empty()) {
    for (const std::int32_t length : load.lengths) offsets.push_back(offsets.back() + length);
    return offsets;
  }
  const index tokens = load.tokens, least = (tokens + block - 1) / block;
  const index count = std::max({least, std::min(load.sequences, tokens), index{1}});
  for (index n = 0, left = tokens; n < count; ++n) {
    const index length = std::min(block, left - (count - 1 - n));
    left -= length;
    offsets.push_back(static_cast<std::int32_t>(tokens - left));
  }
  return offsets;
}

// 0 to `below` - 1, again and again: as many different ones as there can be.
std::vector<std::int32_t> ids_below(index count, index below) {
  std::vector<std::int32_t> ids(static_cast<std::size_t>(count));
  for (std::size_t n = 0; n < ids.size(); ++n) {
    ids[n] = static_cast<std::int32_t>(n % static_cast<std::size_t>(std::max<index>(below, 1)));
  }
  return ids;
}

struct OwnedRows {
  std::vector<std::int32_t> ids, offsets;

  OwnedRows(const TapeLoad& load, index block, index vocabulary)
      : ids(ids_below(load.tokens, vocabulary)), offsets(offsets_for(load, block)) {}
  // Puts a separator into the middle of each pair, and nowhere else.
  void separate(std::int32_t separator) {
    std::replace(ids.begin(), ids.end(), separator, 0);
    for (std::size_t s = 0; s + 1 < offsets.size(); ++s) {
      const std::int32_t middle = (offsets[s] + offsets[s + 1] - 1) / 2;
      ids[static_cast<std::size_t>(middle)] = separator;
    }
  }
  TextRows view() const { return {.ids = ids, .offsets = offsets}; }
};

// The memory and FLOPs that the model made by `make` takes when `forward` computes its loss.
template <class Make, class Forward>
PassCost run_plan(const Plan& plan, const Context& context, const TapeLoad& load, Make&& make,
                  Forward&& forward) {
  const auto model = make(ParameterSetOptions{.memory = ParameterMemory::kUnwritten});
  std::vector<HeadStatistics> seen(load.observes ? static_cast<std::size_t>(model.attentions())
                                                 : 0);
  Profile profile;
  Tape tape(context.profiled(profile), load.mode);
  const Variable loss = forward(tape, model, seen);
  if (load.mode == TapeMode::kTrain) tape.backward(loss);
  double own = 0;  // values and gradients
  for (const Parameter* p : model.parameters()) {
    own += static_cast<double>(p->value.byte_size() + p->gradient.byte_size() +
                               p->row_gradient.byte_size());
  }
  double flops = 0;
  for (const Profile::Part& part : profile.parts()) flops += part.work.flops;
  return {.tape = static_cast<double>(tape.peak()),
          .packed = std::max(static_cast<double>(plan.buffer_peak()) - own, 0.0),
          .scratch = static_cast<double>(plan.scratch_peak()) +
                     context.threads() * (kThreadBytes + plan.thread_bytes()),
          .flops = flops};
}

template <class Make, class Forward>
PassCost plan(const Context& context, const TapeLoad& load, Make&& make, Forward&& forward) {
  Plan plan;
  try {
    return run_plan(plan, context.with(load.precision).planned(plan), load, make, forward);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kOutOfMemory || plan.refused_bytes() == 0) throw;
    return {.tape = static_cast<double>(plan.refused_bytes())};
  }
}

// ---- batches of more tokens than a plan should list: what a pass takes is linear in them

constexpr index kMostPlanned = index{1} << 20;

index tokens_in(const TapeLoad& load) { return load.tokens; }
index tokens_in(const TextLoad& load) { return load.tape.tokens; }
index tokens_in(const WordLoad& load) { return load.tape.tokens + load.characters; }
index tokens_in(const TranslationLoad& load) { return load.source.tokens + load.target.tokens; }

index part_of(index count, double share) {
  return std::min(count, static_cast<index>(static_cast<double>(count) * share) + 1);
}
TapeLoad part_of(TapeLoad load, double share) {
  load.tokens = part_of(load.tokens, share);
  load.sequences = part_of(load.sequences, share);
  load.lengths.clear();
  return load;
}
TextLoad part_of(const TextLoad& load, double share) {
  return {part_of(load.texts, share), part_of(load.tape, share)};
}
WordLoad part_of(const WordLoad& load, double share) {
  return {part_of(load.tape, share), part_of(load.characters, share)};
}
TranslationLoad part_of(const TranslationLoad& load, double share) {
  return {part_of(load.source, share), part_of(load.target, share)};
}

// From the plans of two parts of the batch.
template <class Config, class Load>
PassCost extrapolated(const Context& context, const Config& config, const Load& load) {
  const double share = static_cast<double>(kMostPlanned) / static_cast<double>(tokens_in(load)) / 2;
  const PassCost half = plan_pass(context, config, part_of(load, share / 2)),
                 all = plan_pass(context, config, part_of(load, share));
  const auto at_all = [&](double PassCost::*part) {
    return all.*part + (all.*part - half.*part) / (share / 2) * (1 - share);
  };
  return {at_all(&PassCost::tape), at_all(&PassCost::packed), at_all(&PassCost::scratch),
          at_all(&PassCost::flops)};
}

}  // namespace

PassCost larger_of_each(const PassCost& a, const PassCost& b) {
  return {.tape = std::max(a.tape, b.tape),
          .packed = std::max(a.packed, b.packed),
          .scratch = std::max(a.scratch, b.scratch)};
}

PassCost plan_pass(const Context& context, const LanguageModelConfig& config,
                   const TapeLoad& load) {
  if (tokens_in(load) > kMostPlanned) return extrapolated(context, config, load);
  const LanguageModelConfig c = resolve(config);
  const OwnedRows rows(load, c.block, c.vocabulary);
  return plan(
      context, load, [&](const auto& options) { return LanguageModel(c, options); },
      [&](Tape& tape, const LanguageModel& model, std::span<HeadStatistics> seen) {
        const TokenBatch batch{.ids = rows.ids, .targets = rows.ids, .offsets = rows.offsets};
        return model.loss(tape, batch, {.attention = seen});
      });
}

PassCost plan_pass(const Context& context, const ClassifierConfig& config, const TextLoad& load) {
  if (tokens_in(load) > kMostPlanned) return extrapolated(context, config, load);
  const ClassifierConfig c = resolve(config);
  TapeLoad tokens = load.tape;
  const index rows_of_step = std::max<index>(c.joints, 1);
  tokens.tokens /= rows_of_step;
  tokens.sequences = std::min(load.texts, tokens.tokens);
  OwnedRows rows(tokens, c.block, c.features > 0 ? tokens.tokens : c.vocabulary);
  if (c.pair_encoder != PairEncoder::kNone) rows.separate(pair_separator(c));
  const auto texts = static_cast<index>(rows.offsets.size()) - 1;
  const std::vector<std::int32_t> labels(static_cast<std::size_t>(texts));
  return plan(
      context, tokens, [&](const auto& options) { return Classifier(c, options); },
      [&](Tape& tape, const Classifier& model, std::span<HeadStatistics> seen) {
        LabelledTexts batch{.texts = rows.view(), .labels = labels};
        const Tensor values = Tensor::empty({texts, c.classes});
        const Tensor frames = Tensor::empty({tokens.tokens, rows_of_step * c.features});
        batch.values = values.rows<float>();
        if (c.features > 0) batch.texts.frames = frames.rows<float>();
        return model.loss(tape, batch, {.attention = seen});
      });
}

PassCost plan_pass(const Context& context, const TaggerConfig& config, const WordLoad& load) {
  if (tokens_in(load) > kMostPlanned) return extrapolated(context, config, load);
  const TaggerConfig c = resolve(config);
  const OwnedRows rows(load.tape, c.block, c.vocabulary);
  const std::vector<std::int32_t> zeros(rows.ids.size());
  const std::vector<std::int32_t> characters = ids_below(load.characters, c.characters);
  // The first word has what is more than one character a word.
  std::vector<std::int32_t> ends(rows.ids.size() + 1);
  for (std::size_t n = 0; n + 1 < ends.size(); ++n) {
    const index left = load.tape.tokens - 1 - static_cast<index>(n);
    ends[n + 1] = std::max(ends[n], static_cast<std::int32_t>(load.characters - left));
  }
  const WordRows words{.words = rows.ids,
                       .shapes = zeros,
                       .characters = characters,
                       .character_offsets = ends,
                       .offsets = rows.offsets};
  return plan(
      context, load.tape, [&](const auto& options) { return Tagger(c, {}, options); },
      [&](Tape& tape, const Tagger& model, std::span<HeadStatistics> seen) {
        const TagScores scores = model.scores(tape, words, {.attention = seen});
        if (load.tape.mode != TapeMode::kTrain) model.best_tags(tape.context(), scores);
        const std::vector<Vec<const std::int32_t>> tags(c.tags.size(), zeros);
        return model.loss_of(tape, scores, tags);
      });
}

PassCost plan_pass(const Context& context, const TranslatorConfig& config,
                   const TranslationLoad& load) {
  if (tokens_in(load) > kMostPlanned) return extrapolated(context, config, load);
  const TranslatorConfig c = resolve(config);
  TapeLoad from = load.source, to = load.target;
  if (from.lengths.empty()) {  // both sides have as many sentences
    const auto least = [&](const TapeLoad& side) { return (side.tokens + c.block - 1) / c.block; };
    from.sequences = to.sequences = std::max(
        {least(from), least(to), std::min({load.source.sequences, from.tokens, to.tokens})});
    from.tokens = std::max(from.tokens, from.sequences);
    to.tokens = std::max(to.tokens, to.sequences);
  }
  const OwnedRows source(from, c.block, c.vocabulary), target(to, c.block, c.target_vocabulary);
  return plan(
      context, load.target, [&](const auto& options) { return Translator(c, options); },
      [&](Tape& tape, const Translator& model, std::span<HeadStatistics> seen) {
        return model.loss(tape,
                          {.source = source.view(), .target = target.view(), .targets = target.ids},
                          {.attention = seen});
      });
}

PassCost plan_pass(const Context& context, const BertConfig& config, const TapeLoad& load) {
  if (tokens_in(load) > kMostPlanned) return extrapolated(context, config, load);
  const OwnedRows rows(load, config.block, config.vocabulary);
  return plan(
      context, load, [&](const auto& options) { return Bert(config, options); },
      [&](Tape& tape, const Bert& model, std::span<HeadStatistics>) {
        return model.forward(tape, {.texts = rows.view()}).rows;
      });
}

}  // namespace fovea
