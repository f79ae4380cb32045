# SPDX-License-Identifier: Apache-2.0
"""The pages of docs/articles beside the articles' own code, as article_code.py tells it again: what the pages
compute is what the articles compute, where they are right, and each defect is shown by its number."""

import importlib.util
import json
import math
import pathlib
import sys
import tempfile
import unittest

import numpy as np
import support

import fovea

HAS_TORCH = importlib.util.find_spec("torch") is not None
if HAS_TORCH:
    import torch

    sys.path.append(str(support.ROOT / "bench"))
    import article_code as article
    import sources as chapter

NEEDS_TORCH = "PyTorch, with which the articles' code is told again, is not installed"


def normal(*shape, seed=0, dtype=np.float64):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def in_torch(*arrays):
    return [torch.tensor(x) for x in arrays]


def by_head(x):
    """[B, T, H, D] of fovea as the [B, H, T, D] of the articles."""
    return torch.tensor(x).transpose(1, 2)


@unittest.skipUnless(HAS_TORCH, NEEDS_TORCH)
class Articles(unittest.TestCase):
    """What the variables of each page hold after its code has run."""

    def page(self, name):
        return support.run_page(self, f"docs/articles/{name}.md", commands=True)

    def equal(self, got, expected, error=1e-6):
        got = got.detach().numpy() if hasattr(got, "detach") else np.asarray(got)
        np.testing.assert_allclose(got, expected.detach().numpy(), rtol=0, atol=error)

    def test_self_attention(self):
        page = self.page("self-attention")
        drop = article.get_attn_pad_mask(*in_torch(page["ids"], page["ids"]))
        self.equal(np.broadcast_to(page["attn_mask"][:, 0], drop.shape), drop)
        context = article.self_attention(*map(by_head, (page["Q"], page["K"], page["V"])), drop[:, None])
        self.equal(page["context"].swapaxes(1, 2), context)
        self.equal(page["out"], context)
        weights = in_torch(page["W_Q"], page["W_K"], page["W_V"], page["fc"])
        output = article.multi_head_attention(torch.tensor(page["x"]), drop, weights, page["n_heads"])
        self.equal(page["output"], output)

    def test_transformer_3(self):
        page = self.page("transformer-3")
        causal = torch.ones(1, 1, 3, 3).tril()
        parts = [by_head(page[name]) for name in ("query", "key", "value")]
        out, weights = article.attention(*parts, causal, dropout=None)
        self.equal(page["out"].swapaxes(1, 2), out)
        self.equal(page["attention_score"], weights)
        layer = article.MultiHeadedAttention(2, 8).eval()
        for n, projection in enumerate(layer.proj_weights):
            projection.weight.data, projection.bias.data = torch.tensor(page["W"][n].T), torch.tensor(page["b"][n])
        x = torch.tensor(page["x"])
        self.equal(page["y"], layer(x, x, x, causal[0]))
        self.equal(page["torch_out"].transpose(1, 2).flatten(2) @ layer.proj_weights[3].weight.T
                   + layer.proj_weights[3].bias, layer(x, x, x, causal[0]))

    def test_the_demo_of_transformer_3_is_that_of_pytorch(self):
        torch.manual_seed(0)
        x = torch.rand(6, 3, 8)
        layer = article.MultiHeadedAttention(2, 8).eval()
        found = self.demo("transformer-3")
        self.equal(np.reshape(found["output"], (6, 3, 8)), layer(x, x, x, torch.ones(1, 3, 3).tril()), 1e-6)
        self.equal(np.reshape(found["weights"], (2, 3, 3)), layer.attention_score[0], 1e-6)

    def test_the_demo_of_the_padding_mask_is_that_of_pytorch(self):
        torch.manual_seed(0)
        Q, K, V = (torch.rand(2, 5, 64) for _ in range(3))
        mask = torch.tensor([[1, 1, 1, 0, 0], [1, 1, 1, 1, 0]]).bool()
        found = self.demo("padding-mask")
        self.equal(np.reshape(found["output"], (2, 5, 64)), article.padding_mask_attention(Q, K, V, mask), 1e-6)

    def demo(self, name):
        done = support.fovea("demo", name, "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def test_padding_mask(self):
        page = self.page("padding-mask")
        expected = article.padding_mask_attention(*(torch.tensor(page[name][:, :, 0]) for name in "QKV"),
                                                  torch.tensor(page["mask"]))
        self.equal(page["output"][:, :, 0], expected)
        self.equal(page["out"][:, 0], expected)
        poisoned = article.padding_mask_attention(*(torch.tensor(page[name][:, :, 0]) for name in ("Q", "K", "poisoned")),
                                                  torch.tensor(page["mask"]))
        self.assertTrue(poisoned[0].isnan().all())  # what the page says of PyTorch

    def test_attention_is_all_you_need(self):
        page = self.page("attention-is-all-you-need")
        W = in_torch(page["WQ"], page["WK"], page["WV"])
        X, question, PE = in_torch(page["X"], page["question"], page["PE"])
        layer = article.KerasAttention(W, 8)
        flat = lambda name: page[name].reshape(2, 7, 128)
        self.equal(flat("Y"), layer(X, X, X))
        self.equal(flat("torch_Y"), layer(X, X, X))
        self.equal(flat("unscaled"), article.KerasAttention(W, 8, scaled=False)(X, X, X))
        self.equal(flat("aligned"), layer(X, question, question))
        self.equal(page["PE"], article.sin_cos_position_embedding(7, 128))
        self.equal(flat("with_positions"), layer(X + PE, X + PE, X + PE))
        valid = (torch.arange(7) < torch.tensor([[7], [4]])).double()
        self.equal(flat("by_lengths"), layer(X, X, X, valid))
        q, k, v = (by_head(page[name]) for name in "qkv")
        cosine = torch.nn.functional.normalize(q, dim=-1) @ torch.nn.functional.normalize(k, dim=-1).mT
        self.equal(page["plain"].swapaxes(1, 2), cosine @ v)
        self.equal(page["cosine"].swapaxes(1, 2), torch.softmax(8 * cosine, -1) @ v)
        near = (torch.arange(7)[:, None] - torch.arange(7)).abs() <= 2
        self.equal(page["restricted"].o.reshape(2, 7, 128), article.KerasAttention(W, 8, near.double())(X, X, X))

    def test_bojone_attention(self):
        page = self.page("bojone-attention")
        W = in_torch(page["WQ"], page["WK"], page["WV"])
        x, mask = torch.tensor(page["x"]), torch.tensor(page["x_mask"]).double()
        flat = lambda name: page[name].reshape(2, 12, 128)
        self.equal(flat("o"), article.KerasAttention(W, 8)(x, x, x, mask, mask))
        causal = article.KerasAttention(W, 8, mask_right=True)(x, x, x)
        self.equal(flat("causal"), causal)
        self.equal(flat("torch_o"), causal)
        self.equal(flat("matrix"), article.KerasAttention(W, 8, torch.ones(12, 12).tril())(x, x, x))
        inside = slice(3, -3)  # at the ends the code reads zeros: D21
        self.equal(flat("local")[:, inside], article.local_self_attention(x, W, 8, 1)[:, inside])
        self.equal(flat("dilated")[:, inside], article.local_self_attention(x, W, 8, 1, 3)[:, inside])
        self.equal(flat("before")[:, inside], article.local_self_attention(x, W, 8, 1, causal=True)[:, inside])
        self.equal(page["pv"], article.sin_cos_position_embedding(12, 128))
        apart = torch.arange(12)[:, None] - torch.arange(12)
        for name, keep in (("atrous", apart % 3 == 0), ("sparse", (apart % 3 == 0) | (apart.abs() < 3))):
            self.equal(flat(name), article.KerasAttention(W, 8, keep.double())(x, x, x))
        self.equal(page["torch_sparse"], torch.tensor(page["sparse"]))
        self.equal(page["torch_local"], torch.tensor(page["local"]))

    def test_language_models(self):
        page = self.page("language-models")
        h = torch.tensor(page["h"])
        for t in range(h.shape[1]):
            self.equal(page["attention_hiddens"][:, t], article.attention_rnn_step(h[:, t], h[:, :t + 1], False, 2))
            first = max(0, t - 3)
            self.equal(page["last_four"][:, t], article.attention_rnn_step(h[:, t], h[:, first:t + 1], False, 2))
        q, k, v = (by_head(page[name]) for name in "qkv")
        flat = [x.flatten(0, 1) for x in (q, k, v)]
        mask = torch.ones(6, 6).tril().expand(8, -1, -1)
        heads = article.scaled_dot_product_attention(*flat, mask).unflatten(0, (2, 4)).transpose(1, 2).flatten(2)
        self.equal(page["heads"], heads @ torch.tensor(page["W"][3]) + torch.tensor(page["b"][3]))
        tables = in_torch(page["a_k"], page["a_v"])
        for n in range(8):
            expected = article.relative_attention(*(x[n] for x in flat), *tables, 2)
            self.equal(page["relative"].o[n // 4, :, n % 4], expected)


SENTENCES = "the little prince sees a fox\nthe fox sees a rose and the rose sees the prince\n" * 8


@unittest.skipUnless(HAS_TORCH, NEEDS_TORCH)
class Models(unittest.TestCase):
    """Models that fovea has trained: with their weights, the articles' code says the same."""

    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)

    def check_language_model(self, body, names, **options):
        """`names` says which parameters of fovea those of the chapter's model are."""
        text = self.folder / "text.txt"
        text.write_text(SENTENCES)
        model = fovea.LanguageModel.train(text, self.folder / "model", preset="source", init="source", lr=0.01,
                                          batch_size=4, stop_after="20u", **options)
        weights = {name: torch.tensor(np.array(value)) for name, value in model.weights().items()}
        own = {"tokens.weight": weights["embedding.tokens"], "output.weight": weights["output.weight"],
               "output.bias": weights["output.bias"]}
        retold = chapter.LanguageModel(body, len(own["tokens.weight"]))
        retold.load_state_dict({**own, **{f"body.{name}": value for name, value in names(weights).items()}})
        ids = model.encode("the rose sees a little prince and a fox")
        logits = model.logits(ids)
        self.assertGreater(np.ptp(logits), 1)
        np.testing.assert_allclose(logits, retold(torch.tensor([ids]))[0].detach(), atol=2e-5)

    @staticmethod
    def projections(weights, prefix):
        """q, k, v and c of the chapter."""
        found = {}
        for part in ("weight", "bias"):
            for name, value in zip("qkv", weights[f"{prefix}.qkv.{part}"].chunk(3)):
                found[f"{name}.{part}"] = value
            found[f"c.{part}"] = weights[f"{prefix}.out.{part}"]
        return found

    def attention_rnn(self, weights):
        layer = "encoder.0.attention_rnn"
        names = {"W_xh": weights[f"{layer}.weight_ih_l0"].T, "W_hh": weights[f"{layer}.weight_hh_l0"].T,
                 "b_h": weights[f"{layer}.bias_l0"]}
        return names | (self.projections(weights, layer) if f"{layer}.qkv.weight" in weights else {})

    def test_attention_rnns_of_the_chapter(self):
        for heads in (1, 4):
            for fixed, options in ((False, {"compat": "all"}), (True, {})):
                with self.subTest(heads=heads, fixed=fixed):
                    self.check_language_model(chapter.AttentionRnn(heads, fixed), self.attention_rnn, overwrite=True,
                                              model="attention-rnn", heads=heads, position="none", **options)

    def transformer(self, weights):
        norms = [f"blocks.0.{part}_norm" for part in ("attention", "feed_forward")]
        gain = self.gain
        return {"positions.weight": weights["embedding.positions"],
                **self.projections(weights, "blocks.0.attention"),
                **{f"up.{part}": weights[f"blocks.0.feed_forward.in.{part}"] for part in ("weight", "bias")},
                **{f"down.{part}": weights[f"blocks.0.feed_forward.out.{part}"] for part in ("weight", "bias")},
                **{f"norms.{n}.{gain}": weights[f"{name}.weight"] for n, name in enumerate(norms)},
                **{f"norms.{n}.bias": weights[f"{name}.bias"] for n, name in enumerate(norms)}}

    def test_the_transformer_of_the_chapter(self):
        for fixed, gain, variant in ((False, "gain", "unbiased"), (True, "weight", "standard")):
            with self.subTest(fixed=fixed):
                self.gain = gain
                self.check_language_model(chapter.Transformer(fixed), self.transformer, overwrite=True,
                                          ln_variant=variant)

    def test_the_classifier_of_su(self):
        """Embedding, positions, Attention(8,16), the mean, Dense(1): probabilities."""
        for scaled, position in ((True, "none"), (False, "sinusoidal")):
            encoder = "attention:heads=8:head-dim=16:no-output:plain" + ("" if scaled else ":scale=1")
            classifier = fovea.Classifier(encoder=encoder, init="keras", position=position, embedding_scale=1, lr=0.01,
                                          encoder_dropout=0.0, stop_after="20u", min_count=1)
            classifier.fit(["a fine film", "a dull film", "never dull and fine", "fine and never dull"] * 4, [1, 0, 1, 1] * 4)
            folder = self.folder / f"classifier-{position}"
            classifier.save(folder)
            weights = {name: torch.tensor(np.array(value)) for name, value in
                       support.read_safetensors(folder / "model.safetensors").items()}
            words = (folder / "vocab.txt").read_text().splitlines()
            ids = [words.index(word) for word in "never dull fine film".split()]
            x = weights["embedding.tokens"][ids][None]
            if position == "sinusoidal":
                x = x + article.sin_cos_position_embedding(len(ids), 128).float()
            projections = [W.T for W in weights["encoder.0.attention.qkv.weight"].chunk(3)]
            pooled = article.KerasAttention(projections, 8, scaled=scaled)(x, x, x).mean(1)
            logit = pooled @ weights["output.weight"].T + weights["output.bias"]
            with self.subTest(position=position):
                found = classifier.predict_proba(["never dull fine film"])[0, list(classifier.classes_).index(1)]
                self.assertAlmostEqual(found, torch.sigmoid(logit).item(), places=5)


@unittest.skipUnless(HAS_TORCH, NEEDS_TORCH)
class Defects(unittest.TestCase):
    """Each shows what the article's code computes, and what fovea computes instead."""

    def test_d1_a_finite_number_lets_padding_in(self):
        Q, K, V = normal(3, 1, 4, 1, 8)
        drop = np.ones((1, 1, 1, 4), bool)
        wrong = article.self_attention(*map(by_head, (Q, K, V)), torch.tensor(drop))
        np.testing.assert_allclose(wrong[0, 0], V[0, :, 0].mean(0, keepdims=True).repeat(4, 0), atol=1e-12)
        right = fovea.attend(Q, K, V, drop=drop)
        self.assertTrue((right.o == 0).all() and np.isneginf(right.lse).all())
        self.assertTrue(all((g == 0).all() for g in right.backward(np.ones_like(right.o)).values()))
        with self.assertRaisesRegex(RuntimeError, "overflow"):
            torch.zeros(2, dtype=torch.float16).masked_fill(torch.tensor([True, False]), -1e9)

    def test_d2_no_finite_number_is_infinity(self):
        q, k, v = in_torch(*normal(3, 1, 4, 8, dtype=np.float32))
        nothing = torch.zeros(4, 4)
        mean = v.mean(1, keepdim=True).expand(-1, 4, -1)
        scores = q @ k.mT / math.sqrt(8)
        for constant, wrong in (
                (-1e10, article.attention(q, k, v, nothing, None)[0]),
                (-1e6, article.scaled_dot_product_attention(q, k, v, nothing)),
                (-1e10, torch.softmax(article.to_mask(scores, nothing[None, :, 0], "add"), -1) @ v),
                (-1e12, torch.softmax(article.tf_mask(scores, torch.tensor([0]), "add"), -1) @ v)):
            torch.testing.assert_close(wrong, mean, atol=1e-5, rtol=0, msg=str(constant))
        keep = np.zeros((1, 1, 1, 4), bool)
        self.assertTrue((fovea.attention(*(x[:, :, None].numpy() for x in (q, k, v)), keep=keep) == 0).all())

    def test_d3_the_same_mask_means_the_opposite(self):
        Q, K, V = normal(3, 1, 5, 1, 8)
        mask = np.array([[True, True, True, False, False]])
        q, k, v = (torch.tensor(x[:, :, 0]) for x in (Q, K, V))
        kept = article.padding_mask_attention(q, k, v, torch.tensor(mask))
        dropped = article.self_attention(q, k, v, torch.tensor(mask)[:, None])
        self.assertGreater((kept - dropped).abs().max(), 0.1)
        for name, expected in (("keep", kept), ("drop", dropped)):
            got = fovea.attention(Q, K, V, **{name: mask[:, None, None]})[:, :, 0]
            np.testing.assert_allclose(got, expected, atol=1e-12)

    def test_d4_infinity_is_not_multiplied(self):
        S, M = torch.tensor([0.3, -0.2, 0.7]), torch.tensor([1.0, 1.0, 0.0])
        told = S + M * -math.inf  # the formula
        self.assertTrue(told[:2].isneginf().all() and told[2].isnan())
        done = torch.where(M == 1, S, -math.inf)  # the code
        self.assertEqual(torch.softmax(done, 0)[2], 0)

    def test_d5_scores_are_scaled_once(self):
        Q, K, V = normal(3, 1, 5, 1, 64)
        S = by_head(Q) @ by_head(K).mT / 8
        once, twice = torch.softmax(S, -1), torch.softmax(S / 8, -1)
        weights = fovea.attend(Q, K, V, observe="weights").weights
        np.testing.assert_allclose(weights, once, atol=1e-12)
        self.assertLess((twice - 0.2).abs().max(), 0.2 * (once - 0.2).abs().max())

    def test_d6_padded_queries_have_outputs(self):
        Q, K, V = normal(3, 2, 5, 1, 64)
        valid = np.arange(5) < np.array([[3], [4]])
        wrong = article.padding_mask_attention(*(torch.tensor(x[:, :, 0]) for x in (Q, K, V)), torch.tensor(valid))
        self.assertTrue((wrong[0, 3:] != 0).all())
        lengths = np.array([3, 4], np.int32)
        right = fovea.attend(Q, K, V, key_lengths=lengths, query_lengths=lengths)
        self.assertTrue((right.o[0, 3:] == 0).all() and (right.o[1, 4:] == 0).all())
        self.assertTrue((right.backward(np.ones_like(right.o))["dq"][0, 3:] == 0).all())

    def test_d7_sizes_belong_to_the_call(self):
        q, k = normal(2, 2, 5, 4, 8)
        v = normal(2, 5, 4, 3)
        a = fovea.attend(q, k, v, drop=np.zeros((2, 1, 1, 5), bool), observe="weights")
        self.assertEqual((a.o.shape, a.weights.shape), ((2, 5, 4, 3), (2, 4, 5, 5)))
        drop = article.get_attn_pad_mask(*[torch.zeros(2, 5)] * 2)
        self.assertEqual(drop[:, None].repeat(1, 4, 1, 1).numel(), 4 * drop.numel())  # a copy for each head

    def test_d8_rows_and_columns(self):
        x, W = in_torch(normal(5, 8), normal(8, 6))
        with self.assertRaises(RuntimeError):
            W @ x  # the text, with the shapes of the code
        torch.testing.assert_close((W.T @ x.T).T, x @ W)

    def test_d9_a_number_is_called(self):
        parts = in_torch(*normal(3, 1, 2, 3, 4))
        with self.assertRaises(TypeError):
            article.attention(*parts)
        x = normal(1, 3, 2, 4)
        self.assertEqual(fovea.attention(x, x, x, dropout=0.1).shape, x.shape)

    def test_d10_copies_make_symmetric_scores(self):
        layer = article.MultiHeadedAttention(1, 8)
        x = torch.randn(5, 8)
        scores = layer.proj_weights[0](x) @ layer.proj_weights[1](x).T
        torch.testing.assert_close(scores, scores.T)
        with tempfile.TemporaryDirectory() as folder:
            text = pathlib.Path(folder) / "text.txt"
            text.write_text("the cat sees the moon\n" * 20)
            model = fovea.LanguageModel.train(text, pathlib.Path(folder) / "model", layers=1, heads=1, width=8, block=8,
                                              stop_after="1u")
            joint = next(w for name, w in model.weights().items() if name.endswith("qkv.weight"))
        q, k, v = np.split(joint, 3)
        for a, b in ((q, k), (q, v), (k, v)):
            self.assertGreater(np.abs(a - b).max(), 0.01)

    def test_d11_weights_after_dropout(self):
        torch.manual_seed(1)
        layer = article.MultiHeadedAttention(2, 8, dropout=0.5)
        x = torch.randn(2, 6, 8)
        layer(x, x, x)
        self.assertGreater((layer.attention_score.sum(-1) - 1).abs().max(), 0.1)
        self.assertTrue(layer.attention_score.requires_grad)  # and holds the graph
        q = normal(2, 6, 2, 4)
        plain, dropped = (fovea.attend(q, q, q, dropout=p, observe="weights") for p in (0.0, 0.5))
        np.testing.assert_array_equal(plain.weights, dropped.weights)
        np.testing.assert_allclose(dropped.weights.sum(-1), 1)

    def test_d12_scores_know_no_values(self):
        q, k, v = normal(3, 1, 4, 1, 8)
        weights = [fovea.attend(q, k, values, observe="weights").weights for values in (v, v + 3)]
        np.testing.assert_array_equal(*weights)
        with self.assertRaises(AssertionError):
            np.testing.assert_array_equal(weights[0], fovea.attend(q, k + q, v, observe="weights").weights)

    def test_d13_every_weight_is_one(self):
        h = torch.tensor(normal(3, 7, 16)).requires_grad_()
        query = torch.tensor(normal(3, 16, seed=1)).requires_grad_()
        wrong = article.attention_rnn_step(query, h)
        torch.testing.assert_close(wrong, h.sum(1))
        wrong.sum().backward()
        self.assertTrue((query.grad == 0).all())
        right = fovea.attention(query.detach().numpy()[:, None, None], *[h.detach().numpy()[:, :, None]] * 2)
        np.testing.assert_allclose(right[:, 0, 0], article.attention_rnn_step(query, h, dim=2).detach(), atol=1e-12)

    def test_d14_the_output_does_not_know_its_word(self):
        torch.manual_seed(0)
        x = torch.randn(2, 6, chapter.WIDTH)
        other = x.clone()
        other[:, 3] += 1
        for fixed, first in ((False, 4), (True, 3)):
            rnn = chapter.AttentionRnn(1, fixed)
            rnn.W_xh.data *= 20
            changed = (rnn(x) != rnn(other)).any(-1).any(0)
            self.assertEqual(int(changed.int().argmax()), first)

    def test_d15_the_state_is_the_attention(self):
        W_xh, W_hh = in_torch(*normal(2, 16, 16) / 4)
        x = torch.tensor(normal(8, 2, 16))
        zero = torch.zeros(2, 16, dtype=torch.float64)
        whole, _ = article.attention_rnn(x, zero, W_xh, W_hh)
        first, state = article.attention_rnn(x[:4], zero, W_xh, W_hh)
        second, _ = article.attention_rnn(x[4:], state, W_xh, W_hh)
        self.assertGreater((torch.cat([first, second]) - whole).abs().max(), 0.1)
        with self.assertRaises(UnboundLocalError):
            article.attention_rnn(x[:1], zero, W_xh, W_hh)

    def test_d16_a_batch_of_one_loses_its_axis(self):
        h = torch.tensor(normal(1, 7, 16))
        self.assertEqual(article.attention_rnn_step(h[:, 0], h).shape, (16,))
        parts = [article.attention_rnn_step(h[:, 0, :4], h[..., :4]) for _ in range(4)]
        with self.assertRaises(IndexError):
            torch.cat(parts, dim=1)
        self.assertEqual(1104 % 16, 0)
        self.assertEqual(fovea.attention(*[h[:, :, None].numpy()] * 3).shape, (1, 7, 1, 16))

    def test_d17_the_history_is_projected_again(self):
        rnn = chapter.AttentionRnn(4, False)
        rows = []
        rnn.k.register_forward_hook(lambda layer, given, _: rows.append(given[0].shape[1]))
        rnn(torch.randn(1, 10, chapter.WIDTH))
        self.assertEqual(sum(rows), 45)  # 1 + 2 + ... + 9, where 10 are enough

    def test_d18_the_norm_of_equal_numbers(self):
        x = torch.tensor(normal(3, 128))
        ratio = article.unbiased_layer_norm(x) / torch.nn.functional.layer_norm(x, [128], eps=0)
        torch.testing.assert_close(ratio, torch.full_like(x, 0.99609), atol=1e-5, rtol=0)
        equal = torch.ones(1, 8, dtype=torch.float64, requires_grad=True)
        article.unbiased_layer_norm(equal)[0, 0].backward()
        self.assertGreater(equal.grad.abs().max(), 8e5)  # 1 / eps
        root = torch.zeros(1, dtype=torch.float64, requires_grad=True)
        root.square().sqrt().backward()  # where the deviation is written out, it is 0 / 0
        self.assertTrue(root.grad.isnan())

    def test_d19_one_sentence_is_no_measure(self):
        """What the Transformer of the chapter says of one sentence differs from sentence to sentence."""
        torch.manual_seed(0)
        model = chapter.LanguageModel(chapter.Transformer(False), 50)
        losses = []
        for length in (3, 10, 38):
            ids = torch.zeros(1, 40, dtype=torch.long)
            ids[0, :length] = torch.randint(2, 50, (length,))
            logits = model(ids)[0, :-1]
            losses.append(torch.nn.functional.cross_entropy(logits, ids[0, 1:], ignore_index=0).item())
        self.assertGreater(max(losses) - min(losses), 0.1)

    def test_d20_the_default_makes_a_mean(self):
        x = torch.tensor(normal(2, 6, 8, dtype=np.float32))
        W = in_torch(*normal(3, 8, 8, dtype=np.float32, seed=1))
        wrong = article.KerasAttention(W, 2, mask_right=False)(x, x, x)
        torch.testing.assert_close(wrong, (x @ W[2]).mean(1, keepdim=True).expand(-1, 6, -1))
        q, k, v = ((x @ w).view(2, 6, 2, 4).numpy() for w in W)
        right = fovea.attention(q, k, v).reshape(2, 6, 8)
        expected = article.KerasAttention(W, 2)(x, x, x).numpy()
        np.testing.assert_allclose(right, expected, atol=1e-5)
        self.assertGreater(np.abs(right - wrong.numpy()).max(), 0.1)

    def test_d21_zeros_beyond_the_ends_are_keys(self):
        x = torch.tensor(normal(1, 12, 8)) + 1
        W = in_torch(*[np.eye(8)] * 3)
        right = fovea.attention(*[x[:, :, None].numpy()] * 3, window=(2, 2))[:, :, 0]
        wrong = article.local_self_attention(x, W, 1, neighbors=2)
        np.testing.assert_allclose(right[:, 2:-2], wrong[:, 2:-2], atol=1e-9)
        for edge in (0, 1, 10, 11):
            self.assertGreater(np.abs(right[0, edge] - wrong[0, edge].numpy()).max(), 1e-3)
        # A length that the rate divides is padded by a whole rate, which then are keys.
        expected = fovea.attention(*[x[:, :, None].numpy()] * 3, dilation=3)[:, :, 0]
        atrous = article.atrous_self_attention(x, W, 1, rate=3)
        self.assertGreater(np.abs(atrous.numpy() - expected).max(), 1e-3)

    def test_d22_neighbours_are_not_seen(self):
        local, _ = article.sparse_offsets(3)
        self.assertEqual(local, [-6, -3, 0, 3, 6])
        wrong = article.sparse_weights(torch.zeros(31), 15, 3)
        self.assertEqual(wrong[14], 0)                           # a neighbour
        self.assertAlmostEqual(wrong[15] / wrong[6], 2, places=6)  # the word itself, and one that is 9 away
        q = np.zeros((1, 15, 1, 4))
        right = fovea.attend(q, q, q, strided=3, observe="weights").weights[0, 0, 7]
        self.assertEqual([j - 7 for j in np.flatnonzero(right)], [-6, -3, -2, -1, 0, 1, 2, 3, 6])
        np.testing.assert_allclose(right[right > 0], 1 / 9)

    def test_d23_orders_are_permutations(self):
        interleaved, split = article.sin_cos_position_embedding(9, 6), article.tf_position_embedding(9, 6)
        self.assertGreater((interleaved - split).abs().max(), 0.1)
        torch.testing.assert_close(interleaved[:, [1, 3, 5, 0, 2, 4]], split)

    def test_d24_relative_positions_have_an_order(self):
        q, k, v = normal(3, 6, 4)
        a_k, a_v = normal(2, 5, 4, seed=1)
        expected = article.relative_attention(*in_torch(q, k, v, a_k, a_v), 2).numpy()
        parts = [x[None, :, None] for x in (q, k, v)]
        own = fovea.attention(*parts, shaw_k=a_k, shaw_v=a_v, order="i-j")[0, :, 0]
        turned = fovea.attention(*parts, shaw_k=a_k[::-1].copy(), shaw_v=a_v[::-1].copy(), order="j-i")[0, :, 0]
        np.testing.assert_allclose(own, expected, atol=1e-12)
        np.testing.assert_allclose(turned, expected, atol=1e-12)
        other = fovea.attention(*parts, shaw_k=a_k, shaw_v=a_v, order="j-i")[0, :, 0]
        self.assertGreater(np.abs(other - expected).max(), 0.1)


if __name__ == "__main__":
    unittest.main()
