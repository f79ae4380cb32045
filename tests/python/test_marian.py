# SPDX-License-Identifier: Apache-2.0
"""Translators that transformers has written, read by fovea: scores and translations are the same. Small random models of
Marian, and random strings."""

import json
import pathlib
import random
import tempfile
import unittest
import warnings

try:
    import sentencepiece
    import torch
    import transformers
except ImportError as error:
    raise unittest.SkipTest(f"{error.name} is not installed: translators of transformers are not read") from error

import support

import fovea

warnings.filterwarnings("ignore", message=".*sacremoses.*")
transformers.logging.disable_progress_bar()
LONGEST = 40
MODELS = {
    "one table": {"activation_function": "swish", "scale_embedding": True},
    "one table, other layers": {"activation_function": "relu", "encoder_layers": 1, "encoder_attention_heads": 2,
                                "decoder_attention_heads": 2},
    "a table for each side": {"share_encoder_decoder_embeddings": False, "activation_function": "gelu"},
    "and one for the logits": {"share_encoder_decoder_embeddings": False, "tie_word_embeddings": False,
                               "activation_function": "silu", "scale_embedding": True},
}
WORDS = ["the", "model", ">>fra<<", "</s>", "<unk>", ">>", "<<", "attention", "\u2581", "é", "e\u0301", "中文", "😀", "\u00a0", "ﬁ",
         "Ⅳ", "\u200b", "n't", " . ", "of", "reads", "<s>", "a", "weights", "I", "1234"]


class MarianTest(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)
        text = self.folder / "text.txt"
        text.write_text("\n".join(filter(None, (support.ROOT / "docs/DESIGN.md").read_text(encoding="utf-8").split("\n"))))
        for side, size in (("source", 300), ("target", 280)):
            sentencepiece.SentencePieceTrainer.train(input=str(text), model_prefix=str(self.folder / side), vocab_size=size,
                                                     character_coverage=0.98, minloglevel=2)
            (self.folder / f"{side}.model").rename(self.folder / f"{side}.spm")

    def vocabulary(self, *sides):
        ids = {"</s>": 0, "<unk>": 1}
        for side in sides:
            pieces = sentencepiece.SentencePieceProcessor(model_file=str(self.folder / f"{side}.spm"))
            for n in range(3, pieces.get_piece_size()):
                ids.setdefault(pieces.id_to_piece(n), len(ids))
        ids.setdefault(">>fra<<", len(ids))
        while len(ids) < 320:  # both sides end with padding
            ids[f"\u2581unused{len(ids)}"] = len(ids)
        ids["<pad>"] = len(ids)
        return ids

    def save(self, name, seed, dtype=torch.float32, **generation):
        torch.manual_seed(seed)
        options = MODELS[name]
        separate = not options.get("share_encoder_decoder_embeddings", True)
        files = {"vocab": self.vocabulary("source") if separate else self.vocabulary("source", "target")}
        if separate:
            files["target_vocab"] = self.vocabulary("target")
        for file, ids in files.items():
            (self.folder / f"{file}.json").write_text(json.dumps(ids))
        more = {"separate_vocabs": True, "target_vocab_file": str(self.folder / "target_vocab.json")} if separate else {}
        tokenizer = transformers.MarianTokenizer(*(str(self.folder / f) for f in ("source.spm", "target.spm", "vocab.json")), **more)
        size = len(files["vocab"])
        marks = {"pad_token_id": size - 1, "decoder_start_token_id": size - 1, "eos_token_id": 0, "forced_eos_token_id": 0}
        model = transformers.MarianMTModel(transformers.MarianConfig(**{
            "vocab_size": size, "d_model": 32, "encoder_layers": 2, "decoder_layers": 3, "encoder_attention_heads": 4,
            "decoder_attention_heads": 4, "encoder_ffn_dim": 48, "decoder_ffn_dim": 48, "max_position_embeddings": LONGEST,
            "init_std": 0.3, **marks, **options})).eval()
        with torch.no_grad():
            for parameter in model.parameters():  # gains and biases that are not one and zero
                if parameter.ndim == 1:
                    parameter += 0.3 * torch.randn_like(parameter)
            model.final_logits_bias += 0.5 * torch.randn_like(model.final_logits_bias)
            model.final_logits_bias[0, 0] += 3
        model.generation_config = transformers.GenerationConfig(
            bad_words_ids=[[size - 1]], max_length=LONGEST, **marks, **generation)
        model.to(dtype).save_pretrained(self.folder)
        tokenizer.save_pretrained(self.folder)
        return transformers.MarianMTModel.from_pretrained(self.folder, dtype=torch.float32).eval(), tokenizer

    def lines(self, tokenizer, count=16):
        lines = [line.strip() for line in (support.ROOT / "docs/models.md").read_text(encoding="utf-8").split("\n")]
        lines = [line for line in lines if line and len(tokenizer(line).input_ids) < LONGEST][:count]
        return [*lines, ">>fra<< The model reads", "a </s> b <unk> c", "Ünï 中文 x", ">>xyz<< word", "1"]

    def assert_same(self, model, tokenizer, loaded, **how):
        lines = self.lines(tokenizer)
        with torch.no_grad():
            made = model.generate(**tokenizer(lines, return_tensors="pt", padding=True), output_scores=True,
                                  return_dict_in_generate=True, **how)
        names = {"num_beams": "beam", "length_penalty": "length_penalty"}
        options = {names[name]: value for name, value in how.items() if name in names}
        if how.get("early_stopping") is True:
            options["patience"] = 1
        said = loaded.translations(lines, max_ratio=1000, **options)
        # transformers leaves out padding by its id in the source.
        for ids, one in zip(made.sequences.tolist(), said, strict=True):
            kept = [n for n in ids if n != model.config.pad_token_id]
            self.assertEqual(one["translation"], tokenizer.decode(kept, skip_special_tokens=True), one["source"])
        if "sequences_scores" in made:
            for score, one in zip(made.sequences_scores.tolist(), said, strict=True):
                self.assertAlmostEqual(one["score"], score, delta=1e-4 * max(1, abs(score)), msg=one["source"])

    def test_translations_of_every_model(self):
        for name in MODELS:
            for seed in (1, 2):
                with self.subTest(name, seed=seed):
                    model, tokenizer = self.save(name, seed, num_beams=4, renormalize_logits=seed != 2)
                    loaded = fovea.load(self.folder)
                    self.assert_same(model, tokenizer, loaded)
                    self.assert_same(model, tokenizer, loaded, num_beams=1)
                    self.assert_same(model, tokenizer, loaded, num_beams=3, length_penalty=0.6)

    def test_each_end_of_a_search(self):
        for early in (True, False, "never"):
            with self.subTest(early):
                model, tokenizer = self.save("one table", 4, num_beams=4, length_penalty=1.5, early_stopping=early)
                self.assert_same(model, tokenizer, fovea.load(self.folder))

    def test_other_types_of_weights(self):
        for dtype in (torch.bfloat16, torch.float16):
            with self.subTest(dtype=dtype):
                model, tokenizer = self.save("one table", 5, dtype, num_beams=2)
                self.assert_same(model, tokenizer, fovea.load(self.folder))

    # The ids of both sides, and the logits: other ids would have other probabilities.
    def test_scores_of_random_strings(self):
        rng = random.Random(1)
        model, tokenizer = self.save("one table", 6)
        pairs = []
        while len(pairs) < 300:
            pair = ["".join(rng.choice([rng.choice(WORDS), " "]) for _ in range(rng.randint(1, 8))) for _ in range(2)]
            sizes = [len(tokenizer(pair[0]).input_ids), len(tokenizer(text_target=pair[1]).input_ids)]
            if all(text.strip(" \u2581\u200b\u00a0") for text in pair) and max(sizes) < LONGEST:
                pairs.append(pair)
        for side, name in enumerate(("source", "reference")):
            (self.folder / name).write_text("".join(pair[side] + "\n" for pair in pairs), encoding="utf-8")
        done = support.fovea("eval", self.folder, "--source", self.folder / "source", "--reference", self.folder / "reference",
                             "--score")
        self.assertEqual(done.returncode, 0, done.stderr)
        for (source, target), line in zip(pairs, done.stdout.splitlines(), strict=True):
            ids = tokenizer(text_target=target).input_ids
            given = torch.tensor([[model.config.pad_token_id, *ids[:-1]]])
            with torch.no_grad():
                logits = model(**tokenizer(source, return_tensors="pt"), decoder_input_ids=given).logits[0]
            expected = logits.double().log_softmax(-1)[range(len(ids)), ids].sum().item()
            found, count = line.split("\t")
            self.assertEqual(int(count), len(ids), (source, target))
            self.assertAlmostEqual(float(found), expected, delta=2e-5 * abs(expected), msg=(source, target))


class ExportedTranslator(unittest.TestCase):
    def test_transformers_writes_the_same(self):
        with tempfile.TemporaryDirectory() as temporary:
            folder = pathlib.Path(temporary)
            rng = random.Random(3)
            words = {"one": "eins", "two": "zwei", "three": "drei", "red": "rot"}
            pairs = [[rng.choice(list(words)) for _ in range(n % 5 + 1)] for n in range(120)]
            lines = [" ".join(pair) for pair in pairs]
            (folder / "pairs.tsv").write_text("".join(
                f"{line}\t{' '.join(map(words.get, pair))}\n" for line, pair in zip(lines, pairs)))
            for n, (name, size) in enumerate((("source", 16), ("target", 16))):
                (folder / name).write_text("".join(
                    line.split("\t")[n].strip() + "\n" for line in (folder / "pairs.tsv").read_text().splitlines()))
                done = support.fovea("tokenizer", "train", "--train", folder / name, "--vocab-size", size, "-o",
                                     folder / f"{name}.model")
                self.assertEqual(done.returncode, 0, done.stderr)
            ours = fovea.Translator.train(
                folder / "pairs.tsv", folder / "model", tokenizer="sentencepiece", tokenizer_model=folder / "source.model",
                target_tokenizer_model=folder / "target.model", norm_position="post", encoder_layers=1, decoder_layers=2,
                width=32, heads=2, dropout=0, lr=5e-3, warmup=30, block=24, stop_after="60u")
            done = support.fovea("export", folder / "model", "-o", folder / "out")
            self.assertEqual(done.returncode, 0, done.stderr)
            model = transformers.AutoModelForSeq2SeqLM.from_pretrained(folder / "out", dtype=torch.float32).eval()
            self.assertEqual(type(model).__name__, "MarianMTModel")
            tokenizer = transformers.AutoTokenizer.from_pretrained(folder / "out")
            said = ours.translations(lines, beam=1, max_ratio=1000)
            with torch.no_grad():
                made = model.generate(**tokenizer(lines, return_tensors="pt", padding=True), num_beams=1)
                for line, one in zip(lines, said):
                    ids = tokenizer(text_target=one["translation"]).input_ids
                    if len(ids) != one["tokens"]:
                        continue  # the text is cut in another way than it was written
                    given = torch.tensor([[model.config.decoder_start_token_id, *ids[:-1]]])
                    logits = model(**tokenizer(line, return_tensors="pt"), decoder_input_ids=given).logits[0]
                    expected = logits.double().log_softmax(-1)[range(len(ids)), ids].sum().item()
                    self.assertAlmostEqual(one["log_probability"], expected, delta=1e-4)
            self.assertEqual(tokenizer.batch_decode(made, skip_special_tokens=True), [one["translation"].strip() for one in said])


if __name__ == "__main__":
    unittest.main()
