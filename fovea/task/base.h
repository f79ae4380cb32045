// SPDX-License-Identifier: Apache-2.0
// What all trainings share that begin from a model (--base): its options, and what of it is frozen.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/base/fields.h"
#include "fovea/config/field.h"
#include "fovea/grad/parameter.h"

namespace fovea {

/// The model that a training begins from, and what of it is not trained.
struct BaseOptions {
  std::string base;
  std::string freeze;
  double layer_lr_decay = 1;

  template <class Visitor>
  void visit_fields(Visitor&& given, std::string_view help, const FieldNeeds& needs = {}) {
    const auto visit = under("A model to begin from", given);
    visit("base", base, help,
          {.needs = needs, .is_path = true, .place = HelpPlace::kModel, .shown = "MODEL"});
    visit("freeze", freeze,
          "parts of --base that are not trained: embeddings, and layers by their numbers from 0, "
          "such as embeddings,0-3",
          {.needs = {"base"}, .shown = "PARTS"});
    visit("layer_lr_decay", layer_lr_decay,
          "the learning rate of each layer of --base is this times that of the layer above it; of "
          "the embeddings that of the lowest layer; the head has --lr",
          {.range = ValueRange::over(0, 1), .needs = {"base"}});
  }
};

/// Throws kOptionValue, which names the option, unless what a user said is what the base has,
/// which is called `where`. Both are the same field.
void require_as_base(const Field& said, const Field& base, const std::string& where);

/// Calls require_as_base() for each field that `is_decided` by the base and among `set`, the names
/// of those that a user has set. Both lists have the same fields.
void require_as_base(std::span<const Field> said, std::span<const Field> base,
                     const std::vector<std::string>& set,
                     bool (*is_decided)(std::string_view field), const std::string& where);

/// Throws kOptionValue for each field among `set` that `is_idle` with a base, unless it has the
/// `usual` value. Both lists have the same fields.
void require_none_idle(std::span<const Field> said, std::span<const Field> usual,
                       const std::vector<std::string>& set,
                       bool (*is_idle)(std::string_view field));

/// The parts of a base, by the beginnings of the names of parameters.
struct BaseParts {
  std::vector<std::string> embeddings;
  std::string layer;  ///< before the number of a layer: "blocks"
  index layers = 0;
};

/// Freezes what `said` names: "embeddings,0-3". Throws kOptionValue for what there is not, or where
/// nothing is left to train.
void freeze_parts(std::span<Parameter* const> parameters, const BaseParts& parts,
                  std::string_view said);

/// Factors of the learning rate for --layer-lr-decay D, of L layers: D^(L - n) for layer n, from 0,
/// D^(L + 1) for embeddings, 1 for what is above all layers. None if D is 1.
std::vector<double> layer_rates(std::span<Parameter* const> parameters, const BaseParts& parts,
                                double decay);

/// The values of the parameters that are frozen.
index frozen_values(std::span<Parameter* const> parameters);

}  // namespace fovea
