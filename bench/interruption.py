#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How soon Ctrl-C ends one long call of the operator in Python: milliseconds from the signal to KeyboardInterrupt.

  build/python/tested/bin/python bench/interruption.py [--rounds 20] [--threads 2]

The interpreter has fovea (`make test-python` installs it there). Each call would take many seconds.
"""
import argparse
import os
import signal
import statistics
import threading
import time

import numpy as np

import fovea

LENGTH = 40000


def latency(call):
    """Seconds from the signal to the exception."""
    sent = []

    def send():
        time.sleep(0.3)
        sent.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)
    thread = threading.Thread(target=send)
    thread.start()
    try:
        call()
    except KeyboardInterrupt:
        heard = time.monotonic()
    else:
        raise SystemExit("the call ended before the signal")
    finally:
        thread.join()
    return heard - sent[0]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    random = np.random.default_rng(0)
    q, k, v = (random.standard_normal((1, LENGTH, 8, 64), dtype=np.float32) for _ in range(3))
    whole = fovea.attend(q[:, :4096], k, v, threads=options.threads)
    calls = {
        "forward": lambda: fovea.attention(q, k, v, threads=options.threads),
        "forward, causal": lambda: fovea.attention(q, k, v, causal=True, threads=options.threads),
        "backward": lambda: whole.backward(np.ones_like(whole.o)),
    }
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for name, call in calls.items():
        times = [1e3 * latency(call) for _ in range(options.rounds)]
        print(f"{name:16} median {statistics.median(times):.0f} ms, the largest of {options.rounds} {max(times):.0f} ms")


if __name__ == "__main__":
    main()
