// SPDX-License-Identifier: Apache-2.0
#include "fovea/model/encoder_config.h"

#include <gtest/gtest.h>

#include <cmath>

#include "fovea/model/language_model.h"
#include "tests/support/throws.h"

namespace fovea {
namespace {

EncoderConfig resolved(void (*change)(EncoderConfig&)) {
  EncoderConfig c;
  c.vocabulary = 10;
  change(c);
  resolve_encoder(c);
  return c;
}

TEST(EncoderConfig, SizesFollowFromOthers) {
  const EncoderConfig c = resolved([](auto& e) { e.position = PositionKind::kSinusoidal; });
  EXPECT_EQ(c.kv_heads, 4);
  EXPECT_EQ(c.head_dim, 32);
  EXPECT_EQ(c.ff, 512);
  EXPECT_EQ(c.position_max, 64);
  EXPECT_EQ(c.embedding_scale, std::sqrt(128));
  const EncoderConfig odd = resolved([](auto& e) { e.heads = 3; });
  EXPECT_EQ(odd.head_dim, 0) << "an encoder may have heads of its own, or none";
}

TEST(EncoderConfig, BucketsBothWaysNeedTwiceAsMany) {
  const auto past = [](EncoderConfig& c) {
    c.position = enum_from_name<PositionKind>("t5");
    c.t5_buckets = 3;
  };
  EXPECT_EQ(resolved(past).t5_buckets, 3);
  EXPECT_THROWS(resolved([](auto& c) {
                  c.position = enum_from_name<PositionKind>("t5");
                  c.t5_buckets = 3;
                  c.sight = Sight::kWhole;
                }),
                kOptionValue, "--t5-buckets: 3 is not in 4 to");
}

// Models compute in float32.
TEST(EncoderConfig, ACapIsANumberOfFloat32) {
  EXPECT_NO_THROW(resolved([](auto& c) { c.softcap = 1e-30; }));
  EXPECT_NO_THROW(resolved([](auto& c) { c.softcap = 1e30; }));
  EXPECT_THROWS(resolved([](auto& c) { c.softcap = 1e-50; }), kOptionValue,
                "--softcap: 1e-50 is not 0 (none), or in 1.1754944e-38 to 3.4028235e+38");
  EXPECT_THROWS(resolved([](auto& c) { c.softcap = 1e50; }), kOptionValue, "--softcap: 1e+50");
  EXPECT_THROWS(resolved([](auto& c) { c.softcap = -1; }), kOptionValue, "--softcap: -1");
  LanguageModelConfig model;
  model.vocabulary = 5;
  model.logit_softcap = 1e-50;
  EXPECT_THROWS(resolve(model), kOptionValue, "--logit-softcap: 1e-50 is not 0 (none)");
  model.logit_softcap = -1;
  EXPECT_THROWS(resolve(model), kOptionValue, "--logit-softcap");
}

TEST(EncoderConfig, RefusesWhatDoesNotFit) {
  EXPECT_THROWS(resolved([](auto& c) { c.vocabulary = 0; }), kOptionValue, "--vocabulary");
  EXPECT_THROWS(resolved([](auto& c) { c.kv_heads = 3; }), kShape, "--kv-heads");
  EXPECT_THROWS(resolved([](auto& c) { c.position_max = 3; }), kOptionValue, "--position-max");
  EXPECT_THROWS(check_size("width", 0, 1), kOptionValue, "--width: 0 is not in 1 to 2147483647");
}

}  // namespace
}  // namespace fovea
