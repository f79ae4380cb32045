# SPDX-License-Identifier: Apache-2.0
"""fovea.torch on rows of bfloat16: beside torch's own attention in bfloat16, both against float64."""

import unittest

try:
    import torch
except ImportError as error:
    raise unittest.SkipTest("PyTorch is not installed: fovea.torch is not tested") from error

import numpy as np

import fovea
import fovea.torch as ours

B, H, T, S, D = 2, 4, 70, 130, 32
EPSILON = 2**-8  # of bfloat16
theirs = torch.nn.functional.scaled_dot_product_attention


def rows(f):
    """A function of [B, T, H, D] as one of [B, H, T, D]."""
    return lambda *qkv: f(*(x.transpose(1, 2) for x in qkv)).transpose(1, 2)


def packed(q, k, v):
    """One call for all sequences."""
    def offsets(length):
        return torch.arange(0, (B + 1) * length, length, dtype=torch.int32)

    q, k, v = (x.transpose(1, 2).flatten(0, 1) for x in (q, k, v))
    o = ours.varlen_attn(q, k, v, offsets(T), offsets(S), T, S)
    return o.unflatten(0, (B, T)).transpose(1, 2)


FUNCTIONS = {
    "scaled_dot_product_attention": ours.scaled_dot_product_attention,
    "flex_attention": ours.flex_attention,
    "attention": rows(ours.attention),
    "varlen_attn": packed,
}


def operands(seed=0):
    """q, k, v, do and a mask, as bfloat16 holds them, in float64."""
    generator = torch.Generator().manual_seed(seed)
    shapes = (B, H, T, D), (B, H, S, D), (B, H, S, D), (B, H, T, D), (H, T, S)
    return [torch.randn(*shape, generator=generator).bfloat16().double() for shape in shapes]


def results(f, dtype, seed=0):
    """o and the gradients of q, k and v, in float64, with rows of a type."""
    q, k, v, do, _ = (x.to(dtype) for x in operands(seed))
    qkv = [x.requires_grad_() for x in (q, k, v)]
    o = f(*qkv)
    assert o.dtype == dtype, o.dtype
    o.backward(do)
    assert all(x.grad.dtype == dtype for x in qkv)
    return [x.detach().double() for x in (o, *(x.grad for x in qkv))]


def errors(got, expected):
    return [((a - b).norm() / b.norm()).item() for a, b in zip(got, expected)]


class BFloat16Test(unittest.TestCase):
    def test_values_and_gradients(self):
        expected, wide = results(theirs, torch.float64), results(ours.scaled_dot_product_attention, torch.float32)
        bounds = [2 * e for e in errors(results(theirs, torch.bfloat16), expected)]
        for name, f in FUNCTIONS.items():
            with self.subTest(name):
                got = results(f, torch.bfloat16)
                for error, bound in zip(errors(got, expected), bounds):
                    self.assertLessEqual(error, bound)
                # The backward of rows of float32 reads an o that is not rounded.
                self.assertFalse(torch.equal(got[1], wide[1].bfloat16().double()))

    def test_threads_change_no_bit(self):
        for name, f in FUNCTIONS.items():
            before = torch.get_num_threads()
            try:
                found = []
                for threads in (1, 3):
                    torch.set_num_threads(threads)
                    found.append(results(f, torch.bfloat16))
            finally:
                torch.set_num_threads(before)
            with self.subTest(name):
                self.assertTrue(all(torch.equal(a, b) for a, b in zip(*found)))

    def test_learned_masks(self):
        *rows, mask = operands()
        expected = self.with_mask(rows, mask)
        for of_mask in (torch.float32, torch.bfloat16):
            got = self.with_mask([x.bfloat16() for x in rows], mask.to(of_mask))
            self.assertEqual(got[1].dtype, of_mask)
            for error in errors(got, expected):
                self.assertLessEqual(error, 2 * EPSILON)

    @staticmethod
    def with_mask(given, mask):
        q, k, v, do = given
        mask = mask.detach().clone().requires_grad_()
        o = ours.scaled_dot_product_attention(q, k, v, mask)
        o.backward(do)
        return o.detach(), mask.grad

    def test_a_score_function_and_its_lse(self):
        q, k, v, _, bias = operands()
        q, k, v = (x.bfloat16() for x in (q, k, v))
        learned = bias.float().requires_grad_()
        o, lse = ours.flex_attention(q, k, v, lambda s, b, h, i, j: torch.tanh(s) + learned[h, i, j], return_lse=True)
        (o.float().sum() + lse.sum()).backward()
        self.assertEqual((o.dtype, lse.dtype, learned.grad.dtype), (torch.bfloat16, torch.float32, torch.float32))
        scores = torch.tanh(q.double() @ k.double().transpose(2, 3) / D**0.5) + bias
        torch.testing.assert_close(lse.double(), scores.logsumexp(3), rtol=1e-5, atol=1e-5)
        torch.testing.assert_close(o.double(), scores.softmax(3) @ v.double(), rtol=2 * EPSILON, atol=2 * EPSILON)

    def test_attend_says_what_it_computes(self):
        q, k, v, _, _ = operands()
        q, k, v = (x.bfloat16().transpose(1, 2) for x in (q, k, v))
        self.assertIn("bfloat16", ours.attend(q, k, v).plan["kernel"])
        self.assertNotIn("bfloat16", ours.attend(q, k, v, precision="f32").plan["kernel"])
        self.assertNotIn("bfloat16", ours.attend(q, k.float(), v).plan["kernel"])
        self.assertEqual(ours.attend(q, k, v, precision="f32").o.dtype, torch.bfloat16)
        sink = torch.zeros(H, dtype=torch.bfloat16, requires_grad=True)
        found = ours.attend(q, k, v, sink=sink, observe="entropy")
        found.lse.sum().backward()  # without a gradient of o
        self.assertEqual((sink.grad.dtype, found.entropy.dtype), (torch.bfloat16, torch.float32))
        with self.assertRaisesRegex(fovea.UsageError, "q holds bfloat16 and sink float64"):
            ours.attend(q, k, v, sink=sink.double())

    def test_flex_says_what_it_computes(self):
        q, k, v = (x.bfloat16() for x in operands()[:3])
        self.assertIn("bfloat16", ours.flex_plan(q, k, v)["kernel"])
        self.assertNotIn("bfloat16", ours.flex_plan(q.float(), k.float(), v.float())["kernel"])

    def test_gradients_of_results_of_another_type(self):
        q, k, v, do, _ = (x.transpose(1, 2) for x in operands())
        for rows, precision, o in ((torch.bfloat16, "f64", torch.bfloat16), (torch.float64, "bf16", torch.float64),
                                   (torch.float32, "f64", torch.float32), (torch.float64, "f32", torch.float64)):
            with self.subTest(rows=rows, precision=precision):
                learns = q.to(rows).clone().requires_grad_()
                found = ours.attend(learns, k.to(rows), v.to(rows), precision=precision).o
                self.assertEqual(found.dtype, o)
                found.backward(do.to(o))
                self.assertEqual(learns.grad.dtype, rows)
                ours.attend(learns, k.to(rows), v.to(rows), precision=precision).lse.sum().backward()
        found = fovea.attend(*(x.contiguous().numpy() for x in (q, k, v)), precision="bf16")
        of_float32 = found.backward(np.ones_like(found.o))
        np.testing.assert_array_equal(of_float32["dq"], found.backward(np.ones(found.o.shape))["dq"])

    def test_the_operator_itself_checks_types(self):
        q, k, v = operands()[:3]
        for given in ((q, k.bfloat16(), v), (q.half(), k.half(), v.half()), (q.bfloat16(), k.float(), v.bfloat16())):
            with self.assertRaisesRegex(fovea.UsageError, "fovea::sdpa: query, key and value hold"):
                torch.ops.fovea.sdpa(*given, None, None, [0.5, 0.0], False)
        mask = torch.zeros(1, 1, T, S, dtype=torch.bfloat16)
        with self.assertRaisesRegex(fovea.UsageError, "the mask holds torch.bfloat16"):
            torch.ops.fovea.sdpa(q.bfloat16(), k.bfloat16(), v.bfloat16(), mask, None, [0.5, 0.0], False)

    def test_compiled(self):
        tensors = [x.bfloat16().requires_grad_() for x in operands()[:3]]
        numbers = [0.5, 0.0]
        torch.library.opcheck(torch.ops.fovea.sdpa, (*tensors, None, None, numbers, True))
        mask = operands()[4].float().unsqueeze(0).requires_grad_()
        torch.library.opcheck(torch.ops.fovea.sdpa, (*tensors, mask, None, numbers, False))

    def test_numpy_has_its_results_as_float32(self):
        q, k, v = (x.float().transpose(1, 2).contiguous().numpy() for x in operands()[:3])
        found = fovea.attend(q, k, v, precision="bf16")
        self.assertEqual((found.o.dtype, found.lse.dtype), (np.float32, np.float32))
        rounded = torch.from_numpy(found.o).bfloat16().float().numpy()
        np.testing.assert_array_equal(found.o, rounded)
        gradients = found.backward(np.ones_like(found.o))
        self.assertEqual(gradients["dq"].dtype, np.float32)
        with self.assertRaisesRegex(fovea.UsageError, "bfloat16"):
            fovea.attend(q, k, v, bias=torch.zeros(1, H, T, S, dtype=torch.bfloat16))


if __name__ == "__main__":
    unittest.main()
