// SPDX-License-Identifier: Apache-2.0
// A file of tagged sentences is read or refused, the same in pieces of any size; what is read is
// text, and its lines come back as they were.
#include <algorithm>
#include <memory>
#include <vector>

#include "fovea/data/tagged/characters.h"
#include "fovea/data/tagged/tagged_reader.h"
#include "fovea/text/utf8.h"
#include "fovea/text/word_shape.h"
#include "tests/fuzz/fuzz.h"

namespace fovea {
namespace {

class Pieces final : public ByteStream {
 public:
  Pieces(std::string_view bytes, std::size_t most) : bytes_(bytes), most_(most) {}
  std::size_t read(std::span<char> to) override {
    const std::size_t n = bytes_.copy(to.data(), std::min(most_, to.size()));
    bytes_.remove_prefix(n);
    return n;
  }

 private:
  std::string_view bytes_;
  std::size_t most_;
};

// Sentences and, at the end, the message of the error.
std::string read(std::string_view bytes, std::size_t most, const TaggedOptions& options) {
  std::string all;
  try {
    TaggedReader reader(std::make_unique<Pieces>(bytes, most), "f", options);
    std::string source;
    for (TaggedSentence sentence; reader.next(sentence);) {
      require(options.keep_source || sentence.size() > 0);
      require(sentence.lines.size() == sentence.words.size());
      require(sentence.tags.size() == (options.tags == TagUse::kNone ? 0 : sentence.words.size()));
      for (const std::string& word : sentence.words) {
        require(!word.empty() && !find_invalid_utf8(word));
        require(word_shape(word) >= 0 && word_shape(word) < kWordShapes);
        all += word + "\t";
      }
      require(to_characters(sentence).words.size() == to_characters(sentence).tags.size());
      source += with_columns(sentence, {}, "");
      all += '\n';
    }
    if (options.keep_source) {
      const std::string_view text = bytes.starts_with("\xEF\xBB\xBF") ? bytes.substr(3) : bytes;
      require(source.starts_with(text.substr(0, text.find_last_of('\n') + 1)));
    }
    return all;
  } catch (const Error& error) {
    return all + error.what();
  }
}

}  // namespace
}  // namespace fovea

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace fovea;
  if (size < 1) return 0;
  const std::size_t way = data[0];
  TaggedOptions options;
  options.format = static_cast<TaggedFormat>(way % 4);
  options.tags = static_cast<TagUse>(way / 4 % 2);
  if (options.format == TaggedFormat::kWords) options.tags = TagUse::kNone;
  options.words = static_cast<ConlluWords>(way / 8 % 2);
  options.keep_source = way / 16 % 2 == 1;
  options.comments = way / 32 % 2 == 1;
  if (way / 64 % 2 == 1) options.word_column = 2;
  if (way / 128 % 2 == 1) options.longest_line = 30;
  const std::string_view bytes = text_of(data + 1, size - 1);
  require(read(bytes, 1 << 20, options) == read(bytes, 3, options));
  return 0;
}
