# SPDX-License-Identifier: Apache-2.0
"""Calls of fovea.torch run on the threads that PyTorch has, where it works by OpenMP."""

import os
import signal
import threading
import unittest

import numpy as np
import support

try:
    import torch
except ImportError as error:
    raise unittest.SkipTest("PyTorch is not installed: fovea.torch is not tested") from error

import fovea
import fovea.torch

ours = fovea.torch.scaled_dot_product_attention

# In a process of its own: how many threads it has after operations of torch, and after calls of ours.
COUNTS = """
import os, torch, fovea, fovea.torch
def count():
    return len(os.listdir("/proc/self/task"))
torch.set_num_threads(3)
x = torch.randn(1000, 1000)
y = x.exp()
q = torch.randn(1, 4, 300, 32)
of_torch = count()
results = [fovea.torch.scaled_dot_product_attention(q, q, q)]
of_both = count()
fovea.set_threads(4)
results.append(fovea.torch.scaled_dot_product_attention(q, q, q))
assert torch.equal(*results)
print(of_torch, of_both, count())
"""

# A child whose parent has used the threads of torch, and that is the first to import fovea.torch.
FORK = """
import os, signal, torch
torch.set_num_threads(2)
q = torch.empty(2, 4, 256, 32).normal_()
torch.randn(4000000).exp()
child = os.fork()
if child == 0:
    signal.alarm(60)
    import fovea.torch
    fovea.torch.scaled_dot_product_attention(q, q, q)
    os._exit(0)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""

TRACED = """
import torch, fovea.torch
torch.set_num_threads(2)
q = torch.randn(1, 2, 700, 32)
print(fovea.torch.flex_attention(q, q, q, lambda s, b, h, i, j: torch.where(i >= j, s - 0.1 * (i - j), -torch.inf)).sum())
"""


@unittest.skipUnless(torch.backends.openmp.is_available(), "this PyTorch has no OpenMP")
class OpenMpTest(unittest.TestCase):
    def setUp(self):
        self.threads = torch.get_num_threads()
        torch.set_num_threads(2)

    def tearDown(self):
        torch.set_num_threads(self.threads)
        fovea.set_threads(0)

    def test_no_thread_is_started_beside_those_of_torch(self):
        run = support.python(COUNTS)
        self.assertEqual(run.returncode, 0, run.stderr)
        of_torch, of_both, of_four = map(int, run.stdout.split())
        self.assertGreaterEqual(of_torch, 3)
        self.assertEqual(of_both, of_torch)
        self.assertGreaterEqual(of_four, of_both + 3, "of another number are threads of our own")

    def test_a_child_that_imports_first_computes(self):
        run = support.python(FORK)
        self.assertEqual(run.stdout.strip(), "0", run.stderr)

    def test_threads_with_little_memory_are_left_alone(self):
        for size in ("16k", "64 K", "20000b", "100"):
            run = support.python(TRACED, OMP_STACKSIZE=size)
            self.assertEqual(run.returncode, 0, run.stderr)

    def test_an_error_reaches_the_caller(self):
        q, table = torch.randn(1, 4, 300, 32), torch.zeros(200)
        with self.assertRaisesRegex(fovea.UsageError, "200"):
            fovea.torch.flex_attention(q, q, q, lambda score, b, h, i, j: score + table[j])

    def test_threads_of_python_call_at_once(self):
        q = torch.randn(1, 4, 300, 32)
        expected, results = ours(q, q, q), [None] * 4

        def call(n):
            results[n] = ours(q, q, q)

        callers = [threading.Thread(target=call, args=(n,)) for n in range(len(results))]
        for caller in callers:
            caller.start()
        for caller in callers:
            caller.join()
        self.assertTrue(all(torch.equal(expected, result) for result in results))

    def test_a_forked_process_computes(self):
        q = torch.randn(1, 4, 300, 32)
        expected = ours(q, q, q).numpy()
        child = os.fork()
        if child == 0:
            signal.alarm(60)
            # By numpy: in a child, operations of torch on that many numbers would wait forever.
            os._exit(0 if np.array_equal(ours(q, q, q).numpy(), expected) else 1)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)


if __name__ == "__main__":
    unittest.main()
