# SPDX-License-Identifier: Apache-2.0
"""fovea bench: what it measures adds up."""

import unittest

from support import CONVERSION, CommandTest, has_products


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
        self.assertEqual((said["threads"], said["precision"]), (2, "float32"))

    def test_compat_takes_a_list_or_none(self):
        options = ["bench", "step", "--preset", "tiny", "--steps", "1", "--threads", "1"]
        self.succeed(*options, "--compat")
        self.succeed(*options, "--compat=ln-unbiased")
        self.assert_error(self.run_fovea(*options, "--compat=sum-weight"), 2, "sum-weight")

    def test_bench_step_in_bfloat16(self):
        options = ["bench", "step", "--preset", "tiny", "--steps", "2", "--precision", "bf16", "--threads", "1"]
        said = self.last_object(self.succeed(*options, "--json"))
        self.assertEqual(said["precision"], "bf16")
        self.check_peaks(said)
        self.assertAlmostEqual(said["share"] * said["peak_gflops"], said["gflops"], places=6)
        self.assertIn(b"bf16", self.succeed(*options).stdout)

    def check_peaks(self, said):
        """bfloat16 has a peak of its own where products of it are fast: measured by itself, so no two are equal."""
        self.assertEqual(said["peak_gflops"] != said["fma_gflops"], has_products())

    def test_bench_attention(self):
        for mask in ["all", "causal"]:
            said = self.last_object(self.succeed("bench", "attention", "--batch", "1", "--heads", "2",
                                                 "--length", "128", "--head-dim", "32", "--mask", mask,
                                                 "--threads", "1", "--json"))
            self.assertEqual(list(said), ["forward_seconds", "backward_seconds", "forward_gflops",
                                          "backward_gflops", "fma_gflops", "peak_gflops",
                                          "forward_share", "backward_share", "peak_memory_bytes",
                                          "processor", "isa", "threads", "batch", "heads", "length", "head_dim",
                                          "mask", "precision"])
            self.assertEqual((said["threads"], said["length"], said["mask"], said["precision"]),
                             (1, 128, mask, "float32"))
            self.assertGreater(said["forward_share"], 0)
            pairs = 128 * 128 if mask == "all" else 128 * 129 / 2
            self.assertAlmostEqual(said["forward_gflops"] * said["forward_seconds"],
                                   4e-9 * pairs * 2 * 32, places=9)
            self.assertEqual(said["peak_gflops"], said["fma_gflops"])

    def test_bench_attention_in_bfloat16(self):
        words = ["bench", "attention", "--batch", "1", "--heads", "1", "--length", "64", "--precision", "bf16"]
        done = self.succeed(*words, "--json")
        said = self.last_object(done)
        self.check_peaks(said)
        self.assertEqual(done.stderr.decode().count(CONVERSION), 0 if has_products() else 1)
        done = self.succeed(*words, "--json", env={"FOVEA_ISA": "scalar"})
        self.assertEqual(self.last_object(done)["isa"], "scalar")
        self.assertEqual(done.stderr.decode().count(CONVERSION), 1)
        self.assertAlmostEqual(said["forward_gflops"] * said["forward_seconds"], 4e-9 * 64 * 64 * 64, places=9)
        self.assertIn(b"bf16", self.succeed(*words).stdout)
        done = self.run_fovea(*words[:-1], "fp8")
        self.assertEqual(done.returncode, 2)


if __name__ == "__main__":
    unittest.main()
