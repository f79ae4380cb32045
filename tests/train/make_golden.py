#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes golden.h: twelve updates of a small network under several recipes, by PyTorch in float64.

The optimizer is torch.optim.AdamW; clipping and schedules are written from their formulas. Needs
torch; run it again only if the recipe's definition changes:

    python3 tests/train/make_golden.py | clang-format --style=file --assume-filename=golden.h \\
        > tests/train/golden.h
"""

import math

import torch
import torch.nn.functional as F

VOCABULARY, WIDTH, HIDDEN, UPDATES = 11, 6, 10, 12
SHAPES = {"table": (VOCABULARY, WIDTH), "in.weight": (HIDDEN, WIDTH), "in.bias": (HIDDEN,),
          "out.weight": (VOCABULARY, HIDDEN)}

RECIPES = {
    "Cosine": dict(lr=0.05, min_lr=0.004, schedule="cosine", warmup=3, beta1=0.8, beta2=0.95, weight_decay=0.3,
                   clip=0.19, accumulate=2),
    "Linear": dict(lr=0.04, min_lr=0.01, schedule="linear", warmup=2, beta1=0.9, beta2=0.9, weight_decay=0.1,
                   clip=0.15, accumulate=3),
    "InverseSqrt": dict(lr=0.06, min_lr=0.035, schedule="inverse-sqrt", warmup=4, beta1=0.7, beta2=0.99,
                        weight_decay=0.5, clip=0.0, accumulate=2),
    "Constant": dict(lr=0.03, min_lr=0.001, schedule="constant", warmup=0, beta1=0.95, beta2=0.98,
                     weight_decay=0.0, clip=0.24, accumulate=1),
}


def values(number, count):
    """Numbers in [-.5, .5) that every float type holds exactly."""
    return [((i * i * 31 + i * 7919 + number * 104729 + 13) % 8191) / 8192 - 0.5 for i in range(count)]


def batch(update, number):
    """Ids and targets: more in the first batch of an update than in the others."""
    rows = range(9 if number == 0 else 4)
    ids = [(n * n + 5 * n + 3 * update + 7 * number) % VOCABULARY for n in rows]
    targets = [(3 * n + 2 * update * update + number + 1) % VOCABULARY for n in rows]
    return torch.tensor(ids), torch.tensor(targets)


def learning_rate(r, step):
    if step < r["warmup"]:
        return r["lr"] * (step + 1) / r["warmup"]
    done = (step - r["warmup"]) / (UPDATES - r["warmup"])
    return {"cosine": r["min_lr"] + (r["lr"] - r["min_lr"]) * (1 + math.cos(math.pi * done)) / 2,
            "linear": r["min_lr"] + (r["lr"] - r["min_lr"]) * (1 - done),
            "inverse-sqrt": max(r["min_lr"], r["lr"] * math.sqrt(max(r["warmup"], 1) / (step + 1))),
            "constant": r["lr"]}[r["schedule"]]


def loss_of(p, ids, targets):
    hidden = F.gelu(F.linear(p["table"][ids], p["in.weight"], p["in.bias"]))
    return F.cross_entropy(F.linear(hidden, p["out.weight"]), targets, reduction="sum")


def train(r, dtype):
    """(loss, learning rate, norm of the gradient) of each update, and the parameters at the end."""
    p = {name: torch.tensor(values(number, math.prod(shape)), dtype=dtype).reshape(shape).requires_grad_()
         for number, (name, shape) in enumerate(SHAPES.items())}
    decaying = [x for name, x in p.items() if name != "in.bias"]
    optimizer = torch.optim.AdamW([dict(params=decaying, weight_decay=r["weight_decay"]),
                                   dict(params=[p["in.bias"]], weight_decay=0.0)],
                                  betas=(r["beta1"], r["beta2"]), eps=1e-8)
    updates = []
    for step in range(UPDATES):
        batches = [batch(step, number) for number in range(r["accumulate"])]
        count = sum(len(ids) for ids, _ in batches)
        optimizer.zero_grad()
        loss = sum(loss_of(p, *b) for b in batches) / count
        loss.backward()
        norm = math.sqrt(sum(x.grad.double().square().sum().item() for x in p.values()))
        if r["clip"] > 0 and norm > r["clip"]:
            for x in p.values():
                x.grad *= r["clip"] / norm
        lr = learning_rate(r, step)
        for group in optimizer.param_groups:
            group["lr"] = lr
        optimizer.step()
        updates.append((loss.item(), lr, norm))
    return updates, {name: x.detach().double().flatten() for name, x in p.items()}


def plain_error(r, updates, parameters):
    """Of PyTorch in float32: the largest error of any loss, norm or parameter."""
    float_updates, float_parameters = train(r, torch.float32)
    errors = [abs(a - b) for now, then in zip(updates, float_updates) for a, b in zip(now, then)]
    errors += [(float_parameters[name] - x).abs().max().item() for name, x in parameters.items()]
    return max(errors)


def spelled(r):
    """A recipe as a C++ initialiser."""
    kind = "".join(word.capitalize() for word in r["schedule"].split("-"))
    fields = {**r, "schedule": f"ScheduleKind::k{kind}"}
    return "{" + ", ".join(f".{name} = {value}" for name, value in fields.items()) + "}"


HEAD = """// SPDX-License-Identifier: Apache-2.0
// Twelve updates under several recipes: made by make_golden.py, with PyTorch in float64.
#pragma once

#include <vector>

#include "fovea/train/options.h"

namespace fovea::golden {

struct Update {
  double loss, lr, gradient_norm;
};

/// A parameter at the end: its norm, and its product with golden_values(100 + its number).
struct Weights {
  const char* name;
  double norm, projection;
};

struct Recipe {
  const char* name;
  TrainOptions options;
  double plain_error;  ///< of PyTorch in float32: the largest of any number below, or any weight
  std::vector<Update> updates;
  std::vector<Weights> weights;
};

"""


def main():
    torch.set_num_threads(1)
    print(HEAD)
    print("inline const std::vector<Recipe> kRecipes = {")
    for title, recipe in RECIPES.items():
        updates, parameters = train(recipe, torch.float64)
        print(f'{{"{title}", {spelled(recipe)}, {plain_error(recipe, updates, parameters):.2e}, {{')
        for loss, lr, norm in updates:
            print(f"{{{loss!r}, {lr!r}, {norm!r}}},")
        print("}, {")
        for number, (name, x) in enumerate(parameters.items()):
            weights = torch.tensor(values(100 + number, x.numel()), dtype=torch.float64)
            print(f'{{"{name}", {x.norm().item()!r}, {(x @ weights).item()!r}}},')
        print("}},")
    print("};\n}  // namespace fovea::golden")


if __name__ == "__main__":
    main()
