# SPDX-License-Identifier: Apache-2.0
"""fovea.torch.varlen_attn beside padded attention written out."""

import itertools
import unittest
from types import SimpleNamespace

try:
    import torch
except ImportError as error:
    raise unittest.SkipTest("PyTorch is not installed: varlen_attn is not tested") from error

import fovea
import fovea.torch

LSE = SimpleNamespace(lse=True)


def offsets(lengths, dtype=torch.int32):
    return torch.tensor([0, *itertools.accumulate(lengths)], dtype=dtype)


def alone(q, k, v, window, scale=None):
    """One sequence [T, H, D] by its definition: o, and lse [H, T]."""
    T, S = len(q), len(k)
    groups = q.shape[1] // k.shape[1]
    k, v = k.repeat_interleave(groups, 1), v.repeat_interleave(groups, 1)
    scores = torch.einsum("ihd,jhd->hij", q, k) * (q.shape[-1] ** -0.5 if scale is None else scale)
    apart = torch.arange(S) - (torch.arange(T)[:, None] + S - T)  # the last query is at the last key
    left, right = window
    kept = torch.ones(T, S, dtype=torch.bool)
    kept &= (apart >= -left) if left >= 0 else kept
    kept &= (apart <= right) if right >= 0 else kept
    scores = scores.masked_fill(~kept, -torch.inf)
    weights = torch.nan_to_num(scores.softmax(-1))
    return torch.einsum("hij,jhd->ihd", weights, v), scores.logsumexp(-1)


class VarlenTest(unittest.TestCase):
    queries, keys = [3, 0, 5, 1], [4, 2, 5, 6]

    def tensors(self, H=4, G=4, dtype=torch.float64, D=8, Dv=6):
        torch.manual_seed(0)
        T, S = sum(self.queries), sum(self.keys)
        return [torch.randn(*shape, dtype=dtype, requires_grad=True) for shape in ((T, H, D), (S, G, D), (S, G, Dv))]

    def run_both(self, window, H=4, G=4, **options):
        q, k, v = self.tensors(H, G)
        cu_q, cu_k = offsets(self.queries), offsets(self.keys)
        o, lse = fovea.torch.varlen_attn(q, k, v, cu_q, cu_k, 5, 6, window_size=window, enable_gqa=H != G,
                                         return_aux=LSE, **options)
        parts = [alone(q[a:b], k[c:d], v[c:d], window, options.get("scale"))
                 for a, b, c, d in zip(cu_q[:-1], cu_q[1:], cu_k[:-1], cu_k[1:])]
        return (q, k, v), (o, lse), (torch.cat([p[0] for p in parts]), torch.cat([p[1] for p in parts], -1))

    def test_each_sequence_is_as_alone_with_its_gradients(self):
        for window, (H, G), scale in ((((-1, -1)), (4, 4), None), ((-1, 0), (4, 2), None), ((2, 0), (4, 1), 0.3),
                                      ((1, 1), (4, 4), None), ((-1, 1), (2, 2), None), ((0, -1), (4, 2), None)):
            with self.subTest(window=window):
                inputs, (o, lse), (o2, lse2) = self.run_both(window, H, G, scale=scale)
                torch.testing.assert_close(o, o2, rtol=1e-11, atol=1e-11)
                torch.testing.assert_close(lse, lse2, rtol=1e-11, atol=1e-11)
                do, dlse = torch.randn_like(o), torch.randn_like(lse)
                loss = [(a * do).sum() + (torch.where(b.isfinite(), b, 0) * dlse).sum() for a, b in ((o, lse), (o2, lse2))]
                for got, expected in zip(*(torch.autograd.grad(one, inputs) for one in loss)):
                    torch.testing.assert_close(got, torch.nan_to_num(expected), rtol=1e-10, atol=1e-10)

    def test_keys_that_are_used(self):
        q, k, v = (x.detach() for x in self.tensors())
        used = torch.tensor([2, 0, 5, 3], dtype=torch.int32)
        cu_q, cu_k = offsets(self.queries), offsets(self.keys)
        o = fovea.torch.varlen_attn(q, k, v, cu_q, cu_k, 5, 6, window_size=(-1, 0), seqused_k=used)
        for n in range(4):
            a, b, c = int(cu_q[n]), int(cu_q[n + 1]), int(cu_k[n])
            expected = alone(q[a:b], k[c:c + used[n]], v[c:c + used[n]], (-1, 0))[0]
            torch.testing.assert_close(o[a:b], expected, rtol=1e-11, atol=1e-11)

    def test_pages(self):
        q = self.tensors()[0].detach()
        used, size = torch.tensor([4, 2, 5, 3], dtype=torch.int32), 2
        pool_k, pool_v = (torch.randn(9, size, 4, d, dtype=torch.float64) for d in (8, 6))
        table = torch.tensor([[3, 1, 0], [8, 0, 0], [2, 7, 5], [4, 6, 0]], dtype=torch.int32)
        cu_q = offsets(self.queries)
        o = fovea.torch.varlen_attn(q, pool_k, pool_v, cu_q, None, 5, 6, seqused_k=used, block_table=table)
        for n in range(4):
            k, v = (pool[table[n].long()].flatten(0, 1)[:used[n]] for pool in (pool_k, pool_v))
            a, b = int(cu_q[n]), int(cu_q[n + 1])
            torch.testing.assert_close(o[a:b], alone(q[a:b], k, v, (-1, -1))[0], rtol=1e-11, atol=1e-11)

    def test_float16(self):
        q, k, v = self.tensors(dtype=torch.float16)
        cu_q, cu_k = offsets(self.queries, torch.int64), offsets(self.keys, torch.int64)
        o = fovea.torch.varlen_attn(q, k, v, cu_q, cu_k, 5, 6)
        self.assertEqual(o.dtype, torch.float16)
        wide = fovea.torch.varlen_attn(q.float(), k.float(), v.float(), cu_q, cu_k, 5, 6)
        torch.testing.assert_close(o, wide.half(), rtol=0, atol=0)
        o.sum().backward()
        self.assertEqual(q.grad.dtype, torch.float16)

    def test_autocast(self):
        cu_q, cu_k = offsets(self.queries, torch.int64), offsets(self.keys, torch.int64)
        with torch.autocast("cpu", torch.bfloat16):
            o = fovea.torch.varlen_attn(*self.tensors(dtype=torch.float32), cu_q, cu_k, 5, 6)
        self.assertEqual(o.dtype, torch.bfloat16)

    def test_the_signature_is_torchs(self):
        import inspect
        try:
            from torch.nn.attention.varlen import varlen_attn
        except ImportError:
            self.skipTest("this PyTorch has no varlen_attn")
        theirs, ours = (list(inspect.signature(f).parameters.values()) for f in (varlen_attn, fovea.torch.varlen_attn))
        self.assertEqual([(p.name, p.kind, p.default) for p in ours], [(p.name, p.kind, p.default) for p in theirs])

    def test_errors(self):
        q, k, v = self.tensors()
        cu_q, cu_k = offsets(self.queries), offsets(self.keys)
        def refused(message, *arguments, **options):
            with self.assertRaisesRegex(fovea.UsageError, message):
                fovea.torch.varlen_attn(*arguments, **options)
        refused("max_q is 4, and a sequence of cu_seq_q has 5", q, k, v, cu_q, cu_k, 4, 6)
        refused("cu_seq_k is missing", q, k, v, cu_q, None, 5, 6)
        refused("axis 1 of query is 4, and 2 in key", q, k[:, :2], v[:, :2], cu_q, cu_k, 5, 6)
        refused("query has 4 axes", q[None], k, v, cu_q, cu_k, 5, 6)
        refused("query_offsets", q[:-1], k, v, cu_q, cu_k, 5, 6)
        refused("seqused_k is for inference", q, k, v, cu_q, cu_k, 5, 6, seqused_k=torch.tensor([1, 1, 1, 1]))
        pages = torch.zeros(4, 1, dtype=torch.int32)
        refused("block_table without seqused_k", q, k, v, cu_q, None, 5, 6, block_table=pages)
        refused("query: expected a tensor; got NoneType", None, k, v, cu_q, cu_k, 5, 6)
        refused("cu_seq_q: expected a tensor; got list", q, k, v, cu_q.tolist(), cu_k, 5, 6)
        refused("cu_seq_k has 0 axes; expected 1", q, k, v, cu_q, torch.tensor(3), 5, 6)
        refused("cu_seq_q holds torch.float32", q, k, v, cu_q.float(), cu_k, 5, 6)
        refused("cu_seq_q .* on meta", q, k, v, cu_q.to("meta"), cu_k, 5, 6)
        refused("max_q: expected a number; got None", q, k, v, cu_q, cu_k, None, 6)
        refused("return_aux: expected an AuxRequest; got int", q, k, v, cu_q, cu_k, 5, 6, return_aux=3)
        for window in ((1, 2, 3), (1.5, 0), None, ("a", 0)):
            refused("window_size: expected two whole numbers", q, k, v, cu_q, cu_k, 5, 6, window_size=window)
        refused(r"(?s)window_size: \(-5, -3\).*-1 for all", q, k, v, cu_q, cu_k, 5, 6, window_size=(-5, -3))
        with torch.no_grad():
            refused("seqused_k", q, k, v, cu_q, cu_k, 5, 6, seqused_k=torch.tensor([5, 1, 1, 1]))

    @torch.no_grad()
    def test_pages_that_are_not_there(self):
        q, used = self.tensors()[0].detach(), torch.tensor([4, 2, 5, 3])
        pool = torch.randn(9, 2, 4, 8, dtype=torch.float64)
        table = torch.tensor([[3, 1, -1], [8, 99, 0], [2, 7, 5], [4, 6, 0]])  # -1 and 99 are not used

        def run(table=table, used=used, key=pool):
            return fovea.torch.varlen_attn(q, key, pool, offsets(self.queries), None, 5, 6, seqused_k=used,
                                           block_table=table)

        def refused(message, **arguments):
            with self.assertRaisesRegex(fovea.UsageError, message):
                run(**arguments)
        self.assertTrue(torch.equal(run(), run(table.clamp(0, 8))))
        for page in (-1, 9):
            wrong = table.clone()
            wrong[2, 1] = page
            refused(f"block_table names page {page}; key has pages 0 to 8", table=wrong)
        refused("block_table has 1 axes; expected 2", table=table[0])
        refused("block_table holds torch.float32", table=table.float())
        refused(r"seqused_k must say .* 4 sequences .* it is \[4, 2\]", used=used[:2])
        refused(r"seqused_k must say .* it is \[4, 2, -5, 3\]", used=used * torch.tensor([1, 1, -1, 1]))
        refused("key is .*; expected pages", key=pool[0])


if __name__ == "__main__":
    unittest.main()
