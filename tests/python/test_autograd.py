# SPDX-License-Identifier: Apache-2.0
"""What autograd and autocast see of every function of fovea.torch that has gradients."""

import unittest

try:
    import torch
except ImportError as error:
    raise unittest.SkipTest("PyTorch is not installed: fovea.torch is not tested") from error

import fovea
import fovea.torch as ours

LENGTH = 20


def rows(f):
    """A function of [B, T, H, D] as one of [B, H, T, D]."""
    return lambda *qkv, **more: f(*(x.transpose(1, 2) for x in qkv), **more).transpose(1, 2)


FUNCTIONS = {
    "scaled_dot_product_attention": ours.scaled_dot_product_attention,
    "flex_attention": ours.flex_attention,
    "attention": rows(ours.attention),
}


def operands(dtype=torch.float64):
    generator = torch.Generator().manual_seed(0)
    return [torch.randn(1, 2, LENGTH, 8, generator=generator, dtype=torch.float64).to(dtype) for _ in range(3)]


class SecondDerivativesTest(unittest.TestCase):
    """They are an error, whichever way asks for them: never a wrong number."""

    def each(self):
        for name, f in FUNCTIONS.items():
            q, k, v = operands()
            q.requires_grad_()
            with self.subTest(name):
                yield f, q, k, v

    def test_of_the_inputs(self):
        for f, q, k, v in self.each():
            (g,) = torch.autograd.grad(f(q, k, v).sum(), q, create_graph=True)
            for differentiate in (lambda: g.sum().backward(), lambda: torch.autograd.grad(g.sum(), q)):
                with self.assertRaisesRegex(RuntimeError, "no second derivatives"):
                    differentiate()

    def test_of_the_gradient_of_the_output(self):
        for f, q, k, v in self.each():
            do = torch.ones_like(q, requires_grad=True)
            (g,) = torch.autograd.grad(f(q, k, v), q, do, create_graph=True)
            with self.assertRaisesRegex(RuntimeError, "no second derivatives"):
                torch.autograd.grad(g.sum(), do)

    def test_hessian(self):
        for f, q, k, v in self.each():
            with self.assertRaisesRegex(RuntimeError, "no second derivatives"):
                torch.autograd.functional.hessian(lambda x: f(x, k, v).square().sum(), q.detach())

    def test_a_graph_that_nobody_differentiates_has_the_same_gradients(self):
        for f, q, k, v in self.each():
            first, second = (torch.autograd.grad(f(q, k, v).sum(), q, create_graph=graph)[0] for graph in (True, False))
            self.assertTrue(torch.equal(first, second))


class CapturesTest(unittest.TestCase):
    """The backward reads what functions captured once more."""

    def test_a_change_before_the_backward_is_an_error(self):
        table, ids = torch.randn(LENGTH, dtype=torch.float64), torch.arange(LENGTH) // 4
        mask = ours.create_block_mask(lambda b, h, i, j: ids[i] == ids[j], None, None, LENGTH, LENGTH)
        attend = rows(ours.attention)
        calls = {
            "score_mod": (table, lambda q, k, v: ours.flex_attention(q, k, v, lambda s, b, h, i, j: s + table[j])),
            "block_mask": (ids, lambda q, k, v: ours.flex_attention(q, k, v, None, mask)),
            "attention": (ids, lambda q, k, v: attend(q, k, v, mask_mod=lambda b, h, i, j: ids[i] == ids[j])),
        }
        for name, (captured, f) in calls.items():
            q, k, v = operands()
            q.requires_grad_()
            with self.subTest(name):
                o = f(q, k, v)
                captured.add_(1)
                with self.assertRaisesRegex(fovea.UsageError, r"captured tensor \[20\] was changed in place"):
                    o.sum().backward()
                f(q, k, v).sum().backward()  # a new call reads what it holds now


class TypesTest(unittest.TestCase):
    def test_float16_is_computed_in_float32(self):
        for name, f in FUNCTIONS.items():
            q, k, v = operands(torch.float16)
            with self.subTest(name):
                o = f(q.requires_grad_(), k, v)
                self.assertTrue(torch.equal(o, f(q.float(), k.float(), v.float()).half()))
                o.sum().backward()
                self.assertEqual((o.dtype, q.grad.dtype), (torch.float16, torch.float16))

    def test_autocast(self):
        for name, f in FUNCTIONS.items():
            with self.subTest(name), torch.autocast("cpu", torch.bfloat16):
                self.assertEqual(f(*operands(torch.float32)).dtype, torch.bfloat16)
                self.assertEqual(f(*operands()).dtype, torch.float64)


if __name__ == "__main__":
    unittest.main()
