#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""nanoGPT's CPU recipe on tinyshakespeare: the mean of three seeds. Published: 1.88.

  bench/shakespeare.py PATH/input.txt [--lr 1e-3]

4 layers, 4 heads, width 128, block 64, batch 12, 2000 steps, no dropout; the first 90 % of the
characters train, the whole rest validates. Exits 1 above 1.88. The learning rate is twice that of
nanoGPT, 1e-3, unless given.
"""
import argparse
import pathlib
import statistics
import sys
import tempfile

import common

PUBLISHED = 1.88
RECIPE = """--tokenizer char --data blocks --valid-fraction 0.1 --layers 4 --heads 4 --width 128 --block 64
--batch-size 12 --dropout 0 --stop-after 2000u --min-lr 1e-4 --schedule cosine --warmup 100
--beta1 0.9 --beta2 0.99 --weight-decay 0.1 --clip 1 --eval-every 2000u --save-every 2000u""".split()


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("text", type=pathlib.Path, help="tinyshakespeare's input.txt")
    parser.add_argument("--lr", type=float, default=2e-3)
    common.add_common_options(parser, rounds=3)
    options = parser.parse_args()
    common.need_binary(options)
    print(common.machine(options))
    losses = []
    for seed in range(1, options.rounds + 1):
        with tempfile.TemporaryDirectory() as folder:
            found = common.fovea(options, "train", "lm", "--train", options.text, "-o",
                                 pathlib.Path(folder) / "model", *RECIPE,
                                 "--lr", options.lr, "--seed", seed, "--threads", options.threads)
        losses.append(found["valid_loss"])
        print(f"seed {seed}: valid_loss {found['valid_loss']:.4f}, {found['steps']} steps,"
              f" {found['parameters']:,} parameters, {found['tokens_per_second']:,.0f} tokens/s",
              flush=True)
    mean = statistics.mean(losses)
    print(f"mean of {len(losses)}: {mean:.4f} (published {PUBLISHED})")
    return 0 if mean <= PUBLISHED else 1


if __name__ == "__main__":
    sys.exit(main())
