#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Where the time of a training step goes, for the models of bench/train_peers.py (fovea bench step).

  bench/steps.py --output bench/results/steps/NAME.json

The profiles are added to the file, which may hold what train_peers.py --output has written.
"""
import argparse
import pathlib

import common
from train_peers import CASES, model_options

SHAKESPEARE = 322  # tokens of tinyshakespeare: 3 special ones, 256 bytes, 63 characters of its first part
PROFILED = {"shakespeare": 100, "wide": 5, "gpt2": 3, "gpt2-vocabulary": 2, "step": 500}  # case: steps


def profile(options, case, steps):
    return common.fovea(options, "bench", "step", *model_options(case), "--steps", steps,
                        "--vocabulary", case.get("vocabulary", SHAKESPEARE), "--threads", options.threads)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=pathlib.Path, required=True, help="JSON; what is there is kept")
    common.add_common_options(parser)
    options = parser.parse_args()
    common.need_binary(options)
    machine = common.machine(options)
    for name, steps in PROFILED.items():
        found = profile(options, CASES[name], steps)
        print(f"{name}: {1e3 * found['step_seconds']:.1f} ms, {found['parameters']:,} parameters", flush=True)
        common.keep(options.output, machine, "profiles", {name: found})


if __name__ == "__main__":
    main()
