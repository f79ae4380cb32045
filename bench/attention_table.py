#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The table of speeds of attention: every row of it, against PyTorch, in turns, float32.

Writes bench/results/PROCESSOR.json; bench/speed_page.py makes docs/speed.md and its pictures of
what lies there. Rows are measured again one by one with --only. With FOVEA_ISA=avx2 and
ATEN_CPU_CAPABILITY=avx2 both sides are pinned to AVX2, and the results go to a file of their own.

A round takes every row once, and starts new processes of PyTorch: some are fast or slow for their whole
life. The file is written after each round, and says how many there were.

A row is one or more calls, timed in turns in one process, and PyTorch's fastest way to do the same: as
installed ("ratio"), and at its strongest ("strongest": MKL's fastest kernels, where they are faster).
Rows of dot products have a target for the ratio to the strongest, or for the share of the FMA peak;
rows of parts have one for the time beside plain dot products ("beside", at most) and one for the ratio.
Results hold no targets: judged() adds them where they are shown.
"""
import argparse
import itertools
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys

import common
from common import start_torch

HERE = pathlib.Path(__file__).resolve().parent
KINDS = "forward", "backward"
PINNED = 1.1, None  # target of every dot row where both sides are pinned to an older instruction set


def sizes(B, T, H, D, S=None):
    return [B, T, S or T, H, H, D, D]


def dot_shapes():
    """B, H, T, D of the rows of dot products."""
    for D in (64, 128):
        for B, H, T in [(1, 1, 512), (4, 12, 512), (1, 1, 1024), (4, 12, 1024), (1, 1, 4096), (1, 8, 4096)]:
            yield B, H, T, D
    for B, H, T, D in [(8, 8, 128, 64), (8, 12, 256, 64), (4, 8, 1024, 32), (8, 8, 128, 32)]:
        yield B, H, T, D


def dot_targets(T, causal, pinned=False):
    """(ratio to PyTorch at its strongest, share of the FMA peak) of each direction."""
    if pinned:
        return {kind: PINNED for kind in KINDS}
    if T <= 512:
        ratios = (2.2, 2.4) if causal else (1.5, 1.6)
        return {kind: (ratio, None) for kind, ratio in zip(KINDS, ratios)}
    if causal:
        return {"forward": (1.8, 0.78), "backward": (1.9, 0.84)}
    return {"forward": (1.35, 0.84), "backward": (1.4, 0.87)}


PARTS = {  # case: words of the call
    "alibi": ["+slopes"], "t5": ["+t5", "--t5-causal"], "shaw": ["+shaw_k", "+shaw_v"], "softcap": ["--softcap=30"],
    "sink": ["+sink"], "dense": ["+bias"], "lambda": ["--lambda"], "dropout": ["--dropout=0.1"],
}
FLEX = {"noop": [], "causal": ["--causal=bottom-right"], "alibi": ["--causal=bottom-right", "+slopes"],
        "softcap": ["--causal=bottom-right", "--softcap=30"], "window": ["--window=256,0"]}
CAUSAL = ["--causal=bottom-right"]


def rows(tensors=(), pinned=False):
    """Rows: a dict of a name, ours (words of each call), peer (a question), targets, which are others where
    both sides are pinned to an older instruction set. Parts of the table of parts (`tensors`) that have no
    row of their own get one without a peer."""
    for (B, H, T, D), causal in itertools.product(dot_shapes(), (False, True)):
        name = f"dot B{B} H{H} T{T} D{D} {'causal' if causal else 'full'}"
        yield {"name": name, "section": "dot", "calls": [(sizes(B, T, H, D), CAUSAL if causal else [])],
               "sdpa": {"batch": B, "heads": H, "length": T, "head_dim": D, "causal": causal},
               "pairs": B * H * (T * (T + 1) / 2 if causal else T * T), "D": D, "targets": dot_targets(T, causal, pinned)}
    for B in (1, 4, 16):
        yield {"name": f"small B{B} H4 T40 D32", "section": "small", "calls": [(sizes(B, 40, 4, 32), CAUSAL)],
               "peer": {"case": "dot", "sizes": sizes(B, 40, 4, 32)}, "ratio": 2.2}
    shape = sizes(1, 2048, 8, 64)
    for case, words in PARTS.items():
        yield {"name": case, "section": "parts", "calls": [(shape, CAUSAL + words), (shape, CAUSAL)],
               "peer": {"case": case, "sizes": shape, "compile_too": True}, "beside": 1.25,
               "ratio": 6 if case == "dropout" else 2.5}
    known = {word for words in PARTS.values() for word in words}
    for tensor in tensors:
        if f"+{tensor}" not in known:
            yield {"name": tensor, "section": "parts", "calls": [(shape, [*CAUSAL, f"+{tensor}"]), (shape, CAUSAL)],
                   "beside": 1.25}
    yield {"name": "entropy + top-8", "section": "parts", "beside": 1.15,
           "calls": [(shape, [*CAUSAL, "--observe=entropy,topk=8"]), (shape, CAUSAL)]}
    for example, words in FLEX.items():
        yield {"name": f"flex {example}", "section": "flex", "calls": [(shape, [*words, "--forward"])],
               "peer": {"case": f"flex {example}", "sizes": shape}, "ratio": 2}
    for T in (1024, 4096, 16384, 65536, 1048576):
        row = {"name": f"window 64 T{T}", "section": "window", "length": T,
               "calls": [(sizes(1, T, 1, 64), ["--window=64,64"])]}
        if T == 16384:
            row |= {"peer": {"case": "window", "sizes": sizes(1, T, 1, 64)}, "ratio": 40}
        yield row
    yield {"name": "ragged B16 H8 T512", "section": "ragged", "ratio": 2.5,
           "calls": [(sizes(16, 512, 8, 64), ["+key_lengths", "+query_lengths"])],
           "peer": {"case": "ragged", "sizes": sizes(16, 512, 8, 64)}}


def words_of(calls):
    words = []
    for numbers, options in calls:
        words += ["--"] * bool(words) + [",".join(map(str, numbers)), *options]
    return words


def ours(options, row):
    command = [options.program, str(options.threads), *words_of(row["calls"])]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", env=common.environment(options.threads),
                          preexec_fn=common.pin(options.threads), check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}\nended with {done.returncode}:\n{done.stderr}")
    return common.last_object(done.stdout)


def median(values):
    return statistics.median(values)


def ratios(theirs, key, seconds):
    """To PyTorch as installed, and at its strongest; and which of them that is."""
    if not theirs:
        return {"ratio": None, "strongest": None}, None
    found = {name: median(one[key] for one in answers) / seconds for name, answers in theirs.items()}
    strongest = min(found, key=found.get)
    return {"ratio": found["installed"], "strongest": found[strongest]}, strongest


def of_dot(row, mine, theirs):
    """Ratios and share of each direction."""
    result = {}
    for kind, flops in zip(KINDS, (4, 10)):
        seconds = median(one["calls"][0][f"{kind}_seconds"] for one in mine)
        share = median(flops * row["pairs"] * row["D"] / one["calls"][0][f"{kind}_seconds"] / one["fma_gflops"] / 1e9
                       for one in mine)
        to_peers, _ = ratios(theirs, f"{kind}_seconds", seconds)
        result[kind] = {"share": share, **to_peers}
    return result


def total(call):
    return call["forward_seconds"] + call["backward_seconds"]


def of_call(row, mine, theirs):
    """Time beside plain dot products, ratio to PyTorch, memory."""
    result = {"seconds": median(total(one["calls"][0]) for one in mine), "kernel": mine[0]["calls"][0]["kernel"],
              "peak_memory_bytes": max(one["peak_memory_bytes"] for one in mine)}
    if "beside" in row:
        result["beside"] = median(total(one["calls"][0]) / total(one["calls"][1]) for one in mine)
    if theirs:
        to_peers, strongest = ratios(theirs, "seconds", result["seconds"])
        result |= {**to_peers, "way": theirs[strongest][0]["way"]}
    return result


def judged(result, row):
    """The result with the targets of its row, and whether it meets them: a direction of dot products by
    its ratio to the strongest or by its share, other rows by all that they have."""
    if "targets" in row:
        return {**result, **{kind: judged_direction(result[kind], *row["targets"][kind]) for kind in KINDS}}
    found, met = dict(result), []
    if "beside" in result:
        found["target_beside"] = row["beside"]
        met.append(result["beside"] <= row["beside"])
    if result.get("ratio"):
        found["target"] = row["ratio"]
    if result.get("strongest"):
        met.append(result["strongest"] >= row["ratio"])
    return {**found, "met": all(met)} if met else found


def judged_direction(result, ratio, least):
    strongest = result.get("strongest")
    return {**result, "target": ratio, "target_share": least,
            "met": bool(strongest and strongest >= ratio) or bool(least and result["share"] >= least)}


KINDS_OF_PEERS = {"sdpa": "peer_attention.py", "peer": "peer_parts.py"}


def kind_of(row):
    """Which peer answers the row; None: none."""
    return next((kind for kind in KINDS_OF_PEERS if kind in row), None)


def one_round(options, wanted, mine, theirs):
    """Adds an answer of each side for each row, of new processes; returns what PyTorch they are."""
    kinds = {kind_of(row) for row in wanted} - {None}
    workers = {kind: start_torch(options, HERE / KINDS_OF_PEERS[kind]) for kind in kinds}
    for row in wanted:
        mine.setdefault(row["name"], []).append(ours(options, row))
        for name, worker in workers.get(kind_of(row), {}).items():
            answers = theirs.setdefault(row["name"], {}).setdefault(name, [])
            answers.append(worker.ask(**row[kind_of(row)]))
    for worker in (one for of_kind in workers.values() for one in of_kind.values()):
        worker.close()
    return next((w["installed"].hello["ready"] for w in workers.values() if w), None)


def result_of(row, mine, theirs):
    """What is kept of a row."""
    found = of_dot(row, mine, theirs) if "targets" in row else of_call(row, mine, theirs)
    length = {"length": row["length"]} if "length" in row else {}
    return {"section": row["section"], **length, "rounds": len(mine), "build": common.build(), **found}


def told(result):
    if "forward" in result:
        return "  ".join(f"{kind} {told_one(result[kind])}" for kind in KINDS)
    return told_one(result)


def told_one(one):
    words = []
    if one.get("ratio"):
        words.append(f"ratio {one['ratio']:.2f}, to the strongest {one['strongest']:.2f} ({one['target']})")
    if one.get("share"):
        words.append(f"share {one['share']:.2f}" + (f" ({one['target_share']})" if one["target_share"] else ""))
    if one.get("beside"):
        words.append(f"beside plain {one['beside']:.2f} ({one['target_beside']})")
    if "way" in one:
        words.append(one["way"])
    return ", ".join(words) + ("" if "met" not in one else "" if one["met"] else "  MISSED")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    common.add_common_options(parser, rounds=3)
    parser.add_argument("--program", default=str(common.ROOT / "build" / "release" / "bench" / "fovea_bench_attention"))
    parser.add_argument("--only", default="", help="rows whose section or name matches this expression")
    parser.add_argument("--out", type=pathlib.Path, help="the file of results, which is added to")
    options = parser.parse_args()
    machine = common.machine(options)
    print(machine)
    pinned = os.environ.get("FOVEA_ISA", "")
    name = re.sub(r"[^A-Za-z0-9]+", "-", f"{machine.split(';')[0]} {pinned}").strip("-").lower()
    out = options.out or HERE / "results" / f"{name}.json"
    known = json.loads(out.read_text()) if out.exists() else {"rows": {}}
    tensors = subprocess.run([options.program, "--tensors"], capture_output=True, encoding="utf-8", check=True).stdout.split()
    wanted = [row for row in rows(tensors, bool(pinned)) if re.search(options.only, f"{row['section']} {row['name']}")]
    if not wanted:
        sys.exit(f"no row matches {options.only}")
    mine, theirs = {}, {}
    for number in range(1, options.rounds + 1):
        peer = one_round(options, wanted, mine, theirs)
        known |= {"machine": machine, "peer": peer or known.get("peer")}
        if {row["name"] for row in wanted} >= set(known["rows"]):
            known.pop("note", None)  # of an earlier measurement
        for row in wanted:
            known["rows"][row["name"]] = result_of(row, mine[row["name"]], theirs.get(row["name"], {}))
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(json.dumps(known, indent=1) + "\n")
        print(f"round {number} of {options.rounds}", flush=True)
    for row in wanted:
        print(f"{row['name']:32} {told(judged(known['rows'][row['name']], row))}")


if __name__ == "__main__":
    main()
