// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "fovea/config/json.h"
#include "fovea/task/language_model/language_model.h"
#include "fovea/task/setting_parts.h"
#include "fovea/tensor/checksum.h"
#include "tests/support/throws.h"

namespace fovea {
namespace {

TEST(SameFiles, NameWhatWasMoved) {
  const std::vector<std::string> a = {"a"}, b = {"b"}, none;
  const std::string one = "1", two = "2";
  EXPECT_NO_THROW(require_same_files({a, none, one}, {b, none, one}));
  EXPECT_THROWS(require_same_files({a, none, one}, {b, none, two}), kConfig, "--train");
  EXPECT_THROWS(require_same_files({a, none, one}, {a, b, two}), kConfig, "--valid");
  EXPECT_THROWS(require_same_files({a, none, one}, {a, none, two}), kConfig, "has changed");
}

TEST(StoredModelFingerprint, IsOfTheFieldsThatStandThere) {
  const LanguageModelConfig model;
  LanguageModelSettings settings;
  settings.recipe.lr = 1;
  EXPECT_EQ(stored_model_fingerprint(config_text(settings), "c"), xxh3_128(to_json(model)));
  const std::string older = R"({"kind": "x", "model": {"layers": 4, "softcap": 0.0}, "text": {}})";
  EXPECT_EQ(stored_model_fingerprint(older, "c"),
            xxh3_128("{\n  \"layers\": 4,\n  \"softcap\": 0.0\n}\n"));
  EXPECT_THROWS(stored_model_fingerprint("{}", "c"), kModelDamaged,
                "c: the key 'model' is missing");
  EXPECT_THROWS(stored_model_fingerprint("[]", "c"), kModelDamaged, "c: ");
}

}  // namespace
}  // namespace fovea
