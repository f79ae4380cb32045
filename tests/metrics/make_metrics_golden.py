#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes metrics_golden.h: the numbers of scikit-learn and SciPy for examples that tests/metrics/golden_test.cc
makes again from the same integers.

Needs scikit-learn; run it again only if a definition changes:

    python3 tests/metrics/make_metrics_golden.py > tests/metrics/metrics_golden.h

With --more N, each list has N random cases more (for one run, not for the repository).
"""

import argparse
import math
import pathlib
import sys
import textwrap
import warnings

import numpy as np
import scipy.stats
from sklearn import calibration, metrics

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from draws import Draws  # noqa: E402

warnings.filterwarnings("ignore")


def prf(truth, predicted, **options):
    return [float(x) for x in metrics.precision_recall_fscore_support(
        truth, predicted, zero_division=0, **options)[:3]]


def per_label(truth, predicted, labels):
    columns = metrics.precision_recall_fscore_support(truth, predicted, zero_division=0, average=None, labels=labels)
    return [float(x) for scores in zip(*columns[:3]) for x in scores]


def classification(seed, examples, classes, never_true, never_predicted, agreement):
    draws = Draws(seed)
    true = [k for k in range(classes) if k not in never_true]
    given = [k for k in range(classes) if k not in never_predicted]
    truth, predicted = [], []
    for _ in range(examples):
        t = true[draws.below(len(true))]
        agrees = draws.below(100) < agreement
        p = given[draws.below(len(given))]
        truth.append(t)
        predicted.append(t if agrees and t not in never_predicted else p)
    labels = list(range(classes))
    numbers = [metrics.accuracy_score(truth, predicted)]
    for average in ("macro", "weighted", "micro"):
        numbers += prf(truth, predicted, average=average)
    numbers += per_label(truth, predicted, labels)
    return prf(truth, predicted, average="macro", labels=labels), numbers


def multilabel(seed, examples, labels, never_true, never_predicted, *percents):
    density, agreement = percents
    draws = Draws(seed)
    truth, predicted = np.zeros((examples, labels), int), np.zeros((examples, labels), int)
    for n in range(examples):
        for k in range(labels):
            t = draws.below(100) < density and k not in never_true
            agrees = draws.below(100) < agreement
            p = draws.below(100) < density
            truth[n, k] = t
            predicted[n, k] = (t if agrees else p) and k not in never_predicted
    numbers = [metrics.accuracy_score(truth, predicted), metrics.hamming_loss(truth, predicted)]
    for average in ("macro", "weighted", "micro", "samples"):
        numbers += prf(truth, predicted, average=average)
    return numbers + per_label(truth, predicted, None)


def ece(confidence, right, bins):
    """The formula of Guo et al. 2017, section 2, as it is written: bin m is ((m - 1) / M, m / M], the first also has 0."""
    total = 0.0
    for m in range(1, bins + 1):
        inside = [n for n, c in enumerate(confidence) if (m - 1) / bins < c <= m / bins or (m == 1 and c == 0)]
        if inside:
            accuracy = math.fsum(right[n] for n in inside) / len(inside)
            total += len(inside) / len(right) * abs(accuracy - math.fsum(confidence[n] for n in inside) / len(inside))
    return total


def probability(seed, examples, classes, largest, bins):
    draws = Draws(seed)
    rows, truth = [], []
    for _ in range(examples):
        weights = [draws.below(largest + 1) for _ in range(classes)]
        weights[draws.below(classes)] += 1
        rows.append([w / sum(weights) for w in weights])
        truth.append(draws.below(classes))
    rows = np.array(rows)
    numbers = [metrics.log_loss(truth, rows, labels=list(range(classes))),
               metrics.brier_score_loss(truth, rows, labels=list(range(classes)))]
    return numbers + [ece(rows.max(axis=1), [int(p.argmax() == t) for p, t in zip(rows, truth)], bins)]


def binary(seed, examples, steps, positive, bins):
    draws = Draws(seed)
    truth, p = [], []
    for _ in range(examples):
        t = int(draws.below(100) < positive)
        truth.append(t)
        p.append((draws.below(steps) + (draws.below(steps) if t else 0)) / (2 * steps))
    both = len(set(truth)) == 2
    at, mean = calibration.calibration_curve(truth, p, n_bins=bins)
    assert len(at) == len(mean) <= bins
    return [metrics.roc_auc_score(truth, p) if both else math.nan,
            metrics.average_precision_score(truth, p) if any(truth) else math.nan,
            metrics.log_loss(truth, p, labels=[0, 1]), metrics.brier_score_loss(truth, p, pos_label=1),
            ece(p, truth, bins)]


def regression(seed, examples, steps, noise, slope):
    """With few steps there are ties; with one, all true values are equal."""
    draws = Draws(seed)
    truth, predicted = [], []
    for _ in range(examples):
        y = draws.below(steps) / 8
        truth.append(y)
        predicted.append(slope * y + (draws.below(noise) - noise // 2) / 16 + 3)
    defined = min(len(set(truth)), len(set(predicted))) > 1
    return [metrics.mean_squared_error(truth, predicted), metrics.mean_absolute_error(truth, predicted),
            metrics.r2_score(truth, predicted),
            scipy.stats.pearsonr(truth, predicted).statistic if defined else math.nan,
            scipy.stats.spearmanr(truth, predicted).statistic if defined else math.nan]


CASES = {
    classification: [
        (1, 200, 5, (), (), 60), (2, 60, 7, (3, 6), (5, 6), 50), (3, 1, 3, (), (), 0), (4, 300, 20, (7,), (), 40),
        (5, 40, 2, (), (), 80), (6, 30, 4, (0, 1), (2, 3), 0), (7, 25, 3, (1, 2), (1, 2), 50), (8, 9, 1, (), (), 10)],
    multilabel: [
        (11, 100, 6, (), (), 30, 60), (12, 50, 5, (2, 4), (1, 4), 40, 50), (13, 1, 3, (), (), 50, 50),
        (14, 40, 12, (), (), 8, 70), (15, 20, 3, (), (0, 1, 2), 50, 0)],
    probability: [
        (21, 200, 5, 1000, 15), (22, 50, 2, 20, 10), (23, 40, 4, 1, 15), (24, 1, 3, 5, 1), (25, 30, 10, 3, 20),
        (26, 60, 2, 1, 7)],
    binary: [
        (31, 200, 1000, 40, 15), (32, 100, 5, 30, 10), (33, 50, 1, 50, 15), (34, 30, 10, 0, 5), (35, 30, 10, 100, 3),
        (36, 1, 7, 100, 15)],
    regression: [
        (41, 200, 10000, 4000, 1), (42, 50, 4, 5, 1), (43, 30, 1, 20, 1), (44, 40, 50, 1, 0), (45, 1, 9, 9, 1),
        (46, 100, 30, 60, -2), (47, 2, 50, 9, 1)],
}


def more(make, count):
    """Random cases of this kind."""
    r = np.random.default_rng(7)
    for seed in range(1000, 1000 + count):
        n, k = int(r.integers(1, 80)), int(r.integers(2, 9))
        some = [tuple(int(x) for x in sorted(r.choice(k, r.integers(0, k), replace=False))) for _ in range(2)]
        percent, percent2 = (int(x) for x in r.integers(0, 101, 2))
        yield {classification: (seed, n, k, *some, percent), multilabel: (seed, n, k, *some, percent, percent2),
               probability: (seed, n, k, int(r.integers(1, 30)), k + 3), binary: (seed, n, k, percent, k),
               regression: (seed, n, k, 2 * k, int(r.integers(-2, 3)))}[make]


HEAD = """// SPDX-License-Identifier: Apache-2.0
// Numbers of scikit-learn and SciPy: made by make_metrics_golden.py.
#pragma once

#include <cmath>
#include <vector>

#include "fovea/base/types.h"

namespace fovea::golden {

/// The arguments of the function of the script, and the numbers of the report in the order of
/// visit_numbers.
struct Case {
  std::vector<index> arguments;
  std::vector<index> never_true, never_predicted;
  std::vector<double> numbers;
  std::vector<double> macro_of_all = {};  ///< of classification, over all K classes
};

// clang-format off
"""


def listed(values):
    return "{" + ", ".join("NAN" if value != value else repr(value) for value in values) + "}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--more", type=int, default=0)
    count = parser.parse_args().more
    print(HEAD)
    for make, cases in CASES.items():
        print(f"inline const std::vector<Case> k{make.__name__.capitalize()}Cases = {{")
        for case in [*cases, *more(make, count)]:
            result = make(*case)
            macro, numbers = result if make is classification else ([], result)
            sets = [x for x in case if isinstance(x, tuple)] or [(), ()]
            parts = [[x for x in case if not isinstance(x, tuple)], *sets, [float(x) for x in numbers], macro]
            text = "{" + ", ".join(listed(part) for part in parts) + "},"
            print("\n".join(textwrap.wrap(text, 98, initial_indent="    ", subsequent_indent="     ")))
        print("};")
    print("// clang-format on\n\n}  // namespace fovea::golden")


if __name__ == "__main__":
    main()
