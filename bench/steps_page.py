# SPDX-License-Identifier: Apache-2.0
"""The chapter of docs/speed.md on training steps, made of the results in bench/results/steps."""
import json
import pathlib

from train_peers import CASES

RESULTS = pathlib.Path(__file__).resolve().parent / "results" / "steps"

HEAD = """## Training steps

Tokens per second of the whole step (forward, backward, clipping, AdamW), divided by those of PyTorch: the fastest of the variants that were measured. *Eager* and *compiled*: without and with `torch.compile`; *foreach* and *fused*: two forms of its AdamW. `bench/train_peers.py` measures it ([how](benchmarks.md#training-step-benchtrain_peerspy-text)). *Near*, *far*: the ratio of the rounds in which the two cores shared a cache, or did not ([why](benchmarks.md#two-cores-may-be-far-apart)), where it differs from that of all.
"""
BFLOAT16 = """In bfloat16 (`--precision bf16`), beside PyTorch under autocast ([what is rounded](precision.md)):
"""
PROFILE = """Where the time of fovea's step goes, by [`fovea bench step`](commands/bench-step.md): the part of the time, and in brackets the share of the FMA peak or, where moving data is the work (*), of the bandwidth of the memory (arrays of 64 MiB added, y += x). Above 1, caches hold the data. Attention counts the scores that its mask keeps, as the tables below do. Where cores are far apart ([near and far](benchmarks.md#two-cores-may-be-far-apart)) the memory may be faster, so shares of it compare within a column.
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
MODELS = {"shakespeare": "0.84M", "wide": "10.8M", "gpt2": "85M", "gpt2-vocabulary": "124M", "step": "0.71M"}


def group_of(what):
    return next((group for group, names in GROUPS.items() if what in names), REST)


def grouped(profile):
    """group -> (part of the time, share of what limits it, or None)."""
    knows_memory = "memory_gigabytes_per_second" in profile  # older profiles compare with a copy
    seconds, done = {}, {}
    for part in profile["parts"]:
        group = group_of(part["what"])
        share = part.get("bandwidth_share" if group.endswith("*") else "share", 0)
        seconds[group] = seconds.get(group, 0) + part["seconds"]
        done[group] = done.get(group, 0) + share * part["seconds"]
    total = profile["profiled_seconds"]
    found = {group: (seconds[group] / total, done[group] / seconds[group]) for group in seconds}
    if not knows_memory:
        found = {group: (part, None if group.endswith("*") else share) for group, (part, share) in found.items()}
    rest = (profile["waiting_seconds"] + profile["other_seconds"]) / total
    return {**found, "waiting and the rest": (rest, None)}


def with_target(row, peer, target):
    """'1.54 (1.8) \u25bc'; where the cores moved between rounds, with the ratio of each place that has one."""
    ratio = row["ratio"].get(peer)
    if ratio is None:
        return ""
    text = f"{ratio:.2f}" + (f" ({target})" + " \u25bc" * (ratio < target) if target else "")
    places = {place: row.get(f"ratio_{place}", {}).get(peer) for place in ("near", "far")}
    known = [f"{place} {one:.2f}" for place, one in places.items() if one and f"{one:.2f}" != f"{ratio:.2f}"]
    return "; ".join([text, *([", ".join(known)] if known else [])])


def variants(row):
    """'eager foreach, **eager fused**': those of PyTorch that were measured, the fastest in bold."""
    speeds = {}
    for name, speed in row["tokens_per_second"].items():
        if name.startswith("PyTorch "):
            variant = name.split(maxsplit=2)[2]
            speeds[variant] = max(speed, speeds.get(variant, 0))
    fastest = max(speeds, key=speeds.get)
    return ", ".join(f"**{variant}**" if variant == fastest else variant for variant in speeds)


def ratios(training, targets="targets"):
    """With a column for JAX and one for builds if a row has them; `targets`: the key of a case."""
    rows = {name: training[name] for name in MODELS if name in training}
    jax, builds = (any(key in part(row) for row in rows.values())
                   for key, part in (("JAX", lambda row: row["ratio"]), ("build", lambda row: row)))
    yield ("| Model | Parameters | To PyTorch at its strongest | As installed |" + " To JAX |" * jax
           + " Variants of PyTorch, the fastest in bold | Rounds |" + " Build |" * builds)
    yield "|---|---|---|---|" + "---|" * jax + "---|---|" + "---|" * builds
    for name, row in rows.items():
        strongest, installed, to_jax = (with_target(row, peer, CASES[name].get(targets, {}).get(peer))
                                        for peer in ("PyTorch", "PyTorch installed", "JAX"))
        yield (f"| {row['what']} | {MODELS[name]} | {strongest} | {installed} |" + f" {to_jax} |" * jax
               + f" {variants(row)} | {row['rounds']} |" + f" {row.get('build') or 'not recorded'} |" * builds)


def machine_rows(found):
    """What the shares of each profile are of, as far as it says so."""
    for what, key, form in (("the whole step, of the FMA peak", "share", ".3f"),
                            ("FMA peak, GFLOP/s", "peak_gflops", ".0f"),
                            ("memory, GB/s", "memory_gigabytes_per_second", ".0f"),
                            ("between cores, ns", "core_to_core_nanoseconds", ".0f")):
        if any(key in profile for profile in found.values()):
            cells = (format(profile[key], form) if key in profile else "" for profile in found.values())
            yield f"| {what} | {' | '.join(cells)} |"


def profiles(found):
    tables = {MODELS[name]: grouped(profile) for name, profile in found.items()}
    yield "| | " + " | ".join(tables) + " |"
    yield "|---|" + "---|" * len(tables)
    yield from machine_rows(found)
    for group in [*GROUPS, REST, "waiting and the rest"]:
        cells = []
        for table in tables.values():
            part, share = table.get(group, (0, None))
            cells.append(f"{100 * part:.1f} %" + (f" ({share:.2f})" if share is not None else ""))
        yield f"| {group} | {' | '.join(cells)} |"


def said_of(results, key, words=""):
    """What the results say under a key, each once."""
    said = {one.get(key) for one in results.values()} - {None}
    if said:
        yield f"{words}{'; '.join(sorted(said))}.\n"


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
            yield from said_of(results["training"], "note")
        if "training bf16" in results:
            yield BFLOAT16
            yield "\n".join(ratios(results["training bf16"], "bf16")) + "\n"
            yield from said_of(results["training bf16"], "note")
        if "profiles" in results:
            yield PROFILE
            yield from said_of(results["profiles"], "build", "Build: ")
            yield from said_of(results["profiles"], "note")
            yield "\n".join(profiles(results["profiles"])) + "\n"
