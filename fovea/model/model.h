// SPDX-License-Identifier: Apache-2.0
// What every model has: a resolved configuration, its layers, and the memory of their parameters.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "fovea/nn/module.h"

namespace fovea {

/// Only the optimizer and checkpoints change the parameters. All functions of a model are const;
/// several threads may call them at once, each with its own tape, as long as no thread trains.
/// `Layers` can also be built from shapes alone, to count parameters.
template <class Config, class Layers>
class ModelOf {
 public:
  /// Throws as resolve() does, and kOutOfMemory.
  explicit ModelOf(const Config& config, std::uint64_t seed, DType dtype = DType::kFloat32)
      : ModelOf(config, ParameterSetOptions{seed, dtype}) {}
  /// `more`: what the layers are made of besides.
  template <class... More>
  ModelOf(const Config& config, const ParameterSetOptions& options, const More&... more)
      : config_(resolve(config)),
        parameters_(std::make_unique<ParameterSet>(options)),
        layers_(std::make_unique<const Layers>(config_, more..., ParameterScope(*parameters_))) {}

  /// The resolved configuration: no size is 0.
  const Config& config() const { return config_; }
  /// In a fixed order, with names such as "blocks.0.attention.qkv.weight".
  std::span<Parameter* const> parameters() const { return parameters_->parameters(); }
  /// How many of its layers have attention.
  index attentions() const { return layers_->attentions(); }

 protected:
  const Layers& layers() const { return *layers_; }

  Config config_;

 private:
  std::unique_ptr<ParameterSet> parameters_;
  std::unique_ptr<const Layers> layers_;
};

}  // namespace fovea
