# SPDX-License-Identifier: Apache-2.0
"""Writes encoder_golden.h: logits, a loss and its gradients of small encoders with heads by transformers.

    python3 tests/pretrained/make_encoder_golden.py > tests/pretrained/encoder_golden.h     (transformers 5, PyTorch 2)

Weights are the numbers of a sequence, tensor after tensor in the order of `state_dict`, so that the test has the same. The
loss is the mean of the squares of all logits: every parameter has a gradient. PyTorch gives none to the rows of padding:
where a text has that token, the gradients of these tables are not compared.
"""

import json

import torch
import transformers

VOCABULARY, LABELS = 24, 3
IDS = [4, 7, 5, 2, 9, 11, 5, 3, 20, 14, 6]
PADDED = [4, 7, 3, 2, 3, 11, 5, 3, 20, 14, 6]  # 3 is the padding
SIZES = {"vocab_size": VOCABULARY, "hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 12,
         "max_position_embeddings": 20}
DISTIL = {"vocab_size": VOCABULARY, "dim": 8, "n_layers": 2, "n_heads": 2, "hidden_dim": 12, "max_position_embeddings": 20}
LONG = [(3 * n * n + n) % 20 + 2 for n in range(150)]  # beyond the distances that have a bucket each
CASES = {
    "bert, texts": ("BertForSequenceClassification", SIZES, IDS),
    "bert, tokens": ("BertForTokenClassification", {**SIZES, "type_vocab_size": 1, "layer_norm_eps": 1e-2}, IDS),
    "roberta, texts": ("RobertaForSequenceClassification", {**SIZES, "type_vocab_size": 1, "layer_norm_eps": 1e-5}, IDS),
    "roberta, tokens": ("RobertaForTokenClassification", {**SIZES, "pad_token_id": 3}, PADDED),
    "xlm-roberta, texts": ("XLMRobertaForSequenceClassification", {**SIZES, "type_vocab_size": 1}, IDS),
    "distilbert, texts": ("DistilBertForSequenceClassification", DISTIL, IDS),
    "distilbert, tokens": ("DistilBertForTokenClassification", {**DISTIL, "activation": "relu"}, IDS),
    "mpnet, texts": ("MPNetForSequenceClassification", {**SIZES, "max_position_embeddings": 160}, LONG),
    "mpnet, tokens": ("MPNetForTokenClassification", SIZES, IDS),
}


def numbers(count, first):
    whole = torch.arange(first, first + count, dtype=torch.int64)
    whole = (whole * 2654435761 + whole * whole * 40503) % 2**32
    return ((whole.double() / 2**32 - 0.5) * 0.8).float()


def model_of(kind, options):
    model = getattr(transformers, kind)
    model = model(model.config_class(**options, num_labels=LABELS, attn_implementation="eager")).eval()
    first = 1
    with torch.no_grad():
        for name, values in model.state_dict().items():
            values.copy_(numbers(values.numel(), first).reshape(values.shape))
            if "norm" in name.lower() and name.endswith("weight"):
                values += 1
            first += values.numel()
    return model


print("""// SPDX-License-Identifier: Apache-2.0
// Made by make_encoder_golden.py.
// clang-format off
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace fovea {

struct GoldenEncoder {
  std::string_view name;
  std::string_view config;  // config.json
  struct Stored {
    std::string_view name;
    std::vector<std::int64_t> shape;
    double squares;  // the sum of the squares of its gradient; -1: not compared
  };
  std::vector<Stored> tensors;
  std::vector<std::int32_t> ids;
  std::vector<double> logits;  // [1, labels] or [tokens, labels]
};

inline const GoldenEncoder kGoldenEncoders[] = {""")
for name, (kind, options, ids) in CASES.items():
    model = model_of(kind, options)
    logits = model(torch.tensor([ids])).logits[0]
    logits.square().mean().backward()
    config = {"architectures": [kind], "model_type": model.config.model_type, **options,
              "id2label": {str(n): label for n, label in enumerate("abc")}}
    print(f'    {{"{name}",\n     R"({json.dumps(config)})",\n     {{')
    parameters = dict(model.named_parameters())
    for tensor, values in model.state_dict().items():
        is_table = ids is PADDED and tensor.endswith(("word_embeddings.weight", "position_embeddings.weight"))
        squares = -1 if is_table else parameters[tensor].grad.double().square().sum().item()
        print(f'      {{"{tensor}", {{{", ".join(map(str, values.shape))}}}, {squares:.8g}}},')
    print(f"     }},\n     {{{', '.join(map(str, ids))}}},\n     {{")
    for row in logits.reshape(-1, LABELS).tolist():
        print("      " + " ".join(f"{value:.8g}," for value in row))
    print("     }},")
print("};\n\n}  // namespace fovea")
