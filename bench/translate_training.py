#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Training a translator against the same model in PyTorch: target tokens a second.

  bench/translate_training.py SOURCE TARGET --python venv/bin/python

SOURCE and TARGET have a sentence a line, with spaces between their words. The model is the default of `fovea train
translate`: 3 + 3 layers of width 256, words as tokens, batches of about 2048 target tokens. PyTorch has padded batches
of sentences of about the same length, scaled_dot_product_attention, fused AdamW, and computes no logits of padding.
Padding counts on neither side. PyTorch is measured as installed and with MKL's fastest kernels; with the dropout of
the default, and without. Rounds alternate, each in new processes.
"""
import argparse
import json
import pathlib
import statistics
import tempfile

import common

HERE = pathlib.Path(__file__).parent
SIZES = {"layers": 3, "heads": 4, "width": 256, "block": 512, "batch_tokens": 2048, "min_count": 2}
DROPOUTS = (0.1, 0)
WARMUP, TARGET = 5, 1.5


def ours(options, dropout, folder):
    """Target tokens a second after warming up, and the number of parameters."""
    updates = WARMUP + options.updates
    said = common.fovea(options, "train", "translate", "--source", options.source, "--target", options.target, "-o", folder,
                        "--overwrite", "--valid-fraction", 0, "--encoder-layers", SIZES["layers"], "--decoder-layers",
                        SIZES["layers"], "--heads", SIZES["heads"], "--width", SIZES["width"], "--block", SIZES["block"],
                        "--batch-tokens", SIZES["batch_tokens"], "--min-count", SIZES["min_count"], "--dropout", dropout,
                        "--stop-after", f"{updates}u", "--eval-every", f"{updates}u", "--save-every", f"{updates}u",
                        "--log-every", WARMUP, "--threads", options.threads)
    records = map(json.loads, (folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines())
    of_updates = [record for record in records if record["kind"] == "update"]
    first, last = of_updates[0], of_updates[-1]
    speed = (last["tokens"] - first["tokens"]) / (last["seconds"] - first["seconds"])
    return speed, said["parameters"]


def measure(options, dropout, folder):
    """Who -> target tokens a second of each round, and who -> parameters."""
    speeds, parameters = {}, {}
    for _ in range(options.rounds):
        speed, parameters["fovea"] = ours(options, dropout, folder / "model")
        speeds.setdefault("fovea", []).append(speed)
        workers = common.start_torch(options, HERE / "peer_translate_training.py",
                                     json.dumps({**SIZES, "dropout": dropout}), options.source, options.target)
        for name, worker in workers.items():
            parameters[f"PyTorch {name}"] = worker.hello["parameters"]
            answer = worker.ask(updates=options.updates, warmup=WARMUP)
            speeds.setdefault(f"PyTorch {name}", []).append(answer["tokens_per_second"])
            worker.close()
    return speeds, parameters


def tell(dropout, speeds, parameters):
    print(f"dropout {dropout}:")
    for who, values in speeds.items():
        print(f"  {who:18} {common.spread(values)} target tokens/s, {parameters[who]:,} parameters")
    if len(set(parameters.values())) > 1:
        print("  the numbers of parameters differ: this is not the same model")
    peers = {who: statistics.median(values) for who, values in speeds.items() if who != "fovea"}
    if peers:
        ratio = statistics.median(speeds["fovea"]) / max(peers.values())
        print(f"  fovea is {ratio:.2f} times as fast as {max(peers, key=peers.get)} (target {TARGET})", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=pathlib.Path)
    parser.add_argument("target", type=pathlib.Path)
    parser.add_argument("--updates", type=int, default=20, help="of a round")
    parser.add_argument("--output", type=pathlib.Path, help="write the medians to this file as JSON")
    common.add_common_options(parser, rounds=5)
    options = parser.parse_args()
    common.need_binary(options)
    machine = common.machine(options)
    print(machine)
    for dropout in DROPOUTS:
        with tempfile.TemporaryDirectory() as folder:
            speeds, parameters = measure(options, dropout, pathlib.Path(folder))
        tell(dropout, speeds, parameters)
        if options.output:
            medians = {who: statistics.median(values) for who, values in speeds.items()}
            common.keep(options.output, machine, "translator training", {f"dropout {dropout}": medians})


if __name__ == "__main__":
    main()
