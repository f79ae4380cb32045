// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/load_parts.h"

#include "tests/support/throws.h"
#include "tests/task/classify/tiny.h"

namespace fovea {
namespace {

ModelSizes sizes_of(index layers) {
  ModelSizes sizes;
  sizes.layers = layers;
  return sizes;
}

TEST(LoadParts, CompareSizesWithTheWeights) {
  const TestFolder folder;
  const auto model = trained(folder, tiny_classifier(folder));
  EXPECT_THROWS(read_fitting_weights(model, [] { return sizes_of(99); }), kModelDamaged,
                "such a model does not have the");
  const auto sizes_with_seven = [] {
    ModelSizes sizes = sizes_of(1);
    sizes.parameters = [] { return index{7}; };
    return sizes;
  };
  EXPECT_THROWS(read_fitting_weights(model, sizes_with_seven), kModelDamaged,
                "of model.safetensors but 7");
  EXPECT_THROWS(load_tokenizer(model, 3), kModelDamaged, "the model 3");
  EXPECT_THROWS(require_model_kind("{}", "c.json", "x", "an x"), kModelWrongKind, "got none");
}

}  // namespace
}  // namespace fovea
