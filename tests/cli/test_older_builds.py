# SPDX-License-Identifier: Apache-2.0
"""Runs that older builds began go on."""

import json
import shutil
import unittest

import forged
from test_resume import ARGS, STEPS, ResumeTest


class OlderBuilds(ResumeTest):
    """Runs of builds that knew fewer fields of a model: what is missing has its default value."""

    NEWER = ["model", "encoder", "compat", "init"]

    def older(self, **changes):
        output = self.folder / "older"
        shutil.rmtree(output, ignore_errors=True)
        self.succeed(*self.arguments(output, "--schedule", "constant", "--stop-after", "24u"))
        checkpoint = output / "checkpoints" / "step-000024"
        model = json.loads((checkpoint / "config.json").read_bytes())["model"]
        for field in self.NEWER:
            del model[field]
        fingerprint = forged.xxh3_128((json.dumps(model, indent=2) + "\n").encode())
        model.update(changes)
        forged.forge_json(checkpoint, "config.json", lambda config: config.update(model=model))
        forged.forge_json(checkpoint, "state.json", lambda state: state["identity"].update(model=fingerprint))
        return output

    def test_are_resumed_with_the_same_bits(self):
        straight = self.folder / "straight"
        self.succeed(*self.arguments(straight, "--schedule", "constant"))
        output = self.older()
        self.succeed("train", "lm", "--resume", "-o", output, "--stop-after", "48u", "--save-every", "6u")
        self.succeed("train", "lm", "--resume", "-o", output, "--stop-after", f"{STEPS}u")
        expected, found = self.outcome(straight), self.outcome(output)
        for part in ["last", "weights", "optimizer", "metrics"]:
            self.assertTrue(expected[part] == found[part], part)

    def test_keep_their_model(self):
        output = self.older()
        done = self.run_fovea("train", "lm", "--resume", "-o", output, "--init", "source")
        self.assert_error(done, 2, "cannot resume", "--init", "gpt2", "source")

    def test_a_configuration_without_its_fingerprint_is_refused(self):
        done = self.run_fovea("train", "lm", "--resume", "-o", self.older(softcap=5.0), "--stop-after", "60u")
        self.assert_error(done, 2, "cannot resume", "model configuration")


class FirstRevision(ResumeTest):
    """Where config.json has no revision, position shaw are the keys alone, and gates start as others."""

    more = ("--model", "encoder", "--encoder", "attention:position=shaw-keys,lstm", "--forget-bias", "0")
    OLD = "attention:position=shaw,lstm"

    def arguments(self, output, *args):
        transformers = ARGS.index("--layers"), ARGS.index("--heads") + 2
        return ["train", "lm", "--train", self.text, "-o", output, *ARGS[:transformers[0]], *ARGS[transformers[1]:],
                *self.more, "--heads", "2", "--stop-after", f"{STEPS}u", *args]

    def forge(self, folder):
        model = json.loads((folder / "config.json").read_bytes())["model"]
        self.assertEqual(model.pop("revision"), "3")
        self.assertEqual(model.pop("forget_bias"), 0)
        model["encoder"] = self.OLD
        forged.forge_json(folder, "config.json", lambda config: config.update(model=model))
        return forged.xxh3_128((json.dumps(model, indent=2) + "\n").encode())

    def test_goes_on_with_the_same_bits(self):
        whole, older = self.folder / "whole", self.folder / "older"
        self.succeed(*self.arguments(whole, "--schedule", "constant"))
        self.succeed(*self.arguments(older, "--schedule", "constant", "--stop-after", "24u"))
        checkpoint = older / "checkpoints" / "step-000024"
        fingerprint = self.forge(checkpoint)
        forged.forge_json(checkpoint, "state.json", lambda state: state["identity"].update(model=fingerprint))
        self.succeed("train", "lm", "--resume", "-o", older, "--stop-after", f"{STEPS}u")
        expected, found = self.outcome(whole), self.outcome(older)
        for part in ["last", "weights", "optimizer"]:
            self.assertTrue(expected[part] == found[part], part)

    def test_says_the_same(self):
        folder = self.folder / "model"
        self.succeed(*self.arguments(folder, "--stop-after", "12u"))
        say = ["generate", folder, "the cat", "--max-tokens", "20", "--seed", "3"]
        said = self.succeed(*say).stdout
        self.forge(folder)
        self.assertEqual(self.succeed(*say).stdout, said)

    def test_new_runs_learn_both_tables(self):
        folder = self.folder / "both"
        self.succeed("train", "lm", "--train", self.text, "-o", folder, *ARGS, "--position", "shaw", "--stop-after", "6u")
        header = (folder / "model.safetensors").read_bytes()[:20000]
        self.assertIn(b"blocks.0.attention.shaw_k", header)
        self.assertIn(b"blocks.1.attention.shaw_v", header)


if __name__ == "__main__":
    unittest.main()
