#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The Python package beside PyTorch, float32, forward and backward, in turns in one process.

Each round starts processes of its own, of PyTorch as installed and with MKL's fastest kernels
("unlocked"); told are the medians over the rounds, and their ratio. The interpreter (--python) must have
fovea, PyTorch and, for rows of models, transformers.
"""
import argparse
import pathlib
import statistics
import sys

import common

HERE = pathlib.Path(__file__).resolve().parent

# name: (what the worker makes, its arguments, the target against PyTorch as installed, or a limit)
ROWS = {
    "sdpa": ("sdpa", {"B": 4, "H": 12, "T": 1024, "D": 64}, 1.35),
    "sdpa-causal": ("sdpa", {"B": 4, "H": 12, "T": 1024, "D": 64, "is_causal": True}, 1.6),
    "sdpa-small": ("sdpa", {"B": 1, "H": 4, "T": 40, "D": 32}, 1.3),
    "sdpa-dropout": ("sdpa", {"B": 1, "H": 12, "T": 2048, "D": 64, "dropout_p": 0.1}, 6),
    "sdpa-learned": ("sdpa", {"B": 1, "H": 12, "T": 2048, "D": 64, "learned": True}, 2.5),
    "sdpa-between-linears": ("between_linears", {}, "1.1 of the time alone"),
    # One query against a cache, as a token is decoded.
    **{f"decode-{S}": ("decode", {"S": S}, target) for S, target in ((512, 1.3), (4096, 1.2))},
    "gpt2-generate": ("generate", {}, 1.1),
    "gpt2-attention-dropout": ("attention", {"kind": "gpt2", "peer": "sdpa", "dropout": 0.1}, 4),
    "gpt2-attention": ("attention", {"kind": "gpt2", "peer": "sdpa"}, 1.5),
    "gpt2-step-dropout": ("model", {"kind": "gpt2", "peer": "sdpa", "dropout": 0.1}, 1.25),
    "gpt2-step": ("model", {"kind": "gpt2", "peer": "sdpa"}, None),
    "gemma2-attention": ("attention", {"kind": "gemma2", "peer": "eager"}, 4),
    "gemma2-step": ("model", {"kind": "gemma2", "peer": "eager", "layers": 4}, None),
    "gpt-oss-attention": ("attention", {"kind": "gpt_oss", "peer": "eager"}, 4),
    "gpt-oss-step": ("model", {"kind": "gpt_oss", "peer": "eager", "layers": 4}, None),
    "t5-attention": ("attention", {"kind": "t5", "peer": "sdpa"}, 2),
    "t5-step": ("model", {"kind": "t5", "peer": "sdpa", "layers": 4}, None),
    **{f"flex-{name}": ("flex", {"name": name}, 2.5) for name in ("alibi", "relative", "bias", "graphormer")},
    **{f"flex-{name}": ("flex", {"name": name}, 4) for name in ("causal", "documents")},
    **{f"flex-forward-{name}": ("flex_forward", {"name": name}, 1.8) for name in ("alibi", "causal")},
    # Theirs is our own part: a traced function may take 1.2 of its time.
    **{f"flex-ready-made-{name}": ("flex_ready_made", {"name": name}, 1 / 1.2) for name in ("alibi", "bias", "causal")},
    "flex-window": ("flex_window", {}, "linear in the tokens"),
    "flex-tracing": ("tracing", {}, "200 us for 40 operations"),
    "flex-block-mask": ("block_mask", {}, "100 ms and 64 MiB"),
}


def measure(options, names):
    """name -> {yardstick: [answers]}."""
    found = {name: {} for name in names}
    for number in range(options.rounds):
        peers = common.start_torch(options, HERE / "peer_python.py")
        if not peers:
            sys.exit(1)
        for name, answers in found.items():
            row, arguments, _ = ROWS[name]
            for yardstick, peer in peers.items():
                answer = peer.ask(row=row, arguments=arguments, seconds=options.seconds)
                answers.setdefault(yardstick, []).append(answer)
                if "ours" in answer:
                    print(f"round {number + 1}: {name} {yardstick} {1e3 * answer['theirs']:.4g} ms, fovea "
                          f"{1e3 * answer['ours']:.4g} ms", file=sys.stderr, flush=True)
        for peer in peers.values():
            peer.close()
    return found


def report_alone(each):
    for key in each[0]["alone"]:
        is_time = not key.endswith("MiB")
        values = [answer["alone"][key] * (1e3 if is_time else 1) for answer in each]
        print(f"  {key} {common.spread(values)}{' ms' if is_time else ''}")


def report(name, answers):
    target = ROWS[name][2]
    print(f"{name}  target {target if target is None or isinstance(target, str) else f'{target:.3g}x'}")
    first = "our part," if "ready-made" in name else "PyTorch"
    for yardstick, each in answers.items():
        if "alone" in each[0]:
            report_alone(each)
            return
        if "skipped" in each[0]:
            print(f"  not measured: {each[0]['skipped']}")
            return
        theirs, ours = ([answer[key] * 1e3 for answer in each] for key in ("theirs", "ours"))
        print(f"  {first} {yardstick:9} {common.spread(theirs)} ms, fovea {common.spread(ours)} ms,"
              f" ratio {statistics.median(theirs) / statistics.median(ours):.2f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    common.add_common_options(parser, rounds=5)
    parser.add_argument("--only", nargs="+", choices=ROWS, default=list(ROWS), help="the rows to measure")
    parser.add_argument("--seconds", type=float, default=2.0, help="for each row of a round")
    options = parser.parse_args()
    print(common.machine(options))
    for name, answers in measure(options, options.only).items():
        report(name, answers)


if __name__ == "__main__":
    main()
