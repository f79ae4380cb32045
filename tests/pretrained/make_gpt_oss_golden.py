# SPDX-License-Identifier: Apache-2.0
"""Writes gpt_oss_golden.h: logits, a loss and its gradients of small models of GPT-OSS by transformers.

    python3 tests/pretrained/make_gpt_oss_golden.py > tests/pretrained/gpt_oss_golden.h     (transformers 5, PyTorch 2)

Weights are the numbers of a sequence, tensor after tensor, so that the test has the same. Texts are longer than the windows, and
gates and what they multiply go beyond their limits. A batch is padded. A gradient is told by the sum of its squares, and by that
of its products with cosines.
"""

import json
import math

import torch
from transformers import GptOssConfig, GptOssForCausalLM

TEXTS = [[1, 5, 13, 4, 8, 7, 11, 2, 9, 9, 3], [6, 12, 10, 3, 1], [2, 8]]
SIZES = {"vocab_size": 14, "hidden_size": 12, "intermediate_size": 10, "max_position_embeddings": 32, "hidden_act": "silu",
         "attention_bias": True, "tie_word_embeddings": False, "swiglu_limit": 7.0, "eos_token_id": 1}
KINDS = {"s": "sliding_attention", "f": "full_attention"}
CASES = {
    "grouped queries, yarn": ("sfs", 1, {
        "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 6, "num_local_experts": 5, "num_experts_per_tok": 2,
        "sliding_window": 4, "rms_norm_eps": 1e-3, "rope_parameters": {
            "rope_type": "yarn", "rope_theta": 500.0, "factor": 4.0, "beta_fast": 4.0, "beta_slow": 0.5, "truncate": False,
            "original_max_position_embeddings": 8}}),
    "one expert of three": ("fs", 5001, {
        "num_attention_heads": 3, "num_key_value_heads": 3, "head_dim": 8, "num_local_experts": 3, "num_experts_per_tok": 1,
        "sliding_window": 3, "rms_norm_eps": 1e-5, "rope_parameters": {"rope_type": "default", "rope_theta": 40.0}}),
    "all experts": ("s", 9001, {
        "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 4, "num_local_experts": 4, "num_experts_per_tok": 4,
        "sliding_window": 2, "rms_norm_eps": 1e-5, "rope_parameters": {"rope_type": "linear", "factor": 2.0, "rope_theta": 90.0}}),
}


def numbers(count, first):
    whole = torch.arange(first, first + count, dtype=torch.int64)
    whole = (whole * 2654435761 + whole * whole * 40503) % 2**32
    return ((whole.double() / 2**32 - 0.5) * 0.8).float()


def factor_of(name):
    return 16 if "gate_up_proj" in name else 4 if "router" in name or "sinks" in name else 1


def ours(name):
    for theirs, mine in (("model.embed_tokens.weight", "embedding.tokens"), ("model.norm", "norm"), ("lm_head", "output"),
                         ("model.layers.", "blocks."), ("input_layernorm", "attention_norm"), ("self_attn.sinks", "attention.sink"),
                         ("post_attention_layernorm", "feed_forward_norm"), ("self_attn.o_proj", "attention.out"),
                         ("self_attn.q_proj", "attention.qkv"), ("self_attn.k_proj", "attention.qkv"),
                         ("self_attn.v_proj", "attention.qkv"), ("mlp.router", "feed_forward.router"),
                         ("mlp.experts.gate_up_proj_bias", "feed_forward.in.bias"), ("mlp.experts.gate_up_proj", "feed_forward.in.weight"),
                         ("mlp.experts.down_proj_bias", "feed_forward.out.bias"), ("mlp.experts.down_proj", "feed_forward.out.weight")):
        name = name.replace(theirs, mine)
    return name


def order(name):
    """q, k and v stand one behind another in a tensor of ours."""
    return next((n for n, part in enumerate(("q_proj", "k_proj", "v_proj")) if part in name), 0)


def model_of(layers, first, options):
    config = {**SIZES, **options, "num_hidden_layers": len(layers), "layer_types": [KINDS[kind] for kind in layers]}
    model = GptOssForCausalLM(GptOssConfig(**config, pad_token_id=None, attn_implementation="eager", experts_implementation="eager")).eval()
    with torch.no_grad():
        for name, values in model.named_parameters():
            values.copy_(numbers(values.numel(), first).reshape(values.shape) * factor_of(name))
            if "norm" in name:
                values += 1
            first += values.numel()
    return model.double(), {"model_type": "gpt_oss", "architectures": ["GptOssForCausalLM"], **config}


print("""// SPDX-License-Identifier: Apache-2.0
// Made by make_gpt_oss_golden.py.
// clang-format off
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace fovea {

struct GoldenGptOss {
  std::string_view name;
  std::string_view config;  // config.json
  std::uint64_t first;      // of the numbers
  struct Stored {
    std::string_view name;
    std::vector<std::int64_t> shape;
  };
  std::vector<Stored> tensors;
  std::vector<double> logits;  // [all tokens, vocabulary]
  double loss;                 // mean over the tokens but the first of each text
  struct Gradient {
    std::string_view parameter;
    double squares;  // the sum of its squares
    double waves;    // the sum over i of its i-th number times cos(i)
  };
  std::vector<Gradient> gradients;
};

inline const std::vector<std::vector<std::int32_t>> kGptOssTexts = {""")
for text in TEXTS:
    print(f"    {{{', '.join(map(str, text))}}},")
print("};\n\ninline const GoldenGptOss kGoldenGptOss[] = {")
for name, (layers, first, options) in CASES.items():
    model, config = model_of(layers, first, options)
    longest = max(map(len, TEXTS))
    ids = torch.tensor([text + [0] * (longest - len(text)) for text in TEXTS])
    seen = torch.tensor([[1] * len(text) + [0] * (longest - len(text)) for text in TEXTS])
    logits = model(ids, attention_mask=seen).logits
    targets = torch.full_like(ids, -100)
    for n, text in enumerate(TEXTS):
        targets[n, :len(text) - 1] = torch.tensor(text[1:])
    loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten())
    loss.backward()
    gradients = {}
    for theirs, values in sorted(model.named_parameters(), key=lambda one: order(one[0])):
        gradient = values.grad
        if values.ndim == 3:  # ours are [experts out, in]
            gradient = gradient.transpose(1, 2)
        gradients.setdefault(ours(theirs), []).extend(gradient.flatten().tolist())
    print(f'    {{"{name}",\n     R"({json.dumps(config)})", {first}, {{')
    for theirs, values in model.named_parameters():
        print(f'      {{"{theirs}", {{{", ".join(map(str, values.shape))}}}}},')
    print("     }, {")
    for row in logits[seen.bool()].tolist():
        print("      " + " ".join(f"{value:.8g}," for value in row))
    print(f"     }}, {loss.item():.9g}, {{")
    for parameter, values in gradients.items():
        squares = sum(value * value for value in values)
        waves = sum(value * math.cos(i) for i, value in enumerate(values))
        print(f'      {{"{parameter}", {squares:.8g}, {waves:.8g}}},')
    print("     }},")
print("};\n\n}  // namespace fovea")
