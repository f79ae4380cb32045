#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Many runs of `fovea eval` on a tiny regression model beside a busy loop on every core, in search of one that
stands still: the stacks of one that takes over 10 s are printed (by gdb, else what /proc tells), and it is ended.

  bench/soak_eval.py [--fovea build/release/cli/fovea] [--runs 5000]
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path


def stacks(pid):
    if shutil.which("gdb"):
        return subprocess.run(["gdb", "-p", str(pid), "-batch", "-ex", "thread apply all backtrace"],
                              capture_output=True, text=True).stdout
    text = ""
    for task in sorted(Path(f"/proc/{pid}/task").iterdir()):
        for name in ["comm", "stat", "wchan", "syscall", "stack"]:
            try:
                text += f"{task.name} {name}: {(task / name).read_text().strip()}\n"
            except OSError as error:
                text += f"{task.name} {name}: {error.strerror}\n"
    return text


def stands_still(command, limit):
    """Whether a run took more than `limit` seconds."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    try:
        err = process.communicate(timeout=limit)[1]
    except subprocess.TimeoutExpired:
        print(f"after {limit} s still there: {command}\n{stacks(process.pid)}", flush=True)
        process.kill()
        process.communicate()
        return True
    if process.returncode != 0:
        sys.exit(f"exit status {process.returncode}: {err.decode()}")
    return False


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fovea", default="build/release/cli/fovea")
    parser.add_argument("--runs", type=int, default=5000)
    parser.add_argument("--limit", type=float, default=10, help="seconds after which a run stands still")
    arguments = parser.parse_args()
    busy = []
    with tempfile.TemporaryDirectory() as folder:
        data, model = Path(folder, "data.tsv"), str(Path(folder, "model"))
        words = ["good", "bad", "fine", "poor"]
        data.write_text("text\tlabel\n" + "".join(
            f"{words[i % 4]} {words[i // 4 % 4]}\t{i % 4 + i // 4 % 4}\n" for i in range(200)))
        subprocess.run([arguments.fovea, "train", "classify", "--regression", "--train", data, "-o", model,
                        "--stop-after", "20u", "--quiet"], check=True, stdout=subprocess.DEVNULL)
        began, still = time.monotonic(), 0
        try:
            busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in os.sched_getaffinity(0)]
            for run in range(arguments.runs):
                still += stands_still([arguments.fovea, "eval", model, "--test", str(data), "-t", str(run % 2 + 1)],
                                      arguments.limit)
                if (run + 1) % 100 == 0:
                    print(f"{run + 1} runs, {time.monotonic() - began:.0f} s, {still} stood still", flush=True)
        finally:
            for process in busy:
                process.kill()
        return 1 if still else 0


if __name__ == "__main__":
    sys.exit(main())
