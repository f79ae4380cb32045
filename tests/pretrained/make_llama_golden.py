# SPDX-License-Identifier: Apache-2.0
"""Writes llama_golden.h: logits, a loss and its gradients of small Llama models by transformers.

    python3 tests/pretrained/make_llama_golden.py > tests/pretrained/llama_golden.h     (transformers 5, PyTorch 2)

Weights are the numbers of a sequence, in the order of `tensors`, so that the test has the same.
"""

import torch
from transformers import LlamaConfig, LlamaForCausalLM

CASES = {
    "grouped queries, tied": dict(heads=4, kv_heads=2, head_dim=4, tied=True, epsilon=1e-5, base=10000.0, window=16),
    "one head of keys, wide heads": dict(heads=3, kv_heads=1, head_dim=8, tied=False, epsilon=1e-2, base=500.0, window=16),
}
WIDTH, FF, LAYERS, VOCABULARY, TOKENS = 12, 20, 2, 14, 11


def tensors(case):
    """Name, shape, and our parameter."""
    q, kv = case["heads"] * case["head_dim"], case["kv_heads"] * case["head_dim"]
    yield "model.embed_tokens.weight", (VOCABULARY, WIDTH), "embedding.tokens"
    for n in range(LAYERS):
        for name, shape, ours in (
            ("input_layernorm", (WIDTH,), "attention_norm"),
            ("self_attn.q_proj", (q, WIDTH), "attention.qkv"),
            ("self_attn.k_proj", (kv, WIDTH), "attention.qkv"),
            ("self_attn.v_proj", (kv, WIDTH), "attention.qkv"),
            ("self_attn.o_proj", (WIDTH, q), "attention.out"),
            ("post_attention_layernorm", (WIDTH,), "feed_forward_norm"),
            ("mlp.gate_proj", (FF, WIDTH), "feed_forward.gate"),
            ("mlp.up_proj", (FF, WIDTH), "feed_forward.in"),
            ("mlp.down_proj", (WIDTH, FF), "feed_forward.out"),
        ):
            yield f"model.layers.{n}.{name}.weight", shape, f"blocks.{n}.{ours}.weight"
    yield "model.norm.weight", (WIDTH,), "norm.weight"
    if not case["tied"]:
        yield "lm_head.weight", (VOCABULARY, WIDTH), "output.weight"


def numbers(count, first):
    whole = torch.arange(first, first + count, dtype=torch.int64)
    whole = (whole * 2654435761 + whole * whole * 40503) % 2**32
    return ((whole.double() / 2**32 - 0.5) * 0.8).float()


def model_of(case):
    config = LlamaConfig(
        vocab_size=VOCABULARY, hidden_size=WIDTH, intermediate_size=FF, num_hidden_layers=LAYERS,
        num_attention_heads=case["heads"], num_key_value_heads=case["kv_heads"], head_dim=case["head_dim"],
        rms_norm_eps=case["epsilon"], tie_word_embeddings=case["tied"], max_position_embeddings=case["window"],
        rope_parameters={"rope_type": "default", "rope_theta": case["base"]}, attn_implementation="eager")
    model = LlamaForCausalLM(config)
    parameters = dict(model.named_parameters())
    first = 1
    with torch.no_grad():
        for name, shape, _ in tensors(case):
            values = numbers(torch.Size(shape).numel(), first).reshape(shape)
            first += values.numel()
            parameters[name].copy_(values + 1 if len(shape) == 1 else values)
    return model.eval(), parameters


print("""// SPDX-License-Identifier: Apache-2.0
// Made by make_llama_golden.py.
// clang-format off
#pragma once

#include <string_view>
#include <vector>

namespace fovea {

struct GoldenLlama {
  std::string_view name;
  int heads, kv_heads, head_dim;
  bool tied;
  double epsilon, base;
  std::vector<double> logits;  // [tokens, vocabulary]
  double loss;                 // mean over the tokens but the first
  struct Gradient {
    std::string_view parameter;
    double squares;  // the sum of its squares
  };
  std::vector<Gradient> gradients;
};
""")
print(f"inline constexpr int kGoldenWidth = {WIDTH}, kGoldenFf = {FF}, kGoldenLayers = {LAYERS}, "
      f"kGoldenVocabulary = {VOCABULARY};")
ids = [(3 * n * n + n) % VOCABULARY for n in range(TOKENS)]
print(f"inline const std::vector<int> kGoldenIds = {{{', '.join(map(str, ids))}}};\n")
print("inline const GoldenLlama kGoldenLlamas[] = {")
for name, case in CASES.items():
    model, parameters = model_of(case)
    batch = torch.tensor([ids])
    logits = model(batch).logits[0]
    loss = torch.nn.functional.cross_entropy(logits[:-1], batch[0, 1:])
    loss.backward()
    sums = {}
    for theirs, _, ours in tensors(case):
        sums[ours] = sums.get(ours, 0) + parameters[theirs].grad.double().square().sum().item()
    print(f'    {{"{name}", {case["heads"]}, {case["kv_heads"]}, {case["head_dim"]}, {str(case["tied"]).lower()}, '
          f'{case["epsilon"]}, {case["base"]},\n     {{')
    for row in logits.tolist():
        print("      " + " ".join(f"{value:.7g}," for value in row))
    print(f"     }},\n     {loss.item():.9g},\n     {{")
    for parameter, value in sums.items():
        print(f'      {{"{parameter}", {value:.8g}}},')
    print("     }},")
print("};\n\n}  // namespace fovea")
