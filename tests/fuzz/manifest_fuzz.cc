// SPDX-License-Identifier: Apache-2.0
// A manifest as it is, and one whose checksum is made right: what can be read names no file outside
// of its folder, and is written as it was.
#include <algorithm>

#include "fovea/config/json.h"
#include "fovea/tensor/checksum.h"
#include "fovea/train/model_folder.h"
#include "tests/fuzz/fuzz.h"

namespace fovea {
namespace {

void read(std::string_view text) {
  const Manifest manifest = parse_manifest(text, "input");
  require(manifest_text(manifest) == text);
  for (const ManifestEntry& entry : manifest.files) {
    require(!entry.name.empty() && entry.name[0] != '.' &&
            entry.name.find('/') == std::string::npos);
  }
}

void read_with_checksum(std::string_view text) {
  const Json body = parse_json(text, {"input"});
  const std::string checksum = xxh3_128(body.line());
  read(Json(Json::Object{{"manifest", body}, {"xxh3-128", checksum}}).pretty());
}

}  // namespace
}  // namespace fovea

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = fovea::text_of(data, size);
  fovea::allow_refusal([&] { fovea::read(text); });
  fovea::allow_refusal([&] { fovea::read_with_checksum(text); });
  return 0;
}
