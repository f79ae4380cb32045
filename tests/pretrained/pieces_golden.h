// SPDX-License-Identifier: Apache-2.0
// Made by make_pieces_golden.py.
// clang-format off
#pragma once

#include <string_view>
#include <vector>

#include "fovea/text/vocabulary.h"

namespace fovea {

struct GoldenText {
  std::string_view text;
  std::vector<token> ids;
  std::string_view decoded;
};
struct GoldenPieces {
  std::string_view name;
  std::string_view file;  // tokenizer.json
  std::vector<token> before, after;
  std::vector<GoldenText> texts;
};

inline const std::vector<GoldenPieces> kGoldenPieces = {
    {"llama 2",
     R"x({"version":"1.0","truncation":null,"padding":null,"added_tokens":[{"id":0,"content":"<unk>","single_word":fa)x"
     R"x(lse,"lstrip":false,"rstrip":false,"normalized":false,"special":true},{"id":1,"content":"<s>","single_word":f)x"
     R"x(alse,"lstrip":false,"rstrip":false,"normalized":false,"special":true},{"id":2,"content":"</s>","single_word")x"
     R"x(:false,"lstrip":false,"rstrip":false,"normalized":false,"special":true},{"id":89,"content":"<mask>","single_)x"
     R"x(word":false,"lstrip":true,"rstrip":true,"normalized":false,"special":true},{"id":90,"content":"user word","s)x"
     R"x(ingle_word":false,"lstrip":false,"rstrip":false,"normalized":true,"special":false}],"normalizer":{"type":"Se)x"
     R"x(quence","normalizers":[{"type":"Prepend","prepend":"▁"},{"type":"Replace","pattern":{"String":" "},"content")x"
     R"x(:"▁"}]},"pre_tokenizer":null,"post_processor":{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":")x"
     R"x(<s>","type_id":0}},{"Sequence":{"id":"A","type_id":0}}],"pair":[{"SpecialToken":{"id":"<s>","type_id":0}},{")x"
     R"x(Sequence":{"id":"A","type_id":0}},{"Sequence":{"id":"B","type_id":0}}],"special_tokens":{"</s>":{"id":"</s>")x"
     R"x(,"ids":[2],"tokens":["</s>"]},"<s>":{"id":"<s>","ids":[1],"tokens":["<s>"]}}},"decoder":{"type":"Sequence",")x"
     R"x(decoders":[{"type":"Replace","pattern":{"String":"▁"},"content":" "},{"type":"ByteFallback"},{"type":"Fuse"})x"
     R"x(,{"type":"Strip","content":" ","start":1,"stop":0}]},"model":{"type":"BPE","dropout":null,"unk_token":"<unk>)x"
     R"x(","continuing_subword_prefix":null,"end_of_word_suffix":null,"fuse_unk":true,"byte_fallback":true,"ignore_me)x"
     R"x(rges":false,"vocab":{"<unk>":0,"<s>":1,"</s>":2,"<0x00>":3,"<0x01>":4,"<0x09>":5,"<0x0A>":6,"<0x0D>":7,"<0x2)x"
     R"x(0>":8,"<0x2F>":9,"<0x30>":10,"<0x31>":11,"<0x34>":12,"<0x3C>":13,"<0x3E>":14,"<0x41>":15,"<0x61>":16,"<0x62>)x"
     R"x(":17,"<0x63>":18,"<0x64>":19,"<0x65>":20,"<0x68>":21,"<0x6B>":22,"<0x6D>":23,"<0x6E>":24,"<0x6F>":25,"<0x72>)x"
     R"x(":26,"<0x73>":27,"<0x74>":28,"<0x75>":29,"<0x77>":30,"<0x78>":31,"<0x7A>":32,"<0x7F>":33,"<0x80>":34,"<0x81>)x"
     R"x(":35,"<0x83>":36,"<0x8B>":37,"<0x90>":38,"<0x92>":39,"<0x96>":40,"<0x97>":41,"<0x98>":42,"<0x9F>":43,"<0xA0>)x"
     R"x(":44,"<0xA1>":45,"<0xA2>":46,"<0xA3>":47,"<0xA5>":48,"<0xA6>":49,"<0xA7>":50,"<0xA9>":51,"<0xAB>":52,"<0xAC>)x"
     R"x(":53,"<0xAD>":54,"<0xB5>":55,"<0xB7>":56,"<0xB8>":57,"<0xBA>":58,"<0xBC>":59,"<0xC2>":60,"<0xC3>":61,"<0xCC>)x"
     R"x(":62,"<0xE0>":63,"<0xE1>":64,"<0xE2>":65,"<0xE4>":66,"<0xEF>":67,"<0xF0>":68,"▁":69,"a":70,"b":71,"c":72,"t")x"
     R"x(:73,"h":74,"e":75,"é":76,"▁a":77,"▁t":78,"th":79,"he":80,"▁the":81,"▁th":82,"ab":83,"abc":84,"at":85,"▁▁":86)x"
     R"x(,"中":87,".":88},"merges":[["▁","t"],["t","h"],["▁t","h"],["h","e"],["▁th","e"],["a","b"],["ab","c"],["a","t")x"
     R"x(],["▁","a"],["▁","▁"]]}})x",
     {1}, {},
     {
         {std::string_view("", 0), {}, std::string_view("", 0)},
         {std::string_view(" ", 1), {86}, std::string_view(" ", 1)},
         {std::string_view("the abc", 7), {81, 69, 84}, std::string_view("the abc", 7)},
         {std::string_view("  the  cat at ", 14), {86, 81, 86, 72, 85, 69, 85, 69},
          std::string_view("  the  cat at ", 14)},
         {std::string_view("thethe", 6), {81, 79, 75}, std::string_view("thethe", 6)},
         {std::string_view("<s>the</s> ab<unk>", 18), {1, 81, 2, 86, 83, 0},
          std::string_view("<s> the</s>  ab<unk>", 20)},
         {std::string_view("\344\270\255 zz \303\251 z", 11), {69, 87, 69, 32, 32, 69, 76, 69, 32},
          std::string_view("\344\270\255 zz \303\251 z", 11)},
         {std::string_view("e\314\201 \357\254\201 A\314\201bc\357\274\241", 16), {69, 75, 62, 35, 69, 67, 53, 35, 69, 15, 62, 35, 71, 72, 67, 59, 45},
          std::string_view("e\314\201 \357\254\201 A\314\201bc\357\274\241", 16)},
         {std::string_view("a\011b\012c", 5), {77, 5, 71, 6, 72}, std::string_view("a\011b\012c", 5)},
         {std::string_view("the\342\200\213b\302\255", 9), {81, 65, 34, 37, 71, 60, 54},
          std::string_view("the\342\200\213b\302\255", 9)},
         {std::string_view("\360\237\230\200\342\200\246", 7), {69, 68, 43, 42, 34, 65, 34, 49},
          std::string_view("\360\237\230\200\342\200\246", 7)},
         {std::string_view("\342\226\201the\342\226\201", 9), {69, 81, 69}, std::string_view(" the ", 5)},
         {std::string_view("the <mask>  abc", 15), {81, 89, 69, 84}, std::string_view("the<mask> abc", 13)},
         {std::string_view("user word ab", 12), {90, 69, 83}, std::string_view("user word ab", 12)},
         {std::string_view("<0x41>", 6), {69, 13, 10, 31, 12, 11, 14}, std::string_view("<0x41>", 6)},
         {std::string_view("\000\177", 2), {69, 3, 33}, std::string_view("\000\177", 2)},
         {std::string_view(" abc", 4), {86, 84}, std::string_view(" abc", 4)},
         {std::string_view("a\015\012b", 4), {77, 7, 6, 71}, std::string_view("a\015\012b", 4)},
     }},
    {"llama of transformers 5",
     R"x({"version":"1.0","truncation":null,"padding":null,"added_tokens":[{"id":0,"content":"<unk>","single_word":fa)x"
     R"x(lse,"lstrip":false,"rstrip":false,"normalized":false,"special":true},{"id":1,"content":"<s>","single_word":f)x"
     R"x(alse,"lstrip":false,"rstrip":false,"normalized":false,"special":true},{"id":2,"content":"</s>","single_word")x"
     R"x(:false,"lstrip":false,"rstrip":false,"normalized":false,"special":true},{"id":89,"content":"<mask>","single_)x"
     R"x(word":false,"lstrip":true,"rstrip":true,"normalized":false,"special":true},{"id":90,"content":"user word","s)x"
     R"x(ingle_word":false,"lstrip":false,"rstrip":false,"normalized":true,"special":false}],"normalizer":null,"pre_t)x"
     R"x(okenizer":{"type":"Metaspace","replacement":"▁","prepend_scheme":"first","split":false},"post_processor":{"t)x"
     R"x(ype":"TemplateProcessing","single":[{"SpecialToken":{"id":"<s>","type_id":0}},{"Sequence":{"id":"A","type_id)x"
     R"x(":0}}],"pair":[{"SpecialToken":{"id":"<s>","type_id":0}},{"Sequence":{"id":"A","type_id":0}},{"Sequence":{"i)x"
     R"x(d":"B","type_id":0}}],"special_tokens":{"</s>":{"id":"</s>","ids":[2],"tokens":["</s>"]},"<s>":{"id":"<s>",")x"
     R"x(ids":[1],"tokens":["<s>"]}}},"decoder":{"type":"Sequence","decoders":[{"type":"Replace","pattern":{"String":)x"
     R"x("▁"},"content":" "},{"type":"ByteFallback"},{"type":"Fuse"},{"type":"Strip","content":" ","start":1,"stop":0)x"
     R"x(}]},"model":{"type":"BPE","dropout":null,"unk_token":null,"continuing_subword_prefix":null,"end_of_word_suff)x"
     R"x(ix":null,"fuse_unk":true,"byte_fallback":true,"ignore_merges":false,"vocab":{"<unk>":0,"<s>":1,"</s>":2,"<0x)x"
     R"x(00>":3,"<0x01>":4,"<0x09>":5,"<0x0A>":6,"<0x0D>":7,"<0x20>":8,"<0x2F>":9,"<0x30>":10,"<0x31>":11,"<0x34>":12)x"
     R"x(,"<0x3C>":13,"<0x3E>":14,"<0x41>":15,"<0x61>":16,"<0x62>":17,"<0x63>":18,"<0x64>":19,"<0x65>":20,"<0x68>":21)x"
     R"x(,"<0x6B>":22,"<0x6D>":23,"<0x6E>":24,"<0x6F>":25,"<0x72>":26,"<0x73>":27,"<0x74>":28,"<0x75>":29,"<0x77>":30)x"
     R"x(,"<0x78>":31,"<0x7A>":32,"<0x7F>":33,"<0x80>":34,"<0x81>":35,"<0x83>":36,"<0x8B>":37,"<0x90>":38,"<0x92>":39)x"
     R"x(,"<0x96>":40,"<0x97>":41,"<0x98>":42,"<0x9F>":43,"<0xA0>":44,"<0xA1>":45,"<0xA2>":46,"<0xA3>":47,"<0xA5>":48)x"
     R"x(,"<0xA6>":49,"<0xA7>":50,"<0xA9>":51,"<0xAB>":52,"<0xAC>":53,"<0xAD>":54,"<0xB5>":55,"<0xB7>":56,"<0xB8>":57)x"
     R"x(,"<0xBA>":58,"<0xBC>":59,"<0xC2>":60,"<0xC3>":61,"<0xCC>":62,"<0xE0>":63,"<0xE1>":64,"<0xE2>":65,"<0xE4>":66)x"
     R"x(,"<0xEF>":67,"<0xF0>":68,"▁":69,"a":70,"b":71,"c":72,"t":73,"h":74,"e":75,"é":76,"▁a":77,"▁t":78,"th":79,"he)x"
     R"x(":80,"▁the":81,"▁th":82,"ab":83,"abc":84,"at":85,"▁▁":86,"中":87,".":88},"merges":[["▁","t"],["t","h"],["▁t",)x"
     R"x("h"],["h","e"],["▁th","e"],["a","b"],["ab","c"],["a","t"],["▁","a"],["▁","▁"]]}})x",
     {1}, {},
     {
         {std::string_view("", 0), {}, std::string_view("", 0)},
         {std::string_view(" ", 1), {69}, std::string_view("", 0)},
         {std::string_view("the abc", 7), {81, 69, 84}, std::string_view("the abc", 7)},
         {std::string_view("  the  cat at ", 14), {69, 81, 86, 72, 85, 69, 85, 69},
          std::string_view(" the  cat at ", 13)},
         {std::string_view("thethe", 6), {81, 79, 75}, std::string_view("thethe", 6)},
         {std::string_view("<s>the</s> ab<unk>", 18), {1, 79, 75, 2, 69, 83, 0},
          std::string_view("<s>the</s> ab<unk>", 18)},
         {std::string_view("\344\270\255 zz \303\251 z", 11), {69, 87, 69, 32, 32, 69, 76, 69, 32},
          std::string_view("\344\270\255 zz \303\251 z", 11)},
         {std::string_view("e\314\201 \357\254\201 A\314\201bc\357\274\241", 16), {69, 75, 62, 35, 69, 67, 53, 35, 69, 15, 62, 35, 71, 72, 67, 59, 45},
          std::string_view("e\314\201 \357\254\201 A\314\201bc\357\274\241", 16)},
         {std::string_view("a\011b\012c", 5), {77, 5, 71, 6, 72}, std::string_view("a\011b\012c", 5)},
         {std::string_view("the\342\200\213b\302\255", 9), {81, 65, 34, 37, 71, 60, 54},
          std::string_view("the\342\200\213b\302\255", 9)},
         {std::string_view("\360\237\230\200\342\200\246", 7), {69, 68, 43, 42, 34, 65, 34, 49},
          std::string_view("\360\237\230\200\342\200\246", 7)},
         {std::string_view("\342\226\201the\342\226\201", 9), {81, 69}, std::string_view("the ", 4)},
         {std::string_view("the <mask>  abc", 15), {81, 89, 84}, std::string_view("the<mask>abc", 12)},
         {std::string_view("user word ab", 12), {90, 69, 83}, std::string_view("user word ab", 12)},
         {std::string_view("<0x41>", 6), {69, 13, 10, 31, 12, 11, 14}, std::string_view("<0x41>", 6)},
         {std::string_view("\000\177", 2), {69, 3, 33}, std::string_view("\000\177", 2)},
         {std::string_view(" abc", 4), {69, 84}, std::string_view("abc", 3)},
         {std::string_view("a\015\012b", 4), {77, 7, 6, 71}, std::string_view("a\015\012b", 4)},
     }},
    {"gemma",
     R"x({"version":"1.0","truncation":null,"padding":null,"added_tokens":[{"id":0,"content":"<unk>","single_word":fa)x"
     R"x(lse,"lstrip":false,"rstrip":false,"normalized":false,"special":true},{"id":1,"content":"<s>","single_word":f)x"
     R"x(alse,"lstrip":false,"rstrip":false,"normalized":false,"special":true},{"id":2,"content":"</s>","single_word")x"
     R"x(:false,"lstrip":false,"rstrip":false,"normalized":false,"special":true},{"id":89,"content":"<mask>","single_)x"
     R"x(word":false,"lstrip":true,"rstrip":true,"normalized":false,"special":true},{"id":90,"content":"user word","s)x"
     R"x(ingle_word":false,"lstrip":false,"rstrip":false,"normalized":true,"special":false}],"normalizer":{"type":"Re)x"
     R"x(place","pattern":{"String":" "},"content":"▁"},"pre_tokenizer":{"type":"Split","pattern":{"String":" "},"beh)x"
     R"x(avior":"MergedWithPrevious","invert":false},"post_processor":{"type":"TemplateProcessing","single":[{"Specia)x"
     R"x(lToken":{"id":"<s>","type_id":0}},{"Sequence":{"id":"A","type_id":0}}],"pair":[{"SpecialToken":{"id":"<s>",")x"
     R"x(type_id":0}},{"Sequence":{"id":"A","type_id":0}},{"Sequence":{"id":"B","type_id":0}}],"special_tokens":{"</s)x"
     R"x(>":{"id":"</s>","ids":[2],"tokens":["</s>"]},"<s>":{"id":"<s>","ids":[1],"tokens":["<s>"]}}},"decoder":{"typ)x"
     R"x(e":"Sequence","decoders":[{"type":"Replace","pattern":{"String":"▁"},"content":" "},{"type":"ByteFallback"},)x"
     R"x({"type":"Fuse"}]},"model":{"type":"BPE","dropout":null,"unk_token":null,"continuing_subword_prefix":null,"en)x"
     R"x(d_of_word_suffix":null,"fuse_unk":true,"byte_fallback":true,"ignore_merges":false,"vocab":{"<unk>":0,"<s>":1)x"
     R"x(,"</s>":2,"<0x00>":3,"<0x01>":4,"<0x09>":5,"<0x0A>":6,"<0x0D>":7,"<0x20>":8,"<0x2F>":9,"<0x30>":10,"<0x31>":)x"
     R"x(11,"<0x34>":12,"<0x3C>":13,"<0x3E>":14,"<0x41>":15,"<0x61>":16,"<0x62>":17,"<0x63>":18,"<0x64>":19,"<0x65>":)x"
     R"x(20,"<0x68>":21,"<0x6B>":22,"<0x6D>":23,"<0x6E>":24,"<0x6F>":25,"<0x72>":26,"<0x73>":27,"<0x74>":28,"<0x75>":)x"
     R"x(29,"<0x77>":30,"<0x78>":31,"<0x7A>":32,"<0x7F>":33,"<0x80>":34,"<0x81>":35,"<0x83>":36,"<0x8B>":37,"<0x90>":)x"
     R"x(38,"<0x92>":39,"<0x96>":40,"<0x97>":41,"<0x98>":42,"<0x9F>":43,"<0xA0>":44,"<0xA1>":45,"<0xA2>":46,"<0xA3>":)x"
     R"x(47,"<0xA5>":48,"<0xA6>":49,"<0xA7>":50,"<0xA9>":51,"<0xAB>":52,"<0xAC>":53,"<0xAD>":54,"<0xB5>":55,"<0xB7>":)x"
     R"x(56,"<0xB8>":57,"<0xBA>":58,"<0xBC>":59,"<0xC2>":60,"<0xC3>":61,"<0xCC>":62,"<0xE0>":63,"<0xE1>":64,"<0xE2>":)x"
     R"x(65,"<0xE4>":66,"<0xEF>":67,"<0xF0>":68,"▁":69,"a":70,"b":71,"c":72,"t":73,"h":74,"e":75,"é":76,"▁a":77,"▁t":)x"
     R"x(78,"th":79,"he":80,"▁the":81,"▁th":82,"ab":83,"abc":84,"at":85,"▁▁":86,"中":87,".":88},"merges":[["▁","t"],[")x"
     R"x(t","h"],["▁t","h"],["h","e"],["▁th","e"],["a","b"],["ab","c"],["a","t"],["▁","a"],["▁","▁"]]}})x",
     {1}, {},
     {
         {std::string_view("", 0), {}, std::string_view("", 0)},
         {std::string_view(" ", 1), {69}, std::string_view(" ", 1)},
         {std::string_view("the abc", 7), {79, 75, 69, 84}, std::string_view("the abc", 7)},
         {std::string_view("  the  cat at ", 14), {69, 81, 86, 72, 85, 69, 85, 69},
          std::string_view("  the  cat at ", 14)},
         {std::string_view("thethe", 6), {79, 75, 79, 75}, std::string_view("thethe", 6)},
         {std::string_view("<s>the</s> ab<unk>", 18), {1, 79, 75, 2, 69, 83, 0},
          std::string_view("<s>the</s> ab<unk>", 18)},
         {std::string_view("\344\270\255 zz \303\251 z", 11), {87, 69, 32, 32, 69, 76, 69, 32},
          std::string_view("\344\270\255 zz \303\251 z", 11)},
         {std::string_view("e\314\201 \357\254\201 A\314\201bc\357\274\241", 16), {75, 62, 35, 69, 67, 53, 35, 69, 15, 62, 35, 71, 72, 67, 59, 45},
          std::string_view("e\314\201 \357\254\201 A\314\201bc\357\274\241", 16)},
         {std::string_view("a\011b\012c", 5), {70, 5, 71, 6, 72}, std::string_view("a\011b\012c", 5)},
         {std::string_view("the\342\200\213b\302\255", 9), {79, 75, 65, 34, 37, 71, 60, 54},
          std::string_view("the\342\200\213b\302\255", 9)},
         {std::string_view("\360\237\230\200\342\200\246", 7), {68, 43, 42, 34, 65, 34, 49},
          std::string_view("\360\237\230\200\342\200\246", 7)},
         {std::string_view("\342\226\201the\342\226\201", 9), {81, 69}, std::string_view(" the ", 5)},
         {std::string_view("the <mask>  abc", 15), {79, 75, 89, 84}, std::string_view("the<mask>abc", 12)},
         {std::string_view("user word ab", 12), {90, 69, 83}, std::string_view("user word ab", 12)},
         {std::string_view("<0x41>", 6), {13, 10, 31, 12, 11, 14}, std::string_view("<0x41>", 6)},
         {std::string_view("\000\177", 2), {3, 33}, std::string_view("\000\177", 2)},
         {std::string_view(" abc", 4), {69, 84}, std::string_view(" abc", 4)},
         {std::string_view("a\015\012b", 4), {70, 7, 6, 71}, std::string_view("a\015\012b", 4)},
     }},
    {"ignored merges",
     R"x({"version":"1.0","truncation":null,"padding":null,"added_tokens":[{"id":0,"content":"<unk>","single_word":fa)x"
     R"x(lse,"lstrip":false,"rstrip":false,"normalized":false,"special":true},{"id":1,"content":"<s>","single_word":f)x"
     R"x(alse,"lstrip":false,"rstrip":false,"normalized":false,"special":true},{"id":2,"content":"</s>","single_word")x"
     R"x(:false,"lstrip":false,"rstrip":false,"normalized":false,"special":true},{"id":89,"content":"<mask>","single_)x"
     R"x(word":false,"lstrip":true,"rstrip":true,"normalized":false,"special":true},{"id":90,"content":"user word","s)x"
     R"x(ingle_word":false,"lstrip":false,"rstrip":false,"normalized":true,"special":false}],"normalizer":null,"pre_t)x"
     R"x(okenizer":{"type":"Metaspace","replacement":"▁","prepend_scheme":"always","split":true},"post_processor":{"t)x"
     R"x(ype":"TemplateProcessing","single":[{"SpecialToken":{"id":"<s>","type_id":0}},{"Sequence":{"id":"A","type_id)x"
     R"x(":0}}],"pair":[{"SpecialToken":{"id":"<s>","type_id":0}},{"Sequence":{"id":"A","type_id":0}},{"Sequence":{"i)x"
     R"x(d":"B","type_id":0}}],"special_tokens":{"</s>":{"id":"</s>","ids":[2],"tokens":["</s>"]},"<s>":{"id":"<s>",")x"
     R"x(ids":[1],"tokens":["<s>"]}}},"decoder":{"type":"Sequence","decoders":[{"type":"Replace","pattern":{"String":)x"
     R"x("▁"},"content":" "},{"type":"ByteFallback"},{"type":"Fuse"},{"type":"Strip","content":" ","start":1,"stop":0)x"
     R"x(}]},"model":{"type":"BPE","dropout":null,"unk_token":null,"continuing_subword_prefix":null,"end_of_word_suff)x"
     R"x(ix":null,"fuse_unk":true,"byte_fallback":true,"ignore_merges":true,"vocab":{"<unk>":0,"<s>":1,"</s>":2,"<0x0)x"
     R"x(0>":3,"<0x01>":4,"<0x09>":5,"<0x0A>":6,"<0x0D>":7,"<0x20>":8,"<0x2F>":9,"<0x30>":10,"<0x31>":11,"<0x34>":12,)x"
     R"x("<0x3C>":13,"<0x3E>":14,"<0x41>":15,"<0x61>":16,"<0x62>":17,"<0x63>":18,"<0x64>":19,"<0x65>":20,"<0x68>":21,)x"
     R"x("<0x6B>":22,"<0x6D>":23,"<0x6E>":24,"<0x6F>":25,"<0x72>":26,"<0x73>":27,"<0x74>":28,"<0x75>":29,"<0x77>":30,)x"
     R"x("<0x78>":31,"<0x7A>":32,"<0x7F>":33,"<0x80>":34,"<0x81>":35,"<0x83>":36,"<0x8B>":37,"<0x90>":38,"<0x92>":39,)x"
     R"x("<0x96>":40,"<0x97>":41,"<0x98>":42,"<0x9F>":43,"<0xA0>":44,"<0xA1>":45,"<0xA2>":46,"<0xA3>":47,"<0xA5>":48,)x"
     R"x("<0xA6>":49,"<0xA7>":50,"<0xA9>":51,"<0xAB>":52,"<0xAC>":53,"<0xAD>":54,"<0xB5>":55,"<0xB7>":56,"<0xB8>":57,)x"
     R"x("<0xBA>":58,"<0xBC>":59,"<0xC2>":60,"<0xC3>":61,"<0xCC>":62,"<0xE0>":63,"<0xE1>":64,"<0xE2>":65,"<0xE4>":66,)x"
     R"x("<0xEF>":67,"<0xF0>":68,"▁":69,"a":70,"b":71,"c":72,"t":73,"h":74,"e":75,"é":76,"▁a":77,"▁t":78,"th":79,"he")x"
     R"x(:80,"▁the":81,"▁th":82,"ab":83,"abc":84,"at":85,"▁▁":86,"中":87,".":88},"merges":[["▁","t"],["t","h"],["▁t",")x"
     R"x(h"],["h","e"],["▁th","e"],["a","b"],["ab","c"],["a","t"],["▁","a"],["▁","▁"]]}})x",
     {1}, {},
     {
         {std::string_view("", 0), {}, std::string_view("", 0)},
         {std::string_view(" ", 1), {69}, std::string_view("", 0)},
         {std::string_view("the abc", 7), {81, 69, 84}, std::string_view("the abc", 7)},
         {std::string_view("  the  cat at ", 14), {69, 81, 69, 69, 72, 85, 69, 85, 69},
          std::string_view(" the  cat at ", 13)},
         {std::string_view("thethe", 6), {81, 79, 75}, std::string_view("thethe", 6)},
         {std::string_view("<s>the</s> ab<unk>", 18), {1, 81, 2, 69, 83, 0},
          std::string_view("<s> the</s> ab<unk>", 19)},
         {std::string_view("\344\270\255 zz \303\251 z", 11), {69, 87, 69, 32, 32, 69, 76, 69, 32},
          std::string_view("\344\270\255 zz \303\251 z", 11)},
         {std::string_view("e\314\201 \357\254\201 A\314\201bc\357\274\241", 16), {69, 75, 62, 35, 69, 67, 53, 35, 69, 15, 62, 35, 71, 72, 67, 59, 45},
          std::string_view("e\314\201 \357\254\201 A\314\201bc\357\274\241", 16)},
         {std::string_view("a\011b\012c", 5), {77, 5, 71, 6, 72}, std::string_view("a\011b\012c", 5)},
         {std::string_view("the\342\200\213b\302\255", 9), {81, 65, 34, 37, 71, 60, 54},
          std::string_view("the\342\200\213b\302\255", 9)},
         {std::string_view("\360\237\230\200\342\200\246", 7), {69, 68, 43, 42, 34, 65, 34, 49},
          std::string_view("\360\237\230\200\342\200\246", 7)},
         {std::string_view("\342\226\201the\342\226\201", 9), {81, 69}, std::string_view("the ", 4)},
         {std::string_view("the <mask>  abc", 15), {81, 89, 69, 84}, std::string_view("the<mask> abc", 13)},
         {std::string_view("user word ab", 12), {90, 69, 83}, std::string_view("user word ab", 12)},
         {std::string_view("<0x41>", 6), {69, 13, 10, 31, 12, 11, 14}, std::string_view("<0x41>", 6)},
         {std::string_view("\000\177", 2), {69, 3, 33}, std::string_view("\000\177", 2)},
         {std::string_view(" abc", 4), {69, 84}, std::string_view("abc", 3)},
         {std::string_view("a\015\012b", 4), {77, 7, 6, 71}, std::string_view("a\015\012b", 4)},
     }},
    {"composed",
     R"x({"version":"1.0","truncation":null,"padding":null,"added_tokens":[{"id":0,"content":"<unk>","single_word":fa)x"
     R"x(lse,"lstrip":false,"rstrip":false,"normalized":false,"special":true},{"id":1,"content":"<s>","single_word":f)x"
     R"x(alse,"lstrip":false,"rstrip":false,"normalized":false,"special":true},{"id":2,"content":"</s>","single_word")x"
     R"x(:false,"lstrip":false,"rstrip":false,"normalized":false,"special":true},{"id":89,"content":"<mask>","single_)x"
     R"x(word":false,"lstrip":true,"rstrip":true,"normalized":false,"special":true},{"id":90,"content":"user word","s)x"
     R"x(ingle_word":false,"lstrip":false,"rstrip":false,"normalized":true,"special":false}],"normalizer":{"type":"Se)x"
     R"x(quence","normalizers":[{"type":"NFC"},{"type":"Replace","pattern":{"String":" "},"content":"▁"}]},"pre_token)x"
     R"x(izer":null,"post_processor":{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"<s>","type_id":0}})x"
     R"x(,{"Sequence":{"id":"A","type_id":0}}],"pair":[{"SpecialToken":{"id":"<s>","type_id":0}},{"Sequence":{"id":"A)x"
     R"x(","type_id":0}},{"Sequence":{"id":"B","type_id":0}}],"special_tokens":{"</s>":{"id":"</s>","ids":[2],"tokens)x"
     R"x(":["</s>"]},"<s>":{"id":"<s>","ids":[1],"tokens":["<s>"]}}},"decoder":{"type":"Sequence","decoders":[{"type")x"
     R"x(:"Replace","pattern":{"String":"▁"},"content":" "},{"type":"ByteFallback"},{"type":"Fuse"},{"type":"Strip",")x"
     R"x(content":" ","start":1,"stop":0}]},"model":{"type":"BPE","dropout":null,"unk_token":null,"continuing_subword)x"
     R"x(_prefix":null,"end_of_word_suffix":null,"fuse_unk":true,"byte_fallback":true,"ignore_merges":false,"vocab":{)x"
     R"x("<unk>":0,"<s>":1,"</s>":2,"<0x00>":3,"<0x01>":4,"<0x09>":5,"<0x0A>":6,"<0x0D>":7,"<0x20>":8,"<0x2F>":9,"<0x)x"
     R"x(30>":10,"<0x31>":11,"<0x34>":12,"<0x3C>":13,"<0x3E>":14,"<0x41>":15,"<0x61>":16,"<0x62>":17,"<0x63>":18,"<0x)x"
     R"x(64>":19,"<0x65>":20,"<0x68>":21,"<0x6B>":22,"<0x6D>":23,"<0x6E>":24,"<0x6F>":25,"<0x72>":26,"<0x73>":27,"<0x)x"
     R"x(74>":28,"<0x75>":29,"<0x77>":30,"<0x78>":31,"<0x7A>":32,"<0x7F>":33,"<0x80>":34,"<0x81>":35,"<0x83>":36,"<0x)x"
     R"x(8B>":37,"<0x90>":38,"<0x92>":39,"<0x96>":40,"<0x97>":41,"<0x98>":42,"<0x9F>":43,"<0xA0>":44,"<0xA1>":45,"<0x)x"
     R"x(A2>":46,"<0xA3>":47,"<0xA5>":48,"<0xA6>":49,"<0xA7>":50,"<0xA9>":51,"<0xAB>":52,"<0xAC>":53,"<0xAD>":54,"<0x)x"
     R"x(B5>":55,"<0xB7>":56,"<0xB8>":57,"<0xBA>":58,"<0xBC>":59,"<0xC2>":60,"<0xC3>":61,"<0xCC>":62,"<0xE0>":63,"<0x)x"
     R"x(E1>":64,"<0xE2>":65,"<0xE4>":66,"<0xEF>":67,"<0xF0>":68,"▁":69,"a":70,"b":71,"c":72,"t":73,"h":74,"e":75,"é")x"
     R"x(:76,"▁a":77,"▁t":78,"th":79,"he":80,"▁the":81,"▁th":82,"ab":83,"abc":84,"at":85,"▁▁":86,"中":87,".":88},"merg)x"
     R"x(es":[["▁","t"],["t","h"],["▁t","h"],["h","e"],["▁th","e"],["a","b"],["ab","c"],["a","t"],["▁","a"],["▁","▁"])x"
     R"x(]}})x",
     {1}, {},
     {
         {std::string_view("", 0), {}, std::string_view("", 0)},
         {std::string_view(" ", 1), {69}, std::string_view("", 0)},
         {std::string_view("the abc", 7), {79, 75, 69, 84}, std::string_view("the abc", 7)},
         {std::string_view("  the  cat at ", 14), {69, 81, 86, 72, 85, 69, 85, 69},
          std::string_view(" the  cat at ", 13)},
         {std::string_view("thethe", 6), {79, 75, 79, 75}, std::string_view("thethe", 6)},
         {std::string_view("<s>the</s> ab<unk>", 18), {1, 79, 75, 2, 69, 83, 0},
          std::string_view("<s>the</s> ab<unk>", 18)},
         {std::string_view("\344\270\255 zz \303\251 z", 11), {87, 69, 32, 32, 69, 76, 69, 32},
          std::string_view("\344\270\255 zz \303\251 z", 11)},
         {std::string_view("e\314\201 \357\254\201 A\314\201bc\357\274\241", 16), {76, 69, 67, 53, 35, 69, 61, 35, 71, 72, 67, 59, 45},
          std::string_view("\303\251 \357\254\201 \303\201bc\357\274\241", 14)},
         {std::string_view("a\011b\012c", 5), {70, 5, 71, 6, 72}, std::string_view("a\011b\012c", 5)},
         {std::string_view("the\342\200\213b\302\255", 9), {79, 75, 65, 34, 37, 71, 60, 54},
          std::string_view("the\342\200\213b\302\255", 9)},
         {std::string_view("\360\237\230\200\342\200\246", 7), {68, 43, 42, 34, 65, 34, 49},
          std::string_view("\360\237\230\200\342\200\246", 7)},
         {std::string_view("\342\226\201the\342\226\201", 9), {81, 69}, std::string_view("the ", 4)},
         {std::string_view("the <mask>  abc", 15), {79, 75, 89, 84}, std::string_view("the<mask>abc", 12)},
         {std::string_view("user word ab", 12), {90, 69, 83}, std::string_view("user word ab", 12)},
         {std::string_view("<0x41>", 6), {13, 10, 31, 12, 11, 14}, std::string_view("<0x41>", 6)},
         {std::string_view("\000\177", 2), {3, 33}, std::string_view("\000\177", 2)},
         {std::string_view(" abc", 4), {69, 84}, std::string_view("abc", 3)},
         {std::string_view("a\015\012b", 4), {70, 7, 6, 71}, std::string_view("a\015\012b", 4)},
         {std::string_view("a\341\253\203\341\237\222 \314\243\341\267\272", 13), {70, 64, 52, 36, 64, 43, 39, 69, 62, 47, 64, 56, 58},
          std::string_view("a\341\253\203\341\237\222 \314\243\341\267\272", 13)},
         {std::string_view("A\341\253\247bc \302\240\340\242\227", 12), {15, 64, 52, 50, 71, 72, 69, 60, 44, 63, 46, 41},
          std::string_view("A\341\253\247bc \302\240\340\242\227", 12)},
         {std::string_view("A\360\220\265\251b", 6), {15, 68, 38, 55, 51, 71},
          std::string_view("A\360\220\265\251b", 6)},
         {std::string_view("\342\201\245\342\200\213A \342\201\245A\314\201", 14), {65, 35, 48, 65, 34, 37, 15, 69, 65, 35, 48, 61, 35},
          std::string_view("\342\201\245\342\200\213A \342\201\245\303\201", 13)},
     }},
    {"xlm-roberta",
     R"x({"version":"1.0","truncation":null,"padding":null,"added_tokens":[{"id":0,"content":"<unk>","single_word":fa)x"
     R"x(lse,"lstrip":false,"rstrip":false,"normalized":false,"special":true},{"id":1,"content":"<s>","single_word":f)x"
     R"x(alse,"lstrip":false,"rstrip":false,"normalized":false,"special":true},{"id":2,"content":"</s>","single_word")x"
     R"x(:false,"lstrip":false,"rstrip":false,"normalized":false,"special":true},{"id":23,"content":"<mask>","single_)x"
     R"x(word":false,"lstrip":true,"rstrip":true,"normalized":false,"special":true},{"id":24,"content":"user word","s)x"
     R"x(ingle_word":false,"lstrip":false,"rstrip":false,"normalized":true,"special":false}],"normalizer":{"type":"Pr)x"
     R"x(ecompiled","precompiled_charsmap":"AAQAAAAgAAAJCQAACgUAAAEAAIAOAACAgQ0AABMAAIDMOAIAgQUAABYAAIADAACAAAAAgIAoA)x"
     R"x(gCLGQAABwAAgIB4AgCgTQAAgEkAAIEFAAAQAACAoQUAAA4AAICYPAIAn2QCAKhJAACADQAACwAAgBoAAAAdAAAArVkAAB8AAAAeAAAAprkAA)x"
     R"x(KzIAgAjAAAAIgAAACUAAAAkAAAAJwAAACYAAAApAAAAKAAAACsAAAAqAAAALQAAACwAAAAvAAAALgAAADEAAAC8EAIAMwAAADIAAAA1AAAAN)x"
     R"x(AAAADcAAAA2AAAAOQAAADgAAAA7AAAAOgAAAD0AAAA8AAAAPwAAAD4AAABBAAAAQAAAAEMAAABCAAAARQAAAEQAAABHAAAARgAAAEkAAABBN)x"
     R"x(QEASwAAAEoAAABNAAAATAAAAE8AAABOAAAAUQAAAFAAAABTAAAAUgAAAFUAAABUAAAAVwAAAFYAAABZAAAAWAAAAFsAAABaAAAAXQAAAFwAA)x"
     R"x(ABfAAAAXgAAAGEAAABgAAAAYwAAAGIAAABlAAAAZAAAAGcAAABmAAAAaQAAAGgAAABrAAAAagAAAG0AAABlmAIAbwAAAG4AAABxAAAAcAAAA)x"
     R"x(HMAAAByAAAAdQAAAHQAAAB3AAAAdgAAAHkAAAB4AAAAewAAAHoAAAB9AAAAfAAAAH8AAAB+AAAAgQAAAIAAAACDAAAAggAAAIUAAACEAAAAh)x"
     R"x(wAAAIYAAACJAAAAiAAAAIsAAACKAAAAjQAAAIwAAACPAAAAjgAAAJEAAACQAAAAkwAAAJIAAACVAAAAlAAAAJcAAACWAAAAmQAAAJgAAACbA)x"
     R"x(AAAmgAAAJ0AAACcAAAAnwAAAJ4AAAChAAAAoAAAAKMAAACiAAAApQAAAKQAAACnAAAApgAAAKkAAACoAAAAqwAAAKoAAACtAAAArAAAAK8AA)x"
     R"x(ACuAAAAsQAAALAAAACzAAAAsgAAALUAAAC0AAAAtwAAALYAAAC5AAAAuAAAALsAAAC6AAAAvQAAALwAAAC/AAAAvgAAAMEAAADAAAAAwwAAA)x"
     R"x(MIAAADFAAAAxAAAAMcAAADGAAAAzDABAMgAAADC6AEAygAAAM0AAADMAAAAzwAAAM4AAADRAAAA0AAAANMAAADSAAAA1QAAANQAAADXAAAA1)x"
     R"x(gAAANkAAADYAAAA2wAAANoAAADdAAAA3AAAAN8AAADeAAAA4QAAAOAAAADjAAAA4gAAAOUAAADkAAAA5wAAAO+oAQDpAAAA6AAAAOKYAQDjk)x"
     R"x(AEA7QAAAOwAAADvAAAA7gAAAPEAAADwAAAA8wAAAPIAAAD1AAAA9AAAAPcAAAD2AAAA8MABAPgAAAD7AAAA+gAAAP0AAAD8AAAA/wAAAP4AA)x"
     R"x(AAAIAAgzIgALi4uADopAGEAZmkAw6EAw6kA"},"pre_tokenizer":{"type":"Sequence","pretokenizers":[{"type":"Whitespac)x"
     R"x(eSplit"},{"type":"Metaspace","replacement":"▁","prepend_scheme":"always","split":true}]},"post_processor":{")x"
     R"x(type":"TemplateProcessing","single":[{"SpecialToken":{"id":"<s>","type_id":0}},{"Sequence":{"id":"A","type_i)x"
     R"x(d":0}},{"SpecialToken":{"id":"</s>","type_id":0}}],"pair":[{"SpecialToken":{"id":"<s>","type_id":0}},{"Seque)x"
     R"x(nce":{"id":"A","type_id":0}},{"SpecialToken":{"id":"</s>","type_id":0}},{"Sequence":{"id":"B","type_id":0}}])x"
     R"x(,"special_tokens":{"</s>":{"id":"</s>","ids":[2],"tokens":["</s>"]},"<s>":{"id":"<s>","ids":[1],"tokens":["<)x"
     R"x(s>"]}}},"decoder":{"type":"Metaspace","replacement":"▁","prepend_scheme":"always","split":true},"model":{"ty)x"
     R"x(pe":"Unigram","unk_id":0,"vocab":[["<unk>",0.0],["<s>",0.0],["</s>",0.0],["▁",-1.6],["a",-1.97],["b",-2.3400)x"
     R"x(000000000003],["c",-2.71],["t",-3.08],["h",-3.45],["e",-3.82],["é",-4.1899999999999995],["▁a",-4.16],["▁t",-)x"
     R"x(4.53],["th",-4.9],["he",-5.2700000000000005],["▁the",-4.84],["▁th",-5.609999999999999],["ab",-6.38],["abc",-)x"
     R"x(6.35],["at",-7.12],["▁▁",-7.489999999999999],["中",-8.26],[".",-8.63]],"byte_fallback":false}})x",
     {1}, {2},
     {
         {std::string_view("", 0), {}, std::string_view("", 0)},
         {std::string_view(" ", 1), {}, std::string_view("", 0)},
         {std::string_view("the abc", 7), {15, 3, 18}, std::string_view("the abc", 7)},
         {std::string_view("  the  cat at ", 14), {15, 3, 6, 4, 7, 3, 4, 7}, std::string_view("the cat at", 10)},
         {std::string_view("thethe", 6), {15, 7, 14}, std::string_view("thethe", 6)},
         {std::string_view("<s>the</s> ab<unk>", 18), {1, 15, 2, 3, 4, 5, 0},
          std::string_view("<s> the</s> ab<unk>", 19)},
         {std::string_view("\344\270\255 zz \303\251 z", 11), {3, 21, 3, 0, 3, 10, 3, 0},
          std::string_view("\344\270\255 <unk> \303\251 <unk>", 18)},
         {std::string_view("e\314\201 \357\254\201 A\314\201bc\357\274\241", 16), {3, 10, 3, 0, 3, 18, 4},
          std::string_view("\303\251 <unk> abca", 13)},
         {std::string_view("a\011b\012c", 5), {3, 4, 3, 5, 3, 6}, std::string_view("a b c", 5)},
         {std::string_view("the\342\200\213b\302\255", 9), {15, 5}, std::string_view("theb", 4)},
         {std::string_view("\360\237\230\200\342\200\246", 7), {3, 0, 22, 22, 22}, std::string_view("<unk>...", 8)},
         {std::string_view("\342\226\201the\342\226\201", 9), {15, 3}, std::string_view("the ", 4)},
         {std::string_view("the <mask>  abc", 15), {15, 23, 3, 18}, std::string_view("the<mask> abc", 13)},
         {std::string_view("user word ab", 12), {24, 3, 4, 5}, std::string_view("user word ab", 12)},
         {std::string_view("<0x41>", 6), {3, 0}, std::string_view("<unk>", 5)},
         {std::string_view("\000\177", 2), {3, 0}, std::string_view("<unk>", 5)},
         {std::string_view(" abc", 4), {3, 18}, std::string_view("abc", 3)},
         {std::string_view("a\015\012b", 4), {3, 4, 3, 5}, std::string_view("a b", 3)},
     }},
    {"t5",
     R"x({"version":"1.0","truncation":null,"padding":null,"added_tokens":[{"id":0,"content":"<unk>","single_word":fa)x"
     R"x(lse,"lstrip":false,"rstrip":false,"normalized":false,"special":true},{"id":1,"content":"<s>","single_word":f)x"
     R"x(alse,"lstrip":false,"rstrip":false,"normalized":false,"special":true},{"id":2,"content":"</s>","single_word")x"
     R"x(:false,"lstrip":false,"rstrip":false,"normalized":false,"special":true},{"id":23,"content":"<mask>","single_)x"
     R"x(word":false,"lstrip":true,"rstrip":true,"normalized":false,"special":true},{"id":24,"content":"user word","s)x"
     R"x(ingle_word":false,"lstrip":false,"rstrip":false,"normalized":true,"special":false}],"normalizer":{"type":"Pr)x"
     R"x(ecompiled","precompiled_charsmap":"AAQAAAAgAAAJCQAACgUAAAEAAIAOAACAgQ0AABMAAIDMOAIAgQUAABYAAIADAACAAAAAgIAoA)x"
     R"x(gCLGQAABwAAgIB4AgCgTQAAgEkAAIEFAAAQAACAoQUAAA4AAICYPAIAn2QCAKhJAACADQAACwAAgBoAAAAdAAAArVkAAB8AAAAeAAAAprkAA)x"
     R"x(KzIAgAjAAAAIgAAACUAAAAkAAAAJwAAACYAAAApAAAAKAAAACsAAAAqAAAALQAAACwAAAAvAAAALgAAADEAAAC8EAIAMwAAADIAAAA1AAAAN)x"
     R"x(AAAADcAAAA2AAAAOQAAADgAAAA7AAAAOgAAAD0AAAA8AAAAPwAAAD4AAABBAAAAQAAAAEMAAABCAAAARQAAAEQAAABHAAAARgAAAEkAAABBN)x"
     R"x(QEASwAAAEoAAABNAAAATAAAAE8AAABOAAAAUQAAAFAAAABTAAAAUgAAAFUAAABUAAAAVwAAAFYAAABZAAAAWAAAAFsAAABaAAAAXQAAAFwAA)x"
     R"x(ABfAAAAXgAAAGEAAABgAAAAYwAAAGIAAABlAAAAZAAAAGcAAABmAAAAaQAAAGgAAABrAAAAagAAAG0AAABlmAIAbwAAAG4AAABxAAAAcAAAA)x"
     R"x(HMAAAByAAAAdQAAAHQAAAB3AAAAdgAAAHkAAAB4AAAAewAAAHoAAAB9AAAAfAAAAH8AAAB+AAAAgQAAAIAAAACDAAAAggAAAIUAAACEAAAAh)x"
     R"x(wAAAIYAAACJAAAAiAAAAIsAAACKAAAAjQAAAIwAAACPAAAAjgAAAJEAAACQAAAAkwAAAJIAAACVAAAAlAAAAJcAAACWAAAAmQAAAJgAAACbA)x"
     R"x(AAAmgAAAJ0AAACcAAAAnwAAAJ4AAAChAAAAoAAAAKMAAACiAAAApQAAAKQAAACnAAAApgAAAKkAAACoAAAAqwAAAKoAAACtAAAArAAAAK8AA)x"
     R"x(ACuAAAAsQAAALAAAACzAAAAsgAAALUAAAC0AAAAtwAAALYAAAC5AAAAuAAAALsAAAC6AAAAvQAAALwAAAC/AAAAvgAAAMEAAADAAAAAwwAAA)x"
     R"x(MIAAADFAAAAxAAAAMcAAADGAAAAzDABAMgAAADC6AEAygAAAM0AAADMAAAAzwAAAM4AAADRAAAA0AAAANMAAADSAAAA1QAAANQAAADXAAAA1)x"
     R"x(gAAANkAAADYAAAA2wAAANoAAADdAAAA3AAAAN8AAADeAAAA4QAAAOAAAADjAAAA4gAAAOUAAADkAAAA5wAAAO+oAQDpAAAA6AAAAOKYAQDjk)x"
     R"x(AEA7QAAAOwAAADvAAAA7gAAAPEAAADwAAAA8wAAAPIAAAD1AAAA9AAAAPcAAAD2AAAA8MABAPgAAAD7AAAA+gAAAP0AAAD8AAAA/wAAAP4AA)x"
     R"x(AAAIAAgzIgALi4uADopAGEAZmkAw6EAw6kA"},"pre_tokenizer":{"type":"Metaspace","replacement":"▁","prepend_scheme")x"
     R"x(:"always","split":true},"post_processor":{"type":"TemplateProcessing","single":[{"Sequence":{"id":"A","type_)x"
     R"x(id":0}},{"SpecialToken":{"id":"</s>","type_id":0}}],"pair":[{"Sequence":{"id":"A","type_id":0}},{"SpecialTok)x"
     R"x(en":{"id":"</s>","type_id":0}},{"Sequence":{"id":"B","type_id":0}}],"special_tokens":{"</s>":{"id":"</s>","i)x"
     R"x(ds":[2],"tokens":["</s>"]},"<s>":{"id":"<s>","ids":[1],"tokens":["<s>"]}}},"decoder":{"type":"Metaspace","re)x"
     R"x(placement":"▁","prepend_scheme":"always","split":true},"model":{"type":"Unigram","unk_id":0,"vocab":[["<unk>)x"
     R"x(",0.0],["<s>",0.0],["</s>",0.0],["▁",-1.6],["a",-1.97],["b",-2.3400000000000003],["c",-2.71],["t",-3.08],["h)x"
     R"x(",-3.45],["e",-3.82],["é",-4.1899999999999995],["▁a",-4.16],["▁t",-4.53],["th",-4.9],["he",-5.27000000000000)x"
     R"x(05],["▁the",-4.84],["▁th",-5.609999999999999],["ab",-6.38],["abc",-6.35],["at",-7.12],["▁▁",-7.4899999999999)x"
     R"x(99],["中",-8.26],[".",-8.63]],"byte_fallback":false}})x",
     {}, {2},
     {
         {std::string_view("", 0), {}, std::string_view("", 0)},
         {std::string_view(" ", 1), {3}, std::string_view("", 0)},
         {std::string_view("the abc", 7), {15, 3, 18}, std::string_view("the abc", 7)},
         {std::string_view("  the  cat at ", 14), {3, 15, 3, 3, 6, 4, 7, 3, 4, 7, 3},
          std::string_view(" the  cat at ", 13)},
         {std::string_view("thethe", 6), {15, 7, 14}, std::string_view("thethe", 6)},
         {std::string_view("<s>the</s> ab<unk>", 18), {1, 15, 2, 3, 4, 5, 0},
          std::string_view("<s> the</s> ab<unk>", 19)},
         {std::string_view("\344\270\255 zz \303\251 z", 11), {3, 21, 3, 0, 3, 10, 3, 0},
          std::string_view("\344\270\255 <unk> \303\251 <unk>", 18)},
         {std::string_view("e\314\201 \357\254\201 A\314\201bc\357\274\241", 16), {3, 10, 3, 0, 3, 18, 4},
          std::string_view("\303\251 <unk> abca", 13)},
         {std::string_view("a\011b\012c", 5), {3, 4, 3, 5, 3, 6}, std::string_view("a b c", 5)},
         {std::string_view("the\342\200\213b\302\255", 9), {15, 5}, std::string_view("theb", 4)},
         {std::string_view("\360\237\230\200\342\200\246", 7), {3, 0, 22, 22, 22}, std::string_view("<unk>...", 8)},
         {std::string_view("\342\226\201the\342\226\201", 9), {15, 3}, std::string_view("the ", 4)},
         {std::string_view("the <mask>  abc", 15), {15, 23, 3, 18}, std::string_view("the<mask> abc", 13)},
         {std::string_view("user word ab", 12), {24, 3, 4, 5}, std::string_view("user word ab", 12)},
         {std::string_view("<0x41>", 6), {3, 0}, std::string_view("<unk>", 5)},
         {std::string_view("\000\177", 2), {3, 0}, std::string_view("<unk>", 5)},
         {std::string_view(" abc", 4), {3, 18}, std::string_view("abc", 3)},
         {std::string_view("a\015\012b", 4), {3, 4, 0, 3, 5}, std::string_view("a<unk> b", 8)},
         {std::string_view("a\341\253\203\341\237\222 \314\243\341\267\272", 13), {3, 4, 0, 3, 0},
          std::string_view("a<unk> <unk>", 12)},
         {std::string_view("A\341\253\247bc \302\240\340\242\227", 12), {3, 18, 3, 3},
          std::string_view("abc  ", 5)},
         {std::string_view("A\360\220\265\251b", 6), {3, 4, 5}, std::string_view("ab", 2)},
         {std::string_view("\342\201\245\342\200\213A \342\201\245A\314\201", 14), {3, 0, 4, 3, 0, 4},
          std::string_view("<unk>a <unk>a", 13)},
     }},
    {"mbart",
     R"x({"version":"1.0","truncation":null,"padding":null,"added_tokens":[{"id":0,"content":"<unk>","single_word":fa)x"
     R"x(lse,"lstrip":false,"rstrip":false,"normalized":false,"special":true},{"id":1,"content":"<s>","single_word":f)x"
     R"x(alse,"lstrip":false,"rstrip":false,"normalized":false,"special":true},{"id":2,"content":"</s>","single_word")x"
     R"x(:false,"lstrip":false,"rstrip":false,"normalized":false,"special":true},{"id":23,"content":"<mask>","single_)x"
     R"x(word":false,"lstrip":true,"rstrip":true,"normalized":false,"special":true},{"id":24,"content":"user word","s)x"
     R"x(ingle_word":false,"lstrip":false,"rstrip":false,"normalized":true,"special":false}],"normalizer":{"type":"Se)x"
     R"x(quence","normalizers":[{"type":"Precompiled","precompiled_charsmap":"AAQAAAAgAAAJCQAACgUAAAEAAIAOAACAgQ0AABM)x"
     R"x(AAIDMOAIAgQUAABYAAIADAACAAAAAgIAoAgCLGQAABwAAgIB4AgCgTQAAgEkAAIEFAAAQAACAoQUAAA4AAICYPAIAn2QCAKhJAACADQAACwA)x"
     R"x(AgBoAAAAdAAAArVkAAB8AAAAeAAAAprkAAKzIAgAjAAAAIgAAACUAAAAkAAAAJwAAACYAAAApAAAAKAAAACsAAAAqAAAALQAAACwAAAAvAAA)x"
     R"x(ALgAAADEAAAC8EAIAMwAAADIAAAA1AAAANAAAADcAAAA2AAAAOQAAADgAAAA7AAAAOgAAAD0AAAA8AAAAPwAAAD4AAABBAAAAQAAAAEMAAAB)x"
     R"x(CAAAARQAAAEQAAABHAAAARgAAAEkAAABBNQEASwAAAEoAAABNAAAATAAAAE8AAABOAAAAUQAAAFAAAABTAAAAUgAAAFUAAABUAAAAVwAAAFY)x"
     R"x(AAABZAAAAWAAAAFsAAABaAAAAXQAAAFwAAABfAAAAXgAAAGEAAABgAAAAYwAAAGIAAABlAAAAZAAAAGcAAABmAAAAaQAAAGgAAABrAAAAagA)x"
     R"x(AAG0AAABlmAIAbwAAAG4AAABxAAAAcAAAAHMAAAByAAAAdQAAAHQAAAB3AAAAdgAAAHkAAAB4AAAAewAAAHoAAAB9AAAAfAAAAH8AAAB+AAA)x"
     R"x(AgQAAAIAAAACDAAAAggAAAIUAAACEAAAAhwAAAIYAAACJAAAAiAAAAIsAAACKAAAAjQAAAIwAAACPAAAAjgAAAJEAAACQAAAAkwAAAJIAAAC)x"
     R"x(VAAAAlAAAAJcAAACWAAAAmQAAAJgAAACbAAAAmgAAAJ0AAACcAAAAnwAAAJ4AAAChAAAAoAAAAKMAAACiAAAApQAAAKQAAACnAAAApgAAAKk)x"
     R"x(AAACoAAAAqwAAAKoAAACtAAAArAAAAK8AAACuAAAAsQAAALAAAACzAAAAsgAAALUAAAC0AAAAtwAAALYAAAC5AAAAuAAAALsAAAC6AAAAvQA)x"
     R"x(AALwAAAC/AAAAvgAAAMEAAADAAAAAwwAAAMIAAADFAAAAxAAAAMcAAADGAAAAzDABAMgAAADC6AEAygAAAM0AAADMAAAAzwAAAM4AAADRAAA)x"
     R"x(A0AAAANMAAADSAAAA1QAAANQAAADXAAAA1gAAANkAAADYAAAA2wAAANoAAADdAAAA3AAAAN8AAADeAAAA4QAAAOAAAADjAAAA4gAAAOUAAAD)x"
     R"x(kAAAA5wAAAO+oAQDpAAAA6AAAAOKYAQDjkAEA7QAAAOwAAADvAAAA7gAAAPEAAADwAAAA8wAAAPIAAAD1AAAA9AAAAPcAAAD2AAAA8MABAPg)x"
     R"x(AAAD7AAAA+gAAAP0AAAD8AAAA/wAAAP4AAAAAIAAgzIgALi4uADopAGEAZmkAw6EAw6kA"},{"type":"Replace","pattern":{"Regex")x"
     R"x(:" {2,}"},"content":" "}]},"pre_tokenizer":{"type":"Metaspace","replacement":"▁","prepend_scheme":"never","s)x"
     R"x(plit":true},"post_processor":{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"<s>","type_id":0})x"
     R"x(},{"Sequence":{"id":"A","type_id":0}},{"SpecialToken":{"id":"</s>","type_id":0}}],"pair":[{"SpecialToken":{")x"
     R"x(id":"<s>","type_id":0}},{"Sequence":{"id":"A","type_id":0}},{"SpecialToken":{"id":"</s>","type_id":0}},{"Seq)x"
     R"x(uence":{"id":"B","type_id":0}}],"special_tokens":{"</s>":{"id":"</s>","ids":[2],"tokens":["</s>"]},"<s>":{"i)x"
     R"x(d":"<s>","ids":[1],"tokens":["<s>"]}}},"decoder":{"type":"Metaspace","replacement":"▁","prepend_scheme":"nev)x"
     R"x(er","split":true},"model":{"type":"Unigram","unk_id":0,"vocab":[["<unk>",0.0],["<s>",0.0],["</s>",0.0],["▁",)x"
     R"x(-1.6],["a",-1.97],["b",-2.3400000000000003],["c",-2.71],["t",-3.08],["h",-3.45],["e",-3.82],["é",-4.18999999)x"
     R"x(99999995],["▁a",-4.16],["▁t",-4.53],["th",-4.9],["he",-5.2700000000000005],["▁the",-4.84],["▁th",-5.60999999)x"
     R"x(9999999],["ab",-6.38],["abc",-6.35],["at",-7.12],["▁▁",-7.489999999999999],["中",-8.26],[".",-8.63]],"byte_fa)x"
     R"x(llback":false}})x",
     {1}, {2},
     {
         {std::string_view("", 0), {}, std::string_view("", 0)},
         {std::string_view(" ", 1), {3}, std::string_view(" ", 1)},
         {std::string_view("the abc", 7), {7, 14, 3, 18}, std::string_view("the abc", 7)},
         {std::string_view("  the  cat at ", 14), {15, 3, 6, 4, 7, 3, 4, 7, 3},
          std::string_view(" the cat at ", 12)},
         {std::string_view("thethe", 6), {7, 14, 7, 14}, std::string_view("thethe", 6)},
         {std::string_view("<s>the</s> ab<unk>", 18), {1, 7, 14, 2, 3, 4, 5, 0},
          std::string_view("<s>the</s> ab<unk>", 18)},
         {std::string_view("\344\270\255 zz \303\251 z", 11), {21, 3, 0, 3, 10, 3, 0},
          std::string_view("\344\270\255 <unk> \303\251 <unk>", 18)},
         {std::string_view("e\314\201 \357\254\201 A\314\201bc\357\274\241", 16), {10, 3, 0, 3, 18, 4},
          std::string_view("\303\251 <unk> abca", 13)},
         {std::string_view("a\011b\012c", 5), {4, 3, 5, 3, 6}, std::string_view("a b c", 5)},
         {std::string_view("the\342\200\213b\302\255", 9), {7, 14, 5}, std::string_view("theb", 4)},
         {std::string_view("\360\237\230\200\342\200\246", 7), {0, 22, 22, 22}, std::string_view("<unk>...", 8)},
         {std::string_view("\342\226\201the\342\226\201", 9), {15, 3}, std::string_view(" the ", 5)},
         {std::string_view("the <mask>  abc", 15), {7, 14, 23, 18}, std::string_view("the<mask>abc", 12)},
         {std::string_view("user word ab", 12), {24, 3, 4, 5}, std::string_view("user word ab", 12)},
         {std::string_view("<0x41>", 6), {0}, std::string_view("<unk>", 5)},
         {std::string_view("\000\177", 2), {0}, std::string_view("<unk>", 5)},
         {std::string_view(" abc", 4), {3, 18}, std::string_view(" abc", 4)},
         {std::string_view("a\015\012b", 4), {4, 0, 3, 5}, std::string_view("a<unk> b", 8)},
         {std::string_view("a\341\253\203\341\237\222 \314\243\341\267\272", 13), {4, 0, 3, 0},
          std::string_view("a<unk> <unk>", 12)},
         {std::string_view("A\341\253\247bc \302\240\340\242\227", 12), {18, 3}, std::string_view("abc ", 4)},
         {std::string_view("A\360\220\265\251b", 6), {4, 5}, std::string_view("ab", 2)},
         {std::string_view("\342\201\245\342\200\213A \342\201\245A\314\201", 14), {0, 4, 3, 0, 4},
          std::string_view("<unk>a <unk>a", 13)},
     }},
    {"deberta",
     R"x({"version":"1.0","truncation":null,"padding":null,"added_tokens":[{"id":0,"content":"<unk>","single_word":fa)x"
     R"x(lse,"lstrip":false,"rstrip":false,"normalized":false,"special":true},{"id":1,"content":"<s>","single_word":f)x"
     R"x(alse,"lstrip":false,"rstrip":false,"normalized":false,"special":true},{"id":2,"content":"</s>","single_word")x"
     R"x(:false,"lstrip":false,"rstrip":false,"normalized":false,"special":true},{"id":23,"content":"<mask>","single_)x"
     R"x(word":false,"lstrip":true,"rstrip":true,"normalized":false,"special":true},{"id":24,"content":"user word","s)x"
     R"x(ingle_word":false,"lstrip":false,"rstrip":false,"normalized":true,"special":false}],"normalizer":{"type":"Se)x"
     R"x(quence","normalizers":[{"type":"Strip","strip_left":true,"strip_right":true},{"type":"Precompiled","precompi)x"
     R"x(led_charsmap":"AAQAAAAgAAAJCQAACgUAAAEAAIAOAACAgQ0AABMAAIDMOAIAgQUAABYAAIADAACAAAAAgIAoAgCLGQAABwAAgIB4AgCgT)x"
     R"x(QAAgEkAAIEFAAAQAACAoQUAAA4AAICYPAIAn2QCAKhJAACADQAACwAAgBoAAAAdAAAArVkAAB8AAAAeAAAAprkAAKzIAgAjAAAAIgAAACUAA)x"
     R"x(AAkAAAAJwAAACYAAAApAAAAKAAAACsAAAAqAAAALQAAACwAAAAvAAAALgAAADEAAAC8EAIAMwAAADIAAAA1AAAANAAAADcAAAA2AAAAOQAAA)x"
     R"x(DgAAAA7AAAAOgAAAD0AAAA8AAAAPwAAAD4AAABBAAAAQAAAAEMAAABCAAAARQAAAEQAAABHAAAARgAAAEkAAABBNQEASwAAAEoAAABNAAAAT)x"
     R"x(AAAAE8AAABOAAAAUQAAAFAAAABTAAAAUgAAAFUAAABUAAAAVwAAAFYAAABZAAAAWAAAAFsAAABaAAAAXQAAAFwAAABfAAAAXgAAAGEAAABgA)x"
     R"x(AAAYwAAAGIAAABlAAAAZAAAAGcAAABmAAAAaQAAAGgAAABrAAAAagAAAG0AAABlmAIAbwAAAG4AAABxAAAAcAAAAHMAAAByAAAAdQAAAHQAA)x"
     R"x(AB3AAAAdgAAAHkAAAB4AAAAewAAAHoAAAB9AAAAfAAAAH8AAAB+AAAAgQAAAIAAAACDAAAAggAAAIUAAACEAAAAhwAAAIYAAACJAAAAiAAAA)x"
     R"x(IsAAACKAAAAjQAAAIwAAACPAAAAjgAAAJEAAACQAAAAkwAAAJIAAACVAAAAlAAAAJcAAACWAAAAmQAAAJgAAACbAAAAmgAAAJ0AAACcAAAAn)x"
     R"x(wAAAJ4AAAChAAAAoAAAAKMAAACiAAAApQAAAKQAAACnAAAApgAAAKkAAACoAAAAqwAAAKoAAACtAAAArAAAAK8AAACuAAAAsQAAALAAAACzA)x"
     R"x(AAAsgAAALUAAAC0AAAAtwAAALYAAAC5AAAAuAAAALsAAAC6AAAAvQAAALwAAAC/AAAAvgAAAMEAAADAAAAAwwAAAMIAAADFAAAAxAAAAMcAA)x"
     R"x(ADGAAAAzDABAMgAAADC6AEAygAAAM0AAADMAAAAzwAAAM4AAADRAAAA0AAAANMAAADSAAAA1QAAANQAAADXAAAA1gAAANkAAADYAAAA2wAAA)x"
     R"x(NoAAADdAAAA3AAAAN8AAADeAAAA4QAAAOAAAADjAAAA4gAAAOUAAADkAAAA5wAAAO+oAQDpAAAA6AAAAOKYAQDjkAEA7QAAAOwAAADvAAAA7)x"
     R"x(gAAAPEAAADwAAAA8wAAAPIAAAD1AAAA9AAAAPcAAAD2AAAA8MABAPgAAAD7AAAA+gAAAP0AAAD8AAAA/wAAAP4AAAAAIAAgzIgALi4uADopA)x"
     R"x(GEAZmkAw6EAw6kA"}]},"pre_tokenizer":{"type":"Metaspace","replacement":"▁","prepend_scheme":"always","split":)x"
     R"x(true},"post_processor":{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"<s>","type_id":0}},{"Se)x"
     R"x(quence":{"id":"A","type_id":0}},{"SpecialToken":{"id":"</s>","type_id":0}}],"pair":[{"SpecialToken":{"id":"<)x"
     R"x(s>","type_id":0}},{"Sequence":{"id":"A","type_id":0}},{"SpecialToken":{"id":"</s>","type_id":0}},{"Sequence")x"
     R"x(:{"id":"B","type_id":0}}],"special_tokens":{"</s>":{"id":"</s>","ids":[2],"tokens":["</s>"]},"<s>":{"id":"<s)x"
     R"x(>","ids":[1],"tokens":["<s>"]}}},"decoder":{"type":"Metaspace","replacement":"▁","prepend_scheme":"always",")x"
     R"x(split":true},"model":{"type":"Unigram","unk_id":0,"vocab":[["<unk>",0.0],["<s>",0.0],["</s>",0.0],["▁",-1.6])x"
     R"x(,["a",-1.97],["b",-2.3400000000000003],["c",-2.71],["t",-3.08],["h",-3.45],["e",-3.82],["é",-4.1899999999999)x"
     R"x(995],["▁a",-4.16],["▁t",-4.53],["th",-4.9],["he",-5.2700000000000005],["▁the",-4.84],["▁th",-5.6099999999999)x"
     R"x(99],["ab",-6.38],["abc",-6.35],["at",-7.12],["▁▁",-7.489999999999999],["中",-8.26],[".",-8.63]],"byte_fallbac)x"
     R"x(k":false}})x",
     {1}, {2},
     {
         {std::string_view("", 0), {}, std::string_view("", 0)},
         {std::string_view(" ", 1), {}, std::string_view("", 0)},
         {std::string_view("the abc", 7), {15, 3, 18}, std::string_view("the abc", 7)},
         {std::string_view("  the  cat at ", 14), {15, 3, 3, 6, 4, 7, 3, 4, 7},
          std::string_view("the  cat at", 11)},
         {std::string_view("thethe", 6), {15, 7, 14}, std::string_view("thethe", 6)},
         {std::string_view("<s>the</s> ab<unk>", 18), {1, 15, 2, 3, 4, 5, 0},
          std::string_view("<s> the</s> ab<unk>", 19)},
         {std::string_view("\344\270\255 zz \303\251 z", 11), {3, 21, 3, 0, 3, 10, 3, 0},
          std::string_view("\344\270\255 <unk> \303\251 <unk>", 18)},
         {std::string_view("e\314\201 \357\254\201 A\314\201bc\357\274\241", 16), {3, 10, 3, 0, 3, 18, 4},
          std::string_view("\303\251 <unk> abca", 13)},
         {std::string_view("a\011b\012c", 5), {3, 4, 3, 5, 3, 6}, std::string_view("a b c", 5)},
         {std::string_view("the\342\200\213b\302\255", 9), {15, 5}, std::string_view("theb", 4)},
         {std::string_view("\360\237\230\200\342\200\246", 7), {3, 0, 22, 22, 22}, std::string_view("<unk>...", 8)},
         {std::string_view("\342\226\201the\342\226\201", 9), {15, 3}, std::string_view("the ", 4)},
         {std::string_view("the <mask>  abc", 15), {15, 23, 3, 18}, std::string_view("the<mask> abc", 13)},
         {std::string_view("user word ab", 12), {24, 3, 4, 5}, std::string_view("user word ab", 12)},
         {std::string_view("<0x41>", 6), {3, 0}, std::string_view("<unk>", 5)},
         {std::string_view("\000\177", 2), {3, 0}, std::string_view("<unk>", 5)},
         {std::string_view(" abc", 4), {3, 18}, std::string_view("abc", 3)},
         {std::string_view("a\015\012b", 4), {3, 4, 0, 3, 5}, std::string_view("a<unk> b", 8)},
     }},
    {"lines",
     R"x({"version":"1.0","truncation":null,"padding":null,"added_tokens":[{"id":0,"content":"<unk>","single_word":fa)x"
     R"x(lse,"lstrip":false,"rstrip":false,"normalized":false,"special":true},{"id":1,"content":"<s>","single_word":f)x"
     R"x(alse,"lstrip":false,"rstrip":false,"normalized":false,"special":true},{"id":2,"content":"</s>","single_word")x"
     R"x(:false,"lstrip":false,"rstrip":false,"normalized":false,"special":true},{"id":23,"content":"<mask>","single_)x"
     R"x(word":false,"lstrip":true,"rstrip":true,"normalized":false,"special":true},{"id":24,"content":"user word","s)x"
     R"x(ingle_word":false,"lstrip":false,"rstrip":false,"normalized":true,"special":false}],"normalizer":{"type":"Se)x"
     R"x(quence","normalizers":[{"type":"Replace","pattern":{"String":"\n"},"content":"</s>"},{"type":"Replace","patt)x"
     R"x(ern":{"Regex":"^ | $"},"content":""},{"type":"Replace","pattern":{"Regex":" ?</s> ?"},"content":"</s>"}]},"p)x"
     R"x(re_tokenizer":{"type":"Metaspace","replacement":"▁","prepend_scheme":"always","split":false},"post_processor)x"
     R"x(":{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"<s>","type_id":0}},{"Sequence":{"id":"A","ty)x"
     R"x(pe_id":0}},{"SpecialToken":{"id":"</s>","type_id":0}}],"pair":[{"SpecialToken":{"id":"<s>","type_id":0}},{"S)x"
     R"x(equence":{"id":"A","type_id":0}},{"SpecialToken":{"id":"</s>","type_id":0}},{"Sequence":{"id":"B","type_id":)x"
     R"x(0}}],"special_tokens":{"</s>":{"id":"</s>","ids":[2],"tokens":["</s>"]},"<s>":{"id":"<s>","ids":[1],"tokens")x"
     R"x(:["<s>"]}}},"decoder":{"type":"Metaspace","replacement":"▁","prepend_scheme":"always","split":true},"model":)x"
     R"x({"type":"Unigram","unk_id":0,"vocab":[["<unk>",0.0],["<s>",0.0],["</s>",0.0],["▁",-1.6],["a",-1.97],["b",-2.)x"
     R"x(3400000000000003],["c",-2.71],["t",-3.08],["h",-3.45],["e",-3.82],["é",-4.1899999999999995],["▁a",-4.16],["▁)x"
     R"x(t",-4.53],["th",-4.9],["he",-5.2700000000000005],["▁the",-4.84],["▁th",-5.609999999999999],["ab",-6.38],["ab)x"
     R"x(c",-6.35],["at",-7.12],["▁▁",-7.489999999999999],["中",-8.26],[".",-8.63]],"byte_fallback":false}})x",
     {1}, {2},
     {
         {std::string_view("", 0), {}, std::string_view("", 0)},
         {std::string_view(" ", 1), {}, std::string_view("", 0)},
         {std::string_view("the abc", 7), {15, 3, 18}, std::string_view("the abc", 7)},
         {std::string_view("  the  cat at ", 14), {15, 3, 3, 6, 4, 7, 3, 4, 7},
          std::string_view("the  cat at", 11)},
         {std::string_view("thethe", 6), {15, 7, 14}, std::string_view("thethe", 6)},
         {std::string_view("<s>the</s> ab<unk>", 18), {1, 15, 2, 3, 4, 5, 0},
          std::string_view("<s> the</s> ab<unk>", 19)},
         {std::string_view("\344\270\255 zz \303\251 z", 11), {3, 21, 3, 0, 3, 10, 3, 0},
          std::string_view("\344\270\255 <unk> \303\251 <unk>", 18)},
         {std::string_view("e\314\201 \357\254\201 A\314\201bc\357\274\241", 16), {3, 9, 0, 3, 0, 3, 0, 5, 6, 0},
          std::string_view("e<unk> <unk> <unk>bc<unk>", 25)},
         {std::string_view("a\011b\012c", 5), {3, 4, 0, 5, 2, 6}, std::string_view("a<unk>b</s>c", 12)},
         {std::string_view("the\342\200\213b\302\255", 9), {15, 0, 5, 0}, std::string_view("the<unk>b<unk>", 14)},
         {std::string_view("\360\237\230\200\342\200\246", 7), {3, 0}, std::string_view("<unk>", 5)},
         {std::string_view("\342\226\201the\342\226\201", 9), {15, 3}, std::string_view("the ", 4)},
         {std::string_view("the <mask>  abc", 15), {15, 23, 3, 18}, std::string_view("the<mask> abc", 13)},
         {std::string_view("user word ab", 12), {24, 3, 4, 5}, std::string_view("user word ab", 12)},
         {std::string_view("<0x41>", 6), {3, 0}, std::string_view("<unk>", 5)},
         {std::string_view("\000\177", 2), {3, 0}, std::string_view("<unk>", 5)},
         {std::string_view(" abc", 4), {3, 18}, std::string_view("abc", 3)},
         {std::string_view("a\015\012b", 4), {3, 4, 0, 2, 5}, std::string_view("a<unk></s>b", 11)},
     }},
    {"ties",
     R"x({"version":"1.0","truncation":null,"padding":null,"added_tokens":[{"id":0,"content":"<unk>","single_word":fa)x"
     R"x(lse,"lstrip":false,"rstrip":false,"normalized":false,"special":true},{"id":1,"content":"<s>","single_word":f)x"
     R"x(alse,"lstrip":false,"rstrip":false,"normalized":false,"special":true},{"id":2,"content":"</s>","single_word")x"
     R"x(:false,"lstrip":false,"rstrip":false,"normalized":false,"special":true},{"id":6,"content":"<mask>","single_w)x"
     R"x(ord":false,"lstrip":true,"rstrip":true,"normalized":false,"special":true},{"id":7,"content":"user word","sin)x"
     R"x(gle_word":false,"lstrip":false,"rstrip":false,"normalized":true,"special":false}],"normalizer":null,"pre_tok)x"
     R"x(enizer":{"type":"Metaspace","replacement":"▁","prepend_scheme":"always","split":true},"post_processor":{"typ)x"
     R"x(e":"TemplateProcessing","single":[{"SpecialToken":{"id":"<s>","type_id":0}},{"Sequence":{"id":"A","type_id":)x"
     R"x(0}},{"SpecialToken":{"id":"</s>","type_id":0}}],"pair":[{"SpecialToken":{"id":"<s>","type_id":0}},{"Sequence)x"
     R"x(":{"id":"A","type_id":0}},{"SpecialToken":{"id":"</s>","type_id":0}},{"Sequence":{"id":"B","type_id":0}}],"s)x"
     R"x(pecial_tokens":{"</s>":{"id":"</s>","ids":[2],"tokens":["</s>"]},"<s>":{"id":"<s>","ids":[1],"tokens":["<s>")x"
     R"x(]}}},"decoder":{"type":"Metaspace","replacement":"▁","prepend_scheme":"always","split":true},"model":{"type")x"
     R"x(:"Unigram","unk_id":0,"vocab":[["<unk>",0.0],["<s>",0.0],["</s>",0.0],["▁x",-9.398437589368443],["0",-11.335)x"
     R"x(460862310574],["00",-6.795403182513847]],"byte_fallback":false}})x",
     {1}, {2},
     {
         {std::string_view("x000", 4), {3, 5, 4}, std::string_view("x000", 4)},
         {std::string_view("0000", 4), {0, 5, 5}, std::string_view("<unk>0000", 9)},
     }},
    {"unknown characters fused",
     R"x({"version":"1.0","truncation":null,"padding":null,"added_tokens":[{"id":0,"content":"<unk>","single_word":fa)x"
     R"x(lse,"lstrip":false,"rstrip":false,"normalized":false,"special":true},{"id":1,"content":"<s>","single_word":f)x"
     R"x(alse,"lstrip":false,"rstrip":false,"normalized":false,"special":true},{"id":2,"content":"</s>","single_word")x"
     R"x(:false,"lstrip":false,"rstrip":false,"normalized":false,"special":true},{"id":23,"content":"<mask>","single_)x"
     R"x(word":false,"lstrip":true,"rstrip":true,"normalized":false,"special":true},{"id":24,"content":"user word","s)x"
     R"x(ingle_word":false,"lstrip":false,"rstrip":false,"normalized":true,"special":false}],"normalizer":null,"pre_t)x"
     R"x(okenizer":{"type":"Metaspace","replacement":"▁","prepend_scheme":"always","split":true},"post_processor":{"t)x"
     R"x(ype":"TemplateProcessing","single":[{"SpecialToken":{"id":"<s>","type_id":0}},{"Sequence":{"id":"A","type_id)x"
     R"x(":0}}],"pair":[{"SpecialToken":{"id":"<s>","type_id":0}},{"Sequence":{"id":"A","type_id":0}},{"Sequence":{"i)x"
     R"x(d":"B","type_id":0}}],"special_tokens":{"</s>":{"id":"</s>","ids":[2],"tokens":["</s>"]},"<s>":{"id":"<s>",")x"
     R"x(ids":[1],"tokens":["<s>"]}}},"decoder":null,"model":{"type":"BPE","dropout":null,"unk_token":"<unk>","contin)x"
     R"x(uing_subword_prefix":null,"end_of_word_suffix":null,"fuse_unk":true,"byte_fallback":false,"ignore_merges":fa)x"
     R"x(lse,"vocab":{"<unk>":0,"<s>":1,"</s>":2,"▁":3,"a":4,"b":5,"c":6,"t":7,"h":8,"e":9,"é":10,"▁a":11,"▁t":12,"th)x"
     R"x(":13,"he":14,"▁the":15,"▁th":16,"ab":17,"abc":18,"at":19,"▁▁":20,"中":21,".":22},"merges":[["▁","t"],["t","h")x"
     R"x(],["▁t","h"],["h","e"],["▁th","e"],["a","b"],["ab","c"],["a","t"],["▁","a"],["▁","▁"]]}})x",
     {1}, {},
     {
         {std::string_view("", 0), {}, std::string_view("", 0)},
         {std::string_view(" ", 1), {3}, std::string_view("\342\226\201", 3)},
         {std::string_view("the abc", 7), {15, 3, 18}, std::string_view("\342\226\201the \342\226\201 abc", 14)},
         {std::string_view("  the  cat at ", 14), {3, 15, 3, 3, 6, 19, 3, 19, 3},
          std::string_view("\342\226\201 \342\226\201the \342\226\201 \342\226\201 c at \342\226\201 at \342\226\201", 34)},
         {std::string_view("thethe", 6), {15, 13, 9}, std::string_view("\342\226\201the th e", 11)},
         {std::string_view("<s>the</s> ab<unk>", 18), {1, 15, 2, 3, 17, 0},
          std::string_view("<s> \342\226\201the </s> \342\226\201 ab <unk>", 28)},
         {std::string_view("\344\270\255 zz \303\251 z", 11), {3, 21, 3, 0, 3, 10, 3, 0},
          std::string_view("\342\226\201 \344\270\255 \342\226\201 <unk> \342\226\201 \303\251 \342\226\201 <unk>", 34)},
         {std::string_view("e\314\201 \357\254\201 A\314\201bc\357\274\241", 16), {3, 9, 0, 3, 0, 3, 0, 5, 6, 0},
          std::string_view("\342\226\201 e <unk> \342\226\201 <unk> \342\226\201 <unk> b c <unk>", 41)},
         {std::string_view("a\011b\012c", 5), {11, 0, 5, 0, 6},
          std::string_view("\342\226\201a <unk> b <unk> c", 20)},
         {std::string_view("the\342\200\213b\302\255", 9), {15, 0, 5, 0},
          std::string_view("\342\226\201the <unk> b <unk>", 20)},
         {std::string_view("\360\237\230\200\342\200\246", 7), {3, 0}, std::string_view("\342\226\201 <unk>", 9)},
         {std::string_view("\342\226\201the\342\226\201", 9), {15, 3},
          std::string_view("\342\226\201the \342\226\201", 10)},
         {std::string_view("the <mask>  abc", 15), {15, 23, 3, 18},
          std::string_view("\342\226\201the <mask> \342\226\201 abc", 21)},
         {std::string_view("user word ab", 12), {24, 3, 17}, std::string_view("user word \342\226\201 ab", 16)},
         {std::string_view("<0x41>", 6), {3, 0}, std::string_view("\342\226\201 <unk>", 9)},
         {std::string_view("\000\177", 2), {3, 0}, std::string_view("\342\226\201 <unk>", 9)},
         {std::string_view(" abc", 4), {3, 18}, std::string_view("\342\226\201 abc", 7)},
         {std::string_view("a\015\012b", 4), {11, 0, 5}, std::string_view("\342\226\201a <unk> b", 12)},
     }},
    {"unknown characters one by one",
     R"x({"version":"1.0","truncation":null,"padding":null,"added_tokens":[{"id":0,"content":"<unk>","single_word":fa)x"
     R"x(lse,"lstrip":false,"rstrip":false,"normalized":false,"special":true},{"id":1,"content":"<s>","single_word":f)x"
     R"x(alse,"lstrip":false,"rstrip":false,"normalized":false,"special":true},{"id":2,"content":"</s>","single_word")x"
     R"x(:false,"lstrip":false,"rstrip":false,"normalized":false,"special":true},{"id":23,"content":"<mask>","single_)x"
     R"x(word":false,"lstrip":true,"rstrip":true,"normalized":false,"special":true},{"id":24,"content":"user word","s)x"
     R"x(ingle_word":false,"lstrip":false,"rstrip":false,"normalized":true,"special":false}],"normalizer":null,"pre_t)x"
     R"x(okenizer":{"type":"Metaspace","replacement":"▁","prepend_scheme":"always","split":true},"post_processor":{"t)x"
     R"x(ype":"TemplateProcessing","single":[{"SpecialToken":{"id":"<s>","type_id":0}},{"Sequence":{"id":"A","type_id)x"
     R"x(":0}}],"pair":[{"SpecialToken":{"id":"<s>","type_id":0}},{"Sequence":{"id":"A","type_id":0}},{"Sequence":{"i)x"
     R"x(d":"B","type_id":0}}],"special_tokens":{"</s>":{"id":"</s>","ids":[2],"tokens":["</s>"]},"<s>":{"id":"<s>",")x"
     R"x(ids":[1],"tokens":["<s>"]}}},"decoder":null,"model":{"type":"BPE","dropout":null,"unk_token":"<unk>","contin)x"
     R"x(uing_subword_prefix":null,"end_of_word_suffix":null,"fuse_unk":false,"byte_fallback":false,"ignore_merges":f)x"
     R"x(alse,"vocab":{"<unk>":0,"<s>":1,"</s>":2,"▁":3,"a":4,"b":5,"c":6,"t":7,"h":8,"e":9,"é":10,"▁a":11,"▁t":12,"t)x"
     R"x(h":13,"he":14,"▁the":15,"▁th":16,"ab":17,"abc":18,"at":19,"▁▁":20,"中":21,".":22},"merges":[["▁","t"],["t","h)x"
     R"x("],["▁t","h"],["h","e"],["▁th","e"],["a","b"],["ab","c"],["a","t"],["▁","a"],["▁","▁"]]}})x",
     {1}, {},
     {
         {std::string_view("", 0), {}, std::string_view("", 0)},
         {std::string_view(" ", 1), {3}, std::string_view("\342\226\201", 3)},
         {std::string_view("the abc", 7), {15, 3, 18}, std::string_view("\342\226\201the \342\226\201 abc", 14)},
         {std::string_view("  the  cat at ", 14), {3, 15, 3, 3, 6, 19, 3, 19, 3},
          std::string_view("\342\226\201 \342\226\201the \342\226\201 \342\226\201 c at \342\226\201 at \342\226\201", 34)},
         {std::string_view("thethe", 6), {15, 13, 9}, std::string_view("\342\226\201the th e", 11)},
         {std::string_view("<s>the</s> ab<unk>", 18), {1, 15, 2, 3, 17, 0},
          std::string_view("<s> \342\226\201the </s> \342\226\201 ab <unk>", 28)},
         {std::string_view("\344\270\255 zz \303\251 z", 11), {3, 21, 3, 0, 0, 3, 10, 3, 0},
          std::string_view("\342\226\201 \344\270\255 \342\226\201 <unk> <unk> \342\226\201 \303\251 \342\226\201 <unk>", 40)},
         {std::string_view("e\314\201 \357\254\201 A\314\201bc\357\274\241", 16), {3, 9, 0, 3, 0, 3, 0, 0, 5, 6, 0},
          std::string_view("\342\226\201 e <unk> \342\226\201 <unk> \342\226\201 <unk> <unk> b c <unk>", 47)},
         {std::string_view("a\011b\012c", 5), {11, 0, 5, 0, 6},
          std::string_view("\342\226\201a <unk> b <unk> c", 20)},
         {std::string_view("the\342\200\213b\302\255", 9), {15, 0, 5, 0},
          std::string_view("\342\226\201the <unk> b <unk>", 20)},
         {std::string_view("\360\237\230\200\342\200\246", 7), {3, 0, 0},
          std::string_view("\342\226\201 <unk> <unk>", 15)},
         {std::string_view("\342\226\201the\342\226\201", 9), {15, 3},
          std::string_view("\342\226\201the \342\226\201", 10)},
         {std::string_view("the <mask>  abc", 15), {15, 23, 3, 18},
          std::string_view("\342\226\201the <mask> \342\226\201 abc", 21)},
         {std::string_view("user word ab", 12), {24, 3, 17}, std::string_view("user word \342\226\201 ab", 16)},
         {std::string_view("<0x41>", 6), {3, 0, 0, 0, 0, 0, 0},
          std::string_view("\342\226\201 <unk> <unk> <unk> <unk> <unk> <unk>", 39)},
         {std::string_view("\000\177", 2), {3, 0, 0}, std::string_view("\342\226\201 <unk> <unk>", 15)},
         {std::string_view(" abc", 4), {3, 18}, std::string_view("\342\226\201 abc", 7)},
         {std::string_view("a\015\012b", 4), {11, 0, 0, 5}, std::string_view("\342\226\201a <unk> <unk> b", 18)},
     }},
};

}  // namespace fovea
