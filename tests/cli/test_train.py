# SPDX-License-Identifier: Apache-2.0
"""The journey of a user: train, look, evaluate, generate."""

import json
import math
import re
import unittest
import xml.etree.ElementTree

from support import FOVEA, SMALL, CommandTest

RESULT_FIELDS = ["train_loss", "valid_loss", "best_valid_loss", "steps", "tokens",
                 "tokens_per_second", "seconds", "parameters", "peak_memory_bytes"]


def values_of(safetensors):
    """All tensors as bytes, without the header, which names the settings of the run by a checksum."""
    text = safetensors.read_bytes()
    return text[8 + int.from_bytes(text[:8], "little"):]


def positions_of(test):
    """The values of --position, as help lists them."""
    said = test.succeed("train", "lm", "--help").stdout.decode()
    return re.search(r"--position (\S+)", said)[1].split("|")


class Train(CommandTest):
    def setUp(self):
        super().setUp()
        self.model = self.folder / "model"

    def test_result_is_one_object_on_stdout(self):
        done = self.train(self.model, "--stop-after", "60u", "--eval-every", "20u", "--json")
        self.assertEqual(len(done.stdout.splitlines()), 1)
        result = self.last_object(done)
        self.assertEqual(list(result), RESULT_FIELDS)
        self.assertEqual(result["steps"], 60)
        self.assertEqual(result["tokens"], 60 * 4 * 16)
        # It has learned something: all tokens alike would be ln 280 = 5.6.
        self.assertLess(result["train_loss"], 4.5)
        self.assertLess(result["best_valid_loss"], 4.5)
        self.assertGreater(result["parameters"], 10000)
        self.assertGreater(result["peak_memory_bytes"], 1 << 20)
        self.assertGreater(result["tokens_per_second"], 0)

    def test_without_validation(self):
        done = self.train(self.model, "--stop-after", "10u", "--valid-fraction", "0", "--json")
        result = self.last_object(done)
        self.assertIsNone(result["valid_loss"])
        self.assertIsNone(result["best_valid_loss"])
        self.succeed("generate", self.model, "the", "--max-tokens", "5")

    def test_output_for_machines_has_no_control_characters(self):
        done = self.train(self.model, "--stop-after", "30u", "--eval-every", "10u")
        for stream in (done.stdout, done.stderr):
            self.assertNotIn(b"\r", stream)
            self.assertNotIn(b"\x1b", stream)

    def test_folder_holds_model_metrics_and_curve(self):
        self.train(self.model, "--stop-after", "40u", "--eval-every", "20u", "--log-every", "5")
        self.assertEqual({p.name for p in self.model.iterdir()},
                         {"MANIFEST.json", "config.json", "tokenizer.txt", "model.safetensors",
                          "metrics.jsonl", "starts.jsonl", "loss.svg", "checkpoints"})
        records = [json.loads(line) for line in (self.model / "metrics.jsonl").read_text().splitlines()]
        updates = [r for r in records if r["kind"] == "update"]
        evaluations = [r for r in records if r["kind"] == "evaluation"]
        self.assertEqual([r["step"] for r in updates], list(range(5, 41, 5)))
        self.assertEqual([r["step"] for r in evaluations], [20, 40])
        for key in ["loss", "mean16_loss", "running_loss", "lr", "gradient_norm", "seconds_left"]:
            self.assertIn(key, updates[0])
        xml.etree.ElementTree.parse(self.model / "loss.svg")
        config = json.loads((self.model / "config.json").read_text())
        self.assertEqual(config["kind"], "language_model")
        self.assertEqual(config["model"]["layers"], 2)

    def test_observing_heads_changes_nothing_else(self):
        plain = self.folder / "plain"
        args = ["--stop-after", "12u", "--eval-every", "6u", "--save-every", "6u", "--dropout", "0.1", "--accumulate", "2"]
        self.train(plain, *args)
        self.train(self.model, *args, "--observe-every", "3")
        for name in ["model.safetensors", "checkpoints/step-000012/optimizer.safetensors"]:
            self.assertEqual(values_of(self.model / name), values_of(plain / name))
        records = [json.loads(line) for line in (self.model / "metrics.jsonl").read_text().splitlines()]
        seen = [r for r in records if r["kind"] == "attention"]
        self.assertEqual([r["step"] for r in seen], [3, 6, 9, 12])
        self.assertEqual(list(seen[0]), ["kind", "step", "entropy", "max_logit", "distance"])
        for key in ["entropy", "max_logit", "distance"]:
            self.assertEqual([len(heads) for heads in seen[0][key]], [2, 2])
        # A young model spreads its weights over the 16 tokens of a block.
        self.assertAlmostEqual(seen[0]["entropy"][0][0], sum(map(math.log, range(1, 17))) / 16, delta=0.2)
        self.assertAlmostEqual(seen[0]["distance"][0][0], 3.75, delta=0.5)
        page = (self.model / "loss.svg").read_text()
        xml.etree.ElementTree.fromstring(page)
        self.assertIn("layer 2, head 1", page)
        # A resumed run goes on with the same lines.
        resumed = self.folder / "resumed"
        self.train(resumed, *args, "--observe-every", "3", "--stop-after", "6u", "--schedule", "constant")
        self.train(resumed, *args, "--observe-every", "3", "--schedule", "constant", "--resume")
        steps = [r["step"] for r in map(json.loads, (resumed / "metrics.jsonl").read_text().splitlines())
                 if r["kind"] == "attention"]
        self.assertEqual(steps, [3, 6, 9, 12])
        done = self.run_fovea("train", "lm", "--train", self.text, "-o", self.folder / "x", "--observe-every", "-1")
        self.assert_error(done, 2, "--observe-every")

    def test_recomputing_changes_no_bit(self):
        args = ["--stop-after", "8u", "--eval-every", "4u", "--save-every", "4u", "--dropout", "0.1", "--accumulate", "2",
                "--observe-every", "2", "--schedule", "constant"]
        plain, resumed = self.folder / "plain", self.folder / "resumed"
        self.train(plain, *args)
        self.train(self.model, *args, "--recompute")
        # A run that is resumed may change its mind, and nobody need be told.
        self.train(resumed, *args, "--recompute", "--stop-after", "4u")
        done = self.train(resumed, *args, "--no-recompute", "--resume")
        self.assertNotIn(b"recompute", done.stderr)
        for other in [self.model, resumed]:
            for name in ["model.safetensors", "checkpoints/step-000008/optimizer.safetensors"]:
                self.assertEqual(values_of(other / name), values_of(plain / name))
            seen = [[r for r in map(json.loads, (run / "metrics.jsonl").read_text().splitlines()) if r["kind"] == "attention"]
                    for run in [plain, other]]
            self.assertEqual(len(seen[0]), 4)
            self.assertEqual(*seen)

    def test_recomputing_takes_less_memory(self):
        deep = ["--layers", "16", "--width", "128", "--block", "256", "--batch-size", "16", "--dry-run", "--json"]
        foreseen = [self.last_object(self.succeed("train", "lm", "--train", self.text, *deep, *more))["predicted_memory_bytes"]
                    for more in [[], ["--recompute"]]]
        self.assertLess(foreseen[1], 0.5 * foreseen[0])

    def test_last_value_of_an_option_counts(self):
        self.train(self.model, "--stop-after", "9u", "--layers", "1", "--stop-after", "2u")
        self.assertEqual(json.loads((self.model / "config.json").read_text())["model"]["layers"], 1)

    def test_epsilon_is_in_every_update(self):
        self.train(self.model, "--stop-after", "2u")
        other = self.folder / "other"
        self.train(other, "--stop-after", "2u", "--epsilon", "1e-3")
        weights = [(folder / "model.safetensors").read_bytes() for folder in (self.model, other)]
        self.assertNotEqual(*weights)
        self.assertEqual(json.loads((other / "config.json").read_text())["recipe"]["epsilon"], 1e-3)

    def test_several_files_and_lists(self):
        second = self.folder / "second.txt"
        second.write_text("zebras zigzag\n" * 100)
        done = self.succeed("train", "lm", "--train", self.text, second, "--valid", self.text, "-o",
                            self.model, *SMALL, "--stop-after", "2u", "--json")
        self.assertEqual(self.last_object(done)["steps"], 2)
        self.assertIn("U+007A", (self.model / "tokenizer.txt").read_text())

    def test_precedence(self):
        config = self.folder / "c.toml"
        config.write_text("[model]\nlayers = 3\nwidth = 48\nheads = 3\n[training]\nstop_after = \"2u\"\n")
        self.succeed("train", "lm", "--preset", "tiny", "-c", config, "--train", self.text, "-o",
                     self.model, "--heads", "4", "--block", "16", env={"FOVEA_WIDTH": "64", "FOVEA_HEADS": "8"})
        model = json.loads((self.model / "config.json").read_text())["model"]
        self.assertEqual((model["layers"], model["width"], model["heads"], model["block"]), (3, 64, 4, 16))

    def test_config_can_say_how_the_process_runs(self):
        config = self.folder / "c.toml"
        config.write_text(f"""train = ["{self.text}"]
[recipe]
stop_after = "2u"
[run]
preset = "tiny"
output = "{self.model}"
threads = 1
json = true
progress = "none"
""")
        done = self.succeed("train", "lm", "-c", config)
        self.assertEqual(self.last_object(done)["steps"], 2)
        self.assertNotRegex(done.stderr, rb"update \d+/")
        self.assertEqual(json.loads((self.model / "config.json").read_text())["model"]["block"], 32)
        config.write_text(config.read_text().replace("threads = 1", "threads = 100000"))
        self.assert_error(self.run_fovea("train", "lm", "-c", config, "--overwrite"), 2, "--threads: 100000")

    def test_positions_keep_their_names_and_order(self):
        known = ["learned", "sinusoidal", "alibi", "kerple", "t5", "shaw", "rotary", "none"]
        self.assertEqual([position for position in positions_of(self) if position in known], known)

    def test_every_choice_trains(self):
        choices = [["--position", position] for position in positions_of(self)]
        choices += [["--score", score] for score in ["cosine", "l2", "additive", "concat"]]
        choices += [["--attention-norm", "sigmoid"], ["--attention-norm", "none", "--lr", "1e-4"], ["--sink"],
                    ["--position-max", "40"], ["--position-join", "concat"], ["--qk-norm"], ["--observe-every", "2"],
                    ["--position", "sinusoidal", "--sinusoid", "cos-sin", "--position-join", "concat"],
                    ["--embedding-scale", "2"],
                    ["--attention-norm", "sigmoid", "--observe-every", "1"],
                    ["--window", "9"], ["--softcap", "20"], ["--log-n-scale"], ["--position", "t5", "--t5-buckets", "9", "--sink"],
                    ["--position", "rotary", "--rope-base", "500", "--score", "cosine", "--window", "5"]]
        choices += [["--norm", "rms"], ["--norm-position", "post"], ["--ln-variant", "unbiased"], ["--bias"],
                    ["--activation", "silu"], ["--no-tie"], ["--kv-heads", "1"], ["--head-dim", "24"],
                    ["--ff", "40"], ["--dropout", "0.1"], ["--accumulate", "3"], ["--data", "lines"],
                    ["--tokenizer", "byte"], ["--schedule", "linear"], ["--schedule", "inverse-sqrt"],
                    ["--schedule", "constant"], ["--schedule", "wsd"], ["--stop-after", "0.02e"], ["--preset", "source", "--block", "40"]]
        for number, args in enumerate(choices):
            with self.subTest(args=args):
                model = self.folder / str(number)
                self.train(model, "--stop-after", "3u", *args)
                self.succeed("generate", model, "the", "--max-tokens", "20")

    def test_a_warmup_that_takes_most_of_the_run_is_told(self):
        """Of a run that ends by the clock, when some updates have shown how many it will have."""
        for length, said in (("30u", b"the learning rate rises for 30 of the 30 updates; --warmup 3"),
                             ("2s", b"at this speed, the learning rate rises for ")):
            with self.subTest(length):
                done = self.train(self.folder / length, "--stop-after", length, "--warmup", "1000000")
                self.assertIn(said, done.stderr)

    def test_dry_run_writes_nothing(self):
        done = self.train(self.model, "--dry-run", "--json")
        self.assertFalse(self.model.exists())
        result = self.last_object(done)
        self.assertEqual(list(result), ["parameters", "updates", "tokens_per_update", "flops_per_update",
                                        "flops", "predicted_memory_bytes", "available_memory_bytes", "fits",
                                        "predicted_seconds", "predicted_seconds_basis"])
        said = self.succeed("train", "lm", "--dry-run", "--train", self.text, "--preset", "gpt2").stdout.decode()
        self.assertRegex(said, r"estimated time +\S.*\(an estimate: FLOPs at ")

    def test_dry_run_of_many_parameters_is_reckoned(self):
        # 25 million would take seconds to draw and to try.
        args = ["--width", "512", "--layers", "8", "--batch-size", "1", "--threads", "1", "--dry-run", "--json"]
        said = self.last_object(self.train(self.model, *args))
        self.assertGreater(said["parameters"], 2e7)
        self.assertIn("ns a parameter", said["predicted_seconds_basis"])

    def test_dry_run_estimates_the_time(self):
        args = ["--width", "64", "--block", "32", "--stop-after", "400u"]
        said = self.last_object(self.train(self.model, *args, "--dry-run", "--json"))
        self.assertRegex(said["predicted_seconds_basis"], r"an estimate: \d+ updates were tried")
        took = self.last_object(self.train(self.model, *args, "--json"))["seconds"]
        self.assertGreater(said["predicted_seconds"], 0)
        left = self.last_object(self.succeed("train", "lm", "--resume", "-o", self.model, "--dry-run", "--json"))
        self.assertEqual((left["updates"], left["predicted_seconds"]), (400, 0))
        longer = ["train", "lm", "--resume", "-o", self.model, "--dry-run", "--stop-after"]
        self.assertIn("updates           800; 400 are done\n", self.succeed(*longer, "800u").stdout.decode())
        left = self.last_object(self.succeed(*longer, "1h", "--json"))["predicted_seconds"]
        self.assertLess(left, 3600)
        self.assertGreater(left, 3600 - 2 * took)
        said = self.last_object(self.train(self.model, "--stop-after", "2h", "--dry-run", "--json", "--overwrite"))
        self.assertEqual((said["predicted_seconds"], said["predicted_seconds_basis"]), (7200, "as --stop-after says"))

    def test_source_preset_is_the_books_model(self):
        # 478,639 parameters at its vocabulary of 1,071; a token more is 128 x 2 + 1.
        done = self.train(self.model, "--preset", "source", "--layers", "1", "--heads", "4", "--width", "128",
                          "--block", "40", "--dry-run", "--json")
        parameters = self.last_object(done)["parameters"]
        text = self.text.read_text()
        vocabulary = 2 + len(set(text[:math.floor(len(text) * 0.9)].split()))
        self.assertEqual(parameters, 478639 - (1071 - vocabulary) * 257)


class Use(CommandTest):
    @classmethod
    def setUpClass(cls):
        cls.keep = CommandTest()
        cls.keep.setUp()
        cls.model = cls.keep.folder / "model"
        cls.keep.train(cls.model, "--stop-after", "300u", "--eval-every", "100u")

    @classmethod
    def tearDownClass(cls):
        cls.keep.doCleanups()

    def test_generate_prints_prompt_continuation_newline(self):
        done = self.succeed("generate", self.model, "the cat", "--max-tokens", "30")
        text = done.stdout.decode("utf-8")
        self.assertTrue(text.startswith("the cat"))
        self.assertTrue(text.endswith("\n"))
        self.assertGreater(len(text), 25)

    def test_same_seed_same_text(self):
        def write(*args):
            return self.succeed("generate", self.model, "the", "--max-tokens", "80", *args).stdout
        self.assertEqual(write("--seed", "5"), write("--seed", "5", "--threads", "3"))
        self.assertNotEqual(write("--seed", "5"), write("--seed", "6"))
        self.assertEqual(write("--greedy"), write("--greedy", "--seed", "9"))
        self.assertEqual(write("--greedy"), write("--top-k", "1"))

    def test_a_beam_searches(self):
        write = lambda *args: self.succeed("generate", self.model, "the", "--max-tokens", "30", *args).stdout
        self.assertEqual(write("--beam", "1"), write("--greedy"))
        self.assertEqual(write("--beam", "4"), write("--beam", "4", "--threads", "3"))
        asked = ["generate", self.model, "-", "--each-line", "--max-tokens", "30", "--beam", "3"]
        prompts = b"the cat\na dog\n"
        self.assertIn(b"--- prompt 2\na dog", self.succeed(*asked, stdin=prompts).stdout)
        said = self.succeed(*asked, "--json", "--length-penalty", "1", stdin=prompts).stdout.decode()
        rows = list(map(json.loads, said.splitlines()))
        self.assertEqual([row["prompt"] for row in rows], ["the cat", "a dog"])
        for row in rows:
            self.assertEqual(list(row), ["prompt", "text", "tokens", "log_probability", "score"])
            self.assertEqual(row["tokens"], 30)
            self.assertAlmostEqual(row["score"], row["log_probability"] / (35 / 6), places=9)

    def test_a_beam_draws_nothing(self):
        for option in (["--greedy"], ["--seed", "2"], ["--samples", "2"]):
            done = self.run_fovea("generate", self.model, "the", "--beam", "2", *option)
            self.assert_error(done, 2, f"{option[0]} has no effect with --beam")
        self.assert_error(self.run_fovea("generate", self.model, "the", "--length-penalty", "1"), 2, "without --beam")
        self.assert_error(self.run_fovea("generate", self.model, "the", "--beam", "-1"), 2, "--beam")

    def test_generate_slides_past_the_block(self):
        done = self.succeed("generate", self.model, "the cat " * 10, "--max-tokens", "100")
        self.assertGreater(len(done.stdout), 150)

    def test_prompt_with_new_characters(self):
        done = self.succeed("generate", self.model, "床前", "--max-tokens", "5")
        self.assertTrue(done.stdout.decode("utf-8").startswith("床前"))

    def test_prompt_from_standard_input(self):
        said = self.succeed("generate", self.model, "the cat", "--max-tokens", "20").stdout
        for text in [b"the cat", b"the cat\n"]:
            self.assertEqual(self.succeed("generate", self.model, "-", "--max-tokens", "20", stdin=text).stdout, said)
        poem = self.succeed("generate", self.model, "-", "--max-tokens", "5", stdin=b"the cat\n\na dog").stdout
        self.assertTrue(poem.startswith(b"the cat\n\na dog"))
        # A command in a loop must not eat what the loop reads.
        self.assertEqual(self.succeed("generate", self.model, "the cat", "--max-tokens", "20", stdin=b"x" * 99).stdout, said)
        done = self.run_fovea("generate", self.model, "-", stdin=b"\xff")
        self.assert_error(done, 3, "prompt")

    def test_each_line_is_a_prompt(self):
        args = ["generate", self.model, "-", "--each-line", "--max-tokens", "20"]
        objects = [json.loads(l) for l in self.succeed(*args, "--json", stdin=b"the cat\n\na dog\n").stdout.splitlines()]
        self.assertEqual([o["prompt"] for o in objects], ["the cat", "", "a dog"])
        alone = self.succeed("generate", self.model, "a dog", "--max-tokens", "20").stdout.decode()
        self.assertEqual("a dog" + objects[2]["text"] + "\n", alone)
        said = self.succeed(*args, stdin=b"the cat\na dog\n").stdout.decode()
        self.assertTrue(said.startswith("--- prompt 1, seed 1\nthe cat"), said)
        self.assertTrue(said.endswith("--- prompt 2, seed 1\n" + alone), said)
        self.assertEqual(self.succeed(*args, stdin=b"").stdout, b"")
        self.assert_error(self.run_fovea("generate", self.model, "the", "--each-line"), 2, "--each-line")

    def test_samples_are_those_of_the_seeds_that_follow(self):
        args = ["generate", self.model, "the", "--max-tokens", "40"]
        alone = [self.succeed(*args, "--seed", seed).stdout.decode() for seed in (7, 8, 9)]
        said = self.succeed(*args, "--seed", "7", "--samples", "3").stdout.decode()
        self.assertEqual(said, "".join(f"--- seed {seed}\n{text}" for seed, text in zip((7, 8, 9), alone)))
        lines = self.succeed(*args, "--seed", "7", "--samples", "3", "--json").stdout.decode().splitlines()
        objects = [json.loads(line) for line in lines]
        self.assertEqual([list(o) for o in objects], [["prompt", "text", "seed", "tokens"]] * 3)
        self.assertEqual([o["seed"] for o in objects], [7, 8, 9])
        self.assertEqual([o["prompt"] + o["text"] + "\n" for o in objects], alone)
        self.assert_error(self.run_fovea(*args, "--samples", "0"), 2, "--samples: 0")

    def test_generate_is_quiet_when_nobody_reads_on(self):
        process = self.start("generate", self.model, "the", "--max-tokens", "100000")
        process.stdout.read(50)
        process.stdout.close()
        self.assertEqual(process.stderr.read(), b"")
        process.stderr.close()
        process.wait(timeout=20)

    def test_eval_of_the_text_that_was_learned_says_so(self):
        learned = "the model was trained on this file"
        said = self.succeed("eval", self.model, "--test", self.text, self.keep.text).stderr.decode()
        self.assertEqual(said.count(learned), 1)
        self.assertIn(f"warning: {self.keep.text}: {learned}", said)

    def test_eval(self):
        result = self.last_object(self.succeed("eval", self.model, "--test", self.text, "--json"))
        self.assertEqual(list(result), ["loss", "perplexity", "bits_per_byte", "tokens", "unknown", "single_lines",
                                        "truncated_lines", "model"])
        self.assertEqual((result["unknown"], result["single_lines"], result["truncated_lines"]), (0, 0, 0))
        size = len(self.text.read_bytes())
        self.assertEqual(result["tokens"], size - 1)
        self.assertAlmostEqual(result["perplexity"], math.exp(result["loss"]), places=6)
        self.assertAlmostEqual(result["bits_per_byte"], result["loss"] / math.log(2), places=6)

    def test_eval_counts_bytes_of_characters_it_does_not_know(self):
        other = self.folder / "other.txt"
        other.write_text("床前明月光，疑是地上霜。\n" * 20, encoding="utf-8")
        result = self.last_object(self.succeed("eval", self.model, "--test", other, "--json"))
        self.assertAlmostEqual(result["bits_per_byte"] * math.log(2), result["loss"], places=6)

    def test_bits_are_of_bytes_where_tokens_are_characters(self):
        poem = "床前明月光，疑是地上霜。举头望明月，低头思故乡。\n"
        learned = self.folder / "poem.txt"
        learned.write_text(poem * 60, encoding="utf-8")
        model = self.folder / "poet"
        self.succeed("train", "lm", "--train", learned, "-o", model, *SMALL, "--stop-after", "20u")
        result = self.last_object(self.succeed("eval", model, "--test", learned, "--json"))
        self.assertEqual(result["tokens"], 25 * 60 - 1)
        predicted = len((poem * 60).encode()) - len(poem[0].encode())
        self.assertAlmostEqual(result["bits_per_byte"], result["loss"] * result["tokens"] / math.log(2) / predicted,
                               places=9)

    def test_eval_agrees_with_training(self):
        lines = [json.loads(l) for l in (self.model / "metrics.jsonl").read_text().splitlines()]
        best = min(l["valid_loss"] for l in lines if l["kind"] == "evaluation")
        text = self.keep.text.read_text()
        valid = self.folder / "valid.txt"
        valid.write_text(text[math.floor(len(text) * 0.9):])
        result = self.last_object(self.succeed("eval", self.model, "--test", valid, "--json"))
        self.assertAlmostEqual(result["loss"], best, places=5)

    def test_a_checkpoint_is_a_model_too(self):
        checkpoint = next((self.model / "checkpoints").iterdir())
        self.succeed("generate", checkpoint, "the", "--max-tokens", "5")
        self.succeed("inspect", checkpoint, "--verify")


class Machine(CommandTest):
    def test_doctor(self):
        said = self.last_object(self.succeed("doctor", "--json"))
        self.assertTrue(said["instruction_set"] in said["instruction_sets"] and said["cores"] > 0, said)
        for isa in said["instruction_sets"]:
            pinned = self.last_object(self.succeed("doctor", "--json", env={"FOVEA_ISA": isa}))
            self.assertEqual(pinned["instruction_set"], isa)
            self.assertLessEqual(pinned["multiplies_bfloat16"], isa in ("avx512", "amx"))

    def test_help_and_version(self):
        self.assertRegex(self.succeed("--version").stdout.decode(), r"^fovea \d+\.\d+\.\d+\n$")
        overview = self.succeed("--help").stdout.decode()
        for command in ["train lm", "generate", "eval", "inspect", "doctor", "attention", "bench attention"]:
            self.assertIn(command, overview)
            said = self.succeed(*command.split(), "--help").stdout.decode()
            self.assertIn("--help", said)
        said = self.succeed("train", "lm", "--help").stdout.decode()
        for option in ["--kv-heads", "--ln-variant", "--resume", "--overwrite", "--learning-rate", "SIGINT"]:
            self.assertIn(option, said)

    def test_help_of_half_a_command(self):
        for word, command in [("train", "train lm"), ("bench", "bench attention")]:
            for flag in ["--help", "-h"]:
                said = self.succeed(word, flag).stdout.decode()
                self.assertRegex(said, rf"(?m)^  {command} +[A-Z]")
                self.assertRegex(said, rf"(?m)^Examples:\n  fovea {command} --")

    def test_help_shows_choices_and_defaults(self):
        said = " ".join(self.succeed("train", "lm", "--help").stdout.decode().split())
        for entry in ["--tokenizer byte|char|word|sentencepiece what a token is [char]",
                      "--data blocks|lines|chat blocks: random blocks of the text; lines: each line is a sequence; chat: each line is a conversation, for a --base with a chat template [blocks]",
                      f"--position {'|'.join(positions_of(self))} position encoding [learned]",
                      "--stop-after LENGTH length of the run", "--window N[,N...] how many tokens", "--bias,--no-bias biases in", "[false]",
                      "--tie,--no-tie use the", "-o,--output DIR folder"]:
            self.assertIn(entry, said)
        self.assertNotIn("{", said)
        self.assertNotIn("TEXT", said)

    def test_nothing_at_all(self):
        done = self.run_fovea()
        self.assertEqual(done.returncode, 2)


if __name__ == "__main__":
    unittest.main()
