# SPDX-License-Identifier: Apache-2.0
"""Writes t5_golden.h: logits, gradients, rows of encoders and texts of small models of T5 by transformers.

    python3 tests/pretrained/make_t5_golden.py > tests/pretrained/t5_golden.h     (transformers 5, PyTorch 2)

Weights are the numbers of a sequence, tensor after tensor, so that the test has the same. The loss is the mean of the squares
of all logits of a padded batch, without those of padding. A gradient is told by the sum of its squares, and by that of its
products with the values of its tensor.
"""

import json

import torch
from transformers import GenerationConfig, MT5Config, MT5ForConditionalGeneration, T5Config, T5ForConditionalGeneration

# Longer than the distances that have a bucket each, on both sides; the first of a batch is not the longest.
SOURCES = [[4, 7, 5, 9, 11, 5, 1], [3, 2, 14, 6, 6, 8, 9, 20, 21, 4, 5, 3, 2, 19, 17, 16, 12, 11, 10, 9, 8, 7, 6, 5, 1], [8, 1],
           [6, 6, 9, 10, 2, 12, 13, 4, 1], [5, 16, 3, 1], [17, 2, 8, 8, 7, 18, 18, 15, 1]]
TARGETS = [[2, 9, 4, 11, 3], [5, 5, 8, 2, 10, 7, 6, 12, 13, 14, 9, 3, 3, 20, 22, 21, 4, 8], []]  # behind the first mark
SIZES = {"vocab_size": 24, "d_model": 8, "d_kv": 3, "d_ff": 12, "num_layers": 2, "num_heads": 2, "decoder_start_token_id": 0,
         "pad_token_id": 0, "eos_token_id": 1}
MARKS = {"decoder_start_token_id": 0, "pad_token_id": 0, "eos_token_id": 1}
# A class, config.json, generation_config.json, whether the logits have a matrix of their own, and the first of the numbers: one
# from which texts have different lengths.
CASES = {
    "T5 1.0": (T5ForConditionalGeneration, T5Config,
               {**SIZES, "feed_forward_proj": "relu", "relative_attention_num_buckets": 8, "relative_attention_max_distance": 16},
               {"max_length": 16, "num_beams": 4}, False, 51001),
    "T5 1.1": (T5ForConditionalGeneration, T5Config,
               {**SIZES, "feed_forward_proj": "gated-gelu", "tie_word_embeddings": False, "num_layers": 3,
                "num_decoder_layers": 2},
               {"max_length": 16, "num_beams": 3, "length_penalty": 0.6, "early_stopping": True}, True, 21001),
    "mT5": (MT5ForConditionalGeneration, MT5Config,
            {**SIZES, "tie_word_embeddings": False, "num_heads": 3, "d_kv": 2, "relative_attention_num_buckets": 12,
             "relative_attention_max_distance": 20, "layer_norm_epsilon": 1e-3},
            {"max_length": 12, "num_beams": 4, "length_penalty": 1.4, "early_stopping": "never"}, True, 12001),
    "a gate and one table": (T5ForConditionalGeneration, T5Config,
                             {**SIZES, "feed_forward_proj": "gated-silu", "num_layers": 3, "num_decoder_layers": 1},
                             {"max_length": 16, "num_beams": 2}, False, 51001),
}


def numbers(count, first):
    whole = torch.arange(first, first + count, dtype=torch.int64)
    whole = (whole * 2654435761 + whole * whole * 40503) % 2**32
    return ((whole.double() / 2**32 - 0.5) * 0.8).float()


def factor_of(name):
    """Layers change much of what they add to, and distances count, so that texts are no repetition of one token."""
    if "relative_attention_bias" in name:
        return 4
    if name == "shared.weight":
        return 1
    return 6 if name.endswith((".o.weight", ".wo.weight")) else 2 if name == "lm_head.weight" else 4


def stored(model, own_head):
    """The tensors of a file: each table once."""
    skipped = ["embed_tokens"] + ([] if own_head else ["lm_head"])
    return {name: values for name, values in model.state_dict().items() if not any(part in name for part in skipped)}


def model_of(kind, config, options, generation, own_head, first):
    model = kind(config(**options, attn_implementation="eager")).eval()
    if own_head:
        model.lm_head.weight = torch.nn.Parameter(model.lm_head.weight.detach().clone())
    with torch.no_grad():
        for name, values in stored(model, own_head).items():
            values.copy_(numbers(values.numel(), first).reshape(values.shape) * factor_of(name))
            if "norm" in name:
                values += 1
            first += values.numel()
    model.generation_config = GenerationConfig(**generation, **MARKS)
    return model.double()


def batch_of(rows):
    longest = max(map(len, rows))
    ids = torch.tensor([row + [0] * (longest - len(row)) for row in rows])
    return ids, torch.tensor([[1] * len(row) + [0] * (longest - len(row)) for row in rows])


def texts(model, **how):
    written = []
    for source in SOURCES:
        ids = model.generate(torch.tensor([source]), **how)[0].tolist()[1:]
        written.append(ids[:ids.index(1)] if 1 in ids else ids)
    return written


print("""// SPDX-License-Identifier: Apache-2.0
// Made by make_t5_golden.py.
// clang-format off
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace fovea {

struct GoldenT5 {
  std::string_view name;
  std::string_view config;      // config.json
  std::string_view generation;  // generation_config.json
  std::uint64_t first;          // of the numbers
  struct Stored {
    std::string_view name;
    std::vector<std::int64_t> shape;
    double squares;   // the sum of the squares of its gradient
    double products;  // that of the products of gradient and values
  };
  std::vector<Stored> tensors;
  std::vector<double> logits;  // [all tokens of the targets, vocabulary]
  std::vector<double> rows;    // [all tokens of the sources, d_model] of the encoder alone
  std::vector<std::vector<std::int32_t>> greedy, searched;  // of each source, without the end
};

inline const std::vector<std::vector<std::int32_t>> kT5Sources = {""")
for source in SOURCES:
    print(f"    {{{', '.join(map(str, source))}}},")
print("};\ninline const std::vector<std::vector<std::int32_t>> kT5Targets = {")
for target in TARGETS:
    print(f"    {{{', '.join(map(str, target))}}},")
print("};\n\ninline const GoldenT5 kGoldenT5s[] = {")
for name, (kind, config, options, generation, own_head, first) in CASES.items():
    model = model_of(kind, config, options, generation, own_head, first)
    source, seen = batch_of(SOURCES[:len(TARGETS)])
    target, counts = batch_of([[0] + row for row in TARGETS])
    logits = model(input_ids=source, attention_mask=seen, decoder_input_ids=target, decoder_attention_mask=counts).logits
    logits = logits[counts.bool()]
    logits.square().mean().backward()
    parameters = dict(model.named_parameters())
    said = {"architectures": [kind.__name__], "model_type": config.model_type, **options}
    print(f'    {{"{name}",\n     R"({json.dumps(said)})",\n     R"({json.dumps({**generation, **MARKS})})", {first}, {{')
    for tensor, values in stored(model, own_head).items():
        gradient = parameters[tensor].grad
        print(f'      {{"{tensor}", {{{", ".join(map(str, values.shape))}}}, {gradient.square().sum().item():.8g}, '
              f'{(gradient * values).sum().item():.8g}}},')
    print("     }, {")
    for row in logits.tolist():
        print("      " + " ".join(f"{value:.8g}," for value in row))
    print("     }, {")
    for row in model.encoder(input_ids=source, attention_mask=seen).last_hidden_state[seen.bool()].tolist():
        print("      " + " ".join(f"{value:.8g}," for value in row))
    print("     }, {")
    for written in texts(model, num_beams=1):
        print(f"      {{{', '.join(map(str, written))}}},")
    print("     }, {")
    for written in texts(model):
        print(f"      {{{', '.join(map(str, written))}}},")
    print("     }},")
print("};\n\n}  // namespace fovea")
