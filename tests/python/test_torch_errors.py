# SPDX-License-Identifier: Apache-2.0
"""What the functions of fovea.torch say of arguments that cannot be."""

import unittest

try:
    import torch
except ImportError as error:
    raise unittest.SkipTest("PyTorch is not installed: fovea.torch is not tested") from error

import fovea
import fovea.torch

ours = fovea.torch.scaled_dot_product_attention


class SdpaTest(unittest.TestCase):
    def assert_usage(self, message, *tensors, **options):
        with self.assertRaisesRegex(fovea.UsageError, message) as raised:
            ours(*tensors, **options)
        self.assertIsInstance(raised.exception, ValueError)

    def test_what_does_not_fit(self):
        q, k = torch.randn(2, 4, 3, 8), torch.randn(2, 4, 5, 8)
        self.assert_usage("attn_mask and is_causal", q, k, k, torch.ones(3, 5, dtype=torch.bool), is_causal=True)
        self.assert_usage("query holds torch.float32 and key torch.float64", q, k.double(), k.double())
        self.assert_usage("query: it holds torch.int32", q.int(), k.int(), k.int())
        self.assert_usage("last axis of query is 8, and 7 in key", q, k[..., :7], k)
        self.assert_usage("axis -2 of key is 5, and 4 in value", q, k, k[:, :, :4])
        self.assert_usage("axis -3 of query is 4, and 3 in key", q, k[:, :3], k[:, :3], enable_gqa=True)
        self.assert_usage("do not broadcast", q, k[:, :3], k[:, :3])
        self.assert_usage("do not broadcast", torch.randn(3, 4, 3, 8), k, k)
        self.assert_usage(r"attn_mask is \[3, 6\], which does not broadcast to \[2, 4, 3, 5\]", q, k, k,
                          torch.ones(3, 6, dtype=torch.bool))
        self.assert_usage("attn_mask holds torch.int32", q, k, k, torch.ones(3, 5, dtype=torch.int32))
        self.assert_usage("dropout_p: 2", q, k, k, dropout_p=2)
        self.assert_usage("query: 1 axes", q[0, 0, 0], k, k)

    def test_what_is_of_another_kind(self):
        q = torch.randn(2, 4, 3, 8)
        for _ in range(2):  # the second time, a plan is at hand
            self.assert_usage("query: expected a tensor; got NoneType", None, q, q)
            self.assert_usage("(?s)key: expected a tensor; got ndarray.*torch.from_numpy", q, q.numpy(), q)
            self.assert_usage("attn_mask: expected a tensor; got list", q, q, q, [[1]])
            self.assert_usage("dropout_p: expected a number; got 'a'", q, q, q, dropout_p="a")
            self.assert_usage("dropout_p: expected a number; got None", q, q, q, dropout_p=None)
            self.assert_usage("scale: expected a number; got '1'", q, q, q, scale="1")
            self.assert_usage("scale: expected a number; got Tensor", q, q, q, scale=torch.ones(3))
            self.assert_usage("is_causal: expected a bool; got list", q, q, q, is_causal=[])
            self.assert_usage("enable_gqa: expected a bool; got 'no'", q, q, q, enable_gqa="no")
            self.assert_usage("(?s)sparse.*to_dense", q.to_sparse(), q, q)
            ours(q, q, q)
        self.assertTrue(torch.equal(ours(q, q, q, is_causal=1, scale=torch.tensor(0.5)),
                                    ours(q, q, q, is_causal=True, scale=0.5)))

    def test_tensors_of_two_devices(self):
        q, mask = torch.randn(2, 4, 3, 8), torch.zeros(3, 3)
        self.assert_usage("query is on cpu and attn_mask on meta", q, q, q, mask.to("meta"))
        self.assert_usage("query is on cpu and value on meta", q, q, q.to("meta"))
        self.assert_usage("query is on meta and attn_mask on cpu", *[q.to("meta")] * 3, mask)


class BlockMaskTest(unittest.TestCase):
    def create(self, *sizes, **options):
        return fovea.torch.create_block_mask(lambda b, h, q, kv: q >= kv, *sizes, **options)

    def test_keywords(self):
        with self.assertRaisesRegex(fovea.UsageError, "(?s)'BLOCKSIZE'.*did you mean BLOCK_SIZE"):
            self.create(None, None, 8, 9, BLOCKSIZE=64)
        self.assertEqual(self.create(None, None, 8, 9, separate_full_blocks=True).shape, (1, 1, 8, 9))

    def test_sizes(self):
        for sizes, message in (((0, None, 8, 9), "B: 0 is not positive"), ((-1, None, 8, 9), "(?s)B: -1 .*None"),
                               ((None, 0, 8, 9), "H: 0 is not positive"), ((None, None, 0, 9), "Q_LEN: 0"),
                               ((None, None, 8.5, 9), "Q_LEN: expected a whole number; got 8.5"),
                               ((None, None, 8, "9"), "KV_LEN: expected a whole number; got '9'")):
            with self.subTest(sizes), self.assertRaisesRegex(fovea.UsageError, message):
                self.create(*sizes)
        whole = "expected a whole number; got "
        for block, message in (((64, 64, 64), "expected one number or two; got 3"), (0, "0 is not positive"),
                               ((64, None), whole + "None"), ("64", whole + "'64'")):
            with self.subTest(block), self.assertRaisesRegex(fovea.UsageError, "BLOCK_SIZE: " + message):
                self.create(None, None, 8, 9, BLOCK_SIZE=block)
        self.assertEqual(self.create(None, None, 8, 9, device=None).shape, (1, 1, 8, 9))
        self.assertEqual(self.create(torch.tensor(2), None, 8, 9, BLOCK_SIZE=[64, 32]).BLOCK_SIZE, (64, 32))


class TracingTest(unittest.TestCase):
    def test_it_is_refused_by_name(self):
        q = torch.randn(1, 2, 3, 4)
        for name, call in (("scaled_dot_product_attention", fovea.torch.scaled_dot_product_attention),
                           ("flex_attention", fovea.torch.flex_attention), ("attend", fovea.torch.attention)):
            call(q, q, q)  # what is planned once is refused, too
            with self.subTest(name), self.assertRaisesRegex(fovea.UsageError, f"^{name}: torch.jit.trace cannot"):
                torch.jit.trace(call, (q, q, q))


class FlexTest(unittest.TestCase):
    def test_a_captured_tensor_is_named(self):
        q, near, far = torch.randn(1, 2, 3, 4), torch.zeros(2, 3), torch.zeros(2, 2, requires_grad=True)
        mask = fovea.torch.create_block_mask(lambda b, h, i, j: far[h, i] >= 0, None, None, 3, 3)
        for said, call in (
                ("far of score_mod", lambda: fovea.torch.flex_attention(q, q, q, lambda s, b, h, i, j: s + far[h, i])),
                ("near of score_mod", lambda: fovea.torch.flex_attention(
                    q, q, q, lambda s, b, h, i, j: s + near[h, s.int() + 9])),
                ("far of mask_mod", lambda: fovea.torch.flex_attention(
                    q, q, q, lambda s, b, h, i, j: s + near[h, j], mask)),
                ("far of mask_mod", lambda: fovea.torch.attend(
                    *[q.transpose(1, 2)] * 3, mask_mod=lambda b, h, i, j: far[h, i] > 0))):
            with self.subTest(said), self.assertRaisesRegex(
                    fovea.UsageError, rf"captured tensor {said}(?s:.*)test_torch_errors\.py:\d+: .*{said.split()[0]}\["):
                call()

    def test_a_scale_is_a_number(self):
        q = torch.randn(1, 2, 3, 4)
        with self.assertRaisesRegex(fovea.UsageError, "scale: expected a number; got 'x'"):
            fovea.torch.flex_attention(q, q, q, scale="x")

    def test_arguments_of_another_kind(self):
        q = torch.randn(1, 2, 3, 4)
        for call in (fovea.torch.flex_attention, fovea.torch.flex_plan):
            with self.assertRaisesRegex(fovea.UsageError, "key: expected a tensor; got ndarray"):
                call(q, q.numpy(), q)
        with self.assertRaisesRegex(fovea.UsageError, "return_aux: expected an AuxRequest; got int"):
            fovea.torch.flex_attention(q, q, q, return_aux=3)

    def test_gradients_cannot_be_stopped_inside(self):
        q, table = torch.randn(1, 2, 3, 4), torch.randn(3, requires_grad=True)

        def stopped(score, b, h, q_idx, kv_idx):
            with torch.no_grad():
                return score * 2

        def stopped_alone(score, b, h, q_idx, kv_idx):
            with torch.no_grad():
                other = (score.clone, score.detach, score.float)[way]()
            return other * 2

        for way in range(3):
            with self.subTest(way), self.assertRaisesRegex(fovea.UsageError, "cannot be stopped"):
                fovea.torch.flex_attention(q, q, q, stopped_alone)
        for function in (stopped, lambda score, *at: score.detach() * 2):
            with self.assertRaisesRegex(fovea.UsageError, r"(?s)test_torch_errors\.py:\d+.*table\.detach\(\)"):
                fovea.torch.flex_attention(q, q, q, function)
            with torch.no_grad():  # around the call, nothing is stopped
                fovea.torch.flex_attention(q, q, q, function)

    def test_a_table_read_without_gradients_has_none_there(self):
        q, table = torch.randn(1, 2, 3, 4), torch.randn(3, requires_grad=True)

        def stopped_read(kv_idx):
            with torch.no_grad():
                return table[kv_idx]

        def gradient(function):
            output = fovea.torch.flex_attention(q, q, q.detach().requires_grad_(), function)
            return torch.autograd.grad(output.square().sum(), table, allow_unused=True)[0]

        constant = table.detach().clone()
        exact = gradient(lambda score, b, h, i, j: score + table[j] + constant[j])
        self.assertIsNone(gradient(lambda score, b, h, i, j: score + stopped_read(j)))
        self.assertTrue(torch.equal(gradient(lambda score, b, h, i, j: score + table[j] + stopped_read(j)), exact))
        torch.testing.assert_close(gradient(lambda score, b, h, i, j: score + stopped_read(j) + table[j]), exact)


if __name__ == "__main__":
    unittest.main()
