# SPDX-License-Identifier: Apache-2.0
"""Language models: what the command does, from Python, to the bit."""

import json
import os
import pathlib
import pickle
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import numpy as np
import support

import fovea

SIZES = {"layers": 1, "heads": 2, "width": 32, "block": 16, "batch_size": 4}
UPDATES = {"stop_after": "30u", "eval_every": "10u", "save_every": "10u"}


def flags(options):
    return [word for name, value in options.items() for word in ("--" + name.replace("_", "-"), str(value))]


class LanguageModelTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.temporary.name)
        cls.text = cls.folder / "text.txt"
        cls.text.write_text((support.ROOT / "docs/DESIGN.md").read_text(encoding="utf-8")[:30000])
        cls.updates = []
        cls.model = fovea.LanguageModel.train(cls.text, cls.folder / "model", on_update=cls.updates.append,
                                              **SIZES, **UPDATES)

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def command(self, *words):
        done = support.fovea(*words)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def weights_of(self, folder):
        return (self.folder / folder / "model.safetensors").read_bytes()

    def test_training_has_the_bits_of_the_command(self):
        self.command("train", "lm", "--train", self.text, "-o", self.folder / "same", *flags(SIZES | UPDATES))
        self.assertEqual(self.weights_of("model"), self.weights_of("same"))

    def test_updates_are_told(self):
        lines = (self.folder / "model/metrics.jsonl").read_text().splitlines()
        self.assertEqual(self.updates, [json.loads(line) for line in lines])
        self.assertEqual([u["step"] for u in self.updates if u["kind"] == "evaluation"], [10, 20, 30])

    def test_text_is_that_of_the_command(self):
        options = {"max_tokens": 40, "temperature": 0.9, "top_k": 5, "seed": 3}
        told = json.loads(self.command("generate", self.folder / "model", "The ", "--json", *flags(options)))
        self.assertEqual(self.model.generate("The ", **options), told["text"])
        pieces = list(self.model.stream("The ", **options))
        self.assertGreater(len(pieces), 5)
        self.assertEqual("".join(pieces), told["text"])

    def test_bfloat16_has_the_results_of_the_command(self):
        model = fovea.LanguageModel.load(self.folder / "model", precision="bf16")
        told = json.loads(self.command("eval", self.folder / "model", "--test", self.text, "--json", "--precision", "bf16"))
        self.assertEqual(model.evaluate(self.text)["loss"], told["loss"])
        ids = model.encode("The weights")
        rounded, exact = model.logits(ids), self.model.logits(ids)
        self.assertFalse(np.array_equal(rounded, exact))
        self.assertLess(np.abs(rounded - exact).max(), 0.05 * np.abs(exact).max())
        with self.assertRaisesRegex(fovea.UsageError, "precision: expected one of: float32, bf16; got .half."):
            fovea.LanguageModel.load(self.folder / "model", precision="half")

    def test_a_stream_may_be_left(self):
        before = threading.active_count()
        stream = self.model.stream("The ", max_tokens=1_000_000)
        next(stream)
        stream.close()
        self.assertEqual(threading.active_count(), before)

    def test_a_process_may_end_while_a_stream_is_open(self):
        run = support.python(f"""
import fovea
stream = fovea.LanguageModel.load({str(self.folder / "model")!r}).stream("The ", max_tokens=1_000_000)
print(len([next(stream) for _ in range(20)]))
""")
        self.assertEqual((run.returncode, run.stdout.strip()), (0, "20"), run.stderr)

    def test_evaluation_is_that_of_the_command(self):
        told = json.loads(self.command("eval", self.folder / "model", "--test", self.text, "--json"))
        self.assertEqual(self.model.evaluate(self.text), told)

    def test_repr(self):
        said = repr(fovea.LanguageModel.load(self.folder / "model", precision="bf16"))
        model = self.model.config["model"]
        self.assertRegex(said, r"^LanguageModel\(model='transformer', layers=\d+, ")
        self.assertIn(f"width={model['width']}, block={model['block']}", said)
        parameters = sum(array.size for array in self.model.weights().values())
        self.assertTrue(said.endswith(f"parameters={parameters}, precision='bf16')"), said)

    def test_tokens(self):
        text = "The weights 注意力\n"
        self.assertEqual(self.model.decode(self.model.encode(text)), text)

    def test_logits_say_what_comes_next(self):
        ids = self.model.encode("The weights")
        logits = self.model.logits(ids)
        self.assertEqual((logits.shape, logits.dtype), ((len(ids), self.model.config["model"]["vocabulary"]), np.float32))
        greedy = self.model.generate("The weights", max_tokens=1, greedy=True)
        self.assertEqual(self.model.decode([logits[-1].argmax()]), greedy)
        np.testing.assert_array_equal(self.model.logits(ids[:5], threads=1), logits[:5])

    def test_weights_are_those_of_the_file_and_cannot_be_written(self):
        weights = self.model.weights()
        stored = support.read_safetensors(self.folder / "model/model.safetensors")
        self.assertEqual(set(weights), set(stored))
        for name, array in weights.items():
            np.testing.assert_array_equal(array, stored[name])
            self.assertFalse(array.flags.writeable)

    def test_resuming_gives_the_same_bits(self):
        seen = []

        def stop(line):
            seen.append(line)
            raise RuntimeError("enough")
        with self.assertRaisesRegex(RuntimeError, "enough"):
            fovea.LanguageModel.train(self.text, self.folder / "stopped", on_update=stop, **SIZES,
                                      **UPDATES | {"stop_after": "300u"})
        self.assertTrue(list((self.folder / "stopped/checkpoints").iterdir()))
        fovea.LanguageModel.train(None, self.folder / "stopped", resume=True)
        fovea.LanguageModel.train(self.text, self.folder / "whole", **SIZES, **UPDATES | {"stop_after": "300u"})
        self.assertEqual(self.weights_of("stopped"), self.weights_of("whole"))

    def begin(self, name):
        """A Python that trains for long, once it has saved."""
        program = (f"import fovea; fovea.LanguageModel.train({str(self.text)!r}, {str(self.folder / name)!r}, "
                   f"**{SIZES | UPDATES | {'stop_after': '1000000u'}})")
        # A shell that starts the tests in the background has them ignore SIGINT.
        process = subprocess.Popen([sys.executable, "-c", program], stderr=subprocess.PIPE, text=True,
                                   preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler))
        until = time.monotonic() + 60
        while not list((self.folder / name).glob("checkpoints/step-*")) and time.monotonic() < until:
            time.sleep(0.05)
        return process

    def test_ctrl_c_saves_and_raises(self):
        process = self.begin("interrupted")
        process.send_signal(signal.SIGINT)
        said = process.communicate(timeout=60)[1]
        self.assertIn("KeyboardInterrupt", said)
        self.assertTrue(fovea.LanguageModel.load(self.folder / "interrupted").generate("a", max_tokens=1) is not None)

    def test_a_killed_process_leaves_no_training(self):
        process = self.begin("killed")
        process.kill()
        process.communicate()
        until = time.monotonic() + 60
        while time.monotonic() < until:
            try:
                fovea.LanguageModel.train(None, self.folder / "killed", resume=True, stop_after="10u")
            except fovea.Error as error:
                if "in use" not in str(error) and "another" not in str(error):
                    break
                time.sleep(0.1)
            else:
                break
        else:
            self.fail("the folder is still in use")

    def test_errors_have_the_codes_of_the_command(self):
        train = fovea.LanguageModel.train
        for kind, code, call in (
                (fovea.DataError, "E0301", lambda: train(self.folder / "none.txt", self.folder / "new")),
                (fovea.UsageError, "E0203", lambda: train(self.text, self.folder / "new", lr=-1)),
                (fovea.UsageError, "E0205", lambda: train(self.text, self.folder / "model")),
                (fovea.ModelError, "E0403", lambda: fovea.LanguageModel.load(self.folder / "none")),
                (fovea.UsageError, "E0203", lambda: self.model.generate("a", temperature=-1)),
                (fovea.DataError, "E0301", lambda: self.model.evaluate(self.folder / "none.txt")),
                (fovea.UsageError, "E0202", lambda: self.model.logits([0] * 17)),
                (fovea.UsageError, "E0202", lambda: self.model.logits([10**6])),
                (fovea.UsageError, "E0201", lambda: train(self.text, self.folder / "new", widht=32)),
                (fovea.UsageError, "E0201", lambda: self.model.generate("a", temprature=1))):
            with self.subTest(code=code), self.assertRaises(kind) as raised:
                call()
            self.assertEqual(raised.exception.code, code, raised.exception)
        self.assertFalse((self.folder / "new").exists())

    def test_what_is_of_another_kind(self):
        train, load, model = fovea.LanguageModel.train, fovea.LanguageModel.load, self.model
        new = self.folder / "new"
        for message, call in (
                ("prompt: expected a text; got int", lambda: model.generate(3)),
                ("prompt: character 1 is half of a surrogate pair", lambda: model.generate("a\ud800")),
                ("prompt: expected a text; got bytes", lambda: model.stream(b"a")),
                ("text: character 0 is half of a surrogate pair", lambda: model.encode("\ud800")),
                (r"ids\[1\] is 1099511627776", lambda: model.logits([1, 2**40])),
                (r"ids\[0\]: expected a whole number; got 1.5", lambda: model.decode([1.5])),
                ("ids: expected numbers of tokens; got str", lambda: model.decode("ab")),
                ("ids: expected numbers of tokens; got int", lambda: model.logits(3)),
                ("load: expected a path; got int", lambda: load(3)),
                (r"load: 'a\\x00b' has a null character", lambda: load("a\0b")),
                ("test: expected a path; got int", lambda: model.evaluate(3)),
                (r"train: 'a\\x00b' has a null character", lambda: train("a\0b", new)),
                ("output: expected a path; got int", lambda: train(self.text, 3)),
                ("(?s)resume: expected a path; got int.*give True", lambda: train(None, new, resume=3)),
                ("valid: expected a path; got int", lambda: train(self.text, new, valid=3)),
                (r"preset: 'a\\x00' has a null", lambda: train(self.text, new, preset="a\0")),
                (r"preset: '\\ud800' has", lambda: train(self.text, new, preset="\ud800")),
                ("on_update: expected a function; got int", lambda: train(self.text, new, on_update=3))):
            with self.subTest(message), self.assertRaisesRegex(fovea.UsageError, message):
                call()
        self.assertFalse(new.exists())
        self.assertEqual(model.decode(np.array(model.encode("The"))), "The")

    def test_hints_name_keywords(self):
        train = fovea.LanguageModel.train
        for hint, call in (
                ("^resume=True goes on.*overwrite=True", lambda: train(self.text, self.folder / "model")),
                ("name a file: train=FILE", lambda: train(None, self.folder / "new")),
                ("^preset: start from these settings", lambda: train(self.text, self.folder / "new", preset="x")),
                ("make width a multiple of heads, or .*head_dim",
                 lambda: train(self.text, self.folder / "new", heads=3)),
                ("^greedy takes the most likely token", lambda: self.model.generate("a", temperature=-1)),
                ("^top_p: .*a finite number", lambda: self.model.generate("a", top_p=2))):
            with self.assertRaises(fovea.Error) as raised:
                call()
            self.assertRegex(raised.exception.hint, hint)
            self.assertNotRegex(str(raised.exception), "--[a-z]")

    def test_a_damaged_model(self):
        damaged = self.folder / "damaged"
        damaged.mkdir()
        for file in (self.folder / "model").iterdir():
            if file.is_file():
                (damaged / file.name).write_bytes(file.read_bytes())
        weights = bytearray((damaged / "model.safetensors").read_bytes())
        weights[-1] ^= 1
        (damaged / "model.safetensors").write_bytes(weights)
        with self.assertRaises(fovea.ModelError) as raised:
            fovea.LanguageModel.load(damaged)
        self.assertEqual(raised.exception.code, "E0401")

    def test_it_is_not_pickled(self):
        with self.assertRaises(TypeError):
            pickle.dumps(self.model)

    def test_a_forked_process_generates(self):
        expected = self.model.generate("The ", max_tokens=20)
        child = os.fork()
        if child == 0:
            os._exit(0 if self.model.generate("The ", max_tokens=20) == expected else 1)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)


if __name__ == "__main__":
    unittest.main()
