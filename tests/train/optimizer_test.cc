// SPDX-License-Identifier: Apache-2.0
#include "fovea/train/optimizer.h"

#include <gmock/gmock.h>

#include <cmath>

#include "tests/support/throws.h"

namespace fovea {
namespace {

struct Model {
  Parameter weight, gain;
  std::vector<Parameter*> parameters{&weight, &gain};

  Model() {
    weight.name = "weight";
    weight.value = Tensor::of<float>(Shape{2, 2}, std::vector<float>{1, -2, 3, -4});
    gain.name = "gain";
    gain.value = Tensor::of<float>(Shape{2}, std::vector<float>{1, 1});
    gain.decay = Decay::kNo;
  }
  void set_gradients(float value) {
    for (Parameter* p : parameters) {
      for (float& g : p->gradient_to_write().vec<float>()) g = value;
    }
  }
};

const Context kContext(1);
constexpr AdamWStep kStep{.options = {.lr = 0.1, .weight_decay = 0.5}, .step = 1};

TEST(Optimizer, NormIsThatOfAllGradients) {
  Model model;
  Optimizer optimizer(model.parameters);
  model.set_gradients(2);
  EXPECT_NEAR(optimizer.gradient_norm(kContext), std::sqrt(6 * 4.0), 1e-6);
  model.set_gradients(NAN);
  EXPECT_FALSE(std::isfinite(optimizer.gradient_norm(kContext)));
}

// The first step of Adam is lr against the sign; decay takes lr 0.5 of the value, where it applies.
TEST(Optimizer, DecaysWhatShallDecay) {
  Model model;
  Optimizer optimizer(model.parameters);
  model.set_gradients(1);
  optimizer.step(kContext, kStep);
  EXPECT_NEAR(model.weight.value.data<float>()[3], -4 - 0.1 + 0.1 * 0.5 * 4, 1e-5);
  EXPECT_NEAR(model.gain.value.data<float>()[0], 1 - 0.1, 1e-5);
}

// As optimizers of their own, each with its learning rate.
TEST(Optimizer, ParametersMayHaveRatesOfTheirOwn) {
  Model together, apart;
  const double rates[] = {0.25, 1};
  Optimizer all(together.parameters, OptimizerKind::kAdamW, rates);
  Optimizer slow({&apart.parameters[0], 1}), usual({&apart.parameters[1], 1});
  for (index step = 1; step <= 3; ++step) {
    for (Model* model : {&together, &apart}) model->set_gradients(static_cast<float>(step));
    AdamWStep quarter = kStep, whole = kStep;
    quarter.step = whole.step = step;
    quarter.options.lr = kStep.options.lr / 4;
    all.step(kContext, whole);
    slow.step(kContext, quarter);
    usual.step(kContext, whole);
  }
  for (std::size_t n = 0; n < 2; ++n) {
    const auto ours = together.parameters[n]->value.vec<float>();
    EXPECT_TRUE(
        std::equal(ours.begin(), ours.end(), apart.parameters[n]->value.vec<float>().begin()));
  }
  EXPECT_THROWS(Optimizer(together.parameters, OptimizerKind::kAdamW, {rates, 1}), kShape,
                "1 factors");
}

TEST(Optimizer, LeavesOutWhatIsFrozen) {
  Model model;
  model.weight.frozen = true;
  Optimizer optimizer(model.parameters);
  const std::vector<NamedTensor> state = optimizer.state();
  ASSERT_EQ(state.size(), 2u);
  EXPECT_EQ(state[0].name, "gain.m");
  for (float& g : model.gain.gradient_to_write().vec<float>()) g = 1;
  EXPECT_NEAR(optimizer.gradient_norm(kContext), std::sqrt(2.0), 1e-6);
  optimizer.step(kContext, kStep);
  EXPECT_EQ(model.weight.value.data<float>()[3], -4) << "no decay, either";
  EXPECT_FALSE(model.weight.gradient.defined());
  EXPECT_NE(model.gain.value.data<float>()[0], 1);
}

TEST(Optimizer, ClearsGradientsAndTellsThatValuesChanged) {
  Model model;
  Optimizer optimizer(model.parameters);
  const auto version = model.weight.version;
  model.set_gradients(1);
  optimizer.step(kContext, kStep);
  EXPECT_GT(model.weight.version, version);
  EXPECT_EQ(optimizer.gradient_norm(kContext), 0);
}

TEST(Optimizer, RestoredStateGoesOnWithTheSameBits) {
  Model a, b;
  Optimizer one(a.parameters);
  a.set_gradients(1);
  one.step(kContext, kStep);
  const std::string state = safetensors_bytes(one.state());
  const std::string values = safetensors_bytes(parameter_tensors(a.parameters));

  Optimizer two(b.parameters);
  two.restore(parse_safetensors(state, "state"));
  restore_parameters(b.parameters, parse_safetensors(values, "values"), "values");
  for (Model* model : {&a, &b}) model->set_gradients(-3);
  AdamWStep second = kStep;
  second.step = 2;
  one.step(kContext, second);
  two.step(kContext, second);
  EXPECT_EQ(safetensors_bytes(one.state()), safetensors_bytes(two.state()));
  EXPECT_EQ(safetensors_bytes(parameter_tensors(a.parameters)),
            safetensors_bytes(parameter_tensors(b.parameters)));
}

TEST(Optimizer, NamesTheTensorThatDoesNotFit) {
  Model model;
  Optimizer optimizer(model.parameters);
  const std::vector<NamedTensor> wrong = {{"weight", Tensor(Shape{3})}, {"gain", Tensor(Shape{2})}};
  const Safetensors stored = parse_safetensors(safetensors_bytes(wrong), "m");
  EXPECT_THROWS(restore_parameters(model.parameters, stored, "m"), kModelDamaged,
                "m: tensor 'weight' must be float32 [2, 2] or bfloat16; it is float32 [3]");
  EXPECT_THROWS(optimizer.restore(stored), kModelDamaged, "'weight.m' is missing");
}

// Weights may be stored as bfloat16; moments, without which a run would not go on with its bits,
// may not.
TEST(Optimizer, TakesWeightsOfBFloat16ButNoMoments) {
  Model model;
  std::vector<NamedTensor> stored;
  for (const NamedTensor& one : parameter_tensors(model.parameters)) {
    stored.push_back({one.name, one.tensor.to(DType::kBFloat16)});
  }
  const std::string bytes = safetensors_bytes(stored);
  model.set_gradients(1);
  Optimizer optimizer(model.parameters);
  optimizer.step(kContext, kStep);
  restore_parameters(model.parameters, parse_safetensors(bytes, "m"), "m");
  const std::vector<NamedTensor> now = parameter_tensors(model.parameters);
  for (std::size_t n = 0; n < now.size(); ++n) {
    EXPECT_EQ(now[n].tensor.dtype(), DType::kFloat32);
    for (index i = 0; i < now[n].tensor.size(); ++i) {
      EXPECT_EQ(now[n].tensor.data<float>()[i], to_float(stored[n].tensor.data<BFloat16>()[i]));
    }
  }
  std::vector<NamedTensor> moments;
  for (const NamedTensor& one : optimizer.state()) {
    moments.push_back({one.name, one.tensor.to(DType::kBFloat16)});
  }
  const Safetensors rounded = parse_safetensors(safetensors_bytes(moments), "o");
  EXPECT_THROWS(optimizer.restore(rounded), kModelDamaged,
                "must be float32 [2, 2]; it is bfloat16");
}

TEST(Optimizer, RefusesATensorTooMany) {
  Model model;
  std::vector<NamedTensor> tensors = parameter_tensors(model.parameters);
  tensors.push_back({"stray", Tensor(Shape{1})});
  const Safetensors stored = parse_safetensors(safetensors_bytes(tensors), "m");
  EXPECT_THROWS(restore_parameters(model.parameters, stored, "m"), kModelDamaged,
                "expected 2 tensors");
}

}  // namespace
}  // namespace fovea
