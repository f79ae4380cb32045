// SPDX-License-Identifier: Apache-2.0
#include "fovea/nn/encoder_layers.h"

#include <utility>
#include <vector>

#include "fovea/base/check.h"

namespace fovea {

namespace {

// Each number of a layer has four numbers of masks. A layer takes the first ones, as many as it is
// deep at most; its residual sum takes the last.
DropoutKey key_inside(const DropoutKey& layer) { return key_of(layer, BlockMask::kWeights); }

DropoutKey key_of_sum(const DropoutKey& layer, std::uint32_t depth) {
  return key_of({layer.seed, layer.step, layer.layer + depth - 1}, BlockMask::kFeedForward);
}

class AttentionLayer final : public EncoderLayer {
 public:
  AttentionLayer(const MultiHeadAttentionOptions& options, const ParameterScope& scope)
      : attention_(options, scope["attention"]) {}

  index width() const override {
    const MultiHeadAttentionOptions& o = attention_.options();
    return o.output == OutputProjection::kLearned ? o.width : o.heads * o.value_dim;
  }
  index attentions() const override { return 1; }
  Variable forward(Tape& tape, Variable x, const EncoderCall& call) const override {
    return attention_.forward(tape, x, call.rows, key_inside(call.key), call.only_seen());
  }
  index first_columns() const override { return attention_.first_columns(); }
  Variable first_step(Tape& tape, Variable x) const override {
    return attention_.first_step(tape, x);
  }
  Variable first_product(Tape& tape, Variable p) const override {
    return attention_.first_product(tape, p);
  }
  Variable forward_from(Tape& tape, Variable stepped, const EncoderCall& call) const override {
    return attention_.forward_from(tape, stepped, call.rows, key_inside(call.key),
                                   call.only_seen());
  }
  std::unique_ptr<LayerSession> begin(index capacity) const override {
    return std::make_unique<CachingSession<MultiHeadAttention>>(attention_,
                                                                attention_.cache_options(capacity));
  }

 private:
  MultiHeadAttention attention_;
};

class RecurrentLayer final : public EncoderLayer {
 public:
  RecurrentLayer(const RecurrentLayersOptions& options, const ParameterScope& scope)
      : layers_(options, scope["recurrent"]) {}

  index width() const override { return layers_.out(); }
  std::uint32_t depth() const override { return static_cast<std::uint32_t>(layers_.layers()); }
  Variable forward(Tape& tape, Variable x, const EncoderCall& call) const override {
    return layers_.forward(tape, x, call.rows, key_inside(call.key));
  }
  std::unique_ptr<LayerSession> begin(index) const override {
    using State = std::vector<RecurrentState>;
    return std::make_unique<StateSession<RecurrentLayers, State>>(layers_);
  }

 private:
  RecurrentLayers layers_;
};

// The windows alone: the pooling of a model takes their maxima.
class TextCnnLayer final : public EncoderLayer {
 public:
  TextCnnLayer(const TextCnnOptions& options, const ParameterScope& scope)
      : layer_(options, scope["textcnn"]) {}

  index width() const override { return layer_.columns(); }
  Variable forward(Tape& tape, Variable x, const EncoderCall& call) const override {
    return layer_.windows(tape, x, call.rows);
  }
  std::unique_ptr<LayerSession> begin(index) const override {
    fail(ErrorCode::kInternal, "encoder: textcnn does not generate");
  }

 private:
  TextCnn layer_;
};

// A layer in a residual connection with a norm.
class ResidualLayer final : public EncoderLayer {
 public:
  ResidualLayer(std::unique_ptr<EncoderLayer> inner, const ResidualOptions& options,
                const ParameterScope& scope)
      : inner_(std::move(inner)), residual_(options, scope["norm"]) {
    check(inner_->width() == options.norm.width,
          "residual: the layer turns {} columns into {}; a sum needs equal ones",
          options.norm.width, inner_->width());
  }

  index width() const override { return inner_->width(); }
  index attentions() const override { return inner_->attentions(); }
  std::uint32_t depth() const override { return inner_->depth(); }
  Variable forward(Tape& tape, Variable x, const EncoderCall& call) const override {
    return residual_.forward(tape, x, call.rows, key_of_sum(call.key, depth()),
                             [&](Variable y) { return inner_->forward(tape, y, call); });
  }
  std::unique_ptr<LayerSession> begin(index capacity) const override {
    return std::make_unique<Session>(residual_, inner_->begin(capacity));
  }

 private:
  class Session final : public LayerSession {
   public:
    Session(const Residual& residual, std::unique_ptr<LayerSession> inner)
        : residual_(residual), inner_(std::move(inner)) {}

    Variable forward(Tape& tape, Variable x) override {
      return residual_.forward(tape, x, {}, {},
                               [&](Variable y) { return inner_->forward(tape, y); });
    }
    void clear() override { inner_->clear(); }
    index most_rows() const override { return inner_->most_rows(); }
    bool endless() const override { return inner_->endless(); }

   private:
    const Residual& residual_;
    std::unique_ptr<LayerSession> inner_;
  };

  std::unique_ptr<EncoderLayer> inner_;
  Residual residual_;
};

// A layer over the other axis of the rows.
class AcrossLayer final : public EncoderLayer {
 public:
  explicit AcrossLayer(std::unique_ptr<EncoderLayer> inner) : inner_(std::move(inner)) {}

  index width() const override { return inner_->width(); }
  index attentions() const override { return inner_->attentions(); }
  std::uint32_t depth() const override { return inner_->depth(); }
  Variable forward(Tape& tape, Variable x, const EncoderCall& call) const override {
    check(call.rows.across != nullptr, "encoder: the rows have no other axis");
    const RowsAcross& across = *call.rows.across;
    const Variable there = embedding(tape, {.table = x, .ids = across.order});
    const Variable y = inner_->forward(tape, there, {across.rows, call.key, call.seen});
    for (HeadStatistics& seen : call.seen) {
      seen.is_across = true;
      put_back(seen.received, across);
      put_weights_back(seen.weights, across);
    }
    return embedding(tape, {.table = y, .ids = across.back});
  }
  std::unique_ptr<LayerSession> begin(index) const override {
    fail(ErrorCode::kInternal, "encoder: a layer over another axis does not generate");
  }

 private:
  static void put_back(std::vector<double>& received, const RowsAcross& across) {
    const std::vector<double> there = received;
    const auto rows = static_cast<std::size_t>(across.back.size);
    for (std::size_t n = 0; n < there.size(); ++n) {
      const auto row = static_cast<std::size_t>(across.back[static_cast<index>(n % rows)]);
      received[n] = there[n - n % rows + row];
    }
  }

  // Puts both the rows and the columns of weights [H, N, N] back.
  static void put_weights_back(std::vector<float>& weights, const RowsAcross& across) {
    const std::vector<float> there = weights;
    const auto rows = static_cast<std::size_t>(across.back.size);
    for (std::size_t n = 0; n < there.size(); ++n) {
      const std::size_t head = n / (rows * rows), query = n / rows % rows;
      const auto from = static_cast<std::size_t>(across.back[static_cast<index>(query)]);
      const auto column = static_cast<std::size_t>(across.back[static_cast<index>(n % rows)]);
      weights[n] = there[(head * rows + from) * rows + column];
    }
  }

  std::unique_ptr<EncoderLayer> inner_;
};

}  // namespace

std::unique_ptr<EncoderLayer> in_residual(std::unique_ptr<EncoderLayer> layer,
                                          const ResidualIf& residual, const ParameterScope& scope) {
  if (!residual) return layer;
  return std::make_unique<ResidualLayer>(std::move(layer), *residual, scope);
}

std::unique_ptr<EncoderLayer> layer_across(std::unique_ptr<EncoderLayer> layer) {
  return std::make_unique<AcrossLayer>(std::move(layer));
}

std::unique_ptr<EncoderLayer> attention_layer(const MultiHeadAttentionOptions& options,
                                              const ResidualIf& residual,
                                              const ParameterScope& scope) {
  return in_residual(std::make_unique<AttentionLayer>(options, scope), residual, scope);
}

std::unique_ptr<EncoderLayer> feed_forward_layer(const FeedForwardOptions& options,
                                                 const ResidualIf& residual,
                                                 const ParameterScope& scope) {
  return in_residual(std::make_unique<FeedForward>(options, scope["feed_forward"]), residual,
                     scope);
}

std::unique_ptr<EncoderLayer> recurrent_layer(const RecurrentLayersOptions& options,
                                              const ResidualIf& residual,
                                              const ParameterScope& scope) {
  return in_residual(std::make_unique<RecurrentLayer>(options, scope), residual, scope);
}

std::unique_ptr<EncoderLayer> convolution_layer(const ConvolutionLayerOptions& options,
                                                const ResidualIf& residual,
                                                const ParameterScope& scope) {
  return in_residual(std::make_unique<ConvolutionLayer>(options, scope["convolution"]), residual,
                     scope);
}

std::unique_ptr<EncoderLayer> text_cnn_layer(const TextCnnOptions& options,
                                             const ParameterScope& scope) {
  return std::make_unique<TextCnnLayer>(options, scope);
}

}  // namespace fovea
