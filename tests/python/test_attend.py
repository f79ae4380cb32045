# SPDX-License-Identifier: Apache-2.0
"""`attention` and `attend`: values, gradients, views, plans, errors."""

import json
import os
import pathlib
import pickle
import re
import tempfile
import threading
import time
import unittest

import numpy as np
import support

import fovea
from fovea._errors import error_of
from fovea._parts import OF_OTHERS, options, tensors


def plain(q, k, v, keep=None):
    """softmax(q k^T / sqrt(D)) v by numpy."""
    H, G = q.shape[2], k.shape[2]
    k, v = (np.repeat(x, H // G, axis=2) for x in (k, v))
    s = np.einsum("bthd,bshd->bhts", q, k) / np.sqrt(q.shape[-1])
    s = s if keep is None else np.where(keep, s, -np.inf)
    p = np.exp(s - s.max(-1, keepdims=True))
    return np.einsum("bhts,bshd->bthd", p / p.sum(-1, keepdims=True), v)


class Wrapped:
    """An array that has DLPack alone."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


class ValuesTest(unittest.TestCase):
    def test_it_is_attention(self):
        p = support.Problem()
        np.testing.assert_allclose(fovea.attention(*p.qkv), plain(*p.qkv), rtol=1e-13, atol=1e-13)
        keep = np.arange(9) <= np.arange(7)[:, None] + 2
        np.testing.assert_allclose(fovea.attention(*p.qkv, causal=True), plain(*p.qkv, keep), rtol=1e-13, atol=1e-13)

    def test_float32_gives_float32(self):
        p = support.Problem(dtype=np.float32)
        self.assertEqual(fovea.attention(*p.qkv).dtype, np.float32)
        self.assertEqual(fovea.attention(*p.qkv, precision="f64").dtype, np.float64)

    def test_gradients_are_differences(self):
        p = support.Problem()
        parts = {"slopes": np.abs(p.normal(4)), "bias": p.normal(1, 4, 7, 9), "sink": p.normal(4)}
        options = {"causal": True, "softcap": 5, "dropout": 0.2, "seed": 3}
        gradients = fovea.attend(*p.qkv, **parts, **options).backward(p.do)
        self.assertEqual(set(gradients), {"dq", "dk", "dv", "dslopes", "dbias", "dsink"})
        tensors = {"q": p.q, "k": p.k, "v": p.v, **parts}
        for name, tensor in tensors.items():
            direction = p.normal(*tensor.shape)
            loss = [(fovea.attention(**{**tensors, name: tensor + h * direction}, **options) * p.do).sum()
                    for h in (1e-5, -1e-5)]
            self.assertAlmostEqual((gradients["d" + name] * direction).sum(), (loss[0] - loss[1]) / 2e-5, 5, name)

    def test_lse_has_a_gradient(self):
        p = support.Problem()
        dlse = p.normal(2, 4, 7)
        gradients = fovea.attend(*p.qkv, causal=True).backward(p.do, dlse)
        for name, at in (("q", 0), ("k", 1), ("v", 2)):
            direction = p.normal(*p.qkv[at].shape)
            loss = []
            for h in (1e-5, -1e-5):
                moved = [x + h * direction if n == at else x for n, x in enumerate(p.qkv)]
                attended = fovea.attend(*moved, causal=True)
                loss.append((attended.o * p.do).sum() + (attended.lse * dlse).sum())
            self.assertAlmostEqual((gradients["d" + name] * direction).sum(), (loss[0] - loss[1]) / 2e-5, 5, name)

    def test_any_strides_change_no_bit_and_are_not_copied(self):
        p = support.Problem()
        H, D = 4, 8
        heads_first = np.ascontiguousarray(p.q.transpose(0, 2, 1, 3)).transpose(0, 2, 1, 3)
        joined = np.zeros((2, 7, 3, H, D))
        joined[:, :, 1] = p.q
        broadcast = np.broadcast_to(p.normal(1, 1, 1, 9), (2, 4, 7, 9))
        expected = fovea.attention(*p.qkv, bias=broadcast.copy())
        for q in (heads_first, joined[:, :, 1], Wrapped(p.q)):
            np.testing.assert_array_equal(fovea.attention(q, p.k, p.v, bias=broadcast), expected)
        attended = fovea.attend(joined[:, :, 1], p.k, p.v)
        before = attended.backward(p.do)["dk"]
        joined[:] *= 2  # the memory of the call, which the backward reads again
        self.assertFalse(np.array_equal(attended.backward(p.do)["dk"], before))

    def test_read_only_and_empty_arrays(self):
        p = support.Problem()
        p.q.flags.writeable = False
        fovea.attention(*p.qkv)
        self.assertEqual(fovea.attention(p.q[:, :0], p.k, p.v).shape, (2, 0, 4, 6))
        self.assertEqual(fovea.attention(p.q, p.k[:, :0], p.v[:, :0]).tolist(), np.zeros((2, 7, 4, 6)).tolist())

    def test_the_results_are_attributes(self):
        p = support.Problem()
        attended = fovea.attend(*p.qkv, observe=["entropy", "topk=2"])
        self.assertEqual(attended.lse.shape, (2, 4, 7))
        self.assertEqual(attended.topk_index.dtype, np.int32)
        self.assertEqual(attended.topk_weight.shape, (2, 4, 7, 2))
        self.assertIn("entropy", dir(attended))
        with self.assertRaisesRegex(AttributeError, "entropi.*did you mean entropy"):
            attended.entropi  # noqa: B018

    def test_options_and_tensors_of_one_name(self):
        p = support.Problem()
        per_head = np.full((4, 2), (3, 0), np.int32)
        for window in ((3, 0), "3,0", [3, 0]):
            np.testing.assert_array_equal(fovea.attention(*p.qkv, window=window),
                                          fovea.attention(*p.qkv, window=per_head))

    def test_packed_sequences_of_int64(self):
        p = support.Problem(sizes=(1, 9, 9, 4, 2, 8, 6))
        offsets = np.array([0, 4, 9])
        o = fovea.attention(*p.qkv, query_offsets=offsets, key_offsets=offsets.astype(np.int32), causal=True)
        for begin, end in ((0, 4), (4, 9)):
            alone = fovea.attention(*(x[:, begin:end] for x in p.qkv), causal=True)
            np.testing.assert_array_equal(o[:, begin:end], alone)

    def test_bits_for_any_number_of_threads(self):
        p = support.Problem(sizes=(2, 200, 300, 4, 2, 8, 6), dtype=np.float32)
        def bits(threads):
            attended = fovea.attend(*p.qkv, causal=True, threads=threads)
            return [x.tobytes() for x in (attended.o, *attended.backward(p.do).values())]
        first = bits(1)
        for threads in (2, 3, 8):
            self.assertEqual(bits(threads), first)

    def test_the_plan_is_that_of_the_command(self):
        p = support.Problem(dtype=np.float32)
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "in.npz"
            np.savez(path, q=p.q, k=p.k, v=p.v)
            done = support.fovea("attention", path, "--causal", "--window", "3,0", "--plan", "--json", "--threads", 1)
        plan = fovea.attend(*p.qkv, causal=True, window=(3, 0), threads=1).plan
        self.assertEqual(plan, json.loads(done.stdout))

    def test_other_threads_of_python_run_meanwhile(self):
        p = support.Problem(sizes=(1, 1500, 1500, 8, 8, 64, 64), dtype=np.float32)
        stop, counted = threading.Event(), []

        def count():
            n = 0
            while not stop.is_set():
                n += 1
                time.sleep(0)
            counted.append(n)
        counter = threading.Thread(target=count)
        counter.start()
        fovea.attention(*p.qkv, threads=1)
        stop.set()
        counter.join()
        self.assertGreater(counted[0], 10)

    def test_a_forked_process_computes(self):
        p = support.Problem(sizes=(2, 200, 300, 4, 2, 8, 6))
        expected = fovea.attention(*p.qkv, threads=2)
        child = os.fork()
        if child == 0:
            os._exit(0 if np.array_equal(fovea.attention(*p.qkv, threads=2), expected) else 1)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)

    def test_set_threads(self):
        p = support.Problem()
        fovea.set_threads(1)
        fovea.attention(*p.qkv)
        fovea.set_threads(0)


class ErrorsTest(unittest.TestCase):
    def setUp(self):
        self.p = support.Problem()

    def assert_usage(self, message, hint=None, /, **arguments):
        p = self.p
        with self.assertRaises(fovea.UsageError) as raised:
            fovea.attend(**{"q": p.q, "k": p.k, "v": p.v, **arguments})
        self.assertIsInstance(raised.exception, ValueError)
        self.assertRegex(raised.exception.message, message)
        self.assertRegex(raised.exception.code, "^E02")
        if hint is not None:
            self.assertRegex(raised.exception.hint, hint)

    def test_keywords(self):
        self.assert_usage("attend: unknown keyword 'casual'", "did you mean causal", casual=True)
        self.assert_usage("unknown keyword 'backward'", r"\.backward\(do\)", backward=True)
        self.assert_usage("^softcap: -1", softcap=-1)
        self.assert_usage("^window: ", window=(1, 2, 3))
        self.assert_usage("^dropout: ", dropout="much")
        self.assert_usage("causal: .*sideways", causal="sideways")
        self.assert_usage("observe: .*entropi", "did you mean entropy", observe="entropi")
        self.assert_usage("observe: .*topk", "^write observe='topk=8', for example$", observe="topk")
        self.assert_usage("scale: expected", scale=object())
        self.assert_usage("threads: -1", threads=-1)
        self.assert_usage("threads: 1.5", threads=1.5)

    def test_types(self):
        p = self.p
        self.assert_usage("q holds float64 and k float32", k=p.k.astype(np.float32))
        self.assert_usage("slopes float32", slopes=np.ones(4, np.float32))
        self.assert_usage("q must hold float32, float64 or bfloat16; it holds int64", q=p.q.astype(int))
        self.assert_usage("q: it holds float16", q=p.q.astype(np.float16))
        self.assert_usage("q: expected an array; got list", q=[[1.0]])
        self.assert_usage("key_lengths must hold int32 or int64; it holds float64", key_lengths=np.ones(2))
        self.assert_usage("keep must hold uint8 or bool", keep=np.ones((1, 1, 7, 9), np.int32))

    def test_memory_that_cannot_be_read(self):
        p = self.p
        records = np.zeros(p.q.shape, [("a", np.float64), ("b", np.float32)])["a"]
        for array, message, hint in (
                (records, "axis 3 has a stride of 12 bytes, .* multiple of the 8", "ascontiguousarray"),
                (p.q.astype(">f8"), "it holds >f8, .*other order", "newbyteorder"),
                (p.q.astype(object), "it holds object", "astype"),
                (p.q.astype(np.longdouble), "it holds float128", "astype"),
                (np.ma.masked_array(p.q, p.q > 1), "a masked array", "filled")):
            self.assert_usage("^q: " + message, hint, q=array)
            with self.assertRaisesRegex(fovea.UsageError, "^do: "):
                fovea.attend(*p.qkv).backward(array)
        self.assert_usage("^bias: a masked array", bias=np.ma.masked_array(np.zeros((1, 1, 7, 9))))
        with self.assertRaisesRegex(fovea.UsageError, "do: expected an array; got None"):
            fovea.attend(*p.qkv).backward(None)

    def test_sizes(self):
        p = self.p
        self.assert_usage(r"^attention: k must be \[B, S, G, D\].*axis D is 7, and 8 in q",
                          k=np.ascontiguousarray(p.k[..., :7]))
        self.assert_usage("axis S is 8, and 9 in k", v=p.v[:, :8])
        self.assert_usage("(?s)3.*2", q=p.q[:, :, :3])
        self.assert_usage("slopes must be .H.; .*axis H is 3, and 4 in q", slopes=np.ones(3))
        self.assert_usage("q must be .B, T, H, D.", q=p.q[0])
        self.assert_usage("k: its last axis is not contiguous", "ascontiguousarray", k=p.k[..., ::2])
        self.assert_usage("negative stride", q=p.q[:, ::-1])
        self.assert_usage("query_offsets is there without key_offsets", query_offsets=np.array([0, 7]))
        self.assert_usage("too many axes|7 axes", q=np.ones((1,) * 7))

    def test_messages_of_the_command_name_keywords_and_pages(self):
        self.assert_usage(r"key_lengths\[1\]", r"^help\(fovea.attend\) lists the tensors", key_lengths=np.array([3, 90]))
        self.assert_usage("dropout", "^dropout: probability of dropping a weight .a finite number", dropout=2)
        self.assert_usage("softcap: expected", r"^help\(\) of the function", softcap=object())
        for said, meant in (("--lr: '--lr' in /a--b/--c", "lr: '--lr' in /a--b/--c"),
                            ("see: fovea --help", "see: help(fovea)"),
                            ("see: fovea train lm --help", "see: help(fovea.LanguageModel.train)"),
                            ("see: fovea tokenizer help", "see: fovea tokenizer --help"),
                            ("the kind that the command's help names", "the kind that help() of the function names"),
                            ("fovea inspect --verify names it", "fovea inspect --verify names it"),
                            ("say --no-tie or --batch-size N", "say tie=False or batch_size N")):
            self.assertEqual(error_of("E0201", said, said).hint, meant)

    def test_no_hint_names_a_file_that_a_wheel_does_not_have(self):
        package = pathlib.Path(fovea.__file__).parent
        texts = {path.name: path.read_text(encoding="utf-8") for path in package.rglob("*.py")}
        self.assertGreater(len(texts), 20)
        for name, text in texts.items():
            self.assertNotIn("docs/", text, name)
        self.assertNotIn(b"docs/", (package / "_fovea.abi3.so").read_bytes())
        self.assertNotIn(b"docs/", (package / "bin/fovea").read_bytes())

    def test_keywords_of_others_are_answered(self):
        for name in OF_OTHERS:
            self.assert_usage(f"^attend: unknown keyword '{name}'", "^" + re.escape(OF_OTHERS[name]), **{name: None})
            for keyword in re.findall(r"(\w+)=", OF_OTHERS[name]):
                self.assertIn(keyword, (*tensors(), *options()), name)
        self.assert_usage("is_causal", "^write causal=True", is_causal=True)

    def test_a_window_is_answered_in_python(self):
        for wrong in (5, (5,), (1, 2, 3), (-3, 2), (1.5, 0), ("a", 1)):
            self.assert_usage(r"^window: expected \(left, right\), .*; got " + re.escape(repr(wrong)),
                              r"window=\(8, 0\) sees 8 keys", window=wrong)
        for given in ((2, -1), [2, -1], np.array([2, -1]).tolist(), "2,-1"):
            self.assertEqual(fovea.attend(*self.p.qkv, window=given).plan["mask"],
                             fovea.attend(*self.p.qkv, window=(2, -1)).plan["mask"])

    def test_repr(self):
        attended = fovea.attend(*self.p.qkv, causal=True, slopes=np.ones(4), observe="entropy")
        self.assertEqual(repr(attended), "Attended(o: float64 [2, 7, 4, 6], lse: float64 [2, 4, 7], entropy: float64 "
                         "[2, 4, 7]; causal='bottom-right', observe='entropy', slopes=[4])")
        self.assertEqual(repr(fovea.attend(*self.p.qkv)), "Attended(o: float64 [2, 7, 4, 6], lse: float64 [2, 4, 7])")

    def test_backward(self):
        attended = fovea.attend(*self.p.qkv)
        with self.assertRaisesRegex(fovea.UsageError, "do must be .*axis T is 6, and 7 in q"):
            attended.backward(self.p.do[:, :6])
        with self.assertRaisesRegex(fovea.UsageError, "o holds float64 and do float32"):
            attended.backward(self.p.do.astype(np.float32))
        with self.assertRaisesRegex(fovea.UsageError, "lse holds float64 and dlse float32"):
            attended.backward(self.p.do, np.ones((2, 4, 7), np.float32))
        with self.assertRaisesRegex(fovea.UsageError, "dlse must be .*axis T is 6, and 7 in q"):
            attended.backward(self.p.do, np.ones((2, 4, 6)))
        with self.assertRaisesRegex(fovea.UsageError, "sigmoid has no log-sum-exp"):
            fovea.attend(*self.p.qkv, norm="sigmoid").backward(self.p.do, np.ones((2, 4, 7)))

    def test_too_much_memory(self):
        q = np.broadcast_to(np.ones((1, 1, 1, 1), np.float32), (1, 1 << 26, 1, 1))
        with self.assertRaises(fovea.OutOfMemory) as raised:
            fovea.attend(q, q, q, observe="weights")
        self.assertIsInstance(raised.exception, MemoryError)

    def test_an_error_has_code_and_hint_and_can_be_pickled(self):
        with self.assertRaises(fovea.Error) as raised:
            fovea.attention(*self.p.qkv, softcap=-1)
        error = pickle.loads(pickle.dumps(raised.exception))
        self.assertEqual((type(error), error.code), (fovea.UsageError, "E0203"))
        self.assertIn("hint: ", str(error))

    def test_results_are_not_pickled(self):
        with self.assertRaises(TypeError):
            pickle.dumps(fovea.attend(*self.p.qkv))

    def test_observing_without_looking(self):
        with self.assertRaisesRegex(fovea.UsageError, "only o is returned"):
            fovea.attention(*self.p.qkv, observe="entropy")


if __name__ == "__main__":
    unittest.main()
