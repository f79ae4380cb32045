# SPDX-License-Identifier: Apache-2.0
"""fovea.torch beside torch: values, gradients, what it accepts and what it refuses."""

import math
import random
import unittest

try:
    import torch
except ImportError as error:
    raise unittest.SkipTest("PyTorch is not installed: fovea.torch is not tested") from error

import fovea
import fovea.torch

theirs = torch.nn.functional.scaled_dot_product_attention
ours = fovea.torch.scaled_dot_product_attention
CALLS = 500


class Call:
    """A random call: any leading axes, groups, strides, masks."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.generator = torch.Generator().manual_seed(seed)
        r = self.random
        lead = r.choice([(), (1,), (3,), (2, 3), (2, 4), (2, 1), (2, 2, 2), (1, 4)])
        T, S = r.choice([1, 3, 8, 17, 70]), r.choice([1, 2, 9, 33, 130])
        E = r.choice([1, 4, 8, 16, 33])
        Ev = r.choice([E, 5, 16])
        self.options, few = {}, lead
        if lead and lead[-1] == 4 and r.random() < 0.6:
            self.options["enable_gqa"], few = True, (*lead[:-1], r.choice([1, 2, 4]))
        elif len(lead) > 1 and r.random() < 0.5:
            few = r.choice([(*lead[:-1], 1), (1, *lead[1:])])
        self.qkv = self.tensor(*lead, T, E), self.tensor(*few, S, E), self.tensor(*few, S, Ev)
        self.mask, self.learned = self.make_mask((*lead, T, S)), r.random() < 0.7
        if r.random() < 0.4:
            self.options["scale"] = r.choice([0.3, 1.0, 2.0])
        self.do = self.normal(*lead, T, Ev)

    def normal(self, *shape):
        return torch.randn(*shape, generator=self.generator, dtype=torch.float64)

    def tensor(self, *shape):
        """Side by side with others, or with its axes in another order."""
        x = self.normal(*shape)
        way = self.random.random()
        if way < 0.4 and x.dim() > 2:
            return x.transpose(-2, -3).contiguous().transpose(-2, -3)
        return torch.cat([x, x], -1)[..., :shape[-1]] if way < 0.6 else x

    def make_mask(self, full):
        kind = self.random.random()
        shape = [size if self.random.random() < 0.6 else 1 for size in full]
        shape = shape[-2:] if self.random.random() < 0.3 else shape
        if kind < 0.25:
            self.options["is_causal"] = True
        if 0.25 <= kind < 0.5:
            return torch.rand(shape, generator=self.generator) < 0.7
        if 0.5 <= kind < 0.8:
            mask = self.normal(*shape)
            mask[torch.rand(shape, generator=self.generator) < 0.2] = -math.inf
            return mask
        return None

    def run(self, function, dtype):
        """o, dq, dk, dv, and the gradient of the mask if it learns."""
        inputs = [x.to(dtype).detach().requires_grad_() for x in self.qkv]
        mask = self.mask
        learned = mask is not None and mask.dtype != torch.bool and self.learned
        if mask is not None and mask.dtype != torch.bool:
            mask = mask.to(dtype).detach().requires_grad_(learned)
        o = function(*inputs, mask, **self.options)
        (o * self.do.to(dtype)).sum().backward()
        # A row that torch's own backward makes NaN keeps no key: its gradient is 0.
        return [o.detach(), *(torch.nan_to_num(x.grad) for x in [*inputs, *([mask] if learned else [])])]


def largest(tensors):
    return max((x.abs().max().item() for x in tensors if x.numel()), default=0.0)


class SdpaTest(unittest.TestCase):
    def test_random_calls(self):
        """float64 to 1e-11. In float32 the largest relative error of all calls is at most twice torch's, and 4
        ulp: in a single call of a few numbers either may be lucky."""
        errors = {theirs: 0.0, ours: 0.0}
        for seed in range(CALLS):
            call = Call(seed)
            expected = call.run(theirs, torch.float64)
            got = call.run(ours, torch.float64)
            size = largest(expected)
            self.assertEqual([x.shape for x in got], [x.shape for x in expected], seed)
            self.assertLessEqual(largest([a - b for a, b in zip(got, expected)]), 1e-11 * max(1, size), seed)
            for function in errors:
                got = call.run(function, torch.float32)
                error = largest([a.double() - b for a, b in zip(got, expected)]) / max(size, 1e-30)
                errors[function] = max(errors[function], error)
        self.assertLessEqual(errors[ours], 2 * errors[theirs] + 4 * 2**-23)

    def test_float16_is_computed_in_float32(self):
        q, k, v = (torch.randn(2, 3, 8, 16).half().requires_grad_() for _ in range(3))
        o = ours(q, k, v)
        torch.testing.assert_close(o, ours(q.float(), k.float(), v.float()).half(), rtol=0, atol=0)
        o.sum().backward()
        self.assertEqual(q.grad.dtype, torch.float16)

    def test_each_call_checks_the_types(self):
        q, k, v = (torch.randn(2, 3, 8, 16) for _ in range(3))
        for _ in range(2):  # a call like the one before it is checked no more
            ours(q, k, v)
        for given in ((q, k.double(), v), (q, k, v.bfloat16())):
            with self.assertRaisesRegex(fovea.UsageError, "query holds torch.float32 and (key|value) torch"):
                ours(*given)

    def test_autocast(self):
        q, k, v = (torch.randn(2, 3, 8, 16, requires_grad=True) for _ in range(3))
        with torch.autocast("cpu", torch.bfloat16):
            self.assertEqual(ours(q, k, v).dtype, torch.bfloat16)
            self.assertEqual(ours(q.bfloat16(), k, v).dtype, torch.bfloat16)
            self.assertEqual(ours(q.double(), k.double(), v.double()).dtype, torch.float64)
        ours(q, k, v).sum().backward()
        self.assertEqual(q.grad.dtype, torch.float32)

    def test_rows_that_keep_nothing_are_zero(self):
        q, k, v = (torch.randn(1, 2, 5, 4, requires_grad=True) for _ in range(3))
        keep = torch.ones(5, 5, dtype=torch.bool)
        keep[2] = False
        for mask in (keep, torch.zeros(5, 5).masked_fill(~keep, -math.inf)):
            o = ours(q, k, v, mask)
            self.assertEqual(o[:, :, 2].abs().max(), 0)
            q.grad = None
            o.sum().backward()
            self.assertEqual(q.grad[:, :, 2].abs().max(), 0)

    def test_a_plan_is_made_once_and_serves_what_it_fits(self):
        """A second call of the same sizes skips the checks: the results must be those of the first, and a call
        that differs in one thing must not take its plan."""
        base = [torch.randn(2, 4, 6, 8, dtype=torch.float64) for _ in range(3)]
        turned = [x.transpose(1, 2).contiguous().transpose(1, 2) for x in base]
        keep, bias = torch.rand(1, 1, 6, 6) < 0.6, torch.randn(2, 1, 6, 6, dtype=torch.float64)
        calls = [(base, {}), (turned, {}), ([x.float() for x in base], {}), (base, {"is_causal": True}),
                 (base, {"scale": 0.3}), (base, {"attn_mask": keep}), (base, {"attn_mask": bias}),
                 ([x[:, :, :5] for x in base], {}), ([base[0], base[1][:, :2], base[2][:, :2]], {"enable_gqa": True})]
        for repeat in range(3):
            for qkv, options in calls:
                torch.testing.assert_close(ours(*qkv, **options), theirs(*qkv, **options), msg=str((repeat, options)))
        for attempt in range(2):
            with self.assertRaises(fovea.UsageError):
                ours(base[0], base[1][:, :2], base[2][:, :2])

    def test_gradients_lie_as_their_tensors(self):
        """Or autograd copies those of leaves."""
        for q in (torch.randn(2, 3, 5, 4), torch.randn(2, 5, 3, 4).transpose(1, 2)):
            q.requires_grad_()
            (dq,) = torch.autograd.grad(ours(q, q.detach(), q.detach()).sum(), q)
            self.assertEqual(dq.stride(), q.stride())

    def test_gradcheck(self):
        q, k, v = (torch.randn(1, 2, 3, 4, dtype=torch.float64, requires_grad=True) for _ in range(3))
        mask = torch.randn(1, 1, 3, 3, dtype=torch.float64, requires_grad=True)
        self.assertTrue(torch.autograd.gradcheck(lambda *x: ours(*x), (q, k, v, mask)))

    def test_empty_sizes(self):
        for T, S in ((0, 3), (3, 0)):
            q, k, v = torch.randn(2, 3, T, 4), torch.randn(2, 3, S, 4), torch.randn(2, 3, S, 4)
            torch.testing.assert_close(ours(q, k, v), theirs(q, k, v))

    def test_tensors_of_other_devices_go_to_torch(self):
        q = torch.empty(2, 3, 4, 8, device="meta")
        self.assertEqual(ours(q, q, q).device.type, "meta")

    def test_bits_for_any_number_of_threads(self):
        q, k, v = (torch.randn(2, 4, 200, 16, requires_grad=True) for _ in range(3))
        results = []
        for threads in (1, 2, 3, 8):
            fovea.set_threads(threads)
            o = ours(q, k, v, is_causal=True)
            results.append([o, *torch.autograd.grad(o.sum(), (q, k, v))])
        fovea.set_threads(0)
        for result in results:
            self.assertTrue(all(torch.equal(a, b) for a, b in zip(result, results[0])))


class DropoutTest(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(1)
        self.qkv = [torch.randn(1, 2, 40, 8, dtype=torch.float64, requires_grad=True) for _ in range(3)]

    def test_the_generator_decides(self):
        torch.manual_seed(5)
        first, second = ours(*self.qkv, dropout_p=0.5), ours(*self.qkv, dropout_p=0.5)
        torch.manual_seed(5)
        self.assertTrue(torch.equal(ours(*self.qkv, dropout_p=0.5), first))
        self.assertFalse(torch.equal(first, second))

    def test_checkpointing_repeats_it(self):
        torch.manual_seed(5)
        plain = torch.autograd.grad(ours(*self.qkv, dropout_p=0.5).square().sum(), self.qkv)
        torch.manual_seed(5)
        again = torch.utils.checkpoint.checkpoint(
            lambda *x: ours(*x, dropout_p=0.5).square().sum(), *self.qkv, use_reentrant=False)
        for a, b in zip(plain, torch.autograd.grad(again, self.qkv)):
            self.assertTrue(torch.equal(a, b))

    def test_its_mean_is_the_weight(self):
        q, k, v = (x.detach() for x in self.qkv)
        mean = sum(ours(q, k, v, dropout_p=0.25) for _ in range(400)) / 400
        self.assertLess((mean - ours(q, k, v)).abs().max(), 0.15)

    def test_all_is_dropped(self):
        self.assertEqual(ours(*self.qkv, dropout_p=1.0).abs().max(), 0)


class AutogradTest(unittest.TestCase):
    def setUp(self):
        self.qkv = [torch.randn(1, 2, 3, 4, requires_grad=True) for _ in range(3)]

    def test_transforms_of_functions_are_errors(self):
        x = torch.randn(1, 2, 3, 4)

        def refused():
            attention = lambda x: ours(x, x, x)  # noqa: E731
            for call in (lambda: torch.vmap(attention)(torch.randn(2, 1, 2, 3, 4)),
                         lambda: torch.func.grad(lambda x: attention(x).sum())(x),
                         lambda: torch.func.jvp(attention, (x,), (x,))):
                with self.assertRaisesRegex(fovea.UsageError, r"(?s)torch\.func.*cannot transform.*leading axis"):
                    call()
        refused()
        with torch.no_grad():
            ours(x, x, x)  # from here on, a plan is at hand
            refused()
            with torch.autograd.forward_ad.dual_level(), self.assertRaises(RuntimeError):
                dual = torch.autograd.forward_ad.make_dual(x, x)
                ours(dual, x, x)

    def test_a_changed_input_is_an_error(self):
        q, k, v = self.qkv
        moved = k * 1
        o = ours(q, moved, v)
        moved.data.add_(0)
        with torch.no_grad():
            moved.mul_(2)
        with self.assertRaisesRegex(RuntimeError, "modified by an inplace operation"):
            o.sum().backward()

    def test_replace_sdpa(self):
        q, k, v = (x.detach().double() for x in self.qkv)
        functional = torch.nn.functional
        with fovea.torch.replace_sdpa():
            self.assertIs(functional.scaled_dot_product_attention, ours)
            layer = torch.nn.MultiheadAttention(8, 2, batch_first=True)
            x = torch.randn(2, 5, 8)
            inside = layer(x, x, x, need_weights=False)[0]
        self.assertIs(functional.scaled_dot_product_attention, theirs)
        torch.testing.assert_close(inside, layer(x, x, x, need_weights=False)[0])

    def test_operator_of_torch_library(self):
        operator = torch.ops.fovea.sdpa.default
        q, k, v = (torch.randn(1, 2, 3, 4, dtype=torch.float64, requires_grad=True) for _ in range(3))
        bias = torch.randn(1, 1, 3, 3, dtype=torch.float64, requires_grad=True)
        seed = torch.tensor(3)
        for mask, drawn in ((None, None), (bias, None), (None, seed)):
            torch.library.opcheck(operator, (q, k, v, mask, drawn, [0.5, 0.25 if drawn is not None else 0.0], True))

    def test_it_compiles_without_a_break(self):
        compiled = torch.compile(lambda *x: ours(*x, is_causal=True) * 2, fullgraph=True, backend="aot_eager")
        expected = torch.autograd.grad((ours(*self.qkv, is_causal=True) * 2).sum(), self.qkv)
        for a, b in zip(torch.autograd.grad(compiled(*self.qkv).sum(), self.qkv), expected):
            self.assertTrue(torch.equal(a, b))


class AttendTest(unittest.TestCase):
    """The operator with parts, on tensors."""

    def test_what_learns_has_the_gradients_of_numpy(self):
        torch.manual_seed(0)
        q, k, v = (torch.randn(2, 5, 4, 8, dtype=torch.float64, requires_grad=True) for _ in range(3))
        slopes = torch.rand(4, dtype=torch.float64, requires_grad=True)
        bias = torch.randn(1, 4, 5, 5, dtype=torch.float64)
        parts = {"causal": True, "observe": "entropy"}
        attended = fovea.torch.attend(q, k, v, slopes=slopes, bias=bias, **parts)
        do = torch.randn_like(attended.o)
        attended.o.backward(do)
        arrays = [x.detach().numpy() for x in (q, k, v)]
        expected = fovea.attend(*arrays, slopes=slopes.detach().numpy(), bias=bias.numpy(), **parts)
        gradients = expected.backward(do.numpy())
        for name, tensor in (("dq", q), ("dk", k), ("dv", v), ("dslopes", slopes)):
            self.assertEqual(tensor.grad.numpy().tobytes(), gradients[name].tobytes(), name)
        self.assertEqual(attended.entropy.numpy().tobytes(), expected.entropy.tobytes())
        self.assertEqual(attended.plan["mask"], "causal")
        self.assertIsNone(bias.grad)

    def test_gradcheck(self):
        q, k, v = (torch.randn(1, 3, 2, 4, dtype=torch.float64, requires_grad=True) for _ in range(3))
        sink = torch.randn(2, dtype=torch.float64, requires_grad=True)
        attention = lambda q, k, v, sink: fovea.torch.attention(q, k, v, sink=sink, softcap=3.0)  # noqa: E731
        self.assertTrue(torch.autograd.gradcheck(attention, (q, k, v, sink)))

    def test_lse_has_a_gradient(self):
        q, k, v = (torch.randn(1, 3, 2, 4, dtype=torch.float64, requires_grad=True) for _ in range(3))
        sink = torch.randn(2, dtype=torch.float64, requires_grad=True)

        def both(q, k, v, sink):
            attended = fovea.torch.attend(q, k, v, sink=sink, causal=True)
            return attended.o, attended.lse
        self.assertTrue(torch.autograd.gradcheck(both, (q, k, v, sink)))
        lse = both(q, k, v, sink)[1]  # alone, as a loss that keeps it small has it
        self.assertEqual(torch.autograd.grad(lse.sum(), v)[0].abs().max(), 0)

    def test_traced_functions_are_those_of_flex_attention(self):
        q, k, v = (torch.randn(2, 5, 4, 8, dtype=torch.float64, requires_grad=True) for _ in range(3))
        slopes = torch.rand(4, requires_grad=True)  # in a type of its own
        weight = torch.randn(5, dtype=torch.float64, requires_grad=True)
        ids = torch.tensor([0, 0, 1, 1, 1], dtype=torch.int16)

        def score(s, b, h, q_idx, kv_idx):
            return s * weight[q_idx] * weight[kv_idx] - slopes[h] * (q_idx - kv_idx).abs()

        def mask(b, h, q_idx, kv_idx):
            return (ids[q_idx] == ids[kv_idx]) | (kv_idx == 0)

        learned = (q, k, v, slopes, weight)
        attended = fovea.torch.attend(q, k, v, score_mod=score, mask_mod=mask, causal=True)
        got = torch.autograd.grad(attended.o.square().sum() + attended.lse.sum(), learned)
        block_mask = fovea.torch.create_block_mask(lambda *at: mask(*at) & (at[2] >= at[3]), None, None, 5, 5)
        o, lse = fovea.torch.flex_attention(*(x.transpose(1, 2) for x in (q, k, v)), score, block_mask, return_lse=True)
        self.assertLess((attended.o - o.transpose(1, 2)).abs().max(), 1e-12)
        for one, other in zip(got, torch.autograd.grad(o.square().sum() + lse.sum(), learned)):
            self.assertEqual(one.dtype, other.dtype)
            self.assertLess((one - other).abs().max(), 1e-5 if one.dtype == torch.float32 else 1e-12)
        self.assertEqual(attended.plan["mask"], "causal & traced")
        run = lambda *x: fovea.torch.attention(*x, score_mod=score, mask_mod=mask)  # noqa: E731
        self.assertTrue(torch.autograd.gradcheck(run, (q, k, v)))
        with self.assertRaisesRegex(fovea.UsageError, r"(?s)test_torch.py.*torch\.where"):
            fovea.torch.attention(q, k, v, mask_mod=lambda b, h, q, kv: q >= kv and q > 1)

    def test_a_changed_result_is_an_error(self):
        q, k, v = (torch.randn(1, 3, 2, 4, requires_grad=True) for _ in range(3))
        o = fovea.torch.attention(q, k, v)
        with torch.no_grad():
            o.mul_(2)  # the backward reads it
        with self.assertRaisesRegex(RuntimeError, "modified by an inplace operation"):
            o.sum().backward()

    def test_norms_without_an_lse(self):
        q, k, v = (torch.randn(1, 3, 2, 4, dtype=torch.float64, requires_grad=True) for _ in range(3))
        self.assertTrue(torch.autograd.gradcheck(lambda *x: fovea.torch.attention(*x, norm="sigmoid"), (q, k, v)))

    def test_errors(self):
        q = torch.randn(1, 3, 2, 4)
        with self.assertRaisesRegex(fovea.UsageError, "unknown keyword 'casual'"):
            fovea.torch.attention(q, q, q, casual=True)
        with self.assertRaisesRegex(fovea.UsageError, "axis H is 3, and 2 in q"):
            fovea.torch.attention(q, q, q, sink=torch.zeros(3))


if __name__ == "__main__":
    unittest.main()
