# SPDX-License-Identifier: Apache-2.0
"""Small GGUF files: a Llama of random weights, with a vocabulary of bytes."""

import random
import struct

U32, I32, F32, BOOL, STRING, ARRAY = 4, 5, 6, 7, 8, 9
WIDTH, FF, LAYERS, HEADS, KV_HEADS, CONTEXT = 16, 24, 2, 4, 2, 32
MARKS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
MERGES = ["t h", "Ġ th", "Ġth e"]
CHATML = ("{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}{{ '<|im_start|>system\n"
          "You are kind.<|im_end|>\n' }}{% endif %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + "
          "'<|im_end|>' + '\n'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}")


def letters():
    """GPT-2's letters for the 256 bytes, in the order of these."""
    prints = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = iter(range(256, 512))
    return [chr(byte) if byte in prints else chr(next(others)) for byte in range(256)]


def text(value):
    data = value.encode()
    return struct.pack("<Q", len(data)) + data


def pair(key, kind, value):
    head = text(key) + struct.pack("<I", kind)
    if kind == STRING:
        return head + text(value)
    if kind == ARRAY:
        element, values = value
        body = b"".join(text(one) if element == STRING else struct.pack("<f" if element == F32 else "<i", one) for one in values)
        return head + struct.pack("<IQ", element, len(values)) + body
    return head + struct.pack({U32: "<I", F32: "<f", BOOL: "<?"}[kind], value)


def pairs(**changed):
    """The metadata; a key is changed by its name with _ for each dot, or left out by None."""
    names = [*MARKS, *letters(), *(merge.replace(" ", "") for merge in MERGES)]
    kinds = [3] * len(MARKS) + [1] * (len(names) - len(MARKS))
    all_pairs = {
        "general.architecture": (STRING, "llama"),
        "llama.block_count": (U32, LAYERS),
        "llama.context_length": (U32, CONTEXT),
        "llama.embedding_length": (U32, WIDTH),
        "llama.feed_forward_length": (U32, FF),
        "llama.attention.head_count": (U32, HEADS),
        "llama.attention.head_count_kv": (U32, KV_HEADS),
        "llama.rope.freq_base": (F32, 10000.0),
        "llama.attention.layer_norm_rms_epsilon": (F32, 1e-5),
        "tokenizer.ggml.model": (STRING, "gpt2"),
        "tokenizer.ggml.pre": (STRING, "smollm"),
        "tokenizer.ggml.tokens": (ARRAY, (STRING, names)),
        "tokenizer.ggml.token_type": (ARRAY, (I32, kinds)),
        "tokenizer.ggml.merges": (ARRAY, (STRING, MERGES)),
        "tokenizer.ggml.bos_token_id": (U32, 1),
        "tokenizer.ggml.eos_token_id": (U32, 2),
        "tokenizer.chat_template": (STRING, CHATML),
    }
    for name, value in changed.items():
        key = next((key for key in all_pairs if key.replace(".", "_") == name), name.replace("__", "."))
        all_pairs[key] = value
    return [pair(key, *value) for key, value in all_pairs.items() if value is not None]


def tensors(seed=1, ff=FF, draws=True):
    """Values are drawn, or all alike, which is quick for many."""
    rng = random.Random(seed)
    vocabulary = len(MARKS) + 256 + len(MERGES)
    head = WIDTH // HEADS
    shapes = {"token_embd.weight": (vocabulary, WIDTH), "output_norm.weight": (WIDTH,)}
    for n in range(LAYERS):
        shapes |= {f"blk.{n}.attn_norm.weight": (WIDTH,), f"blk.{n}.ffn_norm.weight": (WIDTH,),
                   f"blk.{n}.attn_q.weight": (WIDTH, WIDTH), f"blk.{n}.attn_k.weight": (KV_HEADS * head, WIDTH),
                   f"blk.{n}.attn_v.weight": (KV_HEADS * head, WIDTH), f"blk.{n}.attn_output.weight": (WIDTH, WIDTH),
                   f"blk.{n}.ffn_up.weight": (ff, WIDTH), f"blk.{n}.ffn_gate.weight": (ff, WIDTH),
                   f"blk.{n}.ffn_down.weight": (WIDTH, ff)}
    for name, shape in shapes.items():
        count = shape[0] * (shape[1] if len(shape) == 2 else 1)
        middle = 1.0 if len(shape) == 1 else 0.0
        if draws:
            yield name, shape, struct.pack(f"<{count}f", *(middle + rng.gauss(0, 0.3) for _ in range(count)))
        else:
            yield name, shape, struct.pack("<f", middle + 0.01) * count


def padded(data):
    return data + b"\0" * (-len(data) % 32)


def gguf(seed=1, brain=False, ff=FF, **changed):
    """The bytes of a file. `brain`: its matrices are bfloat16, the upper halves of float32."""
    values = list(tensors(seed, ff, draws=ff == FF))
    metadata, entries, data = pairs(llama_feed_forward_length=(U32, ff), **changed), b"", b""
    for name, shape, one in values:
        halved = brain and len(shape) == 2
        entries += text(name) + struct.pack("<I", len(shape))
        entries += struct.pack(f"<{len(shape)}Q", *reversed(shape)) + struct.pack("<IQ", 30 if halved else 0, len(data))
        data += padded(b"".join(one[at + 2:at + 4] for at in range(0, len(one), 4)) if halved else one)
    header = b"GGUF" + struct.pack("<IQQ", 3, len(values), len(metadata)) + b"".join(metadata) + entries
    return padded(header) + data
