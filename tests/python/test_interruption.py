# SPDX-License-Identifier: Apache-2.0
"""Signals during one long call: Ctrl-C ends it soon, and the next call works."""

import contextlib
import os
import signal
import threading
import time
import unittest

import numpy as np
import support

import fovea

try:
    import torch

    import fovea.torch
except ImportError:
    torch = None

SECONDS_BEFORE = 0.3
# Measured: .005 to .05 s. A busy machine may take longer, and every call here takes many seconds.
MOST_SECONDS = 1.0


def signal_soon():
    """Sends SIGINT to this process when a call runs. Returns when it did, in a list."""
    sent = []

    def send():
        time.sleep(SECONDS_BEFORE)
        sent.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)
    thread = threading.Thread(target=send)
    thread.start()
    return thread, sent


@contextlib.contextmanager
def handled(number, handler):
    before = signal.signal(number, handler)
    try:
        yield
    finally:
        signal.signal(number, before)


def operands(T, H=8, S=None):
    random = np.random.default_rng(0)
    return [random.standard_normal((1, length, H, 64), dtype=np.float32) for length in (T, S or T, S or T)]


class InterruptionTest(unittest.TestCase):
    def assert_interruptible(self, call):
        thread, sent = signal_soon()
        with handled(signal.SIGINT, signal.default_int_handler):
            with self.assertRaises(KeyboardInterrupt):
                call()
            late = time.monotonic() - sent[0] if sent else 0
            thread.join()
        self.assertTrue(sent, "it ended before the signal")
        self.assertLess(late, MOST_SECONDS)
        self.assert_works()

    def assert_works(self):
        q, k, v = support.Problem().qkv
        attended = fovea.attend(q, k, v, causal=True)
        again = fovea.attend(q, k, v, causal=True, threads=1)
        self.assertTrue(np.array_equal(attended.o, again.o))
        attended.backward(np.ones_like(attended.o))

    def test_a_forward(self):
        for threads in (1, 2):
            with self.subTest(threads=threads):
                q, k, v = operands(50000)
                self.assert_interruptible(lambda: fovea.attention(q, k, v, threads=threads))

    def test_the_definition(self):
        q, k, v = operands(4000)
        self.assert_interruptible(lambda: fovea.attention(q, k, v, reference=True))

    def test_a_backward(self):
        q, k, v = operands(8192, H=6)
        attended = fovea.attend(q, k, v, threads=1)
        do = np.ones_like(attended.o)
        self.assert_interruptible(lambda: attended.backward(do))

    def test_traced_functions(self):
        q, k, v = operands(30000)
        self.assert_interruptible(lambda: fovea.attention(q, k, v, threads=2,
                                                         score_mod=lambda s, b, h, i, j: np.tanh(s)))

    def test_memory_does_not_grow(self):
        import resource

        q, k, v = operands(30000)
        self.assert_interruptible(lambda: fovea.attention(q, k, v, threads=2))
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for _ in range(3):
            self.assert_interruptible(lambda: fovea.attention(q, k, v, threads=2))
        self.assertLess(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before, q.nbytes / 1024)

    def test_a_handler_that_returns_changes_nothing(self):
        calls = []
        q, k, v = operands(6000)
        expected = fovea.attention(q, k, v, threads=1)
        with handled(signal.SIGALRM, lambda *_: calls.append(time.monotonic())):
            signal.setitimer(signal.ITIMER_REAL, 0.05, 0.05)
            try:
                got = fovea.attention(q, k, v, threads=1)
                ended = time.monotonic()
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
        self.assertGreater(sum(one < ended for one in calls), 1)
        self.assertTrue(np.array_equal(got, expected))

    def test_a_call_of_another_thread_is_left_alone(self):
        q, k, v = operands(6000)
        results = []
        thread = threading.Thread(target=lambda: results.append(fovea.attention(q, k, v, threads=1)))
        sender, _ = signal_soon()
        with handled(signal.SIGINT, signal.default_int_handler):
            thread.start()
            with self.assertRaises(KeyboardInterrupt):
                time.sleep(60)
            thread.join()
            sender.join()
        self.assertEqual(results[0].shape, q.shape)

    @unittest.skipIf(torch is None, "PyTorch is not installed")
    def test_torch(self):
        threads = torch.get_num_threads()
        torch.set_num_threads(1)
        self.addCleanup(torch.set_num_threads, threads)
        q, k, v = (torch.from_numpy(x).transpose(1, 2).requires_grad_() for x in operands(20000))
        few = q[:, :, :2000]
        self.assert_interruptible(lambda: fovea.torch.scaled_dot_product_attention(q, k, v))
        self.assert_interruptible(lambda: fovea.torch.flex_attention(q, k, v))
        o = fovea.torch.scaled_dot_product_attention(few, k, v)
        self.assert_interruptible(lambda: o.sum().backward())


if __name__ == "__main__":
    unittest.main()
