# SPDX-License-Identifier: Apache-2.0
"""fovea.transformers beside the attention "eager": small random models, padded, packed, checkpointed, cached."""

import copy
import unittest
import warnings
from unittest import mock

try:
    import torch
    import transformers
except ImportError as error:
    raise unittest.SkipTest(f"{error.name} is not installed: fovea.transformers is not tested") from error

import fovea
import fovea.transformers
from fovea.transformers import _attention, _mask

VOCABULARY = 61
SHARED = {"vocab_size": VOCABULARY, "bos_token_id": 1, "eos_token_id": None, "pad_token_id": 0}
DECODER = {**SHARED, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
           "head_dim": 8, "intermediate_size": 48, "max_position_embeddings": 64}
WINDOW = 6


def gpt2(**more):
    config = transformers.GPT2Config(**{**SHARED, "n_layer": 2, "n_head": 4, "n_embd": 32, "n_positions": 64,
                                        "resid_pdrop": 0, "embd_pdrop": 0, "attn_pdrop": 0, **more})
    return transformers.GPT2LMHeadModel(config)


def opt():
    config = transformers.OPTConfig(**SHARED, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, ffn_dim=48,
                                    word_embed_proj_dim=32, max_position_embeddings=64, dropout=0)
    return transformers.OPTForCausalLM(config)


def gpt_bigcode():
    config = transformers.GPTBigCodeConfig(**SHARED, n_layer=2, n_head=4, n_embd=32, n_positions=64)
    return transformers.GPTBigCodeForCausalLM(config)


def vit():
    config = transformers.ViTConfig(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48,
                                    image_size=16, patch_size=8)
    return transformers.ViTModel(config)


def bert():
    config = transformers.BertConfig(**SHARED, hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
                                     intermediate_size=48, max_position_embeddings=64, hidden_dropout_prob=0,
                                     attention_probs_dropout_prob=0)
    return transformers.BertForMaskedLM(config)


def llama():
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(**DECODER))


def gemma2():
    config = transformers.Gemma2Config(**DECODER, sliding_window=WINDOW, query_pre_attn_scalar=8,
                                       attn_logit_softcapping=2.0)
    return transformers.Gemma2ForCausalLM(config)


def gpt_oss():
    config = transformers.GptOssConfig(**DECODER, sliding_window=WINDOW, num_local_experts=4, num_experts_per_tok=2)
    model = transformers.GptOssForCausalLM(config)
    for layer in model.model.layers:
        torch.nn.init.normal_(layer.self_attn.sinks)
    return model


def t5():
    config = transformers.T5Config(vocab_size=VOCABULARY, d_model=32, d_kv=8, d_ff=48, num_layers=2, num_heads=4,
                                   dropout_rate=0, relative_attention_num_buckets=8, decoder_start_token_id=0,
                                   eos_token_id=None, pad_token_id=0)
    return transformers.T5ForConditionalGeneration(config)


def marian():
    config = transformers.MarianConfig(vocab_size=VOCABULARY, d_model=32, encoder_layers=2, decoder_layers=2,
                                       encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=48,
                                       decoder_ffn_dim=48, max_position_embeddings=64, dropout=0, pad_token_id=0,
                                       eos_token_id=2, decoder_start_token_id=0, forced_eos_token_id=None)
    return transformers.MarianMTModel(config)


DECODERS = {"gpt2": gpt2, "llama": llama, "gemma2": gemma2, "gpt_oss": gpt_oss}
PAIRS = {"t5": t5, "marian": marian}
MODELS = {**DECODERS, "bert": bert, **PAIRS}


def both(make):
    """The same model with the attention "eager" and with ours."""
    torch.manual_seed(0)
    eager = make()
    eager.set_attn_implementation("eager")
    return eager, fovea.transformers.accelerate(copy.deepcopy(eager))


def is_pair(model):
    return model.config.is_encoder_decoder


def padding(side, B=2, T=11):
    """[B, T], the second row with four tokens less."""
    mask = torch.ones(B, T, dtype=torch.int64)
    if side == "right":
        mask[1, -4:] = 0
    if side == "left":
        mask[1, :4] = 0
    return mask


def inputs_of(model, side, B=2, T=11):
    generator = torch.Generator().manual_seed(1)
    if model.main_input_name == "pixel_values":
        return {"pixel_values": torch.randn(B, 3, 16, 16, generator=generator)}
    ids = torch.randint(1, VOCABULARY, (B, T), generator=generator)
    inputs = {"input_ids": ids}
    if side is not None:
        inputs["attention_mask"] = padding(side, B, T)
    if is_pair(model):
        inputs["decoder_input_ids"] = torch.randint(1, VOCABULARY, (B, 7), generator=generator)
        inputs["decoder_attention_mask"] = padding("right", B, 7)
    return inputs


def real_tokens(model, inputs):
    mask = inputs.get("decoder_attention_mask" if is_pair(model) else "attention_mask")
    shape = (inputs["decoder_input_ids"] if is_pair(model) else inputs["input_ids"]).shape
    return torch.ones(shape) if mask is None else mask.float()


def run(model, inputs, real):
    """The logits of real tokens, and all gradients of a loss over them."""
    model.zero_grad()
    more = {} if isinstance(model, transformers.BertForMaskedLM) else {"use_cache": False}
    logits = model(**inputs, **more).logits * real[..., None]
    weights = torch.randn(logits.shape, generator=torch.Generator().manual_seed(2))
    (logits * weights).mean().backward()
    return logits.detach(), {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}


class NoMatrix:
    """Inside, no mask [B, 1, T, S] may be made."""

    def __enter__(self):
        def refuse(*_, **__):
            raise AssertionError("a mask of T x S was made")
        self.patch = mock.patch.object(_mask.masking_utils, "sdpa_mask", refuse)
        self.patch.start()

    def __exit__(self, *_):
        self.patch.stop()


class ModelsTest(unittest.TestCase):
    def assert_same(self, got, expected):
        logits, gradients = expected
        bound = 1e-5 * logits.abs().max()
        self.assertLessEqual((got[0] - logits).abs().max(), bound)
        self.assertEqual(set(got[1]), set(gradients))
        largest = max(gradient.abs().max() for gradient in gradients.values())
        for name, gradient in gradients.items():
            size = max(gradient.abs().max(), 1e-3 * largest)
            self.assertLessEqual((got[1][name] - gradient).abs().max(), 1e-4 * size, name)

    def compare(self, make, inputs_for, prepare=lambda model: model):
        eager, ours = (prepare(model) for model in both(make))
        inputs = inputs_for(eager)
        real = real_tokens(eager, inputs)
        expected = run(eager, inputs, real)
        with NoMatrix():
            self.assert_same(run(ours, inputs, real), expected)

    def test_padded_on_either_side(self):
        for name, make in MODELS.items():
            for side in (None, "right", "left"):
                with self.subTest(model=name, side=side):
                    self.compare(make, lambda model, side=side: inputs_of(model, side))

    def test_labels_after_padding_on_the_left(self):
        """The last row of padding predicts the first token: "eager" alone has a mean of values there."""
        torch.manual_seed(0)
        model, mask = llama(), padding("left")
        ids = torch.randint(1, VOCABULARY, mask.shape)
        labels = ids.masked_fill(mask == 0, -100)
        without_first = labels.masked_fill(mask.cumsum(1) == 1, -100)

        def loss_of(attention, labels):
            model.set_attn_implementation(attention)
            return model(ids, attention_mask=mask, labels=labels).loss.item()
        eager, sdpa, ours = ([loss_of(name, one) for one in (labels, without_first)]
                             for name in ("eager", "sdpa", "fovea"))
        self.assertAlmostEqual(ours[0], sdpa[0], 5)
        self.assertGreater(abs(ours[0] - eager[0]), 1e-4)
        for loss in (eager[1], sdpa[1]):
            self.assertAlmostEqual(ours[1], loss, 5)

    def test_packed(self):
        for name, make in DECODERS.items():
            with self.subTest(model=name):
                def packed(model):
                    ids = inputs_of(model, None, B=1, T=15)["input_ids"]
                    positions = torch.cat([torch.arange(n) for n in (4, 9, 2)])[None]
                    return {"input_ids": ids, "position_ids": positions}
                self.compare(make, packed)

    def test_checkpointed(self):
        def checkpointed(model):
            model.train()
            model.gradient_checkpointing_enable()
            return model
        for name, make in MODELS.items():
            with self.subTest(model=name):
                self.compare(make, lambda model: inputs_of(model, "right"), checkpointed)

    def test_checkpointing_repeats_dropout(self):
        _, model = both(lambda: gpt2(attn_pdrop=0.3))
        model.train()
        inputs = inputs_of(model, "left")
        results = []
        for checkpointed in (False, True):
            if checkpointed:
                model.gradient_checkpointing_enable()
            torch.manual_seed(7)
            results.append(run(model, inputs, real_tokens(model, inputs)))
        torch.manual_seed(8)
        other = run(model, inputs, real_tokens(model, inputs))
        self.assert_same(results[1], results[0])
        self.assertGreater((other[0] - results[0][0]).abs().max(), 1e-3)

    def test_greedy_generation_with_both_caches(self):
        for name, make in {**DECODERS, **PAIRS}.items():
            eager, ours = (model.eval() for model in both(make))
            for side, cache in (("none", "dynamic"), ("left", "dynamic"), ("left", "static")):
                with self.subTest(model=name, side=side, cache=cache):
                    inputs = {key: value for key, value in inputs_of(eager, side).items() if "decoder" not in key}
                    options = {"max_new_tokens": 7, "do_sample": False, "cache_implementation": cache}
                    expected = eager.generate(**inputs, **options)
                    with NoMatrix():
                        self.assertEqual(ours.generate(**inputs, **options).tolist(), expected.tolist())

    def test_chunks_of_a_prompt(self):
        """Several queries behind what a cache holds."""
        eager, ours = (model.eval() for model in both(gemma2))
        ids = inputs_of(eager, None)["input_ids"]
        with torch.no_grad():
            expected = eager(ids).logits[:, 4:]
            cached = ours(ids[:, :4], use_cache=True)
            with NoMatrix():
                got = ours(ids[:, 4:], past_key_values=cached.past_key_values).logits
        torch.testing.assert_close(got, expected, rtol=1e-5, atol=1e-5)

    def test_low_precision(self):
        _, ours = both(gemma2)
        inputs = inputs_of(ours, "left")
        with torch.autocast("cpu", torch.bfloat16):
            logits = ours(**inputs).logits
        wide = ours(**inputs).logits
        self.assertLess((logits.float() - wide).abs().max(), 0.05 * wide.abs().max())
        ours.to(torch.bfloat16)
        self.assertEqual(ours(**inputs).logits.dtype, torch.bfloat16)

    def test_weights(self):
        for name, make in {**DECODERS, "bert": bert, "opt": opt, "gpt_bigcode": gpt_bigcode, "vit": vit}.items():
            eager, ours = (model.eval() for model in both(make))
            inputs = inputs_of(eager, "right")
            with self.subTest(model=name), torch.no_grad():
                expected = eager(**inputs, output_attentions=True).attentions
                got = ours(**inputs, output_attentions=True).attentions
                self.assertEqual(len(got), eager.config.num_hidden_layers)
                for a, b in zip(got, expected, strict=True):
                    torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-6)

    def test_by_name(self):
        config = transformers.LlamaConfig(**DECODER, attn_implementation="fovea")
        with mock.patch.object(_attention, "attend", side_effect=_attention.attend) as called:
            model = transformers.LlamaForCausalLM(config)
            model(**inputs_of(model, "left"))
        self.assertEqual(called.call_count, 2)


class MaskTest(unittest.TestCase):
    def config(self, **more):
        return transformers.LlamaConfig(**DECODER, attn_implementation="fovea", **more)

    def test_it_says_what_the_matrix_says(self):
        """The weights that the parts keep are those that the matrix of `sdpa` keeps."""
        torch.manual_seed(0)
        embeds = torch.zeros(2, 9, 32)
        masks = [None, padding("left", T=9), padding("right", T=9), torch.rand(2, 9) < 0.6]
        makers = [masking(name, **more) for name, more in (
            ("create_causal_mask", {}), ("create_sliding_window_causal_mask", {"sliding_window": 3}),
            ("create_bidirectional_mask", {}), ("create_bidirectional_sliding_window_mask", {"sliding_window": 2}))]
        for make in makers:
            for mask in masks:
                lazy = make(self.config, embeds, mask)
                if make is makers[2] and mask is None:
                    self.assertIsNone(lazy, "all keys")
                    continue
                self.assertIsInstance(lazy, _mask.Mask)
                self.assert_keeps(lazy)

    def assert_keeps(self, mask):
        B, _, T, S = mask.shape
        q, k = torch.zeros(B, 1, T, 2), torch.zeros(B, 1, S, 2)
        parts, seen = _attention._mask_parts(mask, T, S, False, None)
        attended = fovea.torch.attend(q.transpose(1, 2), k[:, :, :seen].transpose(1, 2), k[:, :, :seen].transpose(1, 2),
                                      observe="weights", **parts)
        kept = torch.nn.functional.pad(attended.weights > 0, (0, S - seen))
        self.assertTrue(torch.equal(kept, mask.dense().expand(B, 1, T, S)), (mask, parts))

    def test_what_computes_with_it_gets_the_matrix(self):
        mask = masking("create_causal_mask")(self.config, torch.zeros(2, 9, 32), padding("left", T=9))
        dense = mask.dense()
        self.assertTrue(torch.equal(mask & True, dense))
        self.assertTrue(torch.equal(mask[:, :, :5], dense[:, :, :5]))
        self.assertIsInstance(mask.detach(), _mask.Mask)
        self.assertIn("causal", repr(mask))

    def test_functions_that_are_not_known_make_a_matrix(self):
        seen = []

        def odd_keys(b, h, q, k):
            seen.append(1)
            return k % 2 == 1
        mask = masking("create_causal_mask")(self.config, torch.zeros(2, 9, 32), None, and_mask_function=odd_keys)
        self.assertEqual(list(mask.parts), ["keep"])
        self.assertTrue(seen)
        expected = torch.ones(9, 9).tril().bool() & (torch.arange(9) % 2 == 1)
        self.assertTrue(torch.equal(mask[0, 0], expected))


def masking(name, **of_config):
    def make(config, embeds, mask, **more):
        arguments = {"config": config(**of_config), "inputs_embeds": embeds, "attention_mask": mask, **more}
        if "bidirectional" not in name:
            arguments["cache"] = None
        return getattr(_mask.masking_utils, name)(**arguments)
    return make


class AccelerateTest(unittest.TestCase):
    def test_it_returns_the_model(self):
        model = llama()
        self.assertIs(fovea.transformers.accelerate(model), model)
        self.assertEqual(model.config._attn_implementation, "fovea")

    def test_models_that_never_ask_are_errors_by_name_too(self):
        """BLOOM would add our mask of bools to its scores."""
        bloom = {"vocab_size": VOCABULARY, "hidden_size": 16, "n_layer": 1, "n_head": 2}
        falcon = {"vocab_size": VOCABULARY, "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
        for model, config in ((transformers.BloomModel, transformers.BloomConfig(**bloom)),
                              (transformers.FalconModel, transformers.FalconConfig(**falcon))):
            with self.assertRaisesRegex(fovea.UsageError, f'"fovea": {model.__name__} has .*\n.*"eager"'):
                transformers.AutoModel.from_config(config, attn_implementation="fovea")
            for theirs in ("eager", None):
                transformers.AutoModel.from_config(config, attn_implementation=theirs)

    def test_a_model_that_asks_in_part_and_adds_masks_itself_is_right_and_named(self):
        """The vision of GIT asks for an attention by name, its text does not."""
        vision = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 1, "num_attention_heads": 4,
                  "image_size": 16, "patch_size": 8}
        config = transformers.GitConfig(vocab_size=VOCABULARY, hidden_size=32, num_hidden_layers=1, num_attention_heads=4,
                                        intermediate_size=48, vision_config=vision)
        eager, ours = (model.eval() for model in both(lambda: transformers.GitForCausalLM(config)))
        inputs = {"input_ids": torch.ones(2, 5, dtype=torch.int64), "attention_mask": padding("right", T=5)}
        for more in ({}, {"pixel_values": torch.ones(2, 3, 16, 16)}):
            with self.assertWarnsRegex(UserWarning, "GitSelfAttention adds its mask to scores itself"):
                got = ours(**inputs, **more).logits
            torch.testing.assert_close(got, eager(**inputs, **more).logits, rtol=1e-5, atol=1e-6)

    def test_what_is_made_of_a_mask_is_added_as_one(self):
        """Informer adds rows of its mask to the scores of the queries that it chooses."""
        config = transformers.InformerConfig(prediction_length=4, context_length=8, lags_sequence=[1, 2], d_model=16,
                                             encoder_layers=1, decoder_layers=1)
        eager, ours = (model.eval() for model in both(lambda: transformers.InformerModel(config)))
        of_time = {"past_time_features": torch.zeros(2, 10, 0), "future_time_features": torch.zeros(2, 4, 0)}
        inputs = {"past_values": torch.randn(2, 10), "past_observed_mask": torch.ones(2, 10),
                  "future_values": torch.randn(2, 4), **of_time}
        expected = eager(**inputs).last_hidden_state
        with self.assertWarnsRegex(UserWarning, "InformerProbSparseAttention adds its mask"):
            got = ours(**inputs).last_hidden_state
        torch.testing.assert_close(got, expected, rtol=1e-5, atol=1e-5)

    def test_a_bias_of_positions_is_no_mask(self):
        config = transformers.BeitConfig(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48,
                                         image_size=16, patch_size=8, use_relative_position_bias=True)
        eager, ours = (model.eval() for model in both(lambda: transformers.BeitModel(config)))
        for model in (eager, ours):
            for name, parameter in model.named_parameters():
                if "relative_position_bias_table" in name:
                    torch.nn.init.normal_(parameter, generator=torch.Generator().manual_seed(3))
        pictures = torch.ones(2, 3, 16, 16)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            got = ours(pictures).last_hidden_state
        torch.testing.assert_close(got, eager(pictures).last_hidden_state, rtol=1e-5, atol=1e-5)

    def test_models_that_never_ask_are_named(self):
        model = transformers.BloomModel(transformers.BloomConfig(vocab_size=VOCABULARY, hidden_size=16, n_layer=1, n_head=2))
        with self.assertRaisesRegex(fovea.UsageError, "accelerate: BloomModel has an attention of its own"):
            fovea.transformers.accelerate(model)
        with self.assertRaisesRegex(fovea.UsageError, "got Linear"):
            fovea.transformers.accelerate(torch.nn.Linear(1, 1))


if __name__ == "__main__":
    unittest.main()
