# SPDX-License-Identifier: Apache-2.0
"""The language of the command: how it is chosen, what follows it, and what never does."""

import json
import re
import shutil
import subprocess
import unittest

from support import SMALL, CommandTest

CHINESE = re.compile("[\u4e00-\u9fff]")
# Words that stay in Chinese help: names, and what stands in the place of a value.
NAMES_ALONE = re.compile(r"[\w.,;:/()\[\]<>|=+* -]*")


class LanguageTest(CommandTest):
    def said(self, *args, status=0, **variables):
        """stdout and stderr, with these variables and without any other that chooses a language."""
        env = {name: "" for name in ("LC_ALL", "LC_MESSAGES", "LC_CTYPE", "LANG")}
        done = self.run_fovea(*args, env={**env, **variables})
        self.assertEqual(done.returncode, status, done.stderr.decode())
        return done.stdout.decode(), done.stderr.decode()

    def commands(self):
        return re.findall(r"^  ([a-z]+(?: [a-z]+)?)  +[A-Z]", self.said("--help")[0], re.MULTILINE)


class Chosen(LanguageTest):
    def is_chinese(self, *args, **variables):
        text = self.said("demo", "--help", *args, **variables)[0]
        self.assertEqual("用法：" in text, "Usage:" not in text)
        return "用法：" in text

    def test_nothing_set_is_english(self):
        self.assertFalse(self.is_chinese())
        self.assertFalse(self.is_chinese(LANG="C.UTF-8"))
        self.assertFalse(self.is_chinese(LANG="de_DE.UTF-8"))

    def test_an_option_counts_more_than_the_variable_and_that_more_than_the_locale(self):
        chinese, english = {"LANG": "zh_CN.UTF-8"}, {"LANG": "en_US.UTF-8"}
        self.assertTrue(self.is_chinese(**chinese))
        self.assertFalse(self.is_chinese(FOVEA_LANG="en", **chinese))
        self.assertTrue(self.is_chinese(FOVEA_LANG="zh", **english))
        self.assertTrue(self.is_chinese("--lang", "zh", FOVEA_LANG="en", **english))
        self.assertFalse(self.is_chinese("--lang=en", FOVEA_LANG="zh", **chinese))

    def test_of_the_locale_the_first_variable_that_is_set_counts(self):
        utf8 = "zh_CN.UTF-8"
        self.assertTrue(self.is_chinese(LC_ALL=utf8, LANG="en_US.UTF-8"))
        self.assertFalse(self.is_chinese(LC_ALL="C.UTF-8", LANG=utf8))
        self.assertTrue(self.is_chinese(LC_MESSAGES=utf8, LANG="en_US.UTF-8"))
        self.assertTrue(self.is_chinese(LANG="zh_TW.utf8"))

    def test_a_terminal_of_another_encoding_gets_english_unless_chinese_is_asked_for(self):
        self.assertFalse(self.is_chinese(LANG="zh_CN.GBK"))
        self.assertFalse(self.is_chinese(LANG="zh_CN"))
        self.assertFalse(self.is_chinese(LC_MESSAGES="zh_CN.UTF-8", LC_CTYPE="zh_CN.GB18030"))
        self.assertTrue(self.is_chinese("--lang", "zh", LANG="zh_CN.GBK"))

    def test_an_unknown_language_is_an_error_with_those_that_are_known(self):
        for args, variables, called in ((["--lang", "fr"], {}, "--lang"), ([], {"FOVEA_LANG": "fr"}, "FOVEA_LANG")):
            _, text = self.said("doctor", *args, status=2, **variables)
            self.assertEqual(text, f"error[E0203]: {called}: expected one of: en, zh; got 'fr'\n"
                                   "hint: en: English, zh: Chinese\n")

    def test_it_may_stand_before_the_command(self):
        self.assertIn("命令：", self.said("--lang", "zh", "--help")[0])
        self.assertIn("命令：", self.said("--lang=zh", "--help")[0])
        self.assertIn("用法：fovea demo", self.said("--lang", "zh", "demo", "--help")[0])

    def test_every_command_has_the_option(self):
        for command in self.commands():
            self.assertIn("  --lang en|zh  ", self.said(*command.split(), "--help")[0], command)


class Help(LanguageTest):
    def rows(self, text):
        """The lines of help below its headings, joined where a long name has its text in the next line."""
        for line in re.sub(r"\n {34}(?=\S)", " ", text.split("\n示例：")[0]).split("\n"):
            match = re.match(r"  (-[^ ]+|[A-Z]+)(.*)", line)
            if match:
                yield match.group(1), match.group(2)

    def test_all_options_and_arguments_of_all_commands_are_chinese(self):
        seen = 0
        for command in self.commands():
            text, _ = self.said(*command.split(), "--help", FOVEA_LANG="zh")
            self.assertRegex(text.split("\n")[0], CHINESE, command)
            for heading in re.findall(r"^(\S.*)：$", text.split("\n示例：")[0], re.MULTILINE):
                self.assertTrue(CHINESE.search(heading) or heading in ("PyTorch", "Dropout"), (command, heading))
            self.assertNotRegex(text, r"(?m)^[A-Z][A-Za-z ]+:$", command)
            for name, rest in self.rows(text):
                help_text = re.split(r"  +", rest)[-1] if "  " in rest else rest
                seen += 1
                if not CHINESE.search(rest):
                    self.assertTrue(NAMES_ALONE.fullmatch(help_text), (command, name, rest))
                    self.assertNotRegex(help_text, r"[a-z]{2,} (of|the|to|that|for) ", (command, name))
        self.assertGreater(seen, 800)

    def test_no_paragraph_below_is_english(self):
        for command in self.commands():
            text, _ = self.said(*command.split(), "--help", FOVEA_LANG="zh")
            for line in text.partition("\n示例：")[2].split("\n"):
                if line and not re.match(r"  (fovea|echo|printf|[a-z_]+ +[\[a-z])", line):
                    self.assertRegex(line, CHINESE, command)

    def test_options_are_those_of_the_english_help(self):
        for command in ("train lm", "eval", "attention"):
            english, _ = self.said(*command.split(), "--help")
            chinese, _ = self.said(*command.split(), "--help", FOVEA_LANG="zh")
            for pattern in (r"(?m)^  (-\S+)", r"\[([^\]\n]*)\]$"):
                self.assertEqual(re.findall(pattern, english), re.findall(pattern, chinese), command)

    def test_columns_are_aligned_by_width(self):
        text, _ = self.said("demo", "--help", FOVEA_LANG="zh")
        line = next(line for line in text.split("\n") if line.startswith("  NAME"))
        head = line[:line.index("transformer-3")]
        self.assertEqual(sum(2 if CHINESE.match(c) or c in "（）" else 1 for c in head), 34)

    def test_the_overview(self):
        text, _ = self.said("--help", FOVEA_LANG="zh")
        for line in re.findall(r"(?m)^  [a-z ]+  +(.*)$", text):
            self.assertRegex(line, CHINESE)
        below, _ = self.said("train", "--help", FOVEA_LANG="zh")
        self.assertIn("用法：fovea train COMMAND [选项]", below)
        self.assertIn("示例：\n  fovea train lm", below)

    def test_manual_pages_and_completion_follow(self):
        page, _ = self.said("man", "demo", "--lang", "zh")
        plain = re.sub(r"\\\[u([0-9A-F]+)\]", lambda code: chr(int(code[1], 16)), page.replace("\\:", ""))
        for heading in ("名称", "用法", "说明", "参数", "选项", "示例", "退出状态", "环境变量", "另见"):
            self.assertIn(f"\n.SH {heading}\n", plain)
        self.assertIn("磁盘已满", plain)
        self.assertIn("运行文章中的例子", self.said("completion", "fish", "--lang", "zh")[0])
        if shutil.which("groff"):
            done = subprocess.run(["groff", "-man", "-Tutf8", "-ww"], input=page.encode(), capture_output=True, check=True)
            self.assertEqual(done.stderr.decode(), "")
            self.assertIn("运行文章中的例子", re.sub(r"\x1b\[\d*m|.\x08", "", done.stdout.decode()))


class Messages(LanguageTest):
    def test_errors_and_hints(self):
        for args, status, error, hint in (
                (["train", "lm", "--bogus"], 2, "错误[E0201]：train lm：未知选项“--bogus”", "提示：参见：fovea train lm --help"),
                (["train", "lm", "--layers", "x", "-o", "m"], 2, "错误[E0203]：--layers：应为整数；得到 'x'", "提示："),
                (["train", "lm", "--train", "none.txt", "-o", "m"], 3, "错误[E0301]：", "提示：检查路径"),
                (["traain", "lm"], 2, "错误[E0201]：未知命令“traain”", "提示：是否想用 fovea train lm？"),
                (["generate"], 2, "错误[E0201]：generate：缺少 MODEL", "提示："),
                (["generate", "none", "x"], 4, "错误[E0403]：", "提示：指定"),
                (["generate", self.text, "x", "--top-k", "-4"], 2, "错误[E0203]：--top-k：-4 不是至少为 0 的数（0：不限）", "提示：")):
            _, text = self.said(*args, status=status, FOVEA_LANG="zh")
            lines = text.split("\n")
            self.assertTrue(lines[-3].startswith(error), text)
            self.assertTrue(lines[-2].startswith(hint), text)
            self.assertRegex(lines[-2], CHINESE)

    def test_errors_as_json_stay_english(self):
        stdout, stderr = self.said("train", "lm", "--train", "none.txt", "-o", "m", "--json", status=3, FOVEA_LANG="zh")
        self.assertEqual(json.loads(stdout)["hint"], "check the path")
        self.assertIn("cannot open", json.loads(stdout)["message"])
        self.assertIn("错误[E0301]", stderr)

    def test_a_name_of_the_user_stays_as_it_is(self):
        path = self.folder / "hint"
        _, text = self.said("generate", path, "x", status=4, FOVEA_LANG="zh")
        self.assertIn(str(path), text)

    def train(self, folder, *more, **variables):
        return self.said("train", "lm", "--train", self.text, "-o", folder, *SMALL, "--stop-after", "30u", "--eval-every",
                         "10u", *more, **variables)

    def test_a_training_speaks_it_and_writes_the_same(self):
        log = self.folder / "log.txt"
        _, english = self.train(self.folder / "a", "--verbose")
        _, chinese = self.train(self.folder / "b", "--verbose", "--log-file", log, FOVEA_LANG="zh")
        self.assertEqual(len(english.split("\n")), len(chinese.split("\n")))
        for line in chinese.strip().split("\n"):
            self.assertRegex(line, CHINESE)
            self.assertNotRegex(line, r"[a-z]{3,} (of|the|is|to|loss|elapsed|left) ")
        self.assertRegex(chinese, r"更新 \d+/30（\d+%）：训练损失 \d")
        self.assertRegex(chinese, r"更新 30：验证损失 [\d.]+（目前的最佳权重）；训练损失")
        self.assertIn("已保存 ", chinese)
        self.assertRegex(log.read_text(encoding="utf-8"), CHINESE)
        for name in ("config.json", "model.safetensors", "tokenizer.txt"):
            self.assertEqual((self.folder / "a" / name).read_bytes(), (self.folder / "b" / name).read_bytes(), name)
        metrics = (self.folder / "b" / "metrics.jsonl").read_text(encoding="utf-8")
        self.assertNotRegex(metrics, CHINESE)

    def test_results_stay_as_they_are(self):
        folder = self.folder / "m"
        self.train(folder)
        for args in (["inspect", folder], ["eval", folder, "--test", self.text, "--json"],
                     ["generate", folder, "the", "--max-tokens", "5", "--seed", "1"]):
            self.assertNotRegex(self.said(*args, FOVEA_LANG="zh")[0], CHINESE)

    def test_pages_and_steps_follow_the_same_choice(self):
        folder = self.folder / "m"
        self.train(folder)
        page = self.folder / "page.html"
        self.said("report", folder, "-o", page, FOVEA_LANG="zh")
        self.assertIn('lang="zh', page.read_text(encoding="utf-8"))
        steps, _ = self.said("explain", "--q", "是", "--kv", "你人", LANG="zh_CN.UTF-8")
        self.assertEqual(steps, self.said("explain", "--q", "是", "--kv", "你人", "--lang", "zh")[0])
        self.assertEqual(self.said("demo", "padding-mask", FOVEA_LANG="zh"), self.said("demo", "padding-mask", "--lang", "zh"))

    def test_a_command_that_reads_the_variable_does_not_warn_of_it(self):
        self.assertEqual(self.said("demo", "padding-mask", FOVEA_LANG="zh")[1], "")


if __name__ == "__main__":
    unittest.main()
