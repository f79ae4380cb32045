// SPDX-License-Identifier: Apache-2.0
// The text of an encoder is read or refused with a place inside of it; what is read can be written,
// and read again. Sizes of a model of it are filled in, or refused.
#include "fovea/model/language_model.h"
#include "tests/fuzz/fuzz.h"
#include "tests/support/encoder_text.h"

namespace fovea {
namespace {

void read(const std::string& text) {
  const auto stages = parse_encoder(text);
  const std::string written = text_of(stages);
  require(parse_encoder(written) == stages);
  require(text_of(parse_encoder(written)) == written);
}

// A hint is never empty, and what is quoted of the text can be shown.
void expect_refusal_that_can_be_shown(const Error& error) {
  require(!error.hint().empty());
  for (const char c : std::string_view(error.what())) {
    require(static_cast<unsigned char>(c) >= ' ');
  }
}

}  // namespace
}  // namespace fovea

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace fovea;
  const std::string text(text_of(data, size));
  try {
    read(text);
  } catch (const Error& error) {
    expect_refusal_that_can_be_shown(error);
  }
  LanguageModelConfig config;
  config.kind = LanguageModelKind::kEncoder;
  config.encoder = text;
  config.vocabulary = 11;
  allow_refusal([&] {
    const LanguageModelConfig resolved = resolve(config);
    require(resolve(resolved) == resolved);
  });
  return 0;
}
