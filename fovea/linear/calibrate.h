// SPDX-License-Identifier: Apache-2.0
// Makes logits of texts that a model has not seen into probabilities that mean something.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "fovea/base/context.h"
#include "fovea/data/examples.h"
#include "fovea/linear/isotonic.h"
#include "fovea/model/classifier.h"

namespace fovea {

/// Output k of text i has the logit  prior_k + factor_k value_ik + shift_k length_i.
struct CalibrationData {
  ClassifierTask task = ClassifierTask::kSingleLabel;
  index outputs = 0;
  std::vector<double> prior = {};      ///< [outputs]
  std::span<const float> values = {};  ///< [texts, outputs]
  std::vector<float> lengths = {};     ///< [texts] from 0 to 1: how much of the text is known
  std::vector<double> weights = {};    ///< [texts]; empty: all 1
  const Examples& truth;
  std::span<const index> labels = {};      ///< [outputs] of several labels; empty: 0, 1, 2 ...
  std::function<bool()> interrupted = {};  ///< asked before each step; true: no more of them
};

struct Calibration {
  std::vector<double> factors, shifts;  ///< [outputs]
};

enum class CalibrationSize : std::uint8_t {
  kTemperature,  ///< a factor (Guo et al. 2017, section 4.2), of several labels one for each
  kWhole,        ///< of two classes or several labels Platt's two numbers for each (1999); of more
                 ///< classes one factor and a shift for each
};

/// The factor and shifts with the least loss, by Newton's method, with a little pull to 1 and 0;
/// for numbers they are 1 and 0. (No bit of what this file computes depends on the number of
/// threads.)
Calibration calibrate(const Context& context, const CalibrationData& data, CalibrationSize size);

/// The mean loss: nats a text, or of several labels a label; of numbers the squared error.
double loss_of(const Context& context, const CalibrationData& data, const Calibration& calibration);

/// The loss of each text, without its weight: [texts].
std::vector<double> losses_of(const Context& context, const CalibrationData& data,
                              const Calibration& calibration);

/// [texts, classes], as LinearModel::predict; with isotonic maps [outputs] if there are any.
std::vector<float> predictions_of(const Context& context, const CalibrationData& data,
                                  const Calibration& calibration, index classes,
                                  std::span<const IsotonicMap> isotonic = {});

/// The isotonic maps of the predictions of calibrated logits, for each output, by the texts that
/// are not of fold `left_out` (-1: by all), or none if no text is left. `fold` is [texts].
std::vector<IsotonicMap> isotonic_maps(const Context& context, const CalibrationData& data,
                                       const Calibration& calibration,
                                       std::span<const std::int32_t> fold = {},
                                       std::int32_t left_out = -1);

}  // namespace fovea
