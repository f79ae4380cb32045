#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Seconds of an epoch of the language models of Hands-on NLP, chapter 6 (E4, E5, E9), in fovea and in
PyTorch, in turns.

  bench/prince.py DATA [--rounds 3]

A round is `fovea reproduce prince --compat` for a fiftieth of its epochs, then bench/sources.py for two
epochs of each model, as PyTorch is installed and with MKL's fastest kernels. Both are the published
models with their defects. A ratio is that of a round; the median and the range of all rounds are told.
"""
import argparse
import json
import pathlib
import subprocess
import tempfile

import common

HERE = pathlib.Path(__file__).resolve().parent
TARGETS = {"E4": 12, "E5": 20, "E9": 6}


def our_seconds(options):
    """Experiment -> seconds of an epoch."""
    with tempfile.TemporaryDirectory() as folder:
        command = [options.fovea, "reproduce", "prince", "--data", options.data, "--compat", "--share", "0.02",
                   "--seeds", "1", "--threads", str(options.threads), "--json", "-q", "-o", folder]
        done = subprocess.run(command, stdout=subprocess.PIPE, encoding="utf-8", check=True,
                              env=common.environment(options.threads), preexec_fn=common.pin(options.threads))
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    return {row["experiment"]: row["seconds_per_epoch"] for row in rows
            if row["experiment"] in TARGETS and row["metric"] == "epoch_mean_loss"}


def their_seconds(options, experiment, environment):
    command = [options.python, str(HERE / "sources.py"), "--data", options.data, "--only", experiment,
               "--threads", str(options.threads), "--epochs", "2", "--seconds"]
    done = subprocess.run(command, stdout=subprocess.PIPE, encoding="utf-8", check=True,
                          env={**common.environment(options.threads), **environment},
                          preexec_fn=common.pin(options.threads))
    return float(done.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", help="the folder that has little_prince")
    parser.add_argument("--only", default=",".join(TARGETS), help="experiments, separated by commas")
    common.add_common_options(parser, rounds=3)
    options = parser.parse_args()
    common.need_binary(options)
    print(common.machine(options))
    yardsticks = {"installed": {}, "unlocked": common.unlocked_mkl()}
    if not yardsticks["unlocked"]:
        del yardsticks["unlocked"]
    found = {}
    for _ in range(options.rounds):
        ours = our_seconds(options)
        for experiment in options.only.split(","):
            theirs = {name: their_seconds(options, experiment, environment)
                      for name, environment in yardsticks.items()}
            found.setdefault(experiment, []).append((ours[experiment], theirs))
    for experiment, rounds in found.items():
        strongest = [min(theirs.values()) / ours for ours, theirs in rounds]
        print(f"{experiment}: fovea {common.spread([ours for ours, _ in rounds])} s an epoch")
        for name in yardsticks:
            print(f"  PyTorch, {name}: {common.spread([theirs[name] for _, theirs in rounds])} s")
        print(f"  times as fast as PyTorch at its fastest: {common.spread(strongest)} (target {TARGETS[experiment]})",
              flush=True)


if __name__ == "__main__":
    main()
