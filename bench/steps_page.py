# SPDX-License-Identifier: Apache-2.0
"""The chapter of docs/speed.md on training steps, made of the results in bench/results/steps."""
import json
import pathlib

RESULTS = pathlib.Path(__file__).resolve().parent / "results" / "steps"

HEAD = """## Training steps

Tokens per second of the whole step (forward, backward, clipping, AdamW), divided by those of PyTorch: the fastest of its variants, eager and compiled. `bench/train_peers.py` measures it ([how](benchmarks.md#training-step-benchtrain_peerspy-text)).
"""
PROFILE = """Where the time of fovea's step goes, by [`fovea bench step`](commands/bench-step.md): the part of the time, and in brackets the share of the FMA peak or, where moving data is the work (*), of the bandwidth of a copy. Above 1, caches hold the data.
"""
# Names of `fovea bench step`, by the row that shows them; what is not here is in the last row of work.
GROUPS = {
    "products: forward and dx": ["product"],
    "products: gradients of weights": ["product A^T B"],
    "attention": ["attention", "attention backward"],
    "norms *": ["layer norm", "layer norm backward", "RMS norm", "RMS norm backward"],
    "loss *": ["cross entropy", "loss"],
    "optimizer *": ["AdamW", "gradient norm"],
    "packing of weights *": ["pack"],
}
REST = "embeddings, sums, copies *"
MODELS = {"shakespeare": "0.84M", "wide": "10.8M", "gpt2": "85M", "gpt2-vocabulary": "124M", "step": "0.71M, batch 1"}


def group_of(what):
    return next((group for group, names in GROUPS.items() if what in names), REST)


def grouped(profile):
    """group -> (part of the time, share of what limits it)."""
    seconds, done = {}, {}
    for part in profile["parts"]:
        group = group_of(part["what"])
        share = part["bandwidth_share" if group.endswith("*") else "share"]
        seconds[group] = seconds.get(group, 0) + part["seconds"]
        done[group] = done.get(group, 0) + share * part["seconds"]
    total = profile["profiled_seconds"]
    found = {group: (seconds[group] / total, done[group] / seconds[group]) for group in seconds}
    rest = (profile["waiting_seconds"] + profile["other_seconds"]) / total
    return {**found, "waiting and the rest": (rest, None)}


def ratios(training):
    yield "| Model | Parameters | To PyTorch at its strongest | As installed | Rounds |"
    yield "|---|---|---|---|---|"
    for name, row in ((name, training[name]) for name in MODELS if name in training):
        strongest, target = row["ratio"]["PyTorch"], row["targets"]["PyTorch"]
        missed = " \u25bc" * (strongest < target)
        yield (f"| {row['what']} | {MODELS[name]} | {strongest:.2f} ({target}){missed} |"
               f" {row['ratio'].get('PyTorch installed', strongest):.2f} | {row['rounds']} |")


def profiles(found):
    tables = {MODELS[name]: grouped(profile) for name, profile in found.items()}
    yield "| | " + " | ".join(tables) + " |"
    yield "|---|" + "---|" * len(tables)
    for group in [*GROUPS, REST, "waiting and the rest"]:
        cells = []
        for table in tables.values():
            part, share = table.get(group, (0, None))
            cells.append(f"{100 * part:.1f} %" + (f" ({share:.2f})" if share is not None else ""))
        yield f"| {group} | {' | '.join(cells)} |"


def chapter():
    """Lines; none if nothing was measured."""
    files = sorted(RESULTS.glob("*.json"))
    if files:
        yield HEAD
    for path in files:
        results = json.loads(path.read_text())
        yield f"Measured on: {results['machine']}.\n"
        if "training" in results:
            yield "\n".join(ratios(results["training"])) + "\n"
        if "profiles" in results:
            yield PROFILE
            yield "\n".join(profiles(results["profiles"])) + "\n"
