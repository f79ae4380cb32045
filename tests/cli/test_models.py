# SPDX-License-Identifier: Apache-2.0
"""Models that are no Transformer: training, resuming, evaluation, generation, and options that do not fit."""

import shutil
import signal
import time

import forged
from support import SMALL, CommandTest, words

TINY = SMALL[2:]  # the layers are those of each model

QUICK = ["--eval-every", "20u", "--save-every", "20u", "--lr", "1e-2"]
MODELS = {
    "rnn": ["--model", "rnn", "--layers", "2"],
    "gru": ["--model", "gru"],
    "lstm": ["--model", "lstm", "--no-tie", "--bias"],
    "sru": ["--model", "sru"],
    "attention-rnn": ["--model", "attention-rnn", "--heads", "2", "--window", "5"],
    "defects": ["--model", "attention-rnn", "--compat"],
    "mixed": ["--model", "encoder", "--encoder", "conv3,attention:window=8,gru:residual"],
    "side-by-side": ["--model", "encoder", "--encoder", "conv3:gated+lstm+attention:position=alibi,transformer"],
}


class Models(CommandTest):
    def train(self, output, *args, **options):
        return self.succeed("train", "lm", "--train", self.text, "-o", output, *TINY, *args, **options)

    def weights(self, folder):
        return (folder / "model.safetensors").read_bytes()

    def test_every_model_trains_generates_and_is_read(self):
        for name, options in MODELS.items():
            with self.subTest(name):
                model = self.folder / name
                result = self.last_object(self.train(model, *options, *QUICK, "--stop-after", "90u", "--json"))
                self.assertLess(result["valid_loss"], 3.0)  # 279 tokens: 5.6 untrained
                score = self.last_object(self.succeed("eval", model, "--test", self.text, "--json"))
                self.assertLess(score["loss"], 3.0)
                self.succeed("inspect", model, "--verify")
                said = self.succeed("generate", model, "the ", "--max-tokens", "60").stdout.decode()
                self.assertGreaterEqual(len(said), 60)  # beyond the block of 16

    def test_threads_do_not_change_the_weights(self):
        for name, options in MODELS.items():
            with self.subTest(name):
                for threads in (1, 3):
                    self.train(self.folder / f"{name}-{threads}", *options, *QUICK, "--data", "lines",
                               "--stop-after", "40u", "--threads", threads)
                self.assertEqual(self.weights(self.folder / f"{name}-1"), self.weights(self.folder / f"{name}-3"))

    def test_a_run_that_was_stopped_ends_with_the_same_bits(self):
        for name in ("lstm", "attention-rnn", "mixed"):
            with self.subTest(name):
                whole, parts = self.folder / f"{name}-whole", self.folder / f"{name}-parts"
                arguments = [*MODELS[name], *QUICK, "--stop-after", "400u"]
                self.train(whole, *arguments)
                for _ in range(3):
                    began = (parts / "checkpoints").is_dir()
                    run = ["--resume", "-o", parts] if began else ["--train", self.text, "-o", parts, *TINY, *arguments]
                    process = self.start("train", "lm", *run)
                    time.sleep(0.4)
                    process.send_signal(signal.SIGTERM)
                    process.communicate()
                self.succeed("train", "lm", "--resume", "-o", parts)
                self.assertEqual(self.weights(whole), self.weights(parts))

    def test_an_encoder_that_does_not_parse_says_where(self):
        def refused(text, *needles, status=2):
            done = self.run_fovea("train", "lm", "--train", self.text, "--model", "encoder", "--encoder", text, "-o",
                                  self.folder / "no")
            self.assert_error(done, status, *needles)
            self.assertFalse((self.folder / "no").exists())
        refused("conv3,lstn", "at character 7 of 'conv3,lstn'", "there is no layer 'lstn'")
        refused("attention:haeds=8", "at character 11", "attention has no setting 'haeds'")
        refused("bilstm", "must not see the tokens that it predicts")
        refused("attention:heads=5", "128 columns are not divisible by 5 heads")
        refused("lstm:99", "--tie")
        refused("conv3,,gru", "a layer is missing")
        refused("conv3:dilation=32", "it sees further back than --block (64)")
        refused("conv3:gated:activation=silu", "exclude each other")
        refused("attention:heads=128:position=rotary", "--head-dim")
        refused("狐狸", "there is no layer")

    def test_options_of_another_model_are_refused(self):
        base = ["train", "lm", "--train", self.text, "-o", self.folder / "no"]
        self.assert_error(self.run_fovea(*base, "--encoder", "lstm"), 2, "--encoder belongs to --model encoder")
        self.assert_error(self.run_fovea(*base, "--model", "encoder"), 2, "no layers are given")
        self.assert_error(self.run_fovea(*base, "--model", "lstm", "--compat"), 2, "has no known defect")
        self.assert_error(self.run_fovea(*base, "--model", "attention-rnn", "--compat=sum"), 2, "--compat")
        self.assert_error(self.run_fovea(*base, "--model", "rmm"), 2, "rmm")
        self.assert_error(self.run_fovea(*base, "--model", "attention-rnn", "--layers", "2"), 2, "--layers has no effect")
        mixed = [*base, "--model", "encoder", "--encoder", "attention"]
        self.assert_error(self.run_fovea(*mixed, "--window", "8"), 2, "--window has no effect")
        self.assert_error(self.run_fovea(*base, "--norm", "rms", "--compat=ln-unbiased"), 2, "--compat")

    def test_a_folder_of_another_model_is_not_resumed(self):
        model = self.folder / "model"
        self.train(model, "--model", "gru", *QUICK, "--stop-after", "20u")
        done = self.run_fovea("train", "lm", "--resume", "-o", model, "--model", "lstm")
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn(b"--model", done.stderr)

    def test_a_model_whose_encoder_was_changed_is_damaged(self):
        model = self.folder / "model"
        self.train(model, *MODELS["mixed"], *QUICK, "--stop-after", "20u")
        for encoder in ("conv3", "lstm:layers=60000", "attention:heads=2000000000", "nothing", "lstm:2000000000",
                        "conv3:dilation=2000000000", "ff," * 40000 + "ff", "transformer:layers=65000"):
            with self.subTest(encoder[:40]):
                copy = self.folder / "forged"
                shutil.copytree(model, copy)
                forged.forge_json(copy, "config.json", lambda config: config["model"].update(encoder=encoder))
                self.assert_error(self.run_fovea("generate", copy, "the", timeout=20), 4, "config.json")
                shutil.rmtree(copy)

    def test_one_token_is_a_prompt_and_a_line(self):
        text = self.folder / "short.txt"
        text.write_text("a\n\nb\n" + words(lines=50))
        model = self.folder / "model"
        self.succeed("train", "lm", "--train", text, "-o", model, *TINY, *MODELS["lstm"], *QUICK, "--data", "lines",
                     "--stop-after", "20u")
        self.succeed("generate", model, "", "--max-tokens", "5")
