#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Updates of a pretrained language model: of all weights, and of adapters (LoRA), beside transformers and PEFT, in turns.

  bench/adapter_peers.py MODEL.gguf TEXT [--rounds 3] [--length 512] [--updates 6] [--modes full lora]
                         --python PYTHON_WITH_TORCH_TRANSFORMERS_PEFT_GGUF

One sequence of --length tokens an update, AdamW; adapters of rank 8 on all products of the layers. fovea leaves the
weights under adapters as they lie in the file, PyTorch widens them to float32. Peers: float32, and bfloat16 under autocast
(beside fovea --precision bf16). The first two updates of each turn are not counted. Peak memory is that of the whole
process, with the model's loading.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

import common

WARM = 2
PEER = """
import contextlib, os, resource, sys, time, torch, transformers
model, threads, length, updates, mode, precision = sys.argv[1:7]
torch.set_num_threads(int(threads))
transformers.logging.set_verbosity_error()
folder, name = os.path.split(os.path.abspath(model))
net = transformers.AutoModelForCausalLM.from_pretrained(folder, gguf_file=name, dtype=torch.float32)
if mode == "lora":
    import peft
    net = peft.get_peft_model(net, peft.LoraConfig(r=8, lora_alpha=16, target_modules="all-linear", task_type="CAUSAL_LM"))
net.train()
optimizer = torch.optim.AdamW([p for p in net.parameters() if p.requires_grad], lr=1e-4, fused=True)
ids = torch.randint(100, 40000, (1, int(length)))
for _ in sys.stdin:
    times = []
    for _ in range(int(updates)):
        began = time.perf_counter()
        with torch.autocast("cpu", torch.bfloat16) if precision == "bf16" else contextlib.nullcontext():
            loss = net(input_ids=ids, labels=ids).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        times.append(time.perf_counter() - began)
    times = times[%d:]
    print("RATE", len(times) * int(length) / sum(times), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, flush=True)
""" % WARM


class Peer:
    def __init__(self, options, mode, precision):
        self.process = subprocess.Popen(
            [options.python, "-c", PEER, options.model, str(options.threads), str(options.length), str(options.updates), mode,
             precision],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, encoding="utf-8",
            env={**common.environment(options.threads), **common.unlocked_mkl()})
        self.name, self.mode, self.found = f"PyTorch {precision}", mode, []

    def turn(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        for line in self.process.stdout:
            if line.startswith("RATE "):
                self.found.append([float(word) for word in line.split()[1:]])
                return
        sys.exit("the peer has ended: has the interpreter of --python torch, transformers, peft and gguf?")

    def close(self):
        self.process.stdin.close()
        self.process.wait()


class Ours:
    def __init__(self, options, mode, precision):
        self.options, self.mode, self.precision = options, mode, precision
        self.name, self.found = f"fovea {precision}", []

    def turn(self):
        o = self.options
        with tempfile.TemporaryDirectory() as folder:
            run = pathlib.Path(folder) / "run"
            command = [o.fovea, "train", "lm", "--base", o.model, "--train", o.text, "-o", run, "--quiet", "--batch-size", 1,
                       "--sequence-length", o.length, "--valid-fraction", 0, "--stop-after", f"{o.updates}u", "--log-every", 1,
                       "--warmup", 1, "-t", o.threads, "--precision", self.precision, *o.more]
            command += ["--lora", 8] if self.mode == "lora" else []
            process = subprocess.Popen(list(map(str, command)), stdout=subprocess.DEVNULL)
            _, status, usage = os.wait4(process.pid, 0)
            if status != 0:
                sys.exit("fovea train lm has failed")
            seconds = [json.loads(line)["seconds"] for line in open(run / "metrics.jsonl", encoding="utf-8")]
        counted = o.updates - WARM
        self.found.append([counted * o.length / (seconds[-1] - seconds[WARM - 1]), usage.ru_maxrss])

    def close(self):
        pass


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    common.add_common_options(parser, rounds=3)
    parser.add_argument("model")
    parser.add_argument("text")
    parser.add_argument("--length", type=int, default=512)
    parser.add_argument("--updates", type=int, default=6)
    parser.add_argument("--modes", nargs="+", default=["full", "lora"], choices=["full", "lora"])
    parser.add_argument("--precisions", nargs="+", default=["float32", "bf16"], choices=["float32", "bf16"])
    parser.add_argument("--more", nargs=argparse.REMAINDER, default=[], help="further options of fovea train lm, last")
    options = parser.parse_args()
    for mode in options.modes:
        sides = [side(options, mode, precision) for precision in options.precisions for side in (Peer, Ours)]
        for _ in range(options.rounds):
            for side in sides:
                side.turn()
        for side in sides:
            side.close()
        for peer, ours in zip(sides[::2], sides[1::2]):
            rates = [statistics.median(rate for rate, _ in side.found) for side in (peer, ours)]
            for side, rate in zip((peer, ours), rates):
                peak = statistics.median(peak for _, peak in side.found) / 1024
                print(f"{mode:5} {side.name:16} {rate:7.1f} tokens/s, {rate / rates[0]:.2f}x, {peak:6.0f} MB", flush=True)


if __name__ == "__main__":
    main()
