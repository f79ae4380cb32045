# SPDX-License-Identifier: Apache-2.0
"""Small folders of Marian with random weights, and what such a model says of a text, in plain Python."""

import math
import random
import struct

from bert_support import normed, write_json
from support import FOVEA  # noqa: F401  (finds tools/)
from tensor_files import Tensor, safetensors_bytes

LETTERS = "abcdefghij"
PIECES = [f"\u2581{letter}" for letter in LETTERS]
VOCABULARY = ["</s>", "<unk>", *PIECES, ">>de<<", "<pad>"]
END, UNKNOWN, PADDING = 0, 1, len(VOCABULARY) - 1
WIDTH, HIDDEN, HEADS, LAYERS, LONGEST = 8, 12, 2, 2, 16
CONFIG = {"model_type": "marian", "architectures": ["MarianMTModel"], "vocab_size": len(VOCABULARY), "d_model": WIDTH,
          "encoder_layers": LAYERS, "decoder_layers": LAYERS, "encoder_attention_heads": HEADS, "decoder_attention_heads": HEADS,
          "encoder_ffn_dim": HIDDEN, "decoder_ffn_dim": HIDDEN, "max_position_embeddings": LONGEST, "activation_function": "swish",
          "scale_embedding": True, "eos_token_id": END, "pad_token_id": PADDING, "decoder_start_token_id": PADDING,
          "is_encoder_decoder": True, "normalize_before": False, "static_position_embeddings": True}
GENERATION = {"bad_words_ids": [[PADDING]], "num_beams": 4, "max_length": LONGEST, "eos_token_id": END,
              "forced_eos_token_id": END, "pad_token_id": PADDING, "decoder_start_token_id": PADDING, "renormalize_logits": True}


def shapes():
    found = {"model.shared.weight": (len(VOCABULARY), WIDTH), "final_logits_bias": (1, len(VOCABULARY))}

    def linear(name, out, columns):
        found.update({f"{name}.weight": (out, columns), f"{name}.bias": (out,)})

    for side, attentions in (("encoder", ["self_attn"]), ("decoder", ["self_attn", "encoder_attn"])):
        for n in range(LAYERS):
            layer = f"model.{side}.layers.{n}"
            for attention in attentions:
                for part in ("q", "k", "v", "out"):
                    linear(f"{layer}.{attention}.{part}_proj", WIDTH, WIDTH)
            linear(f"{layer}.fc1", HIDDEN, WIDTH)
            linear(f"{layer}.fc2", WIDTH, HIDDEN)
            for norm in [f"{attention}_layer_norm" for attention in attentions] + ["final_layer_norm"]:
                found.update({f"{layer}.{norm}.weight": (WIDTH,), f"{layer}.{norm}.bias": (WIDTH,)})
    return found


def weights(seed=1):
    rng = random.Random(seed)

    def number(name):
        return rng.randint(-64, 64) / 64 + (1 if "norm" in name and name.endswith("weight") else 0)

    return {name: Tensor("F32", shape, [number(name) for _ in range(math.prod(shape))]) for name, shape in shapes().items()}


def field(number, value):
    """A field of a protocol buffer, of less than 128 bytes."""
    if isinstance(value, float):
        return bytes([number << 3 | 5]) + struct.pack("<f", value)
    if isinstance(value, int):
        return bytes([number << 3, value])
    return bytes([number << 3 | 2, len(value)]) + value


def pieces_model():
    """A .model file of SentencePiece: <unk>, two marks, and words of one letter."""
    pieces = [("<unk>", 0.0, 2), ("<s>", 0.0, 3), ("</s>", 0.0, 3), *((piece, -1.0, 1) for piece in PIECES)]
    spelled = [field(1, text.encode()) + field(2, score) + field(3, kind) for text, score, kind in pieces]
    return b"".join(field(1, piece) for piece in spelled) + field(2, field(3, 1))


def write_marian(folder, tensors=None, config=None, generation=None):
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / "config.json", {**CONFIG, **(config or {})})
    write_json(folder / "generation_config.json", {**GENERATION, **(generation or {})})
    write_json(folder / "vocab.json", {name: n for n, name in enumerate(VOCABULARY)})
    for side in ("source", "target"):
        (folder / f"{side}.spm").write_bytes(pieces_model())
    (folder / "model.safetensors").write_bytes(safetensors_bytes(tensors or weights()))
    return folder


# ---- the definition, in double

def tokens(text):
    """Of letters with blanks between them, behind the code of a language or none."""
    code, rest = ([text[:text.index("<<") + 2]], text[text.index("<<") + 2:]) if text.startswith(">>") else ([], text)
    names = code + [f"\u2581{letter}" for letter in rest.split()]
    return [VOCABULARY.index(name) if name in VOCABULARY else UNKNOWN for name in names]


def text_of(ids):
    return "".join(VOCABULARY[n].replace("\u2581", " ") for n in ids if n > UNKNOWN).strip()


def linear(x, tensors, name):
    weight, bias = tensors[name + ".weight"], tensors[name + ".bias"].values
    return [sum(a * b for a, b in zip(x, weight.row(n))) + bias[n] for n in range(weight.shape[0])]


def embedded(ids, tensors):
    rows = []
    for place, n in enumerate(ids):
        angles = [place / 10000 ** (2 * i / WIDTH) for i in range(WIDTH // 2)]
        waves = [math.sin(angle) for angle in angles] + [math.cos(angle) for angle in angles]
        rows.append([math.sqrt(WIDTH) * x + wave for x, wave in zip(tensors["model.shared.weight"].row(n), waves)])
    return rows


def attended(rows, others, tensors, name, causal):
    q = [linear(x, tensors, f"{name}.q_proj") for x in rows]
    k, v = ([linear(x, tensors, f"{name}.{part}_proj") for x in others] for part in "kv")
    size = WIDTH // HEADS
    out = [[] for _ in rows]
    for h in range(HEADS):
        part = slice(h * size, (h + 1) * size)
        for n, _ in enumerate(rows):
            seen = range(n + 1 if causal else len(others))
            scores = [sum(a * b for a, b in zip(q[n][part], k[m][part])) / math.sqrt(size) for m in seen]
            powers = [math.exp(score - max(scores)) for score in scores]
            out[n] += [sum(p * v[m][part][c] for p, m in zip(powers, seen)) / sum(powers) for c in range(size)]
    return [linear(x, tensors, f"{name}.out_proj") for x in out]


def summed(rows, added, tensors, name):
    return [normed([a + b for a, b in zip(x, y)], tensors, name, 1e-5) for x, y in zip(rows, added)]


def fed(rows, tensors, layer):
    hidden = [[v / (1 + math.exp(-v)) for v in linear(x, tensors, f"{layer}.fc1")] for x in rows]
    return summed(rows, [linear(x, tensors, f"{layer}.fc2") for x in hidden], tensors, f"{layer}.final_layer_norm")


def read(source, tensors):
    x = embedded(source, tensors)
    for n in range(LAYERS):
        layer = f"model.encoder.layers.{n}"
        x = summed(x, attended(x, x, tensors, f"{layer}.self_attn", False), tensors, f"{layer}.self_attn_layer_norm")
        x = fed(x, tensors, layer)
    return x


def logits(source, target, tensors):
    """Those of the token behind each one of the target, which begins with the mark of padding."""
    encoded, x = read(source, tensors), embedded(target, tensors)
    for n in range(LAYERS):
        layer = f"model.decoder.layers.{n}"
        x = summed(x, attended(x, x, tensors, f"{layer}.self_attn", True), tensors, f"{layer}.self_attn_layer_norm")
        x = summed(x, attended(x, encoded, tensors, f"{layer}.encoder_attn", False), tensors, f"{layer}.encoder_attn_layer_norm")
        x = fed(x, tensors, layer)
    table, bias = tensors["model.shared.weight"], tensors["final_logits_bias"].values
    return [[sum(a * b for a, b in zip(row, table.row(n))) + bias[n] for n in range(len(VOCABULARY))] for row in x]


def log_softmax(row):
    most = max(row)
    total = most + math.log(sum(math.exp(x - most) for x in row))
    return [x - total for x in row]


def greedy(source, tensors, longest=LONGEST - 1):
    """The likeliest token in each step, with the end."""
    target = [PADDING]
    while target[-1] != END or len(target) == 1:
        row = logits(source, target, tensors)[-1]
        row[PADDING] = -math.inf
        target.append(END if len(target) == longest else max(range(len(row)), key=row.__getitem__))
    return target[1:]
