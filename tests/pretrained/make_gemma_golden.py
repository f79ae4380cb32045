# SPDX-License-Identifier: Apache-2.0
"""Writes gemma_golden.h: logits, a loss and its gradients of small Gemma models by transformers.

    python3 tests/pretrained/make_gemma_golden.py > tests/pretrained/gemma_golden.h     (transformers 5, PyTorch 2)

Weights are the numbers of a sequence, in the order of `tensors`, so that the test has the same. Caps,
windows and bases are such that a model without one of them has other logits.
"""

import math

import torch
from transformers import (Gemma2Config, Gemma2ForCausalLM, Gemma3ForCausalLM, Gemma3TextConfig, GemmaConfig,
                          GemmaForCausalLM)

WIDTH, FF, VOCABULARY, TOKENS = 12, 20, 14, 11
KINDS = {"s": "sliding_attention", "f": "full_attention"}
CASES = {
    "gemma": dict(layers="ff", heads=2, kv_heads=1, head_dim=8, scalar=8, seen=0, epsilon=1e-4, cap=0.0, logit_cap=0.0,
                  base=300.0, local_base=0.0, factor=0.0),
    "gemma2": dict(layers="sfs", heads=4, kv_heads=2, head_dim=6, scalar=9, seen=5, epsilon=1e-3, cap=0.7,
                   logit_cap=1.25, base=500.0, local_base=0.0, factor=0.0),
    "gemma3": dict(layers="ssfs", heads=3, kv_heads=1, head_dim=8, scalar=5, seen=4, epsilon=1e-5, cap=0.0,
                   logit_cap=0.0, base=2000.0, local_base=40.0, factor=4.0),
}


def tensors(name, case):
    """Name, shape, and our parameter."""
    q, kv = case["heads"] * case["head_dim"], case["kv_heads"] * case["head_dim"]
    yield "model.embed_tokens.weight", (VOCABULARY, WIDTH), "embedding.tokens"
    for n in range(len(case["layers"])):
        sandwich = name != "gemma"
        rows = [
            ("input_layernorm", (WIDTH,), "attention_norm"),
            ("self_attn.q_proj", (q, WIDTH), "attention.qkv"),
            ("self_attn.k_proj", (kv, WIDTH), "attention.qkv"),
            ("self_attn.v_proj", (kv, WIDTH), "attention.qkv"),
            ("self_attn.o_proj", (WIDTH, q), "attention.out"),
            ("post_attention_layernorm", (WIDTH,), "attention_norm.after" if sandwich else "feed_forward_norm"),
            *([("pre_feedforward_layernorm", (WIDTH,), "feed_forward_norm")] if sandwich else []),
            ("mlp.gate_proj", (FF, WIDTH), "feed_forward.gate"),
            ("mlp.up_proj", (FF, WIDTH), "feed_forward.in"),
            ("mlp.down_proj", (WIDTH, FF), "feed_forward.out"),
            *([("post_feedforward_layernorm", (WIDTH,), "feed_forward_norm.after")] if sandwich else []),
        ]
        if case["local_base"]:
            rows += [("self_attn.q_norm", (case["head_dim"],), "attention.q_norm"),
                     ("self_attn.k_norm", (case["head_dim"],), "attention.k_norm")]
        for theirs, shape, ours in rows:
            yield f"model.layers.{n}.{theirs}.weight", shape, f"blocks.{n}.{ours}.weight"
    yield "model.norm.weight", (WIDTH,), "norm.weight"


def numbers(count, first):
    whole = torch.arange(first, first + count, dtype=torch.int64)
    whole = (whole * 2654435761 + whole * whole * 40503) % 2**32
    return ((whole.double() / 2**32 - 0.5) * 0.8).float()


def model_of(name, case):
    sizes = dict(
        vocab_size=VOCABULARY, hidden_size=WIDTH, intermediate_size=FF, num_hidden_layers=len(case["layers"]),
        num_attention_heads=case["heads"], num_key_value_heads=case["kv_heads"], head_dim=case["head_dim"],
        rms_norm_eps=case["epsilon"], max_position_embeddings=16, attn_implementation="eager", pad_token_id=None)
    later = dict(
        query_pre_attn_scalar=case["scalar"], sliding_window=case["seen"],
        layer_types=[KINDS[kind] for kind in case["layers"]], attn_logit_softcapping=case["cap"] or None,
        final_logit_softcapping=case["logit_cap"] or None)
    rope = {"rope_type": "default", "rope_theta": case["base"]}
    if name == "gemma":
        model = GemmaForCausalLM(GemmaConfig(**sizes, rope_parameters=rope))
    elif name == "gemma2":
        model = Gemma2ForCausalLM(Gemma2Config(**sizes, **later, rope_parameters=rope))
    else:
        model = Gemma3ForCausalLM(Gemma3TextConfig(**sizes, **later, rope_parameters={
            "full_attention": {"rope_type": "linear", "factor": case["factor"], "rope_theta": case["base"]},
            "sliding_attention": {"rope_type": "default", "rope_theta": case["local_base"]}}))
    parameters = dict(model.named_parameters())
    first = 1
    with torch.no_grad():
        for tensor, shape, _ in tensors(name, case):
            values = numbers(torch.Size(shape).numel(), first).reshape(shape)
            first += values.numel()
            parameters[tensor].copy_(values)
    return model.eval(), parameters


print("""// SPDX-License-Identifier: Apache-2.0
// Made by make_gemma_golden.py.
// clang-format off
#pragma once

#include <string_view>
#include <vector>

namespace fovea {

struct GoldenGemma {
  std::string_view name;
  std::string_view layers;  // s: with a window, f: without
  int heads, kv_heads, head_dim, scalar, seen;  // keys that a query of a layer with a window sees
  double epsilon, cap, logit_cap, base, local_base, factor;
  std::vector<double> logits;  // [tokens, vocabulary]
  double loss;                 // mean over the tokens but the first
  struct Gradient {
    std::string_view parameter;
    double squares;  // the sum of its squares
    double waves;    // the sum over i of its i-th number times cos(i)
  };
  std::vector<Gradient> gradients;
};
""")
print(f"inline constexpr int kGemmaWidth = {WIDTH}, kGemmaFf = {FF}, kGemmaVocabulary = {VOCABULARY};")
ids = [(3 * n * n + n + 1) % VOCABULARY for n in range(TOKENS)]
print(f"inline const std::vector<int> kGemmaIds = {{{', '.join(map(str, ids))}}};\n")
print("inline const GoldenGemma kGoldenGemmas[] = {")
for name, case in CASES.items():
    model, parameters = model_of(name, case)
    batch = torch.tensor([ids])
    logits = model(batch).logits[0]
    loss = torch.nn.functional.cross_entropy(logits[:-1], batch[0, 1:])
    loss.backward()
    gradients = {}
    for theirs, _, ours in tensors(name, case):
        gradients.setdefault(ours, []).extend(parameters[theirs].grad.double().flatten().tolist())
    sizes = ", ".join(str(case[key]) for key in ("heads", "kv_heads", "head_dim", "scalar", "seen", "epsilon", "cap",
                                                 "logit_cap", "base", "local_base", "factor"))
    print(f'    {{"{name}", "{case["layers"]}", {sizes},\n     {{')
    for row in logits.tolist():
        print("      " + " ".join(f"{value:.7g}," for value in row))
    print(f"     }},\n     {loss.item():.9g},\n     {{")
    for parameter, values in gradients.items():
        squares = sum(value * value for value in values)
        waves = sum(value * math.cos(i) for i, value in enumerate(values))
        print(f'      {{"{parameter}", {squares:.8g}, {waves:.8g}}},')
    print("     }},")
print("};\n\n}  // namespace fovea")
