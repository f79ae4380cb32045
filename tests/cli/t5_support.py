# SPDX-License-Identifier: Apache-2.0
"""Small folders of T5 with random weights, and what such a model says of a text, in plain Python."""

import math
import random

from bert_support import write_json
from marian_support import LETTERS, PIECES, field
from support import FOVEA  # noqa: F401  (finds tools/)
from tensor_files import Tensor, safetensors_bytes

VOCABULARY = ["<pad>", "</s>", "<unk>", *PIECES, "<extra_id_1>", "<extra_id_0>"]
PADDING, END, UNKNOWN = 0, 1, 2
MARKS = ["<pad>", "</s>", "<unk>", "<extra_id_1>", "<extra_id_0>"]
WIDTH, HIDDEN, HEADS, SIZE, LAYERS, LONGEST = 8, 12, 2, 3, 2, 16
BUCKETS, FAR = 8, 12
CONFIG = {"model_type": "t5", "architectures": ["T5ForConditionalGeneration"], "vocab_size": len(VOCABULARY) + 1,
          "d_model": WIDTH, "d_ff": HIDDEN, "d_kv": SIZE, "num_heads": HEADS, "num_layers": LAYERS,
          "relative_attention_num_buckets": BUCKETS, "relative_attention_max_distance": FAR, "feed_forward_proj": "relu",
          "layer_norm_epsilon": 1e-6, "dropout_rate": 0.1, "initializer_factor": 1.0, "n_positions": 512, "output_past": True,
          "is_encoder_decoder": True, "pad_token_id": PADDING, "eos_token_id": END, "decoder_start_token_id": PADDING,
          "task_specific_params": {"summarization": {"num_beams": 4, "prefix": "summarize: "}}}
GATED = {"feed_forward_proj": "gated-gelu", "tie_word_embeddings": False}  # T5 1.1
GENERATION = {"max_length": LONGEST, "pad_token_id": PADDING, "eos_token_id": END, "decoder_start_token_id": PADDING}


def shapes(gated):
    inner = HEADS * SIZE
    found = {"shared.weight": (CONFIG["vocab_size"], WIDTH)}
    if gated:
        found["lm_head.weight"] = (CONFIG["vocab_size"], WIDTH)
    for side, attentions in (("encoder", ["SelfAttention"]), ("decoder", ["SelfAttention", "EncDecAttention"])):
        for n in range(LAYERS):
            for place, attention in enumerate(attentions):
                layer = f"{side}.block.{n}.layer.{place}"
                found.update({f"{layer}.{attention}.{part}.weight": (inner, WIDTH) for part in "qkv"})
                found.update({f"{layer}.{attention}.o.weight": (WIDTH, inner), f"{layer}.layer_norm.weight": (WIDTH,)})
            layer = f"{side}.block.{n}.layer.{len(attentions)}"
            found.update({f"{layer}.DenseReluDense.{name}.weight": (HIDDEN, WIDTH) for name in (["wi_0", "wi_1"] if gated else ["wi"])})
            found.update({f"{layer}.DenseReluDense.wo.weight": (WIDTH, HIDDEN), f"{layer}.layer_norm.weight": (WIDTH,)})
        found[f"{side}.block.0.layer.0.SelfAttention.relative_attention_bias.weight"] = (BUCKETS, HEADS)
        found[f"{side}.final_layer_norm.weight"] = (WIDTH,)
    return found


def weights(seed=1, gated=False):
    rng = random.Random(seed)

    def number(name):
        return rng.randint(-64, 64) / 64 + (1 if "norm" in name else 0)

    return {name: Tensor("F32", shape, [number(name) for _ in range(math.prod(shape))])
            for name, shape in shapes(gated).items()}


def ending(seed, gated=False):
    """Weights of which some greedy texts end."""
    tensors = weights(seed, gated)
    head = tensors["lm_head.weight" if gated else "shared.weight"].values
    head[END * WIDTH:(END + 1) * WIDTH] = [3 * x for x in head[END * WIDTH:(END + 1) * WIDTH]]
    return tensors


def tokenizer_json():
    blanks = {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "always", "split": True}

    def behind(*texts):
        parts = [[{"Sequence": {"id": text, "type_id": 0}}, {"SpecialToken": {"id": "</s>", "type_id": 0}}] for text in texts]
        return [part for two in parts for part in two]

    return {"version": "1.0", "truncation": None, "padding": None,
            "added_tokens": [{"id": VOCABULARY.index(text), "content": text, "single_word": False, "lstrip": False,
                              "rstrip": False, "normalized": False, "special": True} for text in MARKS],
            "normalizer": None,
            "pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"}, blanks]},
            "post_processor": {"type": "TemplateProcessing", "single": behind("A"), "pair": behind("A", "B"),
                               "special_tokens": {"</s>": {"id": "</s>", "ids": [END], "tokens": ["</s>"]}}},
            "decoder": blanks,
            "model": {"type": "Unigram", "unk_id": UNKNOWN, "byte_fallback": False,
                      "vocab": [[text, 0.0 if text in MARKS else -1.0] for text in VOCABULARY]}}


def spiece_model():
    """The pieces before the sentinels."""
    kinds = {"<pad>": 3, "</s>": 3, "<unk>": 2}
    spelled = [field(1, text.encode()) + field(2, 0.0 if text in kinds else -1.0) + field(3, kinds.get(text, 1))
               for text in VOCABULARY[:-2]]
    return b"".join(field(1, piece) for piece in spelled) + field(2, field(3, 1))


def write_t5(folder, tensors=None, config=None, generation=None):
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / "config.json", {**CONFIG, **(config or {})})
    write_json(folder / "generation_config.json", {**GENERATION, **(generation or {})})
    write_json(folder / "tokenizer.json", tokenizer_json())
    (folder / "model.safetensors").write_bytes(safetensors_bytes(tensors or weights()))
    return folder


# ---- the definition, in double

def tokens(text):
    """Of letters and sentinels with blanks between them, and the end."""
    names = [name if name in MARKS else f"\u2581{name}" for name in text.split()]
    return [*(VOCABULARY.index(name) if name in VOCABULARY else UNKNOWN for name in names), END]


def text_of(ids):
    return " ".join(VOCABULARY[n][1:] for n in ids if UNKNOWN < n < UNKNOWN + 1 + len(LETTERS))


def linear(x, tensors, name):
    weight = tensors[name + ".weight"]
    return [sum(a * b for a, b in zip(x, weight.row(n))) for n in range(weight.shape[0])]


def normed(x, tensors, name):
    root = math.sqrt(sum(a * a for a in x) / len(x) + CONFIG["layer_norm_epsilon"])
    return [a / root * gain for a, gain in zip(x, tensors[name + ".weight"].values)]


def bucket(distance, both_ways):
    """Of a key that stands so far behind the query (Raffel et al. 2020, section 2.1; the code of Mesh TensorFlow)."""
    first, count = 0, BUCKETS
    if both_ways:
        count //= 2
        first, distance = (count if distance > 0 else 0), abs(distance)
    else:
        distance = max(-distance, 0)
    exact = count // 2
    if distance >= exact:
        far = exact + int(math.log(distance / exact) / math.log(FAR / exact) * (count - exact))
        distance = min(far, count - 1)
    return first + distance


def attended(rows, others, tensors, layer, attention, side):
    """`side`: whose distances count; none: there are none."""
    name = f"{layer}.{attention}"
    q = [linear(x, tensors, f"{name}.q") for x in rows]
    k, v = ([linear(x, tensors, f"{name}.{part}") for x in others] for part in "kv")
    out = [[] for _ in rows]
    for h in range(HEADS):
        part = slice(h * SIZE, (h + 1) * SIZE)
        for n, _ in enumerate(rows):
            seen = range(n + 1 if side == "decoder" else len(others))
            scores = [sum(a * b for a, b in zip(q[n][part], k[m][part])) for m in seen]
            if side:
                table = tensors[f"{side}.block.0.layer.0.SelfAttention.relative_attention_bias.weight"]
                scores = [s + table.row(bucket(m - n, side == "encoder"))[h] for s, m in zip(scores, seen)]
            powers = [math.exp(score - max(scores)) for score in scores]
            out[n] += [sum(p * v[m][part][c] for p, m in zip(powers, seen)) / sum(powers) for c in range(SIZE)]
    return [linear(x, tensors, f"{name}.o") for x in out]


def summed(rows, added):
    return [[a + b for a, b in zip(x, y)] for x, y in zip(rows, added)]


def gelu(x):
    return 0.5 * x * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x ** 3)))


def fed(rows, tensors, layer):
    name = f"{layer}.DenseReluDense"

    def hidden(x):
        if f"{name}.wi.weight" in tensors:
            return [max(a, 0) for a in linear(x, tensors, f"{name}.wi")]
        return [gelu(a) * b for a, b in zip(linear(x, tensors, f"{name}.wi_0"), linear(x, tensors, f"{name}.wi_1"))]

    return [linear(hidden(normed(x, tensors, f"{layer}.layer_norm")), tensors, f"{name}.wo") for x in rows]


def stack(ids, tensors, side, encoded=None):
    x = [tensors["shared.weight"].row(n) for n in ids]
    for n in range(LAYERS):
        layers = [f"{side}.block.{n}.layer.{place}" for place in range(3)]

        def before(layer):
            return [normed(row, tensors, f"{layer}.layer_norm") for row in x]

        x = summed(x, attended(before(layers[0]), before(layers[0]), tensors, layers[0], "SelfAttention", side))
        if encoded:
            x = summed(x, attended(before(layers[1]), encoded, tensors, layers[1], "EncDecAttention", None))
        x = summed(x, fed(x, tensors, layers[2 if encoded else 1]))
    return [normed(row, tensors, f"{side}.final_layer_norm") for row in x]


def logits(source, target, tensors):
    """Those of the token behind each one of the target, which begins with the mark of padding."""
    x = stack(target, tensors, "decoder", stack(source, tensors, "encoder"))
    if "lm_head.weight" in tensors:
        return [linear(row, tensors, "lm_head") for row in x]
    return [linear([a / math.sqrt(WIDTH) for a in row], tensors, "shared") for row in x]


def greedy(source, tensors, longest=LONGEST - 1):
    """The likeliest token in each step, with the end, if it is among the first `longest`."""
    target = [PADDING]
    while len(target) <= longest and (target[-1] != END or len(target) == 1):
        row = logits(source, target, tensors)[-1]
        target.append(max(range(len(row)), key=row.__getitem__))
    return target[1:]
