# SPDX-License-Identifier: Apache-2.0
"""Writes marian_golden.h: logits, gradients and translations of small models of Marian by transformers.

    python3 tests/pretrained/make_marian_golden.py > tests/pretrained/marian_golden.h     (transformers 5, PyTorch 2)

Weights are the numbers of a sequence, tensor after tensor, so that the test has the same. The loss is the mean of the squares
of all logits of a padded batch, without those of padding. Tables have gradients of all rows, also of that of padding, which
begins each translation. The bias of the logits has none in transformers.
"""

import json

import torch
from transformers import GenerationConfig, MarianConfig, MarianMTModel

SOURCES = [[4, 7, 5, 9, 11, 5, 0], [3, 2, 14, 0], [8, 0], [6, 6, 9, 10, 2, 12, 13, 4, 0], [5, 16, 3, 0], [17, 2, 8, 8, 7, 0]]
TARGETS = [[2, 9, 4, 11, 3], [], [5, 5, 8, 2, 10, 7, 6, 12]]  # behind the mark of the beginning
SIZES = {"d_model": 8, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 2, "decoder_attention_heads": 2,
         "encoder_ffn_dim": 12, "decoder_ffn_dim": 12, "max_position_embeddings": 20, "eos_token_id": 0,
         "forced_eos_token_id": 0}
LIMITS = {"max_length": 14, "eos_token_id": 0, "forced_eos_token_id": 0}
CASES = {
    "one table": (
        {**SIZES, "vocab_size": 24, "activation_function": "swish", "scale_embedding": True},
        {**LIMITS, "num_beams": 4, "renormalize_logits": True}, 2.2),
    "a table for each side": (
        {**SIZES, "vocab_size": 24, "decoder_vocab_size": 20, "share_encoder_decoder_embeddings": False, "decoder_layers": 1,
         "activation_function": "gelu"},
        {**LIMITS, "num_beams": 3, "length_penalty": 0.6, "early_stopping": True}, 0.3),
    "and one for the logits": (
        {**SIZES, "vocab_size": 24, "decoder_vocab_size": 20, "share_encoder_decoder_embeddings": False,
         "tie_word_embeddings": False, "activation_function": "relu", "scale_embedding": True, "decoder_attention_heads": 2},
        {**LIMITS, "num_beams": 4, "length_penalty": 1.4, "early_stopping": "never"}, 1.0),
}


def numbers(count, first):
    whole = torch.arange(first, first + count, dtype=torch.int64)
    whole = (whole * 2654435761 + whole * whole * 40503) % 2**32
    return ((whole.double() / 2**32 - 0.5) * 0.8).float()


def factor_of(name):
    """Layers change much of what they add to, so that translations are no repetition of one token."""
    return 6 if name.endswith(("out_proj.weight", "fc2.weight")) else 3 if name.endswith(("proj.weight", "fc1.weight")) else 1


def stored(model):
    """The tensors of a file: each table once, and no positions."""
    shared = model.config.share_encoder_decoder_embeddings
    skipped = ["embed_positions"] + (["embed_tokens"] if shared else []) + (
        ["lm_head"] if model.config.tie_word_embeddings else [])
    return {name: values for name, values in model.state_dict().items() if not any(part in name for part in skipped)}


def model_of(options, generation, end_bias):
    padding = options.get("decoder_vocab_size", options["vocab_size"]) - 1
    marks = {"pad_token_id": padding, "decoder_start_token_id": padding}
    model = MarianMTModel(MarianConfig(**options, **marks, attn_implementation="eager")).eval()
    first = 1
    with torch.no_grad():
        for name, values in stored(model).items():
            values.copy_(numbers(values.numel(), first).reshape(values.shape) * factor_of(name))
            if "norm" in name and name.endswith("weight"):
                values += 1
            first += values.numel()
        model.final_logits_bias[0, 0] += end_bias
    for module in model.modules():
        if isinstance(module, torch.nn.Embedding):
            module.padding_idx = None
    model.generation_config = GenerationConfig(**generation, **marks, bad_words_ids=[[padding]])
    return model.double(), {**options, **marks}, {**generation, **marks, "bad_words_ids": [[padding]]}


def batch_of(rows, padding):
    longest = max(map(len, rows))
    ids = torch.tensor([row + [padding] * (longest - len(row)) for row in rows])
    return ids, torch.tensor([[1] * len(row) + [0] * (longest - len(row)) for row in rows])


def translations(model, **how):
    written = []
    for source in SOURCES:
        ids = model.generate(torch.tensor([source]), **how)[0].tolist()[1:]
        written.append(ids[:ids.index(0)])
    return written


print("""// SPDX-License-Identifier: Apache-2.0
// Made by make_marian_golden.py.
// clang-format off
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace fovea {

struct GoldenMarian {
  std::string_view name;
  std::string_view config;      // config.json
  std::string_view generation;  // generation_config.json
  double end_bias;              // added to that of the end
  struct Stored {
    std::string_view name;
    std::vector<std::int64_t> shape;
    double squares;  // the sum of the squares of its gradient; -1: not compared
  };
  std::vector<Stored> tensors;
  std::vector<double> logits;  // [all tokens of the targets, vocabulary]
  std::vector<std::vector<std::int32_t>> greedy, searched;  // of each source, without the end
};

inline const std::vector<std::vector<std::int32_t>> kMarianSources = {""")
for source in SOURCES:
    print(f"    {{{', '.join(map(str, source))}}},")
print("};\ninline const std::vector<std::vector<std::int32_t>> kMarianTargets = {")
for target in TARGETS:
    print(f"    {{{', '.join(map(str, target))}}},")
print("};\n\ninline const GoldenMarian kGoldenMarians[] = {")
for name, (options, generation, end_bias) in CASES.items():
    model, config, rules = model_of(options, generation, end_bias)
    padding = config["pad_token_id"]
    source, seen = batch_of(SOURCES[:len(TARGETS)], config["vocab_size"] - 1)
    target, counts = batch_of([[padding] + row for row in TARGETS], padding)
    logits = model(input_ids=source, attention_mask=seen, decoder_input_ids=target, decoder_attention_mask=counts).logits
    logits = logits[counts.bool()]
    logits.square().mean().backward()
    parameters = dict(model.named_parameters())
    config = {"architectures": ["MarianMTModel"], "model_type": "marian", **config}
    print(f'    {{"{name}",\n     R"({json.dumps(config)})",\n     R"({json.dumps(rules)})",\n     {end_bias}, {{')
    for tensor, values in stored(model).items():
        squares = parameters[tensor].grad.double().square().sum().item() if tensor in parameters else -1
        print(f'      {{"{tensor}", {{{", ".join(map(str, values.shape))}}}, {squares:.8g}}},')
    print("     }, {")
    for row in logits.tolist():
        print("      " + " ".join(f"{value:.8g}," for value in row))
    print("     }, {")
    for written in translations(model, num_beams=1):
        print(f"      {{{', '.join(map(str, written))}}},")
    print("     }, {")
    for written in translations(model):
        print(f"      {{{', '.join(map(str, written))}}},")
    print("     }},")
print("};\n\n}  // namespace fovea")
