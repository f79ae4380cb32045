// SPDX-License-Identifier: Apache-2.0
// The curves of a training run: long series thinned, and the plots of its losses, metrics and
// attention.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/base/types.h"
#include "fovea/report/plot.h"

namespace fovea {

/// Measurements in a row, from update `first` to update `last`.
struct SeriesPoint {
  double first, last;
  double low, mean, high;  ///< of those that are finite; NaN if none is
  index count = 1;
};

struct Series {
  std::string name = {};
  std::vector<SeriesPoint> points = {};
  index measurements = 0;

  bool is_thinned() const { return measurements > static_cast<index>(points.size()); }
};

/// A point for each measurement or, if there are more than `most`, for each of up to `most` groups
/// of as many measurements (the last may have fewer). x ascends.
Series series_of(std::string name, std::span<const PlotPoint> measurements, index most);

/// Thinned: the means, in the middle of what they stand for, with a band from the lowest to the
/// highest. Otherwise the measurements.
Curve curve_of(const Series& series, Ink ink, Stroke stroke);

/// The losses of a run, over updates. There are four means of the training loss, which are easily
/// confused. They average over different updates, hence over different weights, so each has its
/// own stroke and name.
struct LossCurves {
  std::string title = "loss";
  std::vector<PlotPoint> last_batch = {};     ///< of each update alone
  std::vector<PlotPoint> last16_mean = {};    ///< of the last 16 updates; drawn nowhere
  std::vector<PlotPoint> running_mean = {};   ///< over the interval so far; restarts with each
  std::vector<PlotPoint> interval_mean = {};  ///< exact, over all targets of a finished interval
  std::vector<PlotPoint> training = {};       ///< exact, with the weights of that update
  std::vector<PlotPoint> validation = {};     ///< likewise
  double best = -1;                           ///< the update of the best weights; below 0: none
  std::string_view unit = "nats per token";
};

/// A running mean starts again after each interval, so its curve is broken there: a point without a
/// number stands between two intervals.
std::vector<PlotPoint> broken_after(const std::vector<PlotPoint>& running,
                                    const std::vector<PlotPoint>& intervals);

/// Curves without points are left out. The validation loss of the best weights is marked.
Plot loss_plot(const LossCurves& losses);

struct NamedCurve {
  std::string name;
  std::vector<PlotPoint> points = {};
};

/// Metrics of the validation set, such as accuracy, over updates.
struct MetricCurves {
  std::vector<NamedCurve> metrics = {};  ///< the first one chooses the best weights
  double best = -1;                      ///< the update of the best weights; below 0: none
};
Plot metrics_plot(const MetricCurves& curves);

/// A number of each head of each layer, over updates.
struct HeadCurves {
  std::string title;
  std::string y_label;
  std::vector<std::vector<std::vector<PlotPoint>>> heads = {};    ///< [layers][heads]
  std::string layer = "layer", layers = "layers", head = "head";  ///< the words for them
};

/// A thin curve for each head, and a bold one for the mean of each layer. With more layers than
/// there are shades, neighbouring layers share one, and a mean.
Plot heads_plot(HeadCurves curves);

}  // namespace fovea
