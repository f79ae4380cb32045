#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The same training step in fovea, PyTorch and JAX, in turns: tokens per second and their ratios.

  bench/train_peers.py TEXT [--only shakespeare,wide,step] [--precision bf16] [--rounds 7] [--output FILE]

Every round starts each of them anew, one after another, for the same number of steps on the same CPUs:
a process of PyTorch may be fast or slow for its whole life. A ratio is one of medians, against the
fastest variant of a peer (eager or compiled; AdamW foreach or fused). PyTorch is measured as installed
and with MKL's fastest kernels ("unlocked"); targets count against its fastest. Everybody warms up for
three steps before he is measured (the first one of 11 million parameters touches its memory for the
first time, and takes half as long again). In bf16 PyTorch runs under autocast. Where the host moved the
cores between rounds, ratios are also given for cores that share a cache (near) and that do not (far).
"""
import argparse
import json
import pathlib
import statistics
import tempfile

import common
from common import Worker, fovea, start_torch

HERE = pathlib.Path(__file__).resolve().parent
FIRST_LEARNED_TOKEN = 259  # three special tokens and 256 bytes stand before the characters
VALID_FRACTION = 0.01
WARMUP = 3
VARIANTS = "eager foreach", "eager fused", "compiled fused"  # of PyTorch, in every case

GPT2 = dict(layers=12, heads=12, width=768, block=256, batch=4, tie=True, bias=True)
CASES = {
    "shakespeare": {
        "what": "4 layers, 4 heads, width 128, block 64, batch 12",
        "model": dict(layers=4, heads=4, width=128, block=64, batch=12, tie=True, bias=False),
        "steps": 60, "targets": {"PyTorch": 1.8},
    },
    "wide": {
        "what": "6 layers, 6 heads, width 384, block 256, batch 16",
        "model": dict(layers=6, heads=6, width=384, block=256, batch=16, tie=True, bias=False),
        "steps": 6, "targets": {"PyTorch": 1.22}, "bf16": {"PyTorch": 1.6},
    },
    "gpt2": {
        "what": "12 layers, 12 heads, width 768, block 256, batch 4",
        "model": GPT2, "steps": 4, "targets": {"PyTorch": 1.25}, "bf16": {"PyTorch": 1.5},
    },
    "gpt2-vocabulary": {
        "what": "the same, vocabulary 50257",
        "model": GPT2, "steps": 3, "vocabulary": 50257, "targets": {"PyTorch": 1.2},
        "bf16": {"PyTorch": 1.5},
    },
    "step": {
        "what": "1 layer, 4 heads, width 128, block 40, batch 1, vocabulary 2000, untied",
        "model": dict(layers=1, heads=4, width=128, block=40, batch=1, tie=False, bias=False),
        "steps": 600, "vocabulary": 2000, "targets": {"PyTorch": 6, "JAX": 4},
    },
}


def text_of(case, path):
    """The text to train on: the given one, or as many different characters as the case asks for."""
    if "vocabulary" not in case:
        return path.read_text(encoding="utf-8")[:400_000]
    characters = case["vocabulary"] - FIRST_LEARNED_TOKEN
    codes = (0x4E00 + i * 7919 % characters for i in range(50 * characters))
    return "".join(chr(code if code < 0xD800 else code + 0x800) for code in codes)  # without surrogates


def model_options(case):
    """The options of fovea for the model of a case."""
    model = case["model"]
    return ["--layers", model["layers"], "--heads", model["heads"], "--width", model["width"],
            "--block", model["block"], "--batch-size", model["batch"], f"--tie={str(model['tie']).lower()}",
            f"--bias={str(model['bias']).lower()}", "--dropout", 0]


def ours(options, case, text, folder):
    """Tokens per second after warming up, and the number of parameters."""
    found = fovea(options, "train", "lm", "--train", text, "-o", folder, "--overwrite",
                  "--tokenizer", "char", "--valid-fraction", VALID_FRACTION,
                  *model_options(case), "--precision", options.precision,
                  "--stop-after", f"{WARMUP + case['steps']}u", "--eval-every", "1000000u",
                  "--save-every", "1000000u", "--log-every", WARMUP, "--threads", options.threads)
    lines = (folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    updates = [line for line in map(json.loads, lines) if line["kind"] == "update"]
    first, last = updates[0], updates[-1]
    speed = (last["tokens"] - first["tokens"]) / (last["seconds"] - first["seconds"])
    return speed, found["parameters"]


def start_peer(options, peer, described):
    """name -> worker, of a variant of PyTorch or of JAX; none if it is not installed, with a word why."""
    if peer != "JAX":
        workers = start_torch(options, HERE / "peer_torch.py", described, *peer.split(), options.precision)
        return {f"PyTorch {name} {peer}": worker for name, worker in workers.items()}
    jax = Worker(options, HERE / "peer_jax.py", described)
    if "absent" in jax.hello:
        print(f"  JAX: not measured: {jax.hello['absent']}")
        return {}
    return {"JAX": jax}


def measure(options, case, text_path, folder):
    """Tokens per second of every round (common.PlacedValues); and name -> number of parameters."""
    text = text_of(case, text_path)
    written = folder / "text.txt"
    written.write_text(text, encoding="utf-8")
    vocabulary = FIRST_LEARNED_TOKEN + len(set(text[:int(len(text) * (1 - VALID_FRACTION))]))
    described = json.dumps({**case["model"], "vocabulary": vocabulary})
    peers = [*VARIANTS, "JAX"] if options.precision == "float32" else list(VARIANTS)
    speeds, parameters = common.PlacedValues(options), {}
    for _ in range(options.rounds):
        speed, parameters["fovea"] = ours(options, case, written, folder / "model")
        speeds.add("fovea", speed)
        for peer in list(peers):
            workers = start_peer(options, peer, described)
            if not workers:
                peers.remove(peer)
            for name, worker in workers.items():
                parameters[name] = worker.hello["parameters"]
                speeds.add(name, worker.ask(steps=case["steps"])["tokens_per_second"])
                worker.close()
    return speeds, parameters


def best_of(medians, peer):
    """The fastest variant of a peer; None if it was not measured."""
    return max((m for name, m in medians.items() if name.startswith(peer)), default=None)


def ratios(speeds):
    """Of fovea to the fastest of each peer, by medians."""
    medians = {name: statistics.median(values) for name, values in speeds.items()}
    return {peer: medians["fovea"] / best_of(medians, peer)
            for peer in ("PyTorch installed", "PyTorch", "JAX") if best_of(medians, peer) and "fovea" in medians}


def to_keep(options, case, speeds):
    """What --output writes of a case: medians in tokens per second."""
    return {"what": case["what"], "rounds": options.rounds,
            "tokens_per_second": {name: statistics.median(values) for name, values in speeds.all().items()},
            "ratio": ratios(speeds.all()),
            "ratio_near": ratios(speeds.at("near cores")), "ratio_far": ratios(speeds.at("far cores"))}


def report(case, speeds, parameters, precision):
    if len(set(parameters.values())) > 1:
        print("  the numbers of parameters differ: this is not the same model")
    targets = case.get("targets" if precision == "float32" else precision, {})
    moved = len({place for _, place in speeds.values}) > 1
    places = [place for place in ("near cores", "far cores") if moved and speeds.at(place)]
    for place, found in ("all", speeds.all()), *((place, speeds.at(place)) for place in places):
        print(f"  {place}:")
        for name, values in found.items():
            print(f"    {name:33} {common.spread(values)} tokens/s, {len(values)} times, {parameters[name]:,} parameters")
        for peer, ratio in ratios(found).items():
            words = {"PyTorch installed": "PyTorch as installed", "PyTorch": "PyTorch at its strongest"}.get(peer, peer)
            aim = f" (target {targets[peer]})" if peer in targets else ""
            print(f"    fovea / {words}: {ratio:.2f}{aim}")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("text", type=pathlib.Path, help="a text, such as tinyshakespeare's input.txt")
    parser.add_argument("--only", default=",".join(CASES), help="cases, separated by commas")
    parser.add_argument("--output", type=pathlib.Path, help="JSON; what is there is kept")
    parser.add_argument("--precision", choices=["float32", "bf16"], default="float32")
    common.add_common_options(parser)
    options = parser.parse_args()
    common.need_binary(options)
    machine = common.machine(options)
    print(machine)
    for name in options.only.split(","):
        case = CASES[name]
        print(f"{name}: {case['what']}; {options.rounds} rounds of {case['steps']} steps", flush=True)
        with tempfile.TemporaryDirectory() as folder:
            speeds, parameters = measure(options, case, options.text, pathlib.Path(folder))
        report(case, speeds, parameters, options.precision)
        if options.output:
            kind = "training" if options.precision == "float32" else f"training {options.precision}"
            common.keep(options.output, machine, kind, {name: to_keep(options, case, speeds)})


if __name__ == "__main__":
    main()
