// SPDX-License-Identifier: Apache-2.0
// The smallest encoder of another program.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "fovea/base/file.h"
#include "fovea/config/json.h"
#include "fovea/model/bert.h"
#include "fovea/pretrained/encoder_writer.h"
#include "fovea/tensor/safetensors.h"
#include "tests/support/folder.h"

namespace fovea {

inline constexpr std::string_view kTinyEncoder =
    R"({"model_type": "bert", "vocab_size": 16, "hidden_size": 8,
    "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 12, "max_position_embeddings": 24,
    "hidden_dropout_prob": 0.2, "classifier_dropout": 0.3})";
inline constexpr std::string_view kTinyEncoderWords =
    "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nfine\ndull\nfilm\na\nwhat\nit\nnumber\n##s\n.\n,\n'\n";

/// A folder of BERT as transformers writes it, without a head.
inline std::filesystem::path write_bert(const TestFolder& folder) {
  const std::filesystem::path base = folder / "base";
  create_folders(base);
  const Bert model({.vocabulary = 16, .width = 8, .layers = 2, .heads = 2, .ff = 12, .block = 24},
                   {.seed = 3});
  const Json json = parse_json(std::string(kTinyEncoder), {"config.json"});
  write_file_atomically(base / "config.json", kTinyEncoder);
  write_file_atomically(base / "vocab.txt", kTinyEncoderWords);
  write_file_atomically(
      base / "model.safetensors",
      safetensors_bytes(encoder_tensors_of(model.parameters(), json, BertHead::kNone, "test")));
  return base;
}

}  // namespace fovea
