// SPDX-License-Identifier: Apache-2.0
// A header that is accepted names tensors that can be read, each within the file; and all that a
// model reads of it is refused or used.
#include <vector>

#include "fovea/base/bytes.h"
#include "fovea/pretrained/pretrained.h"
#include "fovea/tensor/gguf.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const fovea::MemorySource file(fovea::text_of(data, size));
  fovea::allow_refusal([&] {
    const fovea::GgufSource source(file, "input");
    for (const fovea::GgufTensor& tensor : source.header().tensors) {
      fovea::require(tensor.begin <= size && tensor.bytes <= size - tensor.begin);
    }
    for (std::size_t n = 0; n < source.names().size(); ++n) {
      fovea::allow_refusal([&] { fovea::require(source.read(n).shape() == source.info(n).shape); });
    }
    fovea::allow_refusal([&] { fovea::config_of_gguf(source.header(), "input"); });
    fovea::allow_refusal([&] {
      const fovea::PretrainedText text = fovea::text_of_gguf(source.header(), "input");
      std::vector<fovea::token> ids;
      text.subwords->encode(ids, "a <s> b\u00e9");
      for (const fovea::token id : ids) fovea::require(id >= 0 && id < text.subwords->size());
      text.subwords->decode(ids);
    });
  });
  return 0;
}
