// SPDX-License-Identifier: Apache-2.0
// T5, T5 1.1 and mT5, written as transformers writes them and read again.
#include <gmock/gmock.h>

#include <cmath>
#include <functional>
#include <utility>

#include "fovea/grad/ops.h"
#include "fovea/pretrained/pretrained.h"
#include "fovea/pretrained/translator.h"
#include "tests/pretrained/t5_support.h"
#include "tests/support/folder.h"
#include "tests/support/throws.h"
#include "tests/support/vectors.h"

namespace fovea {
namespace {

using testing::ElementsAre;

GoldenPairs pairs_of(const ForeignTranslator& translator) {
  return GoldenPairs(kT5Sources, kT5Targets, translator.rules.begin);
}

std::vector<float> logits_of(const Translator& model, const GoldenPairs& pairs) {
  Tape tape(Context(2), TapeMode::kInference);
  return to_vector(model.logits(tape, pairs.view()).value<float>());
}
std::vector<float> logits_of(const ForeignTranslator& loaded) {
  return logits_of(*loaded.model, pairs_of(loaded));
}

// The largest difference, by the largest logit.
double difference(const std::vector<float>& found, const std::vector<double>& expected) {
  double largest = 0, most = 0;
  for (std::size_t n = 0; n < expected.size(); ++n) {
    largest = std::max(largest, std::abs(expected[n]));
    most = std::max(most, std::abs(double{found[n]} - expected[n]));
  }
  return most / largest;
}

class T5Models : public testing::Test {
 protected:
  ForeignTranslator load(const T5Files& files) const {
    files.write(folder_ / "model");
    return load_foreign_translator(folder_ / "model");
  }
  template <class Change>
  ForeignTranslator changed(std::string_view name, Change&& change) const {
    T5Files files(name);
    change(files);
    return load(files);
  }
  // config.json with another value.
  ForeignTranslator with(const std::string& key, const std::string& value) const {
    return changed("T5 1.0", [&](T5Files& f) { f.set("config.json", key, value); });
  }
  // spiece.model in the place of tokenizer.json.
  ForeignTranslator with_pieces(const std::vector<ModelPiece>& pieces,
                                const std::string& settings) const {
    return changed("T5 1.0", [&](T5Files& f) {
      f.set_pieces(model_bytes(pieces, PieceAlgorithm::kUnigram, ""));
      if (!settings.empty()) f.texts["tokenizer_config.json"] = settings;
    });
  }
  ForeignTranslator searched(const std::string& key, const std::string& value) const {
    return changed("T5 1.0", [&](T5Files& f) { f.set("generation_config.json", key, value); });
  }

  const TestFolder folder_;
};

// A batch of several lengths, which transformers pads on both sides.
TEST_F(T5Models, LogitsOfABatchAreThoseOfTransformers) {
  for (const GoldenT5& one : kGoldenT5s) {
    SCOPED_TRACE(one.name);
    expect_near(logits_of(load(T5Files(one))), one.logits);
  }
}

// Token by token, with what is kept of those before: the same bits as all at once, where the
// kernels are the same, and else to rounding.
TEST_F(T5Models, LogitsOfStepsAreThoseOfTransformers) {
  for (const GoldenT5& one : kGoldenT5s) {
    SCOPED_TRACE(one.name);
    const ForeignTranslator loaded = load(T5Files(one));
    expect_near(logits_of_steps(loaded, pairs_of(loaded)), one.logits);
  }
}

// Of every parameter: those that are shared have the sum of all who read them.
void expect_gradients(const GoldenT5& one, const ForeignTranslator& loaded,
                      const Translator& model) {
  const Json config = parse_json(one.config, {"config.json"});
  const TranslatorArchitecture& row = translator_architecture(ForeignObject(config, "config.json"));
  std::size_t compared = 0;
  for (Parameter* parameter : model.parameters()) {
    double squares = 0, products = 0;
    for (const std::string& name : translator_tensors(row, loaded.config, parameter->name)) {
      const auto stored = std::ranges::find(one.tensors, name, &GoldenT5::Stored::name);
      squares += stored->squares;
      products += stored->products;
      ++compared;
    }
    parameter->gather_rows();
    const std::vector<double> gradient = to_vector(parameter->finished_gradient().vec<double>());
    const std::vector<double> values = to_vector(std::as_const(parameter->value).vec<double>());
    const auto product = [&](const std::vector<double>& with) {
      return std::inner_product(gradient.begin(), gradient.end(), with.begin(), 0.0);
    };
    EXPECT_NEAR(product(gradient), squares, 1e-4 * squares) << parameter->name;
    const double sizes =
        std::sqrt(squares * std::inner_product(values.begin(), values.end(), values.begin(), 0.0));
    EXPECT_NEAR(product(values), products, 1e-4 * sizes) << parameter->name;
  }
  EXPECT_EQ(compared, one.tensors.size());
}

// In double, for some of these gradients are small differences.
TEST_F(T5Models, GradientsAreThoseOfTransformers) {
  for (const GoldenT5& one : kGoldenT5s) {
    SCOPED_TRACE(one.name);
    const ForeignTranslator loaded = load(T5Files(one));
    const GoldenPairs pairs = pairs_of(loaded);
    for (const InnerResults kept : {InnerResults::kKept, InnerResults::kRecomputed}) {
      const Translator model = in_double(loaded);
      Tape tape{Context(1)};
      tape.set_inner_results(kept);
      const Variable y = model.logits(tape, pairs.view());
      tape.backward(mean(tape, multiply(tape, y, y)));
      expect_gradients(one, loaded, model);
    }
  }
}

// A padded batch of transformers' encoder; with a decoder beside it in the file, and without.
TEST_F(T5Models, RowsOfTheEncoderAreThoseOfTransformers) {
  for (const GoldenT5& one : kGoldenT5s) {
    for (const bool alone : {false, true}) {
      SCOPED_TRACE(fmt::format("{} {}", one.name, alone));
      T5Files files(one);
      if (alone) {
        std::erase_if(files.tensors, [](const NamedTensor& tensor) {
          return tensor.name.starts_with("decoder.") || tensor.name == "lm_head.weight";
        });
        files.texts.erase("generation_config.json");
        files.set("config.json", "is_encoder_decoder", "false");
        files.set("config.json", "architectures", "[\"T5EncoderModel\"]");
      }
      files.write(folder_ / "model");
      EXPECT_EQ(is_encoder(folder_ / "model"), alone);
      EXPECT_TRUE(has_source_encoder(folder_ / "model"));
      const ForeignSourceEncoder loaded = load_source_encoder(folder_ / "model");
      const GoldenPairs pairs(kT5Sources, kT5Targets, kT5Padding);
      Tape tape(Context(2), TapeMode::kInference);
      expect_near(to_vector(loaded.model.forward(tape, pairs.view().source).rows.value<float>()),
                  one.rows);
    }
  }
}

// What a plan says of texts is what they take.
TEST_F(T5Models, MemoryOfTheEncoderIsForeseenToTheByte) {
  T5Files("T5 1.1").write(folder_ / "model");
  const SourceEncoder model = load_source_encoder(folder_ / "model").model;
  const GoldenPairs pairs(kT5Sources, kT5Targets, kT5Padding);
  const TextRows texts = pairs.view().source;
  TapeLoad load{.tokens = texts.ids.size, .mode = TapeMode::kInference};
  for (index n = 0; n + 1 < texts.offsets.size; ++n) {
    load.lengths.push_back(texts.offsets[n + 1] - texts.offsets[n]);
  }
  Tape tape(Context(1), TapeMode::kInference);
  model.forward(tape, texts);
  EXPECT_EQ(plan_pass(Context(1), model.config(), load).tape, static_cast<double>(tape.peak()));
}

// The same weights in a model that lacks one of T5's rules: the logits tell it from T5.
TEST_F(T5Models, EveryRuleOfT5ChangesTheLogits) {
  struct Trap {
    std::string_view rule, model;
    void (*breaks)(TranslatorConfig& c);
  };
  constexpr Trap kTraps[] = {
      {"a tied head reads rows times 1 / sqrt(d_model)", "T5 1.0",
       [](TranslatorConfig& c) { c.output_scale = 1; }},
      {"T5 1.1 scales nothing", "T5 1.1",
       [](TranslatorConfig& c) { c.output_scale = 1 / std::sqrt(static_cast<double>(c.width)); }},
      {"scores are not divided by sqrt(d_kv)", "T5 1.0",
       [](TranslatorConfig& c) { c.score_scale = 0; }},
      {"all layers have the biases of the first", "T5 1.0",
       [](TranslatorConfig& c) { c.shares_distances = false; }},
      {"the epsilon of the norms", "mT5", [](TranslatorConfig& c) { c.norm_epsilon = 1e-6; }},
      {"the GELU is that by tanh", "mT5",
       [](TranslatorConfig& c) { c.activation = LayerActivation::kGeglu; }},
      {"from which distance on there is one bucket", "mT5",
       [](TranslatorConfig& c) { c.t5_max_distance = 40; }},
  };
  for (const Trap& trap : kTraps) {
    SCOPED_TRACE(trap.rule);
    const ForeignTranslator loaded = load(T5Files(trap.model));
    TranslatorConfig config = loaded.config;
    trap.breaks(config);
    const Translator other(config, 1);
    for (Parameter* const to : other.parameters()) {
      std::string name = to->name;
      for (const std::string side : {"encoder", "decoder"}) {
        if (name == side + ".blocks.0.attention.t5") name = side + ".distances.weight";
      }
      for (const Parameter* const from : loaded.model->parameters()) {
        if (from->name != name) continue;
        std::ranges::copy(from->value.vec<float>(), to->value.vec<float>().begin());
        ++to->version;
      }
    }
    // The GELUs differ by less than a thousandth.
    EXPECT_GT(difference(logits_of(other, pairs_of(loaded)), golden_t5(trap.model).logits), 1e-4);
  }
}

// Half of the encoder's buckets are those of keys behind the query; the decoder has all of its
// buckets for keys before it, and the nearest key, itself, has the first.
TEST_F(T5Models, BucketsOfTheEncoderLookBothWays) {
  const auto without_row = [&](const std::string& side, index bucket) {
    const auto logits = logits_of(changed("T5 1.0", [&](T5Files& f) {
      const std::string name =
          side + ".block.0.layer.0.SelfAttention.relative_attention_bias.weight";
      const auto row = f.tensor(name).tensor.rows<float>()[bucket];
      row[0] += 1;
    }));
    return difference(logits, golden_t5("T5 1.0").logits);
  };
  // Of 8 buckets, 5 is that of the next key. Bucket 4, of keys behind at the distance 0, is empty.
  EXPECT_GT(without_row("encoder", 5), 1e-3);
  EXPECT_EQ(without_row("encoder", 4), without_row("encoder", 4));
  EXPECT_LT(without_row("encoder", 4), 2e-5);
  EXPECT_GT(without_row("decoder", 4), 1e-3);
  EXPECT_GT(without_row("decoder", 0), 1e-3);
}

TEST_F(T5Models, WhetherTheLogitsHaveTheirOwnMatrixTheFileSays) {
  const auto config = [](const ForeignTranslator& loaded) { return loaded.config; };
  EXPECT_TRUE(config(load(T5Files("T5 1.0"))).tie);
  EXPECT_FALSE(config(load(T5Files("T5 1.1"))).tie);
  // So reads transformers 5: what is called untied may be tied, and is not scaled.
  const ForeignTranslator tied = changed("T5 1.1", [](T5Files& f) { f.remove("lm_head.weight"); });
  EXPECT_TRUE(tied.config.tie);
  EXPECT_EQ(tied.config.output_scale, 1);
  // And as transformers 5 writes it again.
  const ForeignTranslator again = changed("T5 1.1", [](T5Files& f) {
    f.set("config.json", "tie_word_embeddings", "true");
    f.set("config.json", "scale_decoder_outputs", "false");
  });
  expect_near(logits_of(again), golden_t5("T5 1.1").logits);
  EXPECT_EQ(load(T5Files("mT5")).config.output_scale, 1);
  EXPECT_EQ(load(T5Files("T5 1.0")).config.output_scale, 1 / std::sqrt(8.0));
}

TEST_F(T5Models, ATableMayBeThereUnderItsOtherNames) {
  const std::vector<float> expected = logits_of(load(T5Files("T5 1.0")));
  for (const char* const name :
       {"encoder.embed_tokens.weight", "decoder.embed_tokens.weight", "lm_head.weight"}) {
    const auto with_copy = [&](float more) {
      return changed("T5 1.0", [&](T5Files& f) {
        const Tensor& shared = f.tensor("shared.weight").tensor;
        Tensor copy = Tensor::of<float>(shared.shape(), to_vector(shared.vec<float>()));
        copy.vec<float>()[5] += more;
        f.tensors.push_back({name, std::move(copy)});
      });
    };
    EXPECT_EQ(logits_of(with_copy(0)), expected) << name;
    if (std::string_view(name) == "lm_head.weight") continue;  // then it is one of its own
    EXPECT_THROWS(with_copy(1), kModelWrongKind, name);
  }
  EXPECT_EQ(logits_of(changed("T5 1.0",
                              [](T5Files& f) {
                                f.tensors.push_back(
                                    {"decoder.block.0.layer.1.EncDecAttention."
                                     "relative_attention_bias.weight",
                                     Tensor(Shape{8, 2})});
                              })),
            expected);
}

TEST_F(T5Models, WhatIsNotKnownIsRefusedByItsName) {
  for (const auto& [key, value] : {std::pair{"feed_forward_proj", "\"gated-mish\""},
                                   {"feed_forward_proj", "\"half-gelu\""},
                                   {"is_encoder_decoder", "false"},
                                   {"is_decoder", "true"},
                                   {"num_hidden_layers", "3"},
                                   {"head_dim", "4"},
                                   {"rope_theta", "10000"},
                                   {"architectures", "[\"T5EncoderModel\"]"},
                                   {"quantization_config", "{\"bits\": 4}"}}) {
    EXPECT_THROWS(with(key, value), kModelWrongKind, key);
  }
  EXPECT_THROWS(with("d_model", "\"8\""), kModelDamaged, "d_model");
  EXPECT_THROWS(with("d_kv", "0"), kModelDamaged, "d_kv");
  EXPECT_THROWS(with("relative_attention_num_buckets", "3"), kModelDamaged,
                "'relative_attention_num_buckets' is 3; expected a whole number from 4");
  EXPECT_THROWS(with("relative_attention_max_distance", "4"), kModelDamaged,
                "'relative_attention_max_distance' is 4; expected more than half of "
                "relative_attention_num_buckets, 8");
  EXPECT_THROWS(with("relative_attention_num_buckets", "4"), kModelDamaged,
                "relative_attention_bias.weight is [8, 2]");
  EXPECT_THROWS(with("vocab_size", "1000000"), kModelDamaged, "shared.weight is [24, 8]");
  EXPECT_THROWS(with("num_layers", "900"), kModelDamaged, "too few for 1800 layers");
  with("dropout_rate", "0.2");  // of training
  with("architectures", R"(["T5WithLMHeadModel"])");
  EXPECT_THROWS(changed("T5 1.0",
                        [](T5Files& f) {
                          f.tensors.push_back(
                              {"encoder.block.1.layer.0.SelfAttention."
                               "relative_attention_bias.weight",
                               Tensor::empty({8, 2})});
                        }),
                kModelWrongKind, "not one of t5's");
  EXPECT_THROWS(
      changed("T5 1.0",
              [](T5Files& f) { f.remove("decoder.block.1.layer.1.EncDecAttention.v.weight"); }),
      kModelDamaged, "1.EncDecAttention.v.weight");
  EXPECT_THROWS(with("model_type", "\"umt5\""), kModelWrongKind, "marian, t5, mt5");
}

TEST_F(T5Models, RulesOfGenerationAreRead) {
  const TranslationRules rules = load(T5Files("T5 1.1")).rules;
  EXPECT_EQ(rules.begin, kT5Padding);
  EXPECT_EQ(rules.end, kT5End);
  EXPECT_TRUE(rules.banned.empty());  // padding may stand in a text
  EXPECT_EQ(rules.beams, 3);
  EXPECT_EQ(rules.early_stop, EarlyStop::kYes);
  EXPECT_EQ(rules.most_tokens, 15);
  EXPECT_FALSE(rules.forced_end);
  // Without the file, config.json says it; what tasks of pipelines say does not count.
  const TranslationRules older =
      changed("T5 1.0", [](T5Files& f) {
        f.texts.erase("generation_config.json");
        f.set("config.json", "task_specific_params", R"({"summarization": {"num_beams": 4}})");
        f.set("config.json", "decoder_start_token_id", "");
      }).rules;
  EXPECT_EQ(older.beams, 1);
  EXPECT_EQ(older.begin, kT5Padding);
  EXPECT_THROWS(searched("no_repeat_ngram_size", "3"), kModelWrongKind, "no_repeat_ngram_size");
  EXPECT_THROWS(searched("eos_token_id", "3"), kModelWrongKind, "tokenizer");
}

TEST_F(T5Models, IsToldFromOtherFolders) {
  T5Files("mT5").write(folder_ / "model");
  EXPECT_TRUE(is_foreign_translator(folder_ / "model"));
  EXPECT_FALSE(is_encoder(folder_ / "model"));
}

// ---------------------------------------------------------------------------------- vocabularies

TEST_F(T5Models, TextsAreCutByEitherFile) {
  for (const bool has_pieces : {false, true}) {
    SCOPED_TRACE(has_pieces);
    const ForeignVocabularies found =
        std::move(changed("T5 1.0", [&](T5Files& f) {
                    if (!has_pieces) return;
                    f.set_pieces(model_bytes(T5Files::pieces(), PieceAlgorithm::kUnigram, ""));
                    f.texts["tokenizer_config.json"] = R"({"extra_ids": 1})";
                  }).vocabularies);
    EXPECT_EQ(found.of_target, nullptr);
    const Tokenizer& tokenizer = *found.of_source;
    const token unknown = has_pieces ? 2 : kT5Unknown, c = has_pieces ? 3 : 2;
    EXPECT_EQ(tokenizer.vocabulary_size(), kT5Tokens);
    EXPECT_EQ(tokenizer.special().begin, kT5Padding);
    EXPECT_EQ(tokenizer.special().end, kT5End);
    EXPECT_EQ(tokenizer.special().unknown, unknown);
    EXPECT_THAT(tokenizer.encode("c d  v\t"), ElementsAre(c, c + 1, c + 19));
    EXPECT_THAT(tokenizer.encode("c <extra_id_0> d"), ElementsAre(c, kT5Sentinel, c + 1));
    EXPECT_THAT(tokenizer.encode("c</s>d<pad>"), ElementsAre(c, kT5End, c + 1, kT5Padding));
    EXPECT_THAT(tokenizer.encode("c \xE4\xB8\xAD"), testing::Contains(unknown));
    EXPECT_THAT(tokenizer.encode(""), ElementsAre());
    EXPECT_THROWS(tokenizer.encode("\xff"), kEncoding, "text:1:1");
    EXPECT_EQ(tokenizer.decode(std::vector<token>{c, kT5Sentinel, c + 1, unknown, kT5End}), "c d");
    EXPECT_TRUE(tokenizer.occurs_in_learned_text(kT5Sentinel));
    EXPECT_TRUE(tokenizer.occurs_in_learned_text(kT5Padding));
  }
}

TEST_F(T5Models, SentinelsStandBehindThePieces) {
  // Of a vocabulary that is padded to a round number of rows.
  std::vector<ModelPiece> fewer = T5Files::pieces();
  fewer.erase(fewer.begin() + 3, fewer.begin() + 8);
  const ForeignTranslator loaded = with_pieces(fewer,
                                               R"({"extra_ids": 3, "added_tokens_decoder": {
          "20": {"content": "<extra_id_0>", "special": true, "lstrip": true, "rstrip": true},
          "21": {"content": "<more>", "special": false}}})");
  const Tokenizer& tokenizer = *loaded.vocabularies.of_source;
  EXPECT_THAT(tokenizer.encode("v<extra_id_2> h <extra_id_0> i"), ElementsAre(17, 18, 3, 20, 4));
  EXPECT_THAT(tokenizer.encode("v<more>"), ElementsAre(17, 21));
  EXPECT_EQ(tokenizer.decode(std::vector<token>{17, 21, 22, 23}), "v<more>");
  EXPECT_THROWS(with_pieces(T5Files::pieces(), ""), kModelDamaged, "tokens; the model has 24");
  EXPECT_THROWS(with_pieces(T5Files::pieces(), R"({"extra_ids": 2000000000})"), kModelDamaged,
                "extra_ids");
  EXPECT_THROWS(with_pieces(T5Files::pieces(), R"({"extra_ids": -1})"), kModelDamaged, "extra_ids");
  EXPECT_THROWS(
      with_pieces(T5Files::pieces(),
                  R"({"extra_ids": 0, "added_tokens_decoder": {"25": {"content": "x"}}})"),
      kModelDamaged, "'x' has the id 25; expected 0 to 23");
  EXPECT_THROWS(changed("T5 1.0", [](T5Files& f) { f.set_pieces("no model"); }), kModelDamaged,
                "spiece.model");
  EXPECT_THROWS(changed("T5 1.0", [](T5Files& f) { f.texts.erase("tokenizer.json"); }),
                kModelMissing, "spiece.model");
}

// As SentencePiece calls them; transformers finds them in a text before it is cut.
TEST_F(T5Models, ControlAndUserDefinedPiecesAreWholes) {
  std::vector<ModelPiece> pieces = T5Files::pieces();
  pieces[4] = {"<sep>", 0, PieceType::kControl};
  pieces[5] = {"<br>", 0, PieceType::kUserDefined};
  const ForeignTranslator loaded = with_pieces(pieces, R"({"extra_ids": 1, "sep_token": "<sep>"})");
  const Tokenizer& tokenizer = *loaded.vocabularies.of_source;
  EXPECT_THAT(tokenizer.encode("c<br>v<sep> c"), ElementsAre(3, 5, 22, 4, 3));
  EXPECT_EQ(tokenizer.decode(std::vector<token>{3, 5, 22, 4, 3}), "c<br> v c");
}

// transformers would take other tokens than those that SentencePiece or a file names.
TEST_F(T5Models, MarksOfSpieceModelAreThoseOfT5) {
  const auto settings = [&](const std::string& more) {
    return with_pieces(T5Files::pieces(), R"({"extra_ids": 1, )" + more + "}");
  };
  settings(R"("eos_token": "</s>", "unk_token": {"content": "<unk>"}, "pad_token": "</s>")");
  settings(R"("additional_special_tokens": ["<pad>", {"content": "<extra_id_0>"}])");
  settings(R"("additional_special_tokens": [], "added_tokens_decoder": {
                "23": {"content": "<extra_id_0>", "special": true}})");
  for (const auto& [more, needle] :
       {std::pair{R"("eos_token": "<end>")", "eos_token: fovea knows '</s>', got '<end>'"},
        {R"("eos_token": {"content": "<pad>"})", "eos_token: fovea knows '</s>', got '<pad>'"},
        {R"("unk_token": "▁c")", "unk_token: fovea knows '<unk>', got '▁c'"},
        {R"("pad_token": "▁c")", "pad_token: '▁c' is no mark of spiece.model"},
        {R"("bos_token": "<s>")", "bos_token: '<s>' is no mark"},
        {R"("additional_special_tokens": ["<extra_id_0>", "<x>"])", "'<x>' is no mark"},
        {R"("extra_special_tokens": {"image": "<x>"})", "'<x>' is no mark"},
        {R"("additional_special_tokens": [])", "the sentinel <extra_id_0> is not there"}}) {
    EXPECT_THROWS(settings(more), kModelWrongKind, needle);
  }
  for (const auto& [more, needle] :
       {std::pair{R"("added_tokens_decoder": [])", "tokenizer_config.json: expected an object"},
        {R"("additional_special_tokens": [5])", "additional_special_tokens: expected names"},
        {R"("added_tokens_decoder": {"3": {"content": "x"}})",
         "spiece.model: the vocabulary: the added token 'x' has the id 3"}}) {
    EXPECT_THROWS(settings(more), kModelDamaged, needle);
  }
  EXPECT_THROWS(
      changed("T5 1.0",
              [](T5Files& f) {
                f.set_pieces(model_bytes(T5Files::pieces(), PieceAlgorithm::kUnigram, ""));
                f.texts["tokenizer_config.json"] = R"({"extra_ids": 1})";
                f.texts["special_tokens_map.json"] = R"({"eos_token": "<end>"})";
              }),
      kModelWrongKind, "special_tokens_map.json: eos_token");
  for (const auto& [id, needle] : {std::pair{kT5Padding, "no piece <pad>"},
                                   {kT5End, "no piece </s>"},
                                   {2, "another unknown piece than the third, <unk>"}}) {
    std::vector<ModelPiece> pieces = T5Files::pieces();
    pieces[static_cast<std::size_t>(id)].text = "<other>";
    EXPECT_THROWS(with_pieces(pieces, R"({"extra_ids": 1})"), kModelWrongKind, needle);
  }
  std::vector<ModelPiece> pieces = T5Files::pieces();
  std::swap(pieces[2], pieces[3]);
  EXPECT_THROWS(with_pieces(pieces, R"({"extra_ids": 1})"), kModelWrongKind, "than the third");
}

}  // namespace
}  // namespace fovea
