// SPDX-License-Identifier: Apache-2.0
// A file of tagged sentences is read or refused, the same in pieces of any size; what is read is
// text, and its lines come back as they were.
#include "fovea/data/tagged/tagged_reader.h"
#include "fovea/text/utf8.h"
#include "fovea/text/words.h"
#include "tests/fuzz/pieces.h"

namespace fovea {
namespace {

// Appends the sentences. `text` is the whole file.
void read(std::unique_ptr<ByteStream> bytes, std::string_view text, const TaggedOptions& options,
          std::string& all) {
  TaggedReader reader(std::move(bytes), "f", options);
  std::string source;
  for (TaggedSentence sentence; reader.next(sentence);) {
    require(options.keep_source || sentence.size() > 0);
    require(sentence.lines.size() == sentence.words.size());
    const bool reads = options.tags != TagUse::kNone && sentence.size() > 0;
    require(sentence.tags.empty() == !reads);
    for (const auto& column : sentence.tags) require(column.size() == sentence.words.size());
    for (const std::string& word : sentence.words) {
      require(!word.empty() && !find_invalid_utf8(word));
      require(word_shape(word) >= 0 && word_shape(word) < kWordShapes);
      all += word + "\t";
    }
    require(to_characters(sentence).words.size() == to_characters(sentence).tags[0].size());
    source += with_columns(sentence, {}, "");
    all += '\n';
  }
  if (!options.keep_source) return;
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  require(source.starts_with(text.substr(0, text.find_last_of('\n') + 1)));
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
  const std::string_view text = text_of(data + 1, size - 1);
  require_same_in_pieces(text, [&](std::unique_ptr<ByteStream> bytes, std::string& all) {
    read(std::move(bytes), text, options, all);
  });
  return 0;
}
