# SPDX-License-Identifier: Apache-2.0
"""Traced functions of `attention` and `attend` beside numpy written out, in both precisions, with all gradients."""

import math
import unittest

import numpy as np
from flex_functions import B, H, S, T, Function, Numpy, functions, places, problem
from support import relative_error

import fovea

TRACED = functions(Numpy(fovea.captured))
PLAIN = functions(Numpy())  # the same, of arrays
SCALE = 0.3


def written_out(function, q, k, v, scale=SCALE):
    """(o, lse) by the definition, in arrays T x S."""
    k, v = (np.repeat(x, q.shape[2] // x.shape[2], 2) for x in (k, v))
    scores = np.einsum("bthd,bshd->bhts", q, k) * scale
    at = places(Numpy())
    if function.score is not None:
        scores = function.score(scores, *at)
    kept = True if function.mask is None else function.mask(*at)
    kept = np.broadcast_to(kept & ~np.isneginf(scores), scores.shape)
    scores = np.where(kept, scores, -np.inf)
    largest = np.maximum(scores.max(-1, keepdims=True), -1e30)
    weights = np.exp(scores - largest)
    total = weights.sum(-1, keepdims=True)
    weights = weights / np.where(total == 0, 1, total)
    with np.errstate(divide="ignore"):
        lse = np.where(total == 0, -np.inf, largest + np.log(total))[..., 0]
    return np.einsum("bhts,bshd->bthd", weights, v), lse


def attend(function, q, k, v, **more):
    return fovea.attend(q, k, v, score_mod=function.score, mask_mod=function.mask, scale=SCALE, **more)


def weighted(results, do, dlse):
    o, lse = results
    return (o * do).sum() + (np.where(np.isfinite(lse), lse, 0) * dlse).sum()


class FusedTest(unittest.TestCase):
    def test_each_function_is_that_of_numpy(self):
        for dtype, limit in ((np.float64, 1e-10), (np.float32, 5e-5)):
            p = problem(dtype)
            for name, function in TRACED.items():
                got = attend(function, *p.qkv)
                exact = written_out(PLAIN[name], *(x.astype(np.float64) for x in p.qkv))
                for result, one, other in zip(("o", "lse"), (got.o, got.lse), exact):
                    self.assertEqual(one.dtype, dtype)
                    self.assertLessEqual(relative_error(one, other), limit, f"{name}: {result}")

    def test_each_gradient_is_the_difference_of_the_formula(self):
        p = problem()
        dlse = p.normal(B, H, T)
        for name, function in TRACED.items():
            plain = PLAIN[name]
            got = attend(function, *p.qkv).backward(p.do, dlse)
            self.assertEqual(sorted(got), ["dk", "dq", "dv"])
            gradients = [got["dq"], got["dk"], got["dv"], *(x.grad for x in function.learned)]
            inputs = [*p.qkv, *plain.learned]
            for n, (gradient, x) in enumerate(zip(gradients, inputs, strict=True)):
                self.assertEqual(gradient.shape, x.shape)
                direction, kept, sums = p.normal(*x.shape), x.copy(), []
                for step in (1e-5, -1e-5):
                    x[...] = kept + step * direction
                    sums.append(weighted(written_out(plain, *p.qkv), p.do, dlse))
                    x[...] = kept
                difference = (sums[0] - sums[1]) / 2e-5
                size = max(1.0, np.abs(gradient * direction).sum())
                self.assertLessEqual(abs((gradient * direction).sum() - difference) / size, 1e-7, f"{name}: {n}")

    def test_float32_has_the_gradients_of_float64(self):
        single = problem(np.float32)
        for name, function in TRACED.items():
            with self.subTest(function=name):
                exact = attend(function, *(x.astype(np.float64) for x in single.qkv)).backward(single.do.astype(float))
                exact_captured = [x.grad for x in function.learned]
                got = attend(function, *single.qkv).backward(single.do)
                for key, gradient in got.items():
                    self.assertEqual(gradient.dtype, np.float32)
                    self.assertLessEqual(relative_error(gradient, exact[key]), 5e-5, key)
                for x, gradient in zip(function.learned, exact_captured):
                    self.assertEqual(x.grad.dtype, x.dtype)
                    self.assertLessEqual(relative_error(x.grad, gradient), 5e-5)

    def test_each_function_runs_by_vectors(self):
        p = problem()
        for name, function in TRACED.items():
            plan = attend(function, *p.qkv).plan
            self.assertEqual(plan["bias"], "none" if function.score is None else "traced", name)
            self.assertEqual(plan["mask"], "all" if function.mask is None else "traced", name)

    def test_any_number_of_threads_gives_the_same_bits(self):
        p = problem(np.float32)
        for name in ("t5", "graphormer", "chain", "transposed bias", "of the key", "bias [70, 90]", "documents"):
            results = []
            for threads in (1, 2, 3, 8):
                attended = attend(TRACED[name], *p.qkv, threads=threads)
                gradients = attended.backward(p.do)
                results.append([attended.o, attended.lse, *gradients.values(), *(x.grad for x in TRACED[name].learned)])
            for one in results[1:]:
                for x, y in zip(results[0], one, strict=True):
                    np.testing.assert_array_equal(x, y, name)

    def test_the_definition_gives_the_same(self):
        p = problem()
        for name in ("causal", "t5", "chain", "graphormer", "a bias read twice"):
            results = []
            for reference in (False, True):
                attended = attend(TRACED[name], *p.qkv, reference=reference)
                gradients = attended.backward(p.do)
                results.append([attended.o, *gradients.values(), *(x.grad for x in TRACED[name].learned)])
            for fused, plain in zip(*results, strict=True):
                self.assertLessEqual(relative_error(fused, plain), 1e-12, name)


class FunctionsTest(unittest.TestCase):
    """What numpy has, on symbols and on arrays."""

    def compare(self, score=None, mask=None):
        p = problem()
        got = attend(Function(score, mask), *p.qkv)
        expected, _ = written_out(Function(score, mask), *p.qkv)
        self.assertLessEqual(relative_error(got.o, expected), 1e-11)

    def test_functions_of_scores(self):
        for name in ("negative", "positive", "absolute", "fabs", "sign", "square", "exp", "exp2", "expm1", "sin", "cos",
                     "tan", "tanh", "floor", "ceil", "trunc", "rint", "round", "fix"):
            with self.subTest(function=name):
                self.compare(lambda s, b, h, q, kv, f=getattr(np, name): f(s / 2) + s)
        for name in ("log", "log2", "log10", "log1p", "sqrt", "reciprocal"):
            with self.subTest(function=name):
                self.compare(lambda s, b, h, q, kv, f=getattr(np, name): f(np.abs(s) + 0.5))
        for name in ("add", "subtract", "multiply", "maximum", "minimum", "logaddexp", "hypot"):
            with self.subTest(function=name):
                self.compare(lambda s, b, h, q, kv, f=getattr(np, name): f(s, 0.1 * kv) + f(0.5, s))
        self.compare(lambda s, b, h, q, kv: np.divide(s, 1 + q) + np.power(s, np.int64(2)) + np.power(2.0, s))
        self.compare(lambda s, b, h, q, kv: np.abs(s) ** (1 + h) + np.hypot(q > kv, s) + np.square(q > kv))
        self.compare(lambda s, b, h, q, kv: s * np.power(2.0, -h) + 3**h - 2.0 ** -(h + 1) * (q - kv))
        self.compare(lambda s, b, h, q, kv: np.clip(s, -1, np.float32(0.5)) + np.clip(s, a_min=0, a_max=None))
        self.compare(lambda s, b, h, q, kv: np.float32(2) * s + s**np.float64(2) + np.array(3) * s)

    def test_functions_of_places(self):
        for function in (
                lambda b, h, q, kv: np.logical_and(q >= kv, np.logical_not(kv == 3)),
                lambda b, h, q, kv: np.logical_or(np.less(q, kv), np.logical_xor(q > 9, kv > 9)),
                lambda b, h, q, kv: np.equal(np.mod(q - kv, 3), 0) | np.not_equal(np.floor_divide(kv, 4), q // 5),
                lambda b, h, q, kv: np.bitwise_and(q, 3) <= np.bitwise_xor(kv, np.left_shift(1, h)),
                lambda b, h, q, kv: np.greater_equal(np.right_shift(q, 1) | 1, np.invert(-kv)),
                lambda b, h, q, kv: np.remainder(-q, 7) < (kv.astype(np.float32) / 3).astype(int) % 7,
                lambda b, h, q, kv: (2**h > (q ^ kv) % 5) & (abs(q - kv) << 1 < 99),
                lambda b, h, q, kv: (q >= kv).astype(int),
                lambda b, h, q, kv: ~np.multiply(q >= kv, kv > 2) | ~np.add(h > 0, kv < 1),
                lambda b, h, q, kv: np.where(h < 2, q >= kv, q <= kv)):
            self.compare(mask=function)
        dropped = lambda s, q, kv: np.isneginf(np.where(q < kv, -np.inf, s))  # noqa: E731
        self.compare(lambda s, b, h, q, kv: np.where(dropped(s, q, kv), -np.inf, np.sign(q - kv)))

    def test_zeros_of_both_signs(self):
        with np.errstate(divide="ignore"):
            self.compare(lambda s, b, h, q, kv: np.where(1 / ((q + 1) * -0.0) < 0, s, 2 * s)
                         + np.where(1 / ((q + 1) * 0.0) < 0, q, kv))

    def test_methods_that_numpy_has_not(self):
        p = problem()
        erf = np.vectorize(math.erf)
        for traced, plain in (
                (lambda s: s.erf(), erf), (lambda s: s.gelu(), lambda s: s / 2 * (1 + erf(s / math.sqrt(2)))),
                (lambda s: s.sigmoid(), lambda s: 1 / (1 + np.exp(-s))),
                (lambda s: s.relu(), lambda s: np.maximum(s, 0)),
                (lambda s: s.rsqrt(), lambda s: 1 / np.sqrt(s)), (lambda s: s.clip(max=1), lambda s: np.minimum(s, 1)),
                (lambda s: s.max() + s.min(), lambda s: 2 * s),
                (lambda s: s.lerp(2.0, 0.25), lambda s: 0.75 * s + 0.5), (lambda s: s.leaky_relu(), lambda s: s)):
            score = [lambda s, b, h, q, kv, f=f: f(abs(s) + 0.1) for f in (traced, plain)]
            got = attend(Function(score[0]), *p.qkv).o
            self.assertLessEqual(relative_error(got, written_out(Function(score[1]), *p.qkv)[0]), 1e-11)

    def test_scipys_functions(self):
        try:
            from scipy import special
        except ImportError:
            self.skipTest("scipy is not installed")
        self.compare(lambda s, b, h, q, kv: special.erf(s) + special.expit(s))


class PartsTest(unittest.TestCase):
    def test_scores_come_from_the_other_parts(self):
        p = problem()
        slopes, bias = np.abs(p.normal(H)), p.normal(1, H, T, S)
        weight = fovea.captured(p.normal(T))
        parts = {"slopes": slopes, "bias": bias, "softcap": 2, "causal": "top-left"}

        def score(s, b, h, q, kv):
            return s * weight[q] + 1

        def plain(s, b, h, q, kv):
            far = np.where(q >= kv, q - kv, kv - q)
            return (2 * np.tanh(s / 2) + bias - slopes.reshape(1, -1, 1, 1) * far) * weight.array[q] + 1

        attended = fovea.attend(*p.qkv, score_mod=score, mask_mod=lambda b, h, q, kv: q - kv < 30, scale=SCALE, **parts)
        expected = written_out(Function(plain, lambda b, h, q, kv: (q >= kv) & (q - kv < 30)), *p.qkv)[0]
        self.assertLessEqual(relative_error(attended.o, expected), 1e-11)
        self.assertEqual(attended.plan["mask"], "causal(top-left) & traced")
        self.assertTrue(attended.plan["bias"].endswith("+ traced"))
        gradients = attended.backward(p.do)
        self.assertEqual(sorted(gradients), ["dbias", "dk", "dq", "dslopes", "dv"])
        for x, gradient in ((slopes, gradients["dslopes"]), (weight.array, weight.grad)):
            direction, kept, sums = p.normal(*x.shape), x.copy(), []
            for step in (1e-5, -1e-5):
                x[...] = kept + step * direction
                sums.append((fovea.attention(*p.qkv, score_mod=score, mask_mod=lambda b, h, q, kv: q - kv < 30,
                                             scale=SCALE, **parts) * p.do).sum())
                x[...] = kept
            self.assertAlmostEqual((gradient * direction).sum(), (sums[0] - sums[1]) / 2e-5, 5)

    def test_with_every_kind_of_part(self):
        p = problem()
        mod = {"score_mod": lambda s, b, h, q, kv: s + 0, "mask_mod": lambda b, h, q, kv: q >= kv - 20}
        keep = np.broadcast_to(np.arange(S) <= np.arange(T)[:, None] + 20, (1, 1, T, S))
        for parts in ({"dropout": 0.2, "seed": 4}, {"sink": p.normal(H)}, {"norm": "sigmoid"}, {"norm": "none"},
                      {"score": "l2"}, {"rotary": "halves"}, {"log_n_scale": 64},
                      {"key_lengths": np.array([50, 90], np.int32)},
                      {"t5": p.normal(32, H)}, {"window": (40, 40)}, {"drop": p.normal(1, 1, T, S) > 1}):
            with self.subTest(parts=list(parts)):
                own, ready = fovea.attend(*p.qkv, **mod, **parts), fovea.attend(*p.qkv, keep=keep, **parts)
                self.assertLessEqual(relative_error(own.o, ready.o), 1e-12)
                gradients = own.backward(p.do)
                for key, gradient in ready.backward(p.do).items():
                    self.assertLessEqual(relative_error(gradients[key], gradient), 1e-11, key)

    def test_what_is_observed(self):
        p = problem()
        mask = TRACED["documents"].mask
        attended = fovea.attend(*p.qkv, mask_mod=mask, observe="entropy,weights")
        kept = PLAIN["documents"].mask(*places(Numpy()))
        self.assertTrue((attended.weights[~np.broadcast_to(kept, attended.weights.shape)] == 0).all())
        self.assertEqual(attended.entropy.shape, (B, H, T))

    def test_a_precision_beside_that_of_the_arrays(self):
        p, table = problem(np.float32), fovea.captured(np.random.default_rng(0).standard_normal(S).astype(np.float32))
        score = lambda s, b, h, q, kv: s + table[kv]  # noqa: E731
        attended = fovea.attend(*p.qkv, score_mod=score, precision="f64")
        exact = written_out(Function(lambda s, b, h, q, kv: s + table.array.astype(float)[kv]),
                            *(x.astype(float) for x in p.qkv), 8**-0.5)[0]
        self.assertLessEqual(relative_error(attended.o, exact), 1e-12)
        attended.backward(p.do)
        self.assertEqual(table.grad.dtype, np.float32)


if __name__ == "__main__":
    unittest.main()
