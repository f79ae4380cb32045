# SPDX-License-Identifier: Apache-2.0
"""--optimizer: each learns, keeps its state and no more, and goes on with the same bits."""

import json
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from support import SMALL, CommandTest  # noqa: E402

# A learning rate of each.
OPTIMIZERS = {"adamw": "3e-3", "adamw8": "3e-3", "lion": "1e-3",
              "muon": "3e-3"}


def state_of(run, step):
    """The tensors of a checkpoint's optimizer: their types and shapes by name."""
    text = (run / f"checkpoints/step-{step:06}/optimizer.safetensors").read_bytes()
    header = json.loads(text[8:8 + int.from_bytes(text[:8], "little")])
    return {name: (one["dtype"], tuple(one["shape"])) for name, one in header.items() if name != "__metadata__"}


def files_of(run, step):
    folder = run / f"checkpoints/step-{step:06}"
    return [(folder / name).read_bytes() for name in ("model.safetensors", "optimizer.safetensors")]


class Optimizers(CommandTest):
    def run_of(self, name, optimizer, *args):
        output = self.folder / name
        self.train(output, "--optimizer", optimizer, "--lr", OPTIMIZERS[optimizer], "--save-every", "10u",
                   "--schedule", "constant", *args)
        return output

    def test_each_learns(self):
        for optimizer in OPTIMIZERS:
            with self.subTest(optimizer):
                done = self.succeed("train", "lm", "--train", self.text, "-o", self.folder / optimizer, *SMALL,
                                    "--optimizer", optimizer, "--lr", OPTIMIZERS[optimizer], "--stop-after", "300u",
                                    "--eval-every", "100u", "--json", "--no-tie")
                self.assertLess(self.last_object(done)["valid_loss"], 1.8)
                settings = json.loads((self.folder / optimizer / "config.json").read_text())
                self.assertEqual(settings["recipe"]["optimizer"], optimizer)

    def test_a_run_that_goes_on_and_other_threads_give_the_same_bits(self):
        for optimizer in OPTIMIZERS:
            with self.subTest(optimizer):
                more = ["--no-tie", "--dropout", "0.1"]  # a table that is read by rows
                straight = self.run_of(f"{optimizer}-straight", optimizer, "--stop-after", "20u", *more)
                parts = self.run_of(f"{optimizer}-parts", optimizer, "--stop-after", "10u", *more)
                self.succeed("train", "lm", "--resume", "-o", parts, "--stop-after", "20u", "--threads", "1")
                self.assertEqual(files_of(parts, 20), files_of(straight, 20))

    def test_a_checkpoint_holds_the_state_of_its_optimizer(self):
        for optimizer in OPTIMIZERS:
            with self.subTest(optimizer):
                state = state_of(self.run_of(optimizer, optimizer, "--stop-after", "10u"), 10)
                state.pop("trainer/recent_losses")
                of_layer = {name.removeprefix("blocks.0.feed_forward.in.weight."): kind for name, kind in state.items()
                            if name.startswith("blocks.0.feed_forward.in.weight.")}
                self.assertEqual(of_layer, self.expected_state(optimizer))

    def expected_state(self, optimizer):
        """Of a matrix [128, 32] of a layer."""
        floats = ("F32", (128, 32))
        codes, scales = ("U8", (128, 32)), ("F32", (16,))
        return {"adamw": {"m": floats, "v": floats},
                "adamw8": {"m": codes, "m.scale": scales, "v": codes, "v.scale": scales},
                "lion": {"m": floats}, "muon": {"m": floats}}[optimizer]

    def test_a_run_keeps_its_optimizer(self):
        run = self.run_of("run", "lion", "--stop-after", "10u")
        done = self.run_fovea("train", "lm", "--resume", "-o", run, "--stop-after", "20u", "--optimizer", "adamw")
        self.assertNotEqual(done.returncode, 0)
        self.assert_error(done, done.returncode, "optimizer", "lion", "adamw")
        self.succeed("train", "lm", "--resume", "-o", run, "--stop-after", "12u", "--optimizer", "lion")

    def test_other_tasks_have_it(self):
        tagged = self.folder / "words.conll"
        tagged.write_text("".join(f"{word} {'N' if word < 'm' else 'V'}\n" + "\n" * (n % 5 == 4)
                                  for n, word in enumerate(self.text.read_text().split()[:400])))
        labelled = self.folder / "texts.tsv"
        labelled.write_text("".join(f"{'cat' if 'cat' in line else 'other'}\t{line}\n"
                                    for line in self.text.read_text().splitlines()))
        for optimizer in OPTIMIZERS:
            for task, data, more in [("tag", tagged, []), ("classify", labelled, ["--model", "encoder", "--encoder", "lstm"])]:
                with self.subTest(optimizer=optimizer, task=task):
                    self.succeed("train", task, "--train", data, "-o", self.folder / f"{task}-{optimizer}", "--optimizer",
                                 optimizer, "--stop-after", "3u", *more)


if __name__ == "__main__":
    unittest.main()
