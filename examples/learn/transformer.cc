// SPDX-License-Identifier: Apache-2.0
// A causal Transformer that learns to write like a text: all of its training, in the order in which
// one would explain it. Data, parameters, attention, blocks, loss, backward, clipping, AdamW,
// sampling. It stands on two things alone, the attention operator and the tape, which remembers
// what was computed in order to differentiate it. At its end it trains the library's model from the
// same start on the same batches: the losses are the same bits. (examples/transformer.cc shows how
// short this becomes with the layers of the library, and how a model is saved and loaded.)
//
//   transformer TEXT [UPDATES]
//
// Letters: B sequences of T tokens, N = B T rows, C columns, H heads of D = C / H columns,
// F columns inside the feed-forward network, V tokens.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "fovea/fovea.h"

namespace {

using fovea::index;
using fovea::Parameter;
using fovea::Tape;
using fovea::Variable;

constexpr index B = 16, T = 64, C = 64, H = 4, D = C / H, F = 4 * C, kBlocks = 2;
constexpr std::uint64_t kSeed = 1;

// ---- 1. Data. A token is a byte that occurs in the text; the last tenth is for validation.

struct Text {
  std::string letters;             // the V bytes that occur, ascending
  std::vector<std::int32_t> seen;  // what the model learns from
  std::vector<std::int32_t> held;  // what it is measured on

  std::int32_t id(char letter) const { return static_cast<std::int32_t>(letters.find(letter)); }
};

Text read_text(const char* path) {
  std::ifstream file(path, std::ios::binary);
  const std::string all{std::istreambuf_iterator<char>(file), {}};
  Text text;
  text.letters = all;
  std::sort(text.letters.begin(), text.letters.end());
  text.letters.erase(std::unique(text.letters.begin(), text.letters.end()), text.letters.end());
  const std::size_t cut = all.size() - all.size() / 10;
  for (const char letter : all.substr(0, cut)) text.seen.push_back(text.id(letter));
  for (const char letter : all.substr(cut)) text.held.push_back(text.id(letter));
  return text;
}

struct Batch {
  std::vector<std::int32_t> ids, next, places;  // [N]: a token, the one behind it, where it stands
};

Batch random_batch(const std::vector<std::int32_t>& from, index number) {
  fovea::Random random(kSeed, fovea::RandomUse::kBatches, static_cast<std::uint64_t>(number));
  Batch batch;
  for (index b = 0; b < B; ++b) {
    const index first = random.below(std::ssize(from) - T);
    for (index t = 0; t < T; ++t) {
      batch.ids.push_back(from[static_cast<std::size_t>(first + t)]);
      batch.next.push_back(from[static_cast<std::size_t>(first + t + 1)]);
      batch.places.push_back(static_cast<std::int32_t>(t));
    }
  }
  return batch;
}

// ---- 2. Attention as an operation of the tape: a result at once, and how its gradient flows back.

// A row holds q, k or v of all heads, one beside the other: the operator takes strides, so nothing
// is copied.
template <class Number>
fovea::View<Number> heads_of(fovea::Rows<Number> x, index length) {
  return {x.data, x.rows / length, length, H, D, length * x.stride, x.stride, D};
}

// softmax(Q K^T / sqrt(D)) V of each head, where a token sees itself and what stands before it.
// q, k, v [N, C], of sequences of `length` rows -> [N, C].
Variable causal_attention(Tape& tape, Variable q, Variable k, Variable v, index length) {
  const auto inputs = [=]() -> fovea::AttentionInputs<float> {
    return {heads_of<const float>(q.value<float>(), length),
            heads_of<const float>(k.value<float>(), length),
            heads_of<const float>(v.value<float>(), length)};
  };
  const index N = q.rows(), sequences = N / length;
  const Variable o = tape.result(N, C, fovea::DType::kFloat32);
  // The log of the sum of each softmax: with it the backward computes the weights anew, so that no
  // T x T matrix is ever stored. lse_low is the rounding error of lse.
  const auto room = [&] {
    return fovea::RowView<float>::contiguous(tape.saved<float>(H * N), sequences, H, length);
  };
  const fovea::RowView<float> lse = room(), lse_low = room();
  fovea::attention_forward<float>(tape.context(), {.mask = fovea::mask::Causal()}, inputs(),
                                  {heads_of(o.value<float>(), length), lse, lse_low});
  tape.record(o, {q, k, v}, [=](Tape& t) {
    // The gradients of q, k and v are written, not added to: nothing else reads the three.
    fovea::attention_backward<float>(t.context(), {.mask = fovea::mask::Causal()}, inputs(),
                                     {heads_of<const float>(o.value<float>(), length), lse,
                                      heads_of(t.gradient_of<float>(o), length), lse_low},
                                     {heads_of(t.gradient_for<float>(q).rows, length),
                                      heads_of(t.gradient_for<float>(k).rows, length),
                                      heads_of(t.gradient_for<float>(v).rows, length)});
  });
  return o;
}

// ---- 3. The model: what is learned, and the way from tokens to rows.

class Transformer {
 public:
  // Matrices and tables start from normal(0, .02), those in front of a residual sum nearer to 0, so
  // that the sum does not grow with the number of blocks (GPT-2).
  explicit Transformer(index V) : parameters_({.seed = kSeed}) {
    const auto small = fovea::Init::normal(.02);
    const auto smaller = fovea::Init::normal(.02 / std::sqrt(2. * kBlocks));
    tokens_ = matrix("embedding.tokens", V, C, small);
    positions_ = matrix("embedding.positions", T, C, small);
    positions_->decay = fovea::Decay::kNo;
    for (index n = 0; n < kBlocks; ++n) {
      const std::string name = "blocks." + std::to_string(n) + ".";
      Block& block = blocks_.emplace_back();
      block.qkv = matrix(name + "attention.qkv.weight", 3 * C, C, small);
      block.out = matrix(name + "attention.out.weight", C, C, smaller);
      block.attention_norm = gain(name + "attention_norm.weight");
      block.up = matrix(name + "feed_forward.in.weight", F, C, small);
      block.down = matrix(name + "feed_forward.out.weight", C, F, smaller);
      block.feed_forward_norm = gain(name + "feed_forward_norm.weight");
    }
    norm_ = gain("norm.weight");
  }

  // The rows [N, C] from which the next tokens are predicted, of sequences of `length` tokens.
  Variable rows(Tape& tape, const Batch& batch, index length) const {
    Variable x = embedding(tape, {tape.parameter(*tokens_), batch.ids},
                           {tape.parameter(*positions_), batch.places});
    for (const Block& block : blocks_) {
      // Tokens exchange what they know. What comes out is added: x stays, and is corrected.
      const Variable a = normed(tape, x, *block.attention_norm);
      const Variable qkv = linear(tape, a, tape.parameter(*block.qkv));  // [N, 3C]
      const auto parts = split_columns(tape, qkv, std::vector<index>{C, C, C});
      const Variable o = causal_attention(tape, parts[0], parts[1], parts[2], length);
      x = add(tape, x, linear(tape, o, tape.parameter(*block.out)));
      // Then each row by itself.
      const Variable f = normed(tape, x, *block.feed_forward_norm);
      const Variable hidden = linear(tape, f, tape.parameter(*block.up));  // [N, F]
      const Variable bent = activation(tape, fovea::Activation::kGelu, hidden);
      x = add(tape, x, linear(tape, bent, tape.parameter(*block.down)));
    }
    return normed(tape, x, *norm_);
  }

  // A row's product with the vector of each token, [N, V]: the table of tokens is used again.
  Variable logits(Tape& tape, const Batch& batch, index length) const {
    return linear(tape, rows(tape, batch, length), tape.parameter(*tokens_));
  }

  // ---- 4. The loss: the mean over all tokens of -log p(the token that follows), in nats.
  Variable loss(Tape& tape, const Batch& batch) const {
    return cross_entropy(tape, logits(tape, batch, T), {.ids = batch.next}, 1. / (B * T));
  }

  std::span<Parameter* const> parameters() const { return parameters_.parameters(); }
  index size() const { return parameters_.size(); }

 private:
  struct Block {
    Parameter *qkv, *out, *attention_norm, *up, *down, *feed_forward_norm;
  };

  Parameter* matrix(const std::string& name, index out, index in, const fovea::Init& init) {
    return &parameters_.add(name, {out, in}, init, fovea::Decay::kYes);
  }
  Parameter* gain(const std::string& name) {
    return &parameters_.add(name, {C}, fovea::Init::ones(), fovea::Decay::kNo);
  }
  static Variable normed(Tape& tape, Variable x, Parameter& gain) {
    return layer_norm(tape, x, tape.parameter(gain), {});
  }

  fovea::ParameterSet parameters_;
  Parameter *tokens_ = nullptr, *positions_ = nullptr, *norm_ = nullptr;
  std::vector<Block> blocks_;
};

// ---- 5. The update: AdamW, which divides the mean of the gradients by the root of their mean
// square, so that every value moves by about the learning rate, however large its gradient is.

class AdamW {
 public:
  explicit AdamW(std::span<Parameter* const> parameters) : parameters_(parameters) {
    for (const Parameter* p : parameters) {
      m_.emplace_back(static_cast<std::size_t>(p->value.size()));
      v_.emplace_back(static_cast<std::size_t>(p->value.size()));
    }
  }

  // Update number `step`, from 1. Gradients whose norm together is over 1 are shortened to it.
  void update(index step, double lr) {
    const double norm = gradient_norm();
    const auto clip = static_cast<float>(std::min(1., 1. / norm));
    // Both means start at 0, and are too small at first by these factors.
    const double m_share = 1 - std::pow(kBeta1, step), v_share = 1 - std::pow(kBeta2, step);
    const auto rate = static_cast<float>(lr / m_share);
    const auto root = static_cast<float>(1 / std::sqrt(v_share));
    for (std::size_t n = 0; n < parameters_.size(); ++n) {
      Parameter& p = *parameters_[n];
      const auto shrink = static_cast<float>(p.decay == fovea::Decay::kYes ? lr * kDecay : 0);
      const float* g = p.finished_gradient().data<float>();
      float* x = p.value.data<float>();
      for (std::size_t i = 0; i < m_[n].size(); ++i) {
        const float gradient = clip * g[i];
        m_[n][i] += static_cast<float>(1 - kBeta1) * (gradient - m_[n][i]);
        v_[n][i] += static_cast<float>(1 - kBeta2) * (gradient * gradient - v_[n][i]);
        x[i] -= rate * m_[n][i] / (std::sqrt(v_[n][i]) * root + kEpsilon) + shrink * x[i];
      }
      ++p.version;         // products keep a packed copy of a weight
      p.clear_gradient();  // else the next backward would add to it
    }
  }

  static constexpr double kBeta1 = .9, kBeta2 = .99, kDecay = .1;
  static constexpr float kEpsilon = 1e-8F;

 private:
  double gradient_norm() {
    double squares = 0;
    for (Parameter* p : parameters_) {
      const float* g = p->finished_gradient().data<float>();
      for (index i = 0; i < p->value.size(); ++i) squares += double{g[i]} * double{g[i]};
    }
    return std::sqrt(squares);
  }

  std::span<Parameter* const> parameters_;
  std::vector<std::vector<float>> m_, v_;
};

// Up in a line over the first tenth of the updates, while the means of AdamW are still noise, then
// down to a tenth along half a cosine.
double learning_rate(index step, index updates) {
  constexpr double kMost = 3e-3;
  const double warmup = std::max(1., static_cast<double>(updates) / 10);
  const auto done = static_cast<double>(step);
  if (done <= warmup) return kMost * done / warmup;
  const double way = (done - warmup) / (static_cast<double>(updates) - warmup);
  return kMost * (.1 + .9 * .5 * (1 + std::cos(way * std::acos(-1.))));
}

// ---- 6. Training: forward, backward, update, again.

double value_of(Variable loss) { return double{loss.value<float>()[0][0]}; }

std::vector<double> train(const Transformer& model, const Text& text, index updates) {
  Tape tape(fovea::Context(1), fovea::TapeMode::kTrain);
  AdamW optimizer(model.parameters());
  std::vector<double> losses;
  for (index step = 1; step <= updates; ++step) {
    const Batch batch = random_batch(text.seen, step);
    tape.reset();
    const Variable loss = model.loss(tape, batch);
    tape.backward(loss);
    optimizer.update(step, learning_rate(step, updates));
    losses.push_back(value_of(loss));
  }
  return losses;
}

// The mean loss of eight batches of text that the model has never seen.
double validation_loss(const Transformer& model, const Text& text) {
  Tape tape(fovea::Context(1), fovea::TapeMode::kInference);
  double sum = 0;
  for (index n = 0; n < 8; ++n) {
    const Batch batch = random_batch(text.held, n);
    tape.reset();
    sum += value_of(model.loss(tape, batch));
  }
  return sum / 8;
}

// ---- 7. Sampling: one token after another, each drawn from softmax(logits / temperature).

std::string sampled(const Transformer& model, const Text& text, std::string line, index tokens) {
  constexpr double kTemperature = .8;
  Tape tape(fovea::Context(1), fovea::TapeMode::kInference);
  fovea::Random random(kSeed, fovea::RandomUse::kSampling);
  for (; tokens > 0; --tokens) {
    const auto seen = std::min<std::size_t>(line.size(), T);
    Batch batch;
    for (std::size_t n = 0; n < seen; ++n) {
      batch.ids.push_back(text.id(line[line.size() - seen + n]));
      batch.places.push_back(static_cast<std::int32_t>(n));
    }
    tape.reset();
    const auto all = model.logits(tape, batch, static_cast<index>(seen)).value<float>();
    std::vector<double> shares;  // not yet divided by their sum
    double sum = 0;
    for (index n = 0; n < all.columns; ++n) {
      shares.push_back(std::exp(double{all[all.rows - 1][n]} / kTemperature));
      sum += shares.back();
    }
    double left = random.uniform() * sum;
    std::size_t drawn = 0;
    while (drawn + 1 < shares.size() && (left -= shares[drawn]) >= 0) ++drawn;
    line += text.letters[drawn];
  }
  return line;
}

// ---- 8. The same by the library: its model has the same names and the same start.

enum class Updates { kOurs, kLibrary };

std::vector<double> library_losses(const Text& text, index updates, Updates by) {
  fovea::LanguageModelConfig config;
  config.layers = kBlocks, config.heads = H, config.width = C, config.block = T;
  config.vocabulary = std::ssize(text.letters);
  const fovea::LanguageModel model(config, kSeed);
  AdamW ours(model.parameters());
  fovea::Optimizer theirs(model.parameters());
  Tape tape(fovea::Context(1), fovea::TapeMode::kTrain);
  std::vector<std::int32_t> offsets;  // where each sequence begins
  for (index b = 0; b <= B; ++b) offsets.push_back(static_cast<std::int32_t>(b * T));
  std::vector<double> losses;
  for (index step = 1; step <= updates; ++step) {
    const Batch batch = random_batch(text.seen, step);
    tape.reset();
    const Variable loss =
        model.loss(tape, {.ids = batch.ids, .targets = batch.next, .offsets = offsets},
                   {.scale = 1. / (B * T)});
    tape.backward(loss);
    losses.push_back(value_of(loss));
    const double lr = learning_rate(step, updates);
    if (by == Updates::kOurs) {
      ours.update(step, lr);
      continue;
    }
    const double clip = std::min(1., 1. / theirs.gradient_norm(tape.context()));
    theirs.step(tape.context(), {.options = {.lr = lr,
                                             .beta1 = AdamW::kBeta1,
                                             .beta2 = AdamW::kBeta2,
                                             .weight_decay = AdamW::kDecay},
                                 .step = step,
                                 .gradient_scale = clip});
  }
  return losses;
}

// Whether the library's losses are ours: to the bit with the AdamW above; with its own, whose sums
// are rounded differently, as long as rounding errors have not grown from update to update.
bool train_both(const Text& text, index updates) {
  const Transformer model(std::ssize(text.letters));
  std::printf("%d parameters, %d different bytes\n", static_cast<int>(model.size()),
              static_cast<int>(text.letters.size()));
  const std::vector<double> losses = train(model, text, updates);
  const auto same = library_losses(text, updates, Updates::kOurs);
  const auto near = library_losses(text, updates, Updates::kLibrary);
  std::printf("update    loss    library's model    and its AdamW\n");
  bool agree = losses == same;
  for (std::size_t n = 0; n < losses.size(); ++n) {
    agree = agree && (n >= 10 || std::abs(losses[n] - near[n]) < 1e-5);
    if (n == 0 || (n + 1) % 50 == 0) {
      std::printf("%6d  %.4f             %.4f           %.4f\n", static_cast<int>(n + 1), losses[n],
                  same[n], near[n]);
    }
  }
  std::printf("validation loss %.4f\n\n", validation_loss(model, text));
  std::printf("%s\n", sampled(model, text, text.letters.substr(0, 1), 300).c_str());
  return agree;
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc < 2) return 2;
  const Text text = read_text(argv[1]);
  if (std::ssize(text.held) <= T) {
    std::fprintf(stderr, "%s has fewer than %d bytes\n", argv[1], static_cast<int>(10 * (T + 1)));
    return 2;
  }
  return train_both(text, argc > 2 ? std::stoi(argv[2]) : 300) ? 0 : 1;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
