// SPDX-License-Identifier: Apache-2.0
#include "cli/synonyms.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "fovea/base/words.h"

namespace fovea::cli {

namespace {

// Names that PyTorch, nanoGPT, Hugging Face, Keras, llama.cpp and similar tools use, without
// leading dashes, separated by spaces.
struct Synonyms {
  std::string_view command;  // "": any
  std::string_view names;
  std::string_view hint;  // if it begins with --: the option of fovea
};

constexpr std::string_view kFolderFirst =
    "the folder of the model comes first, without an option: fovea generate DIR \"Once\"";

constexpr std::array kSynonyms = {
    Synonyms{"train lm",
             "block-size seq-len seq-length sequence-length max-seq-len max-seq-length "
             "context context-length context-size ctx ctx-len n-ctx n-positions "
             "max-position-embeddings",
             "--block"},
    Synonyms{"train lm",
             "batch bs batchsize mini-batch-size micro-batch-size train-batch-size "
             "per-device-train-batch-size",
             "--batch-size"},
    Synonyms{"train lm", "n-layer n-layers num-layers num-hidden-layers depth", "--layers"},
    Synonyms{"train lm", "n-head n-heads num-heads num-attention-heads nhead", "--heads"},
    Synonyms{"train lm", "n-kv-head n-kv-heads num-kv-heads num-key-value-heads", "--kv-heads"},
    Synonyms{"train lm",
             "n-embd n-embed embd embed-dim embedding-dim embedding-size hidden-size hidden-dim "
             "d-model dim model-dim",
             "--width"},
    Synonyms{"train lm",
             "d-ff ffn-dim ff-dim ffn-hidden-size intermediate-size mlp-dim "
             "dim-feedforward n-inner",
             "--ff"},
    Synonyms{"train lm", "max-lr peak-lr base-lr", "--lr"},
    Synonyms{"train lm", "wd l2", "--weight-decay"},
    Synonyms{"train lm", "grad-clip gradient-clip gradient-clip-val max-grad-norm clip-grad-norm",
             "--clip"},
    Synonyms{"train lm", "warmup-steps warmup-iters warmup-updates num-warmup-steps", "--warmup"},
    Synonyms{"train lm",
             "gradient-accumulation-steps grad-accum-steps grad-accum accum accumulation-steps "
             "accumulate-grad-batches update-freq",
             "--accumulate"},
    Synonyms{"train lm", "scheduler lr-scheduler lr-scheduler-type lr-schedule decay-lr",
             "--schedule"},
    Synonyms{"train lm", "adam-beta1", "--beta1"},
    Synonyms{"train lm", "adam-beta2", "--beta2"},
    Synonyms{"train lm",
             "eval-interval eval-steps eval-iters val-every val-interval "
             "val-check-interval validate-every",
             "--eval-every"},
    Synonyms{"train lm", "save-interval save-steps checkpoint-every checkpoint-interval",
             "--save-every"},
    Synonyms{"train lm", "log-interval logging-steps log-steps", "--log-every"},
    Synonyms{"train lm", "save-total-limit keep-last max-checkpoints", "--keep"},
    Synonyms{"train lm", "out out-dir output-dir save-dir checkpoint-dir model-dir", "--output"},
    Synonyms{"train lm", "train-file train-data dataset input input-file text corpus", "--train"},
    Synonyms{"train lm", "val val-file val-data validation validation-file valid-file eval-file",
             "--valid"},
    Synonyms{"train lm", "val-split val-fraction validation-split test-size", "--valid-fraction"},
    Synonyms{"train lm", "tie-weights tie-embeddings tie-word-embeddings weight-tying", "--tie"},
    Synonyms{"train lm",
             "pos-encoding positional-encoding position-embedding "
             "position-embedding-type",
             "--position"},
    Synonyms{"train lm", "rope rotary", "--position rotary"},
    Synonyms{"train lm", "alibi", "--position alibi"},
    Synonyms{"train lm", "rope-theta rotary-base", "--rope-base"},
    Synonyms{"train lm", "sliding-window window-size attention-window", "--window"},
    Synonyms{"train lm", "attn-logit-softcapping logit-softcap attention-softcap", "--softcap"},
    Synonyms{"train lm", "attention-sink attention-sinks sinks", "--sink"},
    Synonyms{"train lm", "act hidden-act activation-function", "--activation"},
    Synonyms{"train lm", "use-bias", "--bias"},
    Synonyms{"train lm", "dropout-rate drop-rate dropout-p resid-dropout", "--dropout"},
    Synonyms{"train lm", "continue init-from resume-from resume-from-checkpoint load", "--resume"},
    Synonyms{"train lm", "force overwrite-output-dir", "--overwrite"},
    Synonyms{"train lm", "vocab-size n-vocab",
             "the vocabulary follows from the text: see --tokenizer"},
    Synonyms{"train lm", "min-freq min-frequency", "--min-count"},
    Synonyms{"train lm", "lowercase do-lower-case lower-case", "--lower"},
    Synonyms{"train lm", "max-len maxlen max-tokens-per-line", "--max-length"},
    Synonyms{"train lm", "truncating truncation truncation-side", "--truncate"},
    Synonyms{"train lm", "vocab vocab-file vocabulary-file", "--vocabulary"},
    Synonyms{"train lm", "optimizer optim", "fovea trains with AdamW: leave it out"},
    Synonyms{"attention", "is-causal", "--causal"},
    Synonyms{"attention", "attn-mask attention-mask mask",
             "a mask is a tensor of IN: keep or drop, of shape [B or 1, H or 1, T or 1, S]"},
    Synonyms{"attention", "alibi alibi-slopes", "ALiBi is a tensor of IN: slopes, of shape [H]"},
    Synonyms{"generate", "max-new-tokens max-length num-tokens n-tokens n-predict length tokens",
             "--max-tokens"},
    Synonyms{"generate", "temp t", "--temperature"},
    Synonyms{"generate", "rep-penalty repeat-penalty", "--repetition-penalty"},
    Synonyms{"generate", "n num-samples n-samples num-return-sequences", "--samples"},
    Synonyms{"generate", "do-sample sample", "--no-greedy"},
    Synonyms{"generate", "prompt start input text",
             "the prompt stands behind the folder, without an option: fovea generate DIR \"Once\""},
    Synonyms{"generate", "model m model-path model-dir out-dir checkpoint ckpt", kFolderFirst},
    Synonyms{"eval", "data dataset input text test-file file eval-file", "--test"},
    Synonyms{"", "random-seed manual-seed", "--seed"},
    Synonyms{"", "num-threads n-threads num-workers workers jobs cores cpus", "--threads"},
    Synonyms{"", "device cuda gpu gpus n-gpu accelerator",
             "fovea computes on the CPU: leave it out"},
    Synonyms{"", "dtype torch-dtype mixed-precision fp16 bf16 amp autocast", "--precision"},
    Synonyms{"", "dtype precision mixed-precision fp16 bf16 amp autocast",
             "this command computes in float32: leave it out"},
    Synonyms{"", "compile", "fovea is compiled: leave it out"},
};

// Names for the length of a training. In fovea the unit is part of the value.
struct Lengths {
  std::string_view names;
  char unit;
  std::string_view example;
};
constexpr std::array kLengths = {
    Lengths{"steps max-steps num-steps train-steps num-train-steps total-steps iters max-iters "
            "num-iters iterations max-iterations lr-decay-iters updates max-updates",
            'u', "2000"},
    Lengths{"epochs max-epochs num-epochs n-epochs num-train-epochs epoch", 'e', "10"}};

// The name in the spelling of the table: "max-iters" for "--Max_Iters".
std::string plain_name(std::string_view word) {
  std::string name(word.substr(std::min(word.find_first_not_of('-'), word.size())));
  for (char& c : name) {
    c = c == '_' ? '-' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return name;
}

}  // namespace

std::string hint_for_synonym(std::string_view command, std::span<const std::string> options,
                             std::string_view word, std::string_view value) {
  const std::string name = plain_name(word);
  if (command == "train lm") {
    for (const auto& [names, unit, example] : kLengths) {
      if (!has_word(names, ' ', name)) continue;
      return fmt::format("did you mean --stop-after {}{}?", is_all_digits(value) ? value : example,
                         unit);
    }
  }
  for (const Synonyms& synonyms : kSynonyms) {
    const bool here = synonyms.command.empty() || synonyms.command == command;
    if (!here || !has_word(synonyms.names, ' ', name)) continue;
    if (!synonyms.hint.starts_with("--")) return std::string(synonyms.hint);
    // Skip the option if this command does not have it.
    if (std::find(options.begin(), options.end(), synonyms.hint) == options.end()) continue;
    return fmt::format("did you mean {}?", synonyms.hint);
  }
  return {};
}

std::string hint_for_word(std::string_view command, std::string_view word) {
  if (command == "eval") return fmt::format("did you mean --test {}?", word);
  if (command == "generate") {
    return "put a prompt of several words in quotes: fovea generate DIR \"Once upon\"";
  }
  if (command == "train lm") return fmt::format("did you mean --train {}?", word);
  return {};
}

}  // namespace fovea::cli
