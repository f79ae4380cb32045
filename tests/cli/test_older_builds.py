# SPDX-License-Identifier: Apache-2.0
"""Runs that older builds began go on."""

import json
import shutil
import unittest

import forged
from test_resume import STEPS, ResumeTest


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


if __name__ == "__main__":
    unittest.main()
