# SPDX-License-Identifier: Apache-2.0
"""What users get wrong: each mistake has its exit status, one error line, one hint, no output."""

import os
import random
import re
import resource
import subprocess
import unittest
from pathlib import Path

from support import FOVEA, SMALL, CommandTest


class BadText(CommandTest):
    def refused(self, status, path, *needles, extra=()):
        output = self.folder / "model"
        done = self.run_fovea("train", "lm", "--train", path, "-o", output, *SMALL, *extra)
        self.assert_error(done, status, *needles)
        self.assertFalse(output.exists(), "nothing may be written")
        self.assertEqual(done.stdout, b"")

    def write(self, name, data):
        path = self.folder / name
        path.write_bytes(data)
        return path

    def test_missing_file(self):
        self.refused(3, self.folder / "nowhere.txt", "nowhere.txt")

    def test_empty_file(self):
        self.refused(3, self.write("empty.txt", b""), "empty.txt", "empty")

    def test_only_newlines_is_text(self):
        self.refused(3, self.write("lines.txt", b"\n" * 100), extra=["--data", "lines"])

    def test_too_little_text(self):
        self.refused(3, self.write("short.txt", b"too short"))

    def test_directory(self):
        self.refused(3, self.folder, "directory")

    def test_fifo_does_not_wait(self):
        path = self.folder / "pipe"
        os.mkfifo(path)
        self.refused(3, path, "FIFO")

    def test_device(self):
        self.refused(3, "/dev/zero", "/dev/zero")

    def test_binary_file(self):
        self.refused(3, self.write("program", random.Random(1).randbytes(5000)), "program")

    def test_file_of_zeros(self):
        self.refused(3, self.write("zeros", bytes(5000)), "zeros")

    def test_invalid_utf8_names_line_and_column(self):
        self.refused(3, self.write("bad.txt", b"first line\nsec\xc3\x28nd\n" * 50), "bad.txt:2:4")

    def test_gb18030_is_named(self):
        path = self.write("poem.txt", "床前明月光，疑是地上霜。\n".encode("gb18030") * 50)
        done = self.run_fovea("train", "lm", "--train", path, "-o", self.folder / "m")
        self.assert_error(done, 3, "poem.txt:1:")
        self.assertIn(b"GB18030", done.stderr)

    def test_second_file_is_checked_too(self):
        done = self.run_fovea("train", "lm", "--train", self.text, self.folder / "nowhere", "-o",
                              self.folder / "m")
        self.assert_error(done, 3, "nowhere")

    def test_validation_file_is_checked_too(self):
        self.refused(3, self.text, "nowhere", extra=["--valid", self.folder / "nowhere"])

    def test_control_characters_in_names_are_escaped(self):
        done = self.run_fovea("train", "lm", "--train", "a\x1b[31m\nb", "-o", self.folder / "m")
        self.assert_error(done, 3)


class BadOptions(CommandTest):
    def refused(self, status, *args, needles=()):
        output = self.folder / "model"
        done = self.run_fovea("train", "lm", "--train", self.text, "-o", output, *args)
        self.assert_error(done, status, *needles)
        self.assertFalse(output.exists(), "nothing may be written")

    def test_unknown_flag_is_corrected(self):
        done = self.run_fovea("train", "lm", "--train", self.text, "-o", "m", "--batchsize", "3")
        self.assert_error(done, 2, "--batchsize")
        self.assertIn(b"did you mean --batch-size?", done.stderr)

    def hint_for(self, command, *words):
        done = self.run_fovea(*command.split(), *words)
        self.assert_error(done, 2, words[0].split("=")[0])
        return done.stderr.decode().splitlines()[-1].removeprefix("hint: ")

    def test_names_of_other_tools_are_known(self):
        meant = {
            "train lm": {"--block-size 64": "--block", "--batch 8": "--batch-size", "--n-layer 4": "--layers",
                         "--n_head 4": "--heads", "--n-embd 128": "--width", "--hidden-size 64": "--width",
                         "--seq-len 64": "--block", "--learning_rate 1e-3": "--learning-rate",
                         "--weight_decay 0.1": "--weight-decay", "--grad_clip 1": "--clip",
                         "--warmup_steps 10": "--warmup", "--eval-interval 5": "--eval-every",
                         "--save_steps 5": "--save-every", "--gradient_accumulation_steps 2": "--accumulate",
                         "--out_dir m": "--output", "--output_dir m": "--output", "--num-workers 2": "--threads",
                         "--tie_word_embeddings": "--tie", "--intermediate_size 512": "--ff",
                         "--steps 300": "--stop-after 300u", "--max-iters=5000": "--stop-after 5000u",
                         "--max_steps": "--stop-after 2000u", "--epochs 3": "--stop-after 3e",
                         "--num_train_epochs 4": "--stop-after 4e"},
            "generate m": {"--max-new-tokens 50": "--max-tokens", "--temp 0.7": "--temperature",
                           "--num_samples 3": "--samples", "--n-predict 9": "--max-tokens", "--topk 3": "--top-k",
                           "--repeat-penalty 2": "--repetition-penalty", "--random_seed 1": "--seed"},
            "eval m": {"--test-file t": "--test", "--n-threads 2": "--threads"},
        }
        for command, cases in meant.items():
            known = self.succeed(*command.split()[:2 if command == "train lm" else 1], "--help").stdout.decode()
            for words, option in cases.items():
                with self.subTest(command=command, words=words):
                    self.assertEqual(self.hint_for(command, *words.split()), f"did you mean {option}?")
                    self.assertIn(option.split()[0], known)
        for task in ("classify", "pairs", "tag", "translate"):
            for words, option in {"--grad_accum 2": "--accumulate", "--lr_scheduler cosine": "--schedule",
                                  "--epochs 3": "--stop-after 3e", "--label_smoothing_factor .1": "--label-smoothing",
                                  "--max_seq_length 99": "--block" if task == "translate" else "--max-length"}.items():
                if (task, option) != ("tag", "--label-smoothing"):
                    self.assertEqual(self.hint_for(f"train {task}", *words.split()), f"did you mean {option}?")
        for command in ["train lm", "generate m", "eval m"]:
            self.assertIn("computes on the CPU", self.hint_for(command, "--device", "cuda"))
        self.assertEqual(self.hint_for("train lm", "--optim", "lion"), "did you mean --optimizer?")
        self.assertEqual(self.hint_for("train lm", "--optimizer", "adam"), "did you mean adamw?")
        self.assertEqual(self.hint_for("train lm", "--gradient_checkpointing"), "did you mean --recompute?")
        self.assertEqual(self.hint_for("attention in.npz", "--is-causal"), "did you mean --causal?")
        self.assertIn("keep or drop", self.hint_for("attention in.npz", "--attn-mask", "m"))
        self.assertIn("slopes", self.hint_for("attention in.npz", "--alibi"))
        self.assertIn("in quotes", self.hint_for("generate m two", "words"))
        self.assertEqual(self.hint_for("eval m", "test.txt"), "did you mean --test test.txt?")
        self.assertIn("behind the folder", self.hint_for("generate m", "--prompt", "Once"))
        self.assertIn("folder of the model comes first", self.hint_for("generate", "--model", "m"))

    def test_every_name_of_other_tools_leads_to_an_option(self):
        source = (Path(__file__).resolve().parents[2] / "cli" / "command_line.cc").read_text(encoding="utf-8")
        table = " ".join(re.sub(r'"\s+"', "", source).split())
        found = re.findall(r'Synonyms\{"([a-z ]*)", "([a-z0-9 -]+)", "--([a-z0-9-]+)"\}', table)
        self.assertGreater(len(found), 35)
        for command, names, option in found:
            known = self.succeed(*("train lm" if command in ("", "train") else command).split(), "--help").stdout.decode()
            options = known if command != "train" else "".join(
                self.succeed("train", task, "--help").stdout.decode() for task in ("lm", "classify", "tag", "translate"))
            self.assertRegex(options, rf"--{option}\b", names)
            for name in names.split():
                self.assertNotRegex(known, rf"(?<!\S)(-\w,)?--{name}[ ,]", "it is an option itself")

    def test_unknown_command_is_corrected(self):
        for wrong, right in [("trian", "train lm"), ("generat", "generate"), ("train", "train lm"),
                             ("bench", "bench attention"), ("train clasify", "train classify"),
                             ("train ml", "train lm")]:
            done = self.run_fovea(*wrong.split())
            self.assert_error(done, 2, wrong)
            self.assertIn(right.encode(), done.stderr)

    def test_no_abbreviations(self):
        self.refused(2, "--layer", "2", needles=["--layer"])

    def test_missing_value(self):
        self.refused(2, "--lr")

    def test_an_empty_value_is_no_other_argument(self):
        """"--lr=" once took "--heads" for its value, and "--encoder=" the next option."""
        self.refused(2, "--lr=", "--heads", "2", needles=["--lr", "got ''"])
        self.refused(2, "--model", "encoder", "--encoder=", "--heads", "2", needles=["no layers are given"])
        self.refused(2, "--resume=", "--heads", "2", needles=["--resume= has no value behind its equals sign"])
        self.refused(2, "--tie=", "--heads", "2", needles=["--tie= has no value"])
        self.refused(2, "--no-tie=", needles=["--no-tie= has no value"])
        done = self.run_fovea("generate", self.folder, "--json=maybe")
        self.assert_error(done, 2, "--json: expected true or false; got 'maybe'")
        done = self.run_fovea("eval", self.folder, "--test=", self.folder / "none.txt")
        self.assertNotEqual(done.returncode, 0)
        # Where an empty text is a value, it is taken: this encoder has no layers.
        done = self.succeed("train", "tag", "--encoder=", "--dump-config", "--width", "8")
        self.assertIn("encoder = ''", done.stdout.decode())
        # A value may look like such an option.
        done = self.succeed("train", "tag", "--output", "--encoder=", "--dump-config")
        self.assertIn("encoder = 'bilstm:128'", done.stdout.decode())

    def test_extra_argument(self):
        done = self.run_fovea("doctor", "please")
        self.assert_error(done, 2, "please")

    def test_behind_two_dashes_nothing_is_an_option(self):
        done = self.run_fovea("generate", self.folder, "--", "-5 apples", "--max-tokens", "5")
        self.assert_error(done, 2, "unexpected argument '--max-tokens' after --")
        done = self.run_fovea("generate", self.folder, "--maxtokens", "5", "--", "-5 apples")
        self.assert_error(done, 2, "unknown option '--maxtokens'")

    def test_a_log_is_not_added_to_what_is_no_text(self):
        archive = self.folder / "in.npz"
        archive.write_bytes(b"PK\x03\x04\0\0")
        done = self.run_fovea("attention", archive, "--plan", "--log-file", archive)
        self.assert_error(done, 2, "there is no text in it")
        self.assertEqual(archive.read_bytes(), b"PK\x03\x04\0\0")
        out = self.folder / "out.npz"
        for log in (out, self.folder / "." / "x" / ".." / "out.npz"):
            done = self.run_fovea("attention", archive, "-o", out, "--log-file", log)
            self.assert_error(done, 2, "is OUT")
        self.assertFalse(out.exists())

    def test_missing_arguments(self):
        self.assert_error(self.run_fovea("train", "lm", "--train", self.text), 2)
        self.assert_error(self.run_fovea("train", "lm", "-o", self.folder / "m"), 2)
        self.assert_error(self.run_fovea("generate"), 2)
        self.assert_error(self.run_fovea("eval", self.folder), 2)

    def test_width_not_divisible_by_heads(self):
        self.refused(2, "--width", "130", "--heads", "4", needles=["--width: 130", "--heads (4)"])

    def test_more_kv_heads_than_heads(self):
        self.refused(2, "--heads", "4", "--kv-heads", "8", needles=["--kv-heads: 8"])

    def test_heads_that_kv_heads_cannot_share(self):
        self.refused(2, "--heads", "4", "--kv-heads", "3", needles=["--heads: 4", "--kv-heads (3)"])

    def test_half_a_command_names_the_commands(self):
        for word, command in [("train", "train lm"), ("bench", "bench attention")]:
            for words in [[word], [word, "--threads", "2"]]:
                self.assert_error(self.run_fovea(*words), 2, command)
            done = self.run_fovea(word, "nothing")
            self.assert_error(done, 2, f"{word} nothing")
            self.assertIn(command.encode(), done.stderr)

    def test_sizes_below_one(self):
        for option in ["layers", "heads", "width", "block", "batch-size", "accumulate"]:
            for value in ["-1", "0"]:
                with self.subTest(option=option, value=value):
                    self.refused(2, f"--{option}", value, needles=[f"--{option}: {value}"])
        for option in ["ff", "kv-heads", "head-dim", "warmup", "threads"]:
            with self.subTest(option=option):
                self.refused(2, f"--{option}=-1", needles=[f"--{option}: -1"])

    def test_sizes_that_no_machine_holds(self):
        for option in ["layers", "width", "block", "ff"]:
            with self.subTest(option=option):
                done = self.run_fovea("train", "lm", "--train", self.text, "-o", self.folder / "m",
                                      f"--{option}", "1000000000000", "--heads", "1")
                self.assertIn(done.returncode, (2, 3, 6))
                self.assert_error(done, done.returncode)
                self.assertFalse((self.folder / "m").exists())

    def test_sizes_that_overflow(self):
        for option in ["layers", "width", "heads", "batch-size", "seed"]:
            with self.subTest(option=option):
                self.refused(2, f"--{option}", "99999999999999999999999", needles=[option])

    def test_too_large_for_memory(self):
        self.refused(6, "--layers", "1000", "--width", "16384", "--heads", "16", needles=["TiB; "])

    def test_batch_too_large_for_memory(self):
        self.refused(6, "--batch-size", "30000000", needles=["iB; "])

    def test_memory_limit_is_seen_before_the_first_step(self):
        def limit():
            resource.setrlimit(resource.RLIMIT_AS, (300 << 20, 300 << 20))
        done = subprocess.run([FOVEA, "train", "lm", "--train", self.text, "-o", self.folder / "m",
                               "--width", "512", "--layers", "8", "--stop-after", "1u"],
                              capture_output=True, preexec_fn=limit, timeout=60)
        self.assert_error(done, 6)
        self.assertFalse((self.folder / "m").exists())

    def test_numbers_that_are_none(self):
        for args in [("--lr", "nan"), ("--lr", "inf"), ("--lr", "-1"), ("--lr", "0"), ("--lr", "fast"),
                     ("--dropout", "1.5"), ("--dropout", "nan"), ("--clip", "-1"), ("--beta2", "1"),
                     ("--layers", "two"), ("--layers", "2.5"), ("--valid-fraction", "1"),
                     ("--valid-fraction", "-0.1"), ("--stop-after", "soon"), ("--stop-after", "0u"),
                     ("--eval-every", "1h"), ("--keep", "0"), ("--seed", "-1"), ("--threads", "many"),
                     ("--threads", "1000000")]:
            with self.subTest(args=args):
                self.refused(2, *args, needles=[f"{args[0]}: "])

    def test_names_that_are_none(self):
        for args in [("--activation", "swish"), ("--position", "rope"), ("--norm", "batch"),
                     ("--schedule", "step"), ("--tokenizer", "subword"), ("--data", "files"),
                     ("--preset", "huge"), ("--tie=perhaps",)]:
            with self.subTest(args=args):
                self.refused(2, *args, needles=[args[0].split("=")[0] + ": expected"])

    def test_config_file(self):
        for text, needle in [("layres = 2\n", "layres"), ("[model]\nlayers = \"two\"\n", "layers"),
                             ("layers = \n", ":1:"), ("[model]\nlayers = -1.5\n", "layers"),
                             ("[recipe]\nprecision = \"fp16\"\n", "got 'fp16'")]:
            path = self.folder / "c.toml"
            path.write_text(text)
            with self.subTest(text=text):
                self.refused(2, "-c", path, needles=["c.toml", needle])
        self.refused(3, "-c", self.folder / "none.toml", needles=["none.toml"])

    def test_environment(self):
        done = self.run_fovea("train", "lm", "--train", self.text, "-o", self.folder / "m",
                              env={"FOVEA_WIDTH": "wide"})
        self.assert_error(done, 2, "FOVEA_WIDTH")
        done = self.run_fovea("doctor", env={"FOVEA_ISA": "mmx"})
        self.assert_error(done, 2, "FOVEA_ISA", "'mmx'")

    def test_sampling_options(self):
        for args in [("--temperature", "0"), ("--top-k", "-1"), ("--top-p", "0"), ("--top-p", "2"),
                     ("--max-tokens", "0"), ("--repetition-penalty", "0")]:
            self.assert_error(self.run_fovea("generate", self.folder, *args), 2, args[0])

    def test_bench_sizes(self):
        self.assert_error(self.run_fovea("bench", "attention", "--batch", "0"), 2, "--batch")
        self.assert_error(self.run_fovea("bench", "attention", "--length", "9999999999999999"), 2)
        self.assert_error(self.run_fovea("bench", "attention", "--head-dim", "100000000"), 6)

    def test_bench_step(self):
        self.assert_error(self.run_fovea("bench", "step", "--steps", "0"), 2, "--steps: 0")
        self.assert_error(self.run_fovea("bench", "step", "--batch-size", "0"), 2, "--batch-size: 0")
        self.assert_error(self.run_fovea("bench", "step", "--vocabulary", "0"), 2, "--vocabulary: 0")
        self.assert_error(self.run_fovea("bench", "step", "--preset", "large"), 2, "large")
        self.assert_error(self.run_fovea("bench", "step", "--batch-size", "30000000"), 6, "bench step")
        self.assert_error(self.run_fovea("bench", "step", "--block", "2000000000"), 2, "too many tokens")
        self.assert_error(self.run_fovea("bench", "step", "--width", "100000", "--heads", "1"), 6, "bench step")

    def test_errors_are_objects_with_json(self):
        done = self.run_fovea("train", "lm", "--train", self.folder / "no", "-o", "m", "--json")
        self.assert_error(done, 3)
        self.assertEqual(set(self.last_object(done)), {"error", "message", "hint"})
        self.assertEqual(self.last_object(done)["error"], "E0301")


class BadOutput(CommandTest):
    def attempt(self, output, *args):
        return self.run_fovea("train", "lm", "--train", self.text, "-o", output, *SMALL,
                              "--stop-after", "2u", *args)

    def test_unwritable(self):
        self.assert_error(self.attempt("/proc/fovea/model"), 5, "/proc/fovea")

    def test_below_a_file(self):
        self.assert_error(self.attempt(self.text / "model"), 5)

    def test_a_file(self):
        before = self.text.read_bytes()
        self.assert_error(self.attempt(self.text), 2)
        self.assertEqual(self.text.read_bytes(), before)

    def test_existing_folder_that_is_not_empty(self):
        output = self.folder / "mine"
        output.mkdir()
        (output / "thesis.txt").write_text("years of work")
        self.assert_error(self.attempt(output), 2, "not empty")
        self.assertEqual([p.name for p in output.iterdir()], ["thesis.txt"])

    def test_overwrite_removes_only_what_is_ours(self):
        output = self.folder / "run"
        self.train(output, "--stop-after", "4u", "--save-every", "2u")
        (output / "thesis.txt").write_text("years of work")
        for theirs in ["notes", "step-by-step", "step-000002.old", "step-2"]:
            (output / "checkpoints" / theirs).mkdir()
            (output / "checkpoints" / theirs / "notes.txt").write_text("more of it")
        done = self.attempt(output, "--overwrite")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual((output / "thesis.txt").read_text(), "years of work")
        for theirs in ["notes", "step-by-step", "step-000002.old", "step-2"]:
            self.assertTrue((output / "checkpoints" / theirs / "notes.txt").is_file(), theirs)
        self.assertEqual([p.name for p in (output / "checkpoints").glob("step-??????")], ["step-000002"])

    def test_overwrite_refuses_the_model_of_another_tool(self):
        output = self.folder / "theirs"
        output.mkdir()
        (output / "config.json").write_text("{\"architectures\": []}")
        self.assert_error(self.attempt(output, "--overwrite"), 2, "config.json")
        self.assertEqual((output / "config.json").read_text(), "{\"architectures\": []}")

    def test_resume_where_nothing_is(self):
        self.assert_error(self.attempt(self.folder / "nowhere", "--resume"), 4)
        self.assertFalse((self.folder / "nowhere").exists())

    def test_resume_and_overwrite(self):
        self.assert_error(self.attempt(self.folder / "m", "--resume", "--overwrite"), 2)

    def test_full_device(self):
        with open("/dev/full", "wb") as full:
            done = subprocess.run([FOVEA, "doctor"], stdout=full, stderr=subprocess.PIPE)
        self.assert_error(done, 5, "standard output")

    def test_closed_pipe_is_quiet(self):
        process = self.start("doctor", "--json")
        process.stdout.close()
        said = process.stderr.read()
        process.stderr.close()
        self.assertEqual(process.wait(), 0)
        self.assertEqual(said, b"")

    def test_generate_ends_where_nobody_reads_on(self):
        model = self.folder / "m"
        self.train(model, "--stop-after", "1u")
        log = self.folder / "log.txt"
        # Minutes, if it went on.
        process = self.start("generate", model, "the", "--max-tokens", "100000000", "-v", "--log-file", log)
        process.stdout.read(10)
        process.stdout.close()
        self.assertEqual(process.wait(timeout=60), 0)
        self.assertRegex(process.stderr.read().decode(), r"\A\d+ tokens in .*\n\Z")
        process.stderr.close()
        self.assertRegex(log.read_text(), r"\A\d+ tokens in ")


if __name__ == "__main__":
    unittest.main()
