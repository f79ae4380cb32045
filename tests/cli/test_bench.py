# SPDX-License-Identifier: Apache-2.0
"""fovea bench: what it measures adds up."""

import unittest

from support import CommandTest


class Bench(CommandTest):
    def test_bench_step(self):
        said = self.last_object(self.succeed("bench", "step", "--preset", "tiny", "--layers", "3", "--batch-size", "2",
                                             "--vocabulary", "100",
                                             "--steps", "2", "--threads", "2", "--json"))
        self.assertEqual((said["tokens"], said["steps"]), (2 * 32, 2))
        parts = {(part["what"], *part["shape"]): part for part in said["parts"]}
        self.assertEqual(len(parts), len(said["parts"]))
        # fc1 and the gradient of fc2's input have one shape; each weight has a gradient.
        self.assertEqual(parts["product", 64, 256, 64]["calls"], 2 * 3)
        self.assertEqual(parts["product A^T B", 256, 64, 64]["calls"], 3)
        self.assertEqual(parts["attention backward", 64, 2, 32]["calls"], 3)
        self.assertEqual(parts["layer norm", 64, 64]["calls"], 2 * 3 + 1)
        total = sum(part["seconds"] for part in parts.values()) + said["waiting_seconds"] + said["other_seconds"]
        self.assertAlmostEqual(total, said["profiled_seconds"], places=9)
        self.assertAlmostEqual(parts["product", 64, 256, 64]["gflops"] * parts["product", 64, 256, 64]["seconds"],
                               2e-9 * 6 * 64 * 256 * 64, places=9)
        self.assertGreater(said["other_seconds"], 0)
        self.assertEqual(said["peak_gflops"], said["fma_gflops"])

    def test_bench_attention(self):
        for mask in ["all", "causal"]:
            said = self.last_object(self.succeed("bench", "attention", "--batch", "1", "--heads", "2",
                                                 "--length", "128", "--head-dim", "32", "--mask", mask,
                                                 "--threads", "1", "--json"))
            self.assertEqual(list(said), ["forward_seconds", "backward_seconds", "forward_gflops",
                                          "backward_gflops", "fma_gflops", "peak_gflops",
                                          "forward_share", "backward_share", "peak_memory_bytes"])
            self.assertGreater(said["forward_share"], 0)
            pairs = 128 * 128 if mask == "all" else 128 * 129 / 2
            self.assertAlmostEqual(said["forward_gflops"] * said["forward_seconds"],
                                   4e-9 * pairs * 2 * 32, places=9)
            self.assertEqual(said["peak_gflops"], said["fma_gflops"])

    def test_bench_attention_in_bfloat16(self):
        words = ["bench", "attention", "--batch", "1", "--heads", "1", "--length", "64", "--precision", "bf16"]
        said = self.last_object(self.succeed(*words, "--json"))
        self.assertGreater(said["peak_gflops"], 0)
        self.assertAlmostEqual(said["forward_gflops"] * said["forward_seconds"], 4e-9 * 64 * 64 * 64, places=9)
        self.assertIn(b"bf16", self.succeed(*words).stdout)
        done = self.run_fovea(*words[:-1], "fp8")
        self.assertEqual(done.returncode, 2)


if __name__ == "__main__":
    unittest.main()
