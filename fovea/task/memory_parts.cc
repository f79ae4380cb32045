// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/memory_parts.h"

#include <algorithm>
#include <cmath>

#include "fovea/base/machine.h"
#include "fovea/report/plot.h"
#include "fovea/train/history.h"

namespace fovea {

// The values of the used rows, which grow by half, and the place of each row in them.
double gradient_bytes(index parameters, std::span<const UsedTable> tables) {
  double whole = static_cast<double>(parameters), used = 0;
  for (const UsedTable& table : tables) {
    const auto V = static_cast<double>(table.rows), width = static_cast<double>(table.width);
    whole -= V * width;
    if (table.frozen) continue;
    const double U = std::min(V, static_cast<double>(table.used));
    const double held = std::min(V, 1.5 * U) + U;
    used += held * width + 2 * V;
  }
  return sizeof(float) * (whole + used);
}

ObservedHeads observed_heads(const std::vector<SizedStage>& stages) {
  ObservedHeads observed;
  for (const SizedStage& stage : stages) {
    for (const SizedLayer& layer : stage.branches) {
      if (layer.spec.heads == 0) continue;
      observed.layers += layer.spec.layers;
      observed.heads += layer.spec.layers * layer.spec.heads;
    }
  }
  return observed;
}

// While a vector of records grows it exists twice; a curve has two points for each record.
double record_bytes(const TrainOptions& recipe, index updates, ObservedHeads observed) {
  constexpr double kRecord = 2 * (sizeof(UpdateRecord) + 4 * sizeof(double));
  // Three numbers of each head in nested vectors, each also a point of a curve, with one more for
  // the mean of each layer.
  const auto layers = static_cast<double>(observed.layers),
             heads = static_cast<double>(observed.heads);
  constexpr double kVector = sizeof(std::vector<double>) + 32;  // and what malloc adds
  const double numbers = kVector + layers * kVector + heads * sizeof(double);
  const double record =
      2 * sizeof(AttentionRecord) + 3 * (numbers + (heads + layers) * sizeof(PlotPoint));
  constexpr double kDrawnCurve = 8e3;  // most bytes of the text of a thin curve
  const double drawing = 3 * heads * kDrawnCurve;
  const auto all = static_cast<double>(updates), every = static_cast<double>(recipe.observe_every);
  return kRecord * std::floor(all / static_cast<double>(recipe.log_every)) +
         (every > 0 ? record * std::floor(all / every) + drawing : 0);
}

// The files of the vocabulary are held by the run and by the trainer, and a checkpoint has copies
// of both, which are copied once more while they are written.
double vocabulary_bytes(const Tokenizer* tokenizer) {
  constexpr double kCopies = 4, kFiles = 2, kCountDigits = 8;
  double bytes = 0;
  if (tokenizer == nullptr) return bytes;  // a run of random tokens
  for (const CountedWord& word : tokenizer->data().words) {
    bytes += kFiles * static_cast<double>(word.word.size()) + kCountDigits;
  }
  constexpr double kBase64 = 1.4;
  bytes += kBase64 * static_cast<double>(tokenizer->data().model.size());
  return kCopies * bytes;
}

double peak_of_training(const TrainingBytes& bytes, index checkpoint_bytes) {
  const double held = static_cast<double>(resident_memory_bytes()) + kProcessBytes;
  const double moments = 2 * (bytes.values - bytes.frozen), model = bytes.model + moments;
  // The whole checkpoint is read into memory. Then the moments are copied from it, and the best
  // model of the run is checked, which takes its file and its values.
  const double resuming = checkpoint_bytes > 0 ? held + model + moments + 2 * bytes.values : 0;
  // A checkpoint is made in memory: values and both moments.
  const double saving = bytes.values + moments;
  const double running = held - static_cast<double>(checkpoint_bytes) + model + bytes.gradients +
                         kRounding * bytes.passes + bytes.batches + bytes.records + saving;
  // Text and tokens existed together before this call, so the peak so far counts too. The system
  // counts pages in lots, hence kLots.
  constexpr double kLots = 1 << 20;
  return std::max({static_cast<double>(peak_memory_bytes()) + kLots, resuming, running});
}

}  // namespace fovea
