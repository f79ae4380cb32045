# SPDX-License-Identifier: Apache-2.0
"""fovea report --eval: an evaluation belongs to the model that it was made of."""

import json
import unittest

from support import CommandTest

FAST = ("--stop-after", "4u", "--save-every", "4u", "--progress", "none")


class Evaluations(CommandTest):
    def setUp(self):
        super().setUp()
        self.model, self.other, self.test = self.folder / "model", self.folder / "other", self.folder / "test.json"
        self.train(self.model, *FAST)
        self.train(self.other, *FAST, "--seed", "2")

    def evaluate(self, folder):
        made = self.succeed("eval", folder, "--test", self.text, "--json").stdout
        self.test.write_bytes(made)
        return json.loads(made)

    def report(self, *folders):
        tests = [self.test] * len(folders)
        return self.run_fovea("report", *folders, "--eval", *tests, "-o", self.folder / "page.html", "--overwrite")

    def test_that_of_another_model_is_refused(self):
        self.evaluate(self.other)
        self.assert_error(self.report(self.model), 2, f"{self.test} is of another model than {self.model}")
        self.assert_error(self.report(self.other, self.model), 2, f"{self.test} is of another model than {self.model}")
        self.assertFalse((self.folder / "page.html").exists())
        self.assertEqual(self.report(self.other).returncode, 0)

    def test_that_of_a_checkpoint_belongs_to_its_run(self):
        self.train(self.model, "--progress", "none", "--resume", "--stop-after", "8u", "--save-every", "4u", "--lr", "1e-4")
        for step in (4, 8):
            self.evaluate(self.model / f"checkpoints/step-{step:06}")
            self.assertEqual(self.report(self.model).returncode, 0, step)
            self.assert_error(self.report(self.other), 2, "is of another model")
        self.evaluate(self.model)
        self.assertEqual(self.report(self.model).returncode, 0)

    def test_one_that_does_not_say_its_model_is_taken(self):
        found = self.evaluate(self.other)
        self.assertRegex(found.pop("model"), "^[0-9a-f]{32}$")
        self.test.write_text(json.dumps(found))
        self.assertEqual(self.report(self.model).returncode, 0)
        self.test.write_text(json.dumps({**found, "model": 7}))
        self.assert_error(self.report(self.model), 3, "not an evaluation")


if __name__ == "__main__":
    unittest.main()
