// SPDX-License-Identifier: Apache-2.0
// A causal Transformer of the library's layers: it learns to continue two nursery rhymes byte by
// byte, is saved, loaded, and continues a line. (learn/transformer.cc is one without these layers.)
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/fovea.h"

namespace {

using fovea::index;
using fovea::Variable;

constexpr std::string_view kText =
    "twinkle, twinkle, little star, how i wonder what you are! up above the world so high, like a "
    "diamond in the sky. row, row, row your boat, gently down the stream, merrily, merrily, "
    "merrily, merrily, life is but a dream. ";
// V tokens (bytes), C columns, T positions, and B sequences of T tokens in a step.
constexpr index kTokens = 128, kWidth = 64, kLength = 32, kBatch = 8, kBlocks = 2, kHeads = 4;

fovea::BlockOptions block_options() {
  return {.attention = {.width = kWidth, .heads = kHeads, .mask = fovea::mask::Causal()},
          .feed_forward = {.width = kWidth, .hidden = 4 * kWidth},
          .residual = {.norm = {.width = kWidth}}};
}

class Transformer {
 public:
  explicit Transformer(const fovea::ParameterScope& scope)
      : embedding_({.vocabulary = kTokens, .width = kWidth, .positions = kLength},
                   scope["embedding"]),
        norm_({.width = kWidth}, scope["norm"]),
        head_({.in = kWidth, .out = kTokens}, scope["head"]) {
    for (index n = 0; n < kBlocks; ++n) blocks_.emplace_back(block_options(), scope["blocks"][n]);
  }

  // ids [N] of packed sequences -> logits [N, V].
  Variable logits(fovea::Tape& tape, const std::vector<std::int32_t>& ids,
                  const std::vector<std::int32_t>& offsets) const {
    const auto rows = lay_out_rows(tape, static_cast<index>(ids.size()), offsets, {});
    Variable x = embedding_.forward(tape, ids, rows);                            // [N, C]
    for (const fovea::Block& block : blocks_) x = block.forward(tape, x, rows);  // [N, C]
    return head_.forward(tape, norm_.forward(tape, x));                          // [N, V]
  }

 private:
  fovea::Embedding embedding_;
  std::vector<fovea::Block> blocks_;
  fovea::NormLayer norm_;
  fovea::Linear head_;
};

double train(const Transformer& model, fovea::ParameterSet& set, index updates) {
  fovea::Tape tape(fovea::Context(1), fovea::TapeMode::kTrain);
  fovea::Optimizer optimizer(set.parameters());
  std::vector<std::int32_t> offsets;
  for (index b = 0; b <= kBatch; ++b) offsets.push_back(static_cast<std::int32_t>(b * kLength));
  double loss = 0;
  for (index update = 1; update <= updates; ++update) {
    fovea::Random random(1, fovea::RandomUse::kTest, static_cast<std::uint64_t>(update));
    std::vector<std::int32_t> ids, next;  // [B T]: a token, and the one that follows it
    for (index b = 0; b < kBatch; ++b) {
      const std::size_t first = random.below(kText.size() - kLength);
      for (std::size_t n = first; n < first + kLength; ++n) {
        ids.push_back(kText[n]);
        next.push_back(kText[n + 1]);
      }
    }
    tape.reset(fovea::TapeMode::kTrain);
    const Variable mean = cross_entropy(tape, model.logits(tape, ids, offsets), {.ids = next},
                                        1.0 / (kBatch * kLength));
    tape.backward(mean);
    optimizer.step(tape.context(), {.options = {.lr = 3e-3}, .step = update});
    loss = static_cast<double>(mean.value<float>()[0][0]);
  }
  return loss;
}

void save(const fovea::ParameterSet& set, const std::filesystem::path& file) {
  fovea::write_safetensors(file, fovea::parameter_tensors(set.parameters()));
}

void load(fovea::ParameterSet& set, const std::filesystem::path& file) {
  fovea::restore_parameters(set.parameters(), fovea::read_safetensors(file), file.string());
}

std::string continued(const Transformer& model, std::string text, index tokens) {
  fovea::Tape tape(fovea::Context(1), fovea::TapeMode::kInference);
  for (index n = 0; n < tokens; ++n) {
    const std::size_t seen = std::min<std::size_t>(text.size(), kLength);
    const std::vector<std::int32_t> ids(text.end() - static_cast<std::ptrdiff_t>(seen), text.end());
    tape.reset(fovea::TapeMode::kInference);
    const auto logits =
        model.logits(tape, ids, {0, static_cast<std::int32_t>(seen)}).value<float>();
    const float* const last = logits[logits.rows - 1];
    text += static_cast<char>(std::max_element(last, last + kTokens) - last);
  }
  return text;
}

}  // namespace

int main() {
  fovea::ParameterSet set({.seed = 1});
  const Transformer model{fovea::ParameterScope(set)};
  const double loss = train(model, set, 300);

  const auto file =
      std::filesystem::temp_directory_path() / "fovea_example_transformer.safetensors";
  save(set, file);
  fovea::ParameterSet read({.seed = 2});  // another start, which the file replaces
  const Transformer again{fovea::ParameterScope(read)};
  load(read, file);
  std::filesystem::remove(file);

  const std::string line = continued(again, "how i wonder", 13);
  std::printf("loss %.3f after 300 updates of %lld parameters\n%s\n", loss,
              static_cast<long long>(set.size()), line.c_str());
  const bool same = line == continued(model, "how i wonder", 13);
  return same && line == "how i wonder what you are" ? 0 : 1;
}
