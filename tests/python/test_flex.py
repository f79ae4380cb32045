# SPDX-License-Identifier: Apache-2.0
"""fovea.torch.flex_attention beside torch written out, in both precisions, with all gradients."""

import math
import unittest

try:
    import torch
except ImportError as error:
    raise unittest.SkipTest("PyTorch is not installed: fovea.torch is not tested") from error

from torch.nn.attention import flex_attention as theirs

import numpy as np

import fovea
import fovea.torch as ours
from flex_functions import B, H, S, T, Function, Torch, functions, places

FUNCTIONS = functions(Torch())
# What the others, which numpy has too, do not use.
FUNCTIONS["methods"] = Function(
    score=lambda s, b, h, q, kv: s.pow(2).clamp(max=2).add(1).sqrt() ** (1 + h)
    - torch.clamp(s.abs(), 0.1, 0.5) * s.sigmoid().where(q > kv, s / 2) + (-3) ** ((kv - q) % 3 - 1)
    + 2 ** (q - kv - 60) + torch.div(q - kv, 3, rounding_mode="trunc") + q.to("cpu", torch.bool)
    + torch.add(q > kv, kv > 3) + np.float32(2) * s - torch.full_like(input=s, fill_value=3),
    mask=lambda b, h, q, kv: torch.logical_or((q - kv).abs().lt(30), kv.eq(3)))


def normal(*shape, seed=0, dtype=torch.float64):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


def operands(dtype=torch.float64, groups=2):
    return [normal(B, heads, length, width, seed=seed, dtype=dtype).requires_grad_()
            for seed, (heads, length, width) in enumerate(((H, T, 8), (groups, S, 8), (groups, S, 6)))]


def mask_of(function):
    return None if function.mask is None else ours.create_block_mask(function.mask, B, H, T, S)


def written_out(function, q, k, v, scale):
    """(o, lse) by the definition, in tensors T x S."""
    keys, values = (x.repeat_interleave(q.shape[1] // x.shape[1], 1) for x in (k, v))
    scores = q @ keys.transpose(-1, -2) * scale
    if function.score is not None:
        scores = function.score(scores, *places(torch))
    kept = torch.ones((), dtype=torch.bool)
    if function.mask is not None:
        kept = function.mask(*places(torch)).bool()
    kept = (kept & ~torch.isneginf(scores)).expand(scores.shape)
    some = kept.any(-1, keepdim=True)
    weights = torch.where(some, scores.masked_fill(~kept, -math.inf), 0.0).softmax(-1) * some
    lse = torch.where(some, scores.masked_fill(~kept, -math.inf), 0.0).logsumexp(-1)
    return weights @ values, torch.where(some[..., 0], lse, -math.inf)


def with_gradients(run, inputs):
    """(o, lse) of run(), and the gradients of a sum with weights."""
    for x in inputs:
        x.grad = None
    o, lse = run()
    some = torch.isfinite(lse)
    weights = normal(*o.shape, seed=7, dtype=o.dtype), normal(*lse.shape, seed=8, dtype=lse.dtype)
    ((o * weights[0]).sum() + (torch.where(some, lse, 0.0) * weights[1]).sum()).backward()
    return [o.detach(), lse.detach(), *(x.grad.clone() if x.grad is not None else torch.zeros_like(x) for x in inputs)]


def error(got, expected):
    got, expected = got.double(), expected.double()
    same = torch.where(torch.isneginf(expected), 0.0, expected)
    if not torch.equal(torch.isneginf(got), torch.isneginf(expected)):
        return math.inf
    got = torch.where(torch.isneginf(got), 0.0, got)
    return ((got - same).abs().max() / max(1.0, same.abs().max())).item()


class Fused(unittest.TestCase):
    def compare(self, function, dtype, limit):
        inputs = operands(dtype)
        exact = [x.detach().double().requires_grad_() for x in inputs]
        for x, number in zip(exact, inputs):
            self.assertTrue(torch.equal(x.detach(), number.detach().double()))
        expected = with_gradients(lambda: written_out(function, *exact, 0.3), [*exact, *function.learned])
        got = with_gradients(
            lambda: ours.flex_attention(*inputs, function.score, mask_of(function), 0.3, True, True),
            [*inputs, *function.learned])
        for name, one, other in zip(("o", "lse", "dq", "dk", "dv", *["captured"] * 9), got, expected):
            with self.subTest(result=name):
                self.assertLessEqual(error(one, other), limit)

    def test_each_function_is_that_of_torch_in_float64(self):
        for name, function in FUNCTIONS.items():
            with self.subTest(function=name):
                self.compare(function, torch.float64, 1e-10)

    def test_each_function_is_that_of_torch_in_float32(self):
        for name, function in FUNCTIONS.items():
            with self.subTest(function=name):
                self.compare(function, torch.float32, 5e-5)

    def test_each_function_runs_by_vectors(self):
        for name, function in FUNCTIONS.items():
            if function.score is not None:
                plan = ours.flex_plan(*operands(), function.score, mask_of(function), enable_gqa=True)
                self.assertEqual(plan["score_mod"], "traced", name)

    def test_any_number_of_threads_gives_the_same_bits(self):
        for name in ("t5", "graphormer", "chain", "transposed bias", "of the key", "bias [70, 90]", "documents"):
            function, results = FUNCTIONS[name], []
            for threads in (1, 2, 3, 8):
                fovea.set_threads(threads)
                inputs = operands(torch.float32)
                results.append(with_gradients(
                    lambda: ours.flex_attention(*inputs, function.score, mask_of(function), 0.3, True, True),
                    [*inputs, *function.learned]))
            fovea.set_threads(0)
            for one in results[1:]:
                for x, y in zip(results[0], one):
                    self.assertTrue(torch.equal(x, y), name)


class Gradients(unittest.TestCase):
    def test_gradcheck_in_float64(self):
        q, k, v = (normal(1, 2, n, 3, seed=n).requires_grad_() for n in (5, 6, 6))
        table, weight = normal(2, 11, seed=3).requires_grad_(), normal(5, seed=4).requires_grad_()

        def call(q, k, v, table, weight):
            def score(s, b, h, q, kv):
                return 2 * torch.tanh(s * weight[q] / 2) + table[h, q - kv + 5]

            mask = ours.create_block_mask(lambda b, h, q, kv: q >= kv - 1, None, None, 5, 6)
            return ours.flex_attention(q, k, v, score, mask, return_lse=True)

        self.assertTrue(torch.autograd.gradcheck(call, (q, k, v, table, weight)))

    def test_many_whole_numbers_are_read_in_fewer_bytes(self):
        size = 640  # 2^18 numbers and more
        q, k, v = (normal(1, 2, size, 8, seed=seed, dtype=torch.float32) for seed in range(3))
        table = normal(2, 400, dtype=torch.float32).requires_grad_()
        for low, high in ((0, 200), (-200, 200), (0, 300)):
            at = torch.randint(low, high, (size, size), generator=torch.Generator().manual_seed(3))

            def run(index):
                o = ours.flex_attention(q, k, v, lambda s, b, h, i, j: s + table[h, index[i, j]])
                return o, *torch.autograd.grad(o.sum(), table)

            # int16 is read as it is in 32 bits; a transposed tensor stays in 64.
            expected = run(at.to(torch.int16))
            for index in (at, at.T.contiguous().T):
                for got, one in zip(run(index), expected):
                    self.assertTrue(torch.equal(got, one))

    def test_what_needs_no_gradient_gets_none(self):
        q, k, v = (normal(1, 1, 4, 3, seed=n) for n in range(3))
        bias = normal(4, 4)
        self.assertFalse(ours.flex_attention(q, k, v, lambda s, b, h, q, kv: s + bias[q, kv]).requires_grad)

    def test_a_changed_tensor_is_not_taken_for_the_old_one(self):
        q = normal(1, 1, 4, 3)
        bias = normal(4, 4).requires_grad_()
        o = ours.flex_attention(q, q, q, lambda s, b, h, q, kv: s + bias[q, kv])
        with torch.no_grad():
            bias += 1
        with self.assertRaises(RuntimeError):
            o.sum().backward()


class Types(unittest.TestCase):
    def test_float16_is_computed_in_float32(self):
        score = FUNCTIONS["softcap"].score
        q, k, v = (x.detach() for x in operands(torch.float16, groups=H))
        got, lse = ours.flex_attention(q, k, v, score, return_lse=True)
        expected = ours.flex_attention(q.float(), k.float(), v.float(), score).half()
        self.assertEqual((got.dtype, lse.dtype), (torch.float16, torch.float32))
        self.assertTrue(torch.equal(got, expected))

    def test_aux_outputs(self):
        q, k, v = (x.detach() for x in operands(groups=H))
        o, aux = ours.flex_attention(q, k, v, return_aux=ours.AuxRequest(lse=True))
        self.assertIsInstance(aux, ours.AuxOutput)
        self.assertTrue(torch.equal(aux.lse, ours.flex_attention(q, k, v, return_lse=True)[1]))
        self.assertIsNone(ours.flex_attention(q, k, v, return_aux=ours.AuxRequest())[1].lse)

    def test_compiles_with_a_graph_break(self):
        q, k, v = (x.detach() for x in operands(groups=H))
        bias = normal(T, S)
        run = torch.compile(
            lambda q: ours.flex_attention(q * 2, k, v, lambda s, b, h, q, kv: s + bias[q, kv]) * 3, backend="eager")
        expected = ours.flex_attention(q * 2, k, v, lambda s, b, h, q, kv: s + bias[q, kv]) * 3
        self.assertTrue(torch.equal(run(q), expected))


class Masks(unittest.TestCase):
    def test_lists_of_blocks_are_those_of_torch(self):
        names = [name for name, one in FUNCTIONS.items() if one.mask is not None]
        for name in names:
            mask = FUNCTIONS[name].mask
            for block in (16, (32, 8)):
                got = ours.create_block_mask(mask, B, H, T, S, BLOCK_SIZE=block)
                expected = theirs.create_block_mask(mask, B, H, T, S, device="cpu", BLOCK_SIZE=block)
                self.assertEqual(got.shape, expected.shape)
                # Bounds may say "in part" of a block that torch, which looks at each score, finds empty or full.
                kept, whole = expected.to_dense(), _full(expected)
                self.assertTrue((got.to_dense() >= kept).all(), name)
                self.assertTrue((_full(got) <= whole).all(), name)

    def test_simple_masks_have_exactly_the_blocks_of_torch(self):
        for name in ("causal", "window", "window of both sides", "padding", "prefix", "chunks", "sliding tiles"):
            mask = FUNCTIONS[name].mask
            got = ours.create_block_mask(mask, B, H, T, S, BLOCK_SIZE=16)
            expected = theirs.create_block_mask(mask, B, H, T, S, device="cpu", BLOCK_SIZE=16)
            self.assertTrue(torch.equal(got.to_dense(), expected.to_dense()), name)
            self.assertEqual(got.sparsity(), expected.sparsity())

    def test_a_mask_of_torch_and_its_lists_are_honoured(self):
        q, k, v = (x.detach() for x in operands(groups=H))
        lists = theirs.create_block_mask(FUNCTIONS["causal"].mask, B, H, T, S, device="cpu", BLOCK_SIZE=16)
        expected, _ = written_out(FUNCTIONS["causal"], q, k, v, 8**-0.5)
        self.assertLess(error(ours.flex_attention(q, k, v, None, lists), expected), 1e-12)
        # Only the first block of each row is listed, and as a whole.
        one = torch.ones(1, 1, 5, dtype=torch.int32), torch.zeros(1, 1, 5, 6, dtype=torch.int32)
        nothing = torch.zeros_like(one[0]), torch.zeros_like(one[1])
        first = theirs.BlockMask.from_kv_blocks(*nothing, *one, BLOCK_SIZE=16, mask_mod=FUNCTIONS["causal"].mask,
                                                seq_lengths=(T, S))
        expected, _ = written_out(Function(mask=lambda b, h, q, kv: kv < 16), q, k, v, 8**-0.5)
        self.assertLess(error(ours.flex_attention(q, k, v, None, first), expected), 1e-12)

    def test_a_slice_with_a_shifted_function(self):
        q, k, v = (x.detach() for x in operands(groups=H))
        whole = ours.create_block_mask(FUNCTIONS["causal"].mask, B, H, T, S, BLOCK_SIZE=16)
        part = whole[:, :, 1:2]
        with self.assertRaisesRegex(fovea.UsageError, "slice"):
            ours.flex_attention(q[:, :, 16:32], k, v, None, part)
        part.mask_mod = lambda b, h, q, kv: q + 16 >= kv
        part.seq_lengths = 16, S
        got = ours.flex_attention(q[:, :, 16:32], k, v, None, part)
        expected = ours.flex_attention(q, k, v, None, whole)[:, :, 16:32]
        self.assertLess(error(got, expected), 1e-12)

    def test_joined_masks(self):
        q, k, v = (x.detach() for x in operands(groups=H))
        causal, window = FUNCTIONS["causal"].mask, FUNCTIONS["window of both sides"].mask
        joined = ours.or_masks(ours.and_masks(causal, window, ours.noop_mask), lambda b, h, q, kv: kv < 2)
        got = ours.flex_attention(q, k, v, None, ours.create_block_mask(joined, None, None, T, S))
        expected, _ = written_out(
            Function(mask=lambda b, h, q, kv: ((q >= kv) & ((q - kv).abs() <= 11)) | (kv < 2)), q, k, v, 8**-0.5)
        self.assertLess(error(got, expected), 1e-12)
        self.assertTrue(torch.equal(ours.create_mask(joined, 1, 1, T, S), theirs.create_mask(joined, 1, 1, T, S, "cpu")))

    def test_the_plan_skips_what_a_mask_drops(self):
        q = torch.zeros(1, 1, 4096, 4)
        ids = torch.arange(4096) // 512
        for name, mask, kept, masked in (
                ("causal", lambda b, h, q, kv: q >= kv, 64 * 33 // 2, 64),
                ("window", lambda b, h, q, kv: (q >= kv) & (q - kv < 256), 190, None),
                ("documents", lambda b, h, q, kv: ids[q] == ids[kv], 8 * 8 * 4, 0)):
            plan = ours.flex_plan(q, q, q, None, ours.create_block_mask(mask, None, None, 4096, 4096))
            self.assertEqual(plan["tiles"], 64 * 32)
            self.assertLessEqual(plan["tiles_kept"], kept, name)
            if masked is not None:
                self.assertEqual(plan["tiles_masked"], masked, name)

    def test_a_long_mask_costs_no_memory_of_its_square(self):
        n = 1 << 20
        ids = torch.arange(n) // 777
        mask = ours.create_block_mask(lambda b, h, q, kv: (ids[q] == ids[kv]) & (q >= kv), None, None, n, n)
        self.assertEqual(mask.shape, (1, 1, n, n))


def _full(mask):
    """Which blocks a mask keeps whole."""
    dense = torch.zeros_like(mask.to_dense())
    for b, h, row in ((b, h, r) for b in range(dense.shape[0]) for h in range(dense.shape[1])
                      for r in range(dense.shape[2])):
        count = int(mask.full_kv_num_blocks[b, h, row])
        dense[b, h, row, mask.full_kv_indices[b, h, row, :count].long()] = 1
    return dense


class BadInput(unittest.TestCase):
    def fails(self, words, score=None, mask=None, **options):
        q = normal(1, 2, 4, 3)
        try:
            ours.flex_attention(q, q, q, score, mask, **options)
        except fovea.UsageError as error:
            for word in words:
                self.assertIn(word, str(error))
            return
        self.fail("no error")

    def test_a_branch_says_where_it_is(self):
        def score(s, b, h, q, kv):
            if q > kv:
                return s
            return s + 1

        line = score.__code__.co_firstlineno + 1
        self.fails([f"test_flex.py:{line}: if q > kv:", "torch.where"], score)

    def test_what_is_not_known_says_where_it_is(self):
        vectors = normal(4, 3)
        for words, score in (
                (["torch.cumsum", "test_flex.py"], lambda s, b, h, q, kv: torch.cumsum(s, 0)),
                ([".nonzero"], lambda s, b, h, q, kv: s.nonzero()),
                (["float()"], lambda s, b, h, q, kv: s + math.sqrt(q)),
                (["list"], lambda s, b, h, q, kv: s + [1, 2, 3, 4][q]),
                (["join"], lambda s, b, h, q, kv: s + vectors[q] @ vectors[kv]),
                (["join"], lambda s, b, h, q, kv: s + (vectors[q] * vectors[kv]).sum()),
                (["table[q_idx, kv_idx]"], lambda s, b, h, q, kv: s + vectors),
                (["torch.stack"], lambda s, b, h, q, kv: torch.stack([s, s]).sum()),
                (["a list as an index"], lambda s, b, h, q, kv: s + vectors[[q], 0]),
                (["torch.from_numpy"], lambda s, b, h, q, kv: s + np.arange(9)[kv]),
                (["x.round", "decimals"], lambda s, b, h, q, kv: s.round(decimals=1)),
                (["uint16", "test_flex.py"], lambda s, b, h, q, kv: s + torch.zeros(4, dtype=torch.uint16)[q]),
                (["3 indices"], lambda s, b, h, q, kv: s + vectors[b, q, kv]),
                ([".mul_", "x = x.mul("], lambda s, b, h, q, kv: (s.mul_(2), s)[1]),
                (["relu_", "in place"], lambda s, b, h, q, kv: torch.relu_(s)),
                (["inplace="], lambda s, b, h, q, kv: torch.nn.functional.relu(s, inplace=True)),
                (["out="], lambda s, b, h, q, kv: torch.add(s, q, out=s)),
                (["condition"], lambda s, b, h, q, kv: (q >= kv).where(s, 0.0)),
                ([".detach()", "gradient"], lambda s, b, h, q, kv: s * s.detach()),
                (["uint8", "x & 255"], lambda s, b, h, q, kv: s + (q - kv).to(torch.uint8)),
                (["float16"], lambda s, b, h, q, kv: s.half()),
                (["bfloat16"], lambda s, b, h, q, kv: s.to("cpu", torch.bfloat16)),
                (["'foo'", "'tanh'"], lambda s, b, h, q, kv: torch.nn.functional.gelu(s, approximate="foo")),
                (["'foo'", "'floor'"], lambda s, b, h, q, kv: torch.div(s, 2, rounding_mode="foo")),
                (["to the power -2"], lambda s, b, h, q, kv: s + (q + 1) ** -2),
                (["whole number"], lambda s, b, h, q, kv: s + vectors[q / 2, 0]),
                (["whole number"], lambda s, b, h, q, kv: s + vectors[q > kv, 0])):
            self.fails(words, score)

    def test_an_index_beyond_its_axis(self):
        table = normal(3)
        self.fails(["beyond", "[3]"], lambda s, b, h, q, kv: s + table[q])
        self.fails(["beyond", "[3]"], lambda s, b, h, q, kv: s + table[q + 3])
        with self.assertRaises(fovea.UsageError):
            ours.create_block_mask(lambda b, h, q, kv: table[q + 100, kv] > 0, 1, 1, 4, 4)

    def test_one_index_after_the_other(self):
        table, q = normal(2, 4), normal(1, 2, 4, 3)
        got = ours.flex_attention(q, q, q, lambda s, b, h, q, kv: s + table[h][kv])
        self.assertTrue(torch.equal(got, ours.flex_attention(q, q, q, lambda s, b, h, q, kv: s + table[h, kv])))
        got = ours.flex_attention(q, q, q, lambda s, b, h, q, kv: s + table.T[:, 1][kv])
        self.assertTrue(torch.equal(got, ours.flex_attention(q, q, q, lambda s, b, h, q, kv: s + table[1, kv])))
        for read in (lambda h, kv: table[..., kv][h], lambda h, kv: table[h][..., kv], lambda h, kv: table[h][kv, ...]):
            got = ours.flex_attention(q, q, q, lambda s, b, h, q, kv, read=read: s + read(h, kv))
            self.assertTrue(torch.equal(got, ours.flex_attention(q, q, q, lambda s, b, h, q, kv: s + table[h, kv])))

    def test_negative_indices_count_from_the_end(self):
        table, q = normal(4), normal(1, 1, 4, 3)
        got = ours.flex_attention(q, q, q, lambda s, b, h, q, kv: s + table[q - kv])
        at = torch.arange(4)[:, None] - torch.arange(4)
        expected = ours.flex_attention(q, q, q, lambda s, b, h, q, kv: s + table[at][q, kv])
        self.assertLess(error(got, expected), 1e-12)

    def test_sizes_that_do_not_fit(self):
        def mask(*sizes):
            return ours.create_block_mask(lambda b, h, q, kv: q >= kv, *sizes)

        self.fails(["axis -2", "5", "4"], mask=mask(1, 1, 5, 4))
        self.fails(["axis -1", "9", "4"], mask=mask(1, 1, 4, 9))
        self.fails(["axis 1", "3", "2"], mask=mask(1, 3, 4, 4))
        self.fails(["BlockMask", "Tensor"], mask=normal(4, 4))
        self.fails(["exclude"], return_lse=True, return_aux=ours.AuxRequest())
        self.fails(["max_scores"], return_aux=ours.AuxRequest(max_scores=True))
        q = normal(1, 4, 4, 3)
        for words, other in (("axis 1", q[:, :2]), ("last axis", q[..., :2]), ("float32", q.float()), ("axes", q[0])):
            with self.assertRaisesRegex(fovea.UsageError, words):
                ours.flex_attention(q, other, other)

    def test_whole_numbers_that_float32_does_not_hold(self):
        ids = torch.tensor([2**24 + 1, 2**24, 2**24 + 1, 2**24])
        mask = ours.create_block_mask(lambda b, h, q, kv: ids[q] == ids[kv], 1, 1, 4, 4)
        q = normal(1, 1, 4, 3)
        ours.flex_attention(q, q, q, None, mask)
        with self.assertRaisesRegex(fovea.UsageError, "float32"):
            ours.flex_attention(q.float(), q.float(), q.float(), None, mask)

    def test_nothing_to_do(self):
        for lengths in ((0, 4), (4, 0)):
            q, k = normal(1, 1, lengths[0], 3), normal(1, 1, lengths[1], 3)
            o, lse = ours.flex_attention(q, k, k, lambda s, b, h, q, kv: s + q, return_lse=True)
            self.assertEqual(o.shape, (1, 1, lengths[0], 3))
            self.assertTrue((o == 0).all() and torch.isneginf(lse).all())


if __name__ == "__main__":
    unittest.main()
