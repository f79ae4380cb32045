# SPDX-License-Identifier: Apache-2.0
"""Small folders of sentence encoders with random weights, and what BERT makes of a text, in plain Python."""

import json
import math
import pathlib
import random
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
from tensor_files import Tensor, safetensors_bytes

WORDS = ["the", "cat", "dog", "sees", "moon", "old", "king", "run", "##ning", "##s", "un", "##able", "cafe", "中", "!", ",", "."]
MARKS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
VOCABULARY = MARKS + WORDS
CONFIG = {"model_type": "bert", "architectures": ["BertModel"], "vocab_size": len(VOCABULARY), "hidden_size": 8,
          "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 12, "max_position_embeddings": 16,
          "type_vocab_size": 2, "layer_norm_eps": 1e-12, "hidden_act": "gelu", "position_embedding_type": "absolute"}
MODULES = [{"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
           {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
           {"idx": 2, "name": "2", "path": "2_Normalize", "type": "sentence_transformers.models.Normalize"}]
POOLING = {"word_embedding_dimension": 8, "pooling_mode_cls_token": False, "pooling_mode_mean_tokens": True,
           "pooling_mode_max_tokens": False, "pooling_mode_mean_sqrt_len_tokens": False}


def shapes(config=None):
    c = {**CONFIG, **(config or {})}
    width, hidden = c["hidden_size"], c["intermediate_size"]
    found = {"embeddings.word_embeddings.weight": (c["vocab_size"], width),
             "embeddings.position_embeddings.weight": (c["max_position_embeddings"], width),
             "embeddings.token_type_embeddings.weight": (c["type_vocab_size"], width)}

    def linear(name, out, columns):
        found.update({f"{name}.weight": (out, columns), f"{name}.bias": (out,)})

    def norm(name):
        found.update({f"{name}.weight": (width,), f"{name}.bias": (width,)})

    norm("embeddings.LayerNorm")
    for n in range(c["num_hidden_layers"]):
        layer = f"encoder.layer.{n}"
        for part in ("query", "key", "value"):
            linear(f"{layer}.attention.self.{part}", width, width)
        linear(f"{layer}.attention.output.dense", width, width)
        norm(f"{layer}.attention.output.LayerNorm")
        linear(f"{layer}.intermediate.dense", hidden, width)
        linear(f"{layer}.output.dense", width, hidden)
        norm(f"{layer}.output.LayerNorm")
    return found


def weights(seed=1, config=None):
    """Numbers with few bits, so that F16 and BF16 hold them as they are."""
    rng = random.Random(seed)

    def number(name):
        return rng.randint(-64, 64) / 128 + (1 if name.endswith("LayerNorm.weight") else 0)

    return {name: Tensor("F32", shape, [number(name) for _ in range(math.prod(shape))])
            for name, shape in shapes(config).items()}


def tokenizer_json():
    def added(text):
        return {"id": VOCABULARY.index(text), "content": text, "single_word": False, "lstrip": False, "rstrip": False,
                "normalized": False, "special": True}

    def mark(text, kind=0):
        return {"SpecialToken": {"id": text, "type_id": kind}}

    def text(name, kind=0):
        return {"Sequence": {"id": name, "type_id": kind}}

    return {"version": "1.0", "truncation": None, "padding": None, "added_tokens": [added(text) for text in MARKS],
            "normalizer": {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True,
                           "strip_accents": None, "lowercase": True},
            "pre_tokenizer": {"type": "BertPreTokenizer"},
            "post_processor": {"type": "TemplateProcessing",
                               "single": [mark("[CLS]"), text("A"), mark("[SEP]")],
                               "pair": [mark("[CLS]"), text("A"), mark("[SEP]"), text("B", 1), mark("[SEP]", 1)],
                               "special_tokens": {text: {"id": text, "ids": [VOCABULARY.index(text)], "tokens": [text]}
                                                  for text in ("[CLS]", "[SEP]")}},
            "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
            "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
                      "max_input_chars_per_word": 100, "vocab": {text: n for n, text in enumerate(VOCABULARY)}}}


def write_json(path, value):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, ensure_ascii=False), encoding="utf-8")


def write_model(folder, tensors=None, longest=12):
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / "config.json", CONFIG)
    write_json(folder / "tokenizer.json", tokenizer_json())
    write_json(folder / "modules.json", MODULES)
    write_json(folder / "1_Pooling" / "config.json", POOLING)
    write_json(folder / "sentence_bert_config.json", {"max_seq_length": longest, "do_lower_case": False})
    (folder / "model.safetensors").write_bytes(safetensors_bytes(tensors or weights()))
    return folder


def write_mpnet(folder, head=None):
    """A folder of MPNet: its blocks share biases by distance, and tokens have no types; with a head for these labels."""
    names = {"attention.self.query": "attention.attn.q", "attention.self.key": "attention.attn.k",
             "attention.self.value": "attention.attn.v", "attention.output.dense": "attention.attn.o",
             "attention.output.LayerNorm": "attention.LayerNorm"}

    def renamed(name):
        return next((name.replace(old, new) for old, new in names.items() if old in name), name)

    width = CONFIG["hidden_size"]
    body = {renamed(name): tensor for name, tensor in weights().items() if "token_type" not in name}
    body["encoder.relative_attention_bias.weight"] = Tensor("F32", (32, CONFIG["num_attention_heads"]),
                                                           [n / 64 for n in range(32 * CONFIG["num_attention_heads"])])
    config = {name: value for name, value in CONFIG.items() if name not in ("type_vocab_size", "position_embedding_type")}
    config.update(model_type="mpnet", architectures=["MPNetModel"], relative_attention_num_buckets=32, pad_token_id=0)
    if head:
        rng = random.Random(6)
        body = {f"mpnet.{name}": tensor for name, tensor in body.items()}
        for name, shape in {"dense.weight": (width, width), "dense.bias": (width,), "out_proj.weight": (len(head), width),
                            "out_proj.bias": (len(head),)}.items():
            body[f"classifier.{name}"] = Tensor("F32", shape, [rng.randint(-64, 64) / 64 for _ in range(math.prod(shape))])
        config.update(architectures=["MPNetForSequenceClassification"], id2label={str(n): label for n, label in enumerate(head)},
                      label2id={label: n for n, label in enumerate(head)})
    write_model(folder, body)
    write_json(folder / "config.json", config)
    if head:
        (folder / "modules.json").unlink()
    return folder


# ---- the definition, in double

def tokens(text, longest=12):
    """Of words of VOCABULARY with blanks between them; "running" is two."""
    ids = []
    for word in text.lower().split():
        pieces = next(([word[:n], "##" + word[n:]] for n in range(1, len(word)) if "##" + word[n:] in WORDS and word[:n] in WORDS),
                      [word if word in VOCABULARY else "[UNK]"])
        ids += map(VOCABULARY.index, pieces)
    return [VOCABULARY.index("[CLS]"), *ids[:longest - 2], VOCABULARY.index("[SEP]")]


def normed(x, tensors, name, epsilon=1e-12):
    gain, bias = tensors[name + ".weight"].values, tensors[name + ".bias"].values
    mean = sum(x) / len(x)
    deviation = math.sqrt(sum((v - mean) ** 2 for v in x) / len(x) + epsilon)
    return [(v - mean) / deviation * g + b for v, g, b in zip(x, gain, bias)]


def linear(x, tensors, name):
    weight, bias = tensors[name + ".weight"], tensors[name + ".bias"].values
    return [sum(a * b for a, b in zip(x, weight.row(n))) + bias[n] for n in range(weight.shape[0])]


def attended(rows, tensors, layer):
    width, heads = CONFIG["hidden_size"], CONFIG["num_attention_heads"]
    head = width // heads
    q, k, v = ([linear(x, tensors, f"{layer}.attention.self.{part}") for x in rows] for part in ("query", "key", "value"))
    out = [[] for _ in rows]
    for h in range(heads):
        part = slice(h * head, (h + 1) * head)
        for n, _ in enumerate(rows):
            scores = [sum(a * b for a, b in zip(q[n][part], key[part])) / math.sqrt(head) for key in k]
            powers = [math.exp(score - max(scores)) for score in scores]
            out[n] += [sum(p * value[part][c] for p, value in zip(powers, v)) / sum(powers) for c in range(head)]
    return out


def rows_of(ids, tensors):
    def row(name, n):
        return tensors[f"embeddings.{name}_embeddings.weight"].row(n)

    x = [normed([sum(parts) for parts in zip(row("word", token), row("position", n), row("token_type", 0))], tensors,
                "embeddings.LayerNorm") for n, token in enumerate(ids)]
    for n in range(CONFIG["num_hidden_layers"]):
        layer = f"encoder.layer.{n}"
        seen = [linear(y, tensors, f"{layer}.attention.output.dense") for y in attended(x, tensors, layer)]
        x = [normed([a + b for a, b in zip(*pair)], tensors, f"{layer}.attention.output.LayerNorm") for pair in zip(x, seen)]
        hidden = [[v * (1 + math.erf(v / math.sqrt(2))) / 2 for v in linear(y, tensors, f"{layer}.intermediate.dense")] for y in x]
        out = [linear(y, tensors, f"{layer}.output.dense") for y in hidden]
        x = [normed([a + b for a, b in zip(*pair)], tensors, f"{layer}.output.LayerNorm") for pair in zip(x, out)]
    return x


def unit(x):
    length = math.sqrt(sum(v * v for v in x))
    return [v / length for v in x]


def vector(text, tensors, pooling="mean", normalize=True, longest=12):
    columns = list(zip(*rows_of(tokens(text, longest), tensors)))
    pooled = {"mean": [sum(c) / len(c) for c in columns], "cls": [c[0] for c in columns], "max": [max(c) for c in columns]}
    return unit(pooled[pooling]) if normalize else pooled[pooling]


# ---- heads

def write_head(folder, kind, labels, problem=None, seed=5):
    """A folder of BertForSequenceClassification or BertForTokenClassification, and its tensors, without "bert."."""
    rng = random.Random(seed)

    def numbers(*shape):
        return Tensor("F32", shape, [rng.randint(-64, 64) / 64 for _ in range(math.prod(shape))])

    width = CONFIG["hidden_size"]
    body = weights(seed)
    if kind == "Sequence":
        body.update({"pooler.dense.weight": numbers(width, width), "pooler.dense.bias": numbers(width)})
    head = {"classifier.weight": numbers(len(labels), width), "classifier.bias": numbers(len(labels))}
    write_json(folder / "config.json", {
        **CONFIG, "architectures": [f"BertFor{kind}Classification"], "id2label": {str(n): label for n, label in enumerate(labels)},
        "label2id": {label: n for n, label in enumerate(labels)}, **({"problem_type": problem} if problem else {})})
    write_json(folder / "tokenizer.json", tokenizer_json())
    write_json(folder / "tokenizer_config.json", {"model_max_length": 12})
    stored = {**{f"bert.{name}": tensor for name, tensor in body.items()}, **head}
    (folder / "model.safetensors").write_bytes(safetensors_bytes(stored))
    return folder, {**body, **head}


def text_logits(text, tensors):
    first = rows_of(tokens(text), tensors)[0]
    return linear([math.tanh(v) for v in linear(first, tensors, "pooler.dense")], tensors, "classifier")


def word_logits(words, tensors):
    """Of each word by its first subword. No text is longer than the model's longest."""
    ids, places = [VOCABULARY.index("[CLS]")], []
    for word in words:
        places.append(len(ids))
        ids += tokens(word)[1:-1]
    rows = rows_of([*ids, VOCABULARY.index("[SEP]")], tensors)
    return [linear(rows[place], tensors, "classifier") for place in places]


def softmax(x):
    powers = [math.exp(v - max(x)) for v in x]
    return [p / sum(powers) for p in powers]


def sigmoid(x):
    return [1 / (1 + math.exp(-v)) for v in x]


if __name__ == "__main__":  # for the examples
    write_model(pathlib.Path(sys.argv[1]))
