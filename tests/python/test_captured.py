# SPDX-License-Identifier: Apache-2.0
"""What traced functions of arrays capture, and what is wrong with them."""

import math
import threading
import unittest

import numpy as np
from flex_functions import B, H, S, T, problem
from support import Problem, relative_error

import fovea


class CapturedTest(unittest.TestCase):
    def test_each_backward_replaces_the_gradient(self):
        p, table = problem(), fovea.captured(np.random.default_rng(0).standard_normal((H, S)))
        self.assertIsNone(table.grad)
        attended = fovea.attend(*p.qkv, score_mod=lambda s, b, h, q, kv: s + table[h, kv])
        attended.backward(p.do)
        first = table.grad
        attended.backward(2 * p.do)
        np.testing.assert_allclose(table.grad, 2 * first, rtol=1e-12)
        self.assertIsNot(table.grad, first)

    def test_what_is_whole_or_in_a_mask_has_none(self):
        p, ids, limits = problem(), fovea.captured(np.arange(S) // 7), fovea.captured(np.full(T, 30.0))
        fovea.attend(*p.qkv, score_mod=lambda s, b, h, q, kv: s * (ids[kv] > 2),
                     mask_mod=lambda b, h, q, kv: kv < limits[q]).backward(p.do)
        self.assertIsNone(ids.grad)
        self.assertIsNone(limits.grad)

    def test_types_and_strides(self):
        p = problem()
        ids = np.random.default_rng(5).integers(0, 9, (S, T))
        expected = fovea.attention(*p.qkv, keep=np.ascontiguousarray(ids.T == 4)[None, None])
        for dtype in ("i1", "u1", "i2", "u2", "i4", "u4", "i8", "f4", "f8", ">i4"):
            for array in (np.ascontiguousarray(ids.T.astype(dtype)), ids.astype(dtype).T,
                          np.ascontiguousarray(ids.T.astype(dtype)[:, ::-1])[:, ::-1]):
                table = fovea.captured(array)
                got = fovea.attention(*p.qkv, mask_mod=lambda b, h, q, kv, table=table: table[q, kv] == 4)
                np.testing.assert_array_equal(got, expected, str(dtype))
        kept = fovea.captured(ids.T == 4)
        np.testing.assert_array_equal(fovea.attention(*p.qkv, mask_mod=lambda b, h, q, kv: kept[q, kv]), expected)

    def test_strided_numbers_have_a_gradient_in_their_shape(self):
        p = problem()
        values = np.random.default_rng(6).standard_normal((S, H))
        table, turned = fovea.captured(values), fovea.captured(values.T)
        fovea.attend(*p.qkv, score_mod=lambda s, b, h, q, kv: s + table[kv, h]).backward(p.do)
        fovea.attend(*p.qkv, score_mod=lambda s, b, h, q, kv: s + turned[h, kv]).backward(p.do)
        np.testing.assert_array_equal(table.grad, turned.grad.T)
        # Of four axes the last need not be contiguous, as it must in those of a call.
        four = fovea.captured(np.random.default_rng(7).standard_normal((S, T, H, B)).T)
        plain = np.ascontiguousarray(four.array)
        got = fovea.attend(*p.qkv, score_mod=lambda s, b, h, q, kv: s + four[b, h, q, kv])
        ready = fovea.attend(*p.qkv, bias=plain)
        self.assertLessEqual(relative_error(got.o, ready.o), 1e-12)
        got.backward(p.do)
        self.assertLessEqual(relative_error(four.grad, ready.backward(p.do)["dbias"]), 1e-11)

    def test_ways_to_index(self):
        p, table = problem(), fovea.captured(np.random.default_rng(0).standard_normal((H, S)))
        expected = fovea.attention(*p.qkv, score_mod=lambda s, b, h, q, kv: s + table[h, kv])
        for read in (lambda h, kv: table[h][kv], lambda h, kv: table[:, kv][h], lambda h, kv: table[..., kv][h],
                     lambda h, kv: table[h, ...][kv], lambda h, kv: table[h][..., kv], lambda h, kv: table[h][kv, ...],
                     lambda h, kv: table[h, kv - S], lambda h, kv: table[h - H, kv]):
            np.testing.assert_array_equal(
                fovea.attention(*p.qkv, score_mod=lambda s, b, h, q, kv, read=read: s + read(h, kv)), expected)
        row = fovea.captured(table.array[1])
        np.testing.assert_array_equal(fovea.attention(*p.qkv, score_mod=lambda s, b, h, q, kv: s + table[1, kv]),
                                      fovea.attention(*p.qkv, score_mod=lambda s, b, h, q, kv: s + row[kv]))

    def test_numbers_without_axes(self):
        p, cap, scales = problem(), fovea.captured(3.0), fovea.captured([0.5, 2.0])
        expected = fovea.attention(*p.qkv, softcap=3)
        for score in (lambda s, *_: cap * np.tanh(s / cap), lambda s, *_: np.tanh(s * (1 / cap)) * cap,
                      lambda s, *_: np.tanh(s * scales[1] / (cap * 2)) * (scales[0] * cap * 2),
                      lambda s, *_: np.exp(np.log(cap)) * np.tanh(s / np.maximum(cap, 1))):
            attended = fovea.attend(*p.qkv, score_mod=score)
            self.assertLessEqual(relative_error(attended.o, expected), 1e-12)
            attended.backward(p.do)
            self.assertEqual(cap.grad.shape, ())

    def test_whole_numbers_without_axes(self):
        p, three = problem(), fovea.captured(3)
        with_array = lambda s, b, h, q, kv: (  # noqa: E731
            s + (q + three) // three + three % (kv + 1) + divmod(q, three)[1] * (three == 3) - (three != q % 5)
            + (three ^ q) + (q & three | three << 1) + (three >> 1) + ~three + 7 // three + 7 % three)
        with_number = lambda s, b, h, q, kv: (  # noqa: E731
            s + (q + 3) // 3 + 3 % (kv + 1) + q % 3 - (3 != q % 5) + 1 + (3 ^ q) + (q & 3 | 6) + 1 - 4 + 2 + 1)
        np.testing.assert_allclose(fovea.attention(*p.qkv, score_mod=with_array),
                                   fovea.attention(*p.qkv, score_mod=with_number), rtol=1e-12)
        self.assertFalse(three == fovea.captured(3))  # which are two arrays
        self.assertEqual({three: 1}[three], 1)

    def test_other_libraries_arrays(self):
        class Exported:
            def __init__(self, array):
                self.__dlpack__, self.__dlpack_device__ = array.__dlpack__, array.__dlpack_device__
                type(self).__dlpack__ = lambda self, **options: array.__dlpack__(**options)
                type(self).__dlpack_device__ = lambda self: array.__dlpack_device__()

        p, values = problem(), np.random.default_rng(0).standard_normal(S)
        tables = fovea.captured(values), fovea.captured(Exported(values)), fovea.captured(list(values))
        results = [fovea.attention(*p.qkv, score_mod=lambda s, b, h, q, kv, x=x: s + x[kv]) for x in tables]
        np.testing.assert_array_equal(results[0], results[1])
        np.testing.assert_array_equal(results[0], results[2])
        self.assertIs(fovea.captured(tables[0]).array, values)
        self.assertEqual(repr(tables[0]), f"fovea.captured(float64 [{S}])")

    def test_threads_trace_on_their_own(self):
        p, table, results = problem(), fovea.captured(np.arange(float(S))), []

        def score(s, b, h, q, kv):
            return s + np.sin(table[kv])

        def run():
            for _ in range(20):
                results.append(fovea.attention(*p.qkv, threads=1, score_mod=score))

        threads = [threading.Thread(target=run) for _ in range(3)]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
        self.assertEqual(len(results), 60)
        for one in results:
            np.testing.assert_array_equal(one, results[0])

    def test_a_function_is_called_in_a_function(self):
        p, table = problem(), fovea.captured(np.arange(float(S)))

        def score(s, b, h, q, kv):
            fovea.attention(*p.qkv, mask_mod=lambda b, h, q, kv: q >= kv)
            return s + table[kv]

        np.testing.assert_array_equal(fovea.attention(*p.qkv, score_mod=score),
                                      fovea.attention(*p.qkv, score_mod=lambda s, b, h, q, kv: s + table[kv]))


class NamesTest(unittest.TestCase):
    """Errors about a captured array say which one, and where it is read."""

    def refused(self, **functions):
        q, k, v = Problem().qkv
        with self.assertRaises(fovea.UsageError) as raised:
            fovea.attend(q, k, v, **functions)
        return str(raised.exception)

    def test_an_array_has_the_name_of_its_variable(self):
        near, far = fovea.captured(np.zeros((4, 20))), fovea.captured(np.zeros((4, 3)))
        said = self.refused(score_mod=lambda score, b, h, i, j: score + near[h, j] + far[h, i])  # the line
        self.assertIn("index 3 is beyond axis 1 of captured array far of score_mod, [4, 3]", said)
        self.assertRegex(said, r"test_captured.py:\d+: .*# the line")

    def test_arrays_of_a_mask(self):
        table = fovea.captured(np.zeros((4, 3)))
        other = fovea.captured(np.zeros((4, 20)))
        said = self.refused(score_mod=lambda score, b, h, i, j: score + other[h, j],
                            mask_mod=lambda b, h, i, j: table[h, i] > 0)
        self.assertIn("captured array table of mask_mod", said)
        self.assertNotIn("other", said.split("\n")[0])

    def test_an_index_that_depends_on_the_score(self):
        table = fovea.captured(np.zeros(3))
        said = self.refused(score_mod=lambda score, b, h, i, j: score + table[score.astype(int) + 9])
        self.assertIn("captured array table of score_mod", said)

    def test_one_without_a_variable_keeps_its_number(self):
        tables = [fovea.captured(np.zeros((4, 3)))]
        said = self.refused(score_mod=lambda score, b, h, i, j: score + tables[0][h, i])
        self.assertIn("captured array 0 of score_mod", said)
        self.assertIn("test_captured.py:", said)


class BadInputTest(unittest.TestCase):
    def fails(self, words, score=None, mask=None, **parts):
        p = problem()
        with self.assertRaises(fovea.UsageError) as raised:
            fovea.attention(*p.qkv, score_mod=score, mask_mod=mask, **parts)
        for word in words:
            self.assertIn(word, str(raised.exception))

    def test_a_branch_says_where_it_is(self):
        def score(s, b, h, q, kv):
            if q > 3:
                return s
            return s + 1

        line = score.__code__.co_firstlineno + 1
        self.fails([f"test_captured.py:{line}: if q > 3:", "np.where"], score)
        self.fails(["test_captured.py", "branch", "np.where"], mask=lambda b, h, q, kv: q >= kv and kv > 2)
        self.fails(["test_captured.py", "branch"], mask=lambda b, h, q, kv: 3 < q < kv)

    def test_what_is_not_known_says_where_it_is(self):
        plain, vectors = np.zeros((S, S)), fovea.captured(np.zeros((S, 3)))
        for words, score in (
                (["np.cumsum"], lambda s, b, h, q, kv: np.cumsum(s)),
                (["np.add.reduce"], lambda s, b, h, q, kv: np.add.reduce(s)),
                (["np.round", "argument"], lambda s, b, h, q, kv: np.round(s, 2)),
                ([".nonzero"], lambda s, b, h, q, kv: s.nonzero()),
                (["float()"], lambda s, b, h, q, kv: s + math.sqrt(q)),
                (["fovea.captured(array)"], lambda s, b, h, q, kv: s + plain[q, kv]),
                (["fovea.captured(array)"], lambda s, b, h, q, kv: s + plain[0][q]),
                (["[90, 90]", "fovea.captured(array)"], lambda s, b, h, q, kv: s + plain),
                (["fovea.captured(array)"], lambda s, b, h, q, kv: s + np.array([q, kv])[0]),
                (["fovea.captured(array)"], lambda s, b, h, q, kv: s + [1, 2][h]),
                (["join"], lambda s, b, h, q, kv: s + vectors[q] @ vectors[kv]),
                (["join"], lambda s, b, h, q, kv: s + np.dot(vectors[q], vectors[kv])),
                (["join"], lambda s, b, h, q, kv: s + (vectors[q] * vectors[kv]).sum()),
                (["[90, 3]", "table[q_idx, kv_idx]"], lambda s, b, h, q, kv: s + vectors),
                (["[90, 3]", "table[q_idx, kv_idx]"], lambda s, b, h, q, kv: np.where(q > kv, s, vectors)),
                (["3 indices"], lambda s, b, h, q, kv: s + vectors[b, q, kv]),
                (["a slice"], lambda s, b, h, q, kv: s + vectors[1:, 0][q]),
                (["whole number"], lambda s, b, h, q, kv: s + vectors[q / 2, 0]),
                (["whole number"], lambda s, b, h, q, kv: s + vectors[q > kv, 0]),
                (["'and'", "not whole"], lambda s, b, h, q, kv: s & 3),
                (["key of a dict", "capture"], lambda s, b, h, q, kv: s + {0: 1, 1: 2}[b]),
                (["round()", "np.round(x)"], lambda s, b, h, q, kv: round(s)),
                (["'@'"], lambda s, b, h, q, kv: s @ s),
                (["the format '.2f'"], lambda s, b, h, q, kv: s if f"{s:.2f}" else q),
                (["complex()"], lambda s, b, h, q, kv: complex(s)),
                (["math.trunc()"], lambda s, b, h, q, kv: math.trunc(s)),
                (["an assignment"], lambda s, b, h, q, kv: s.__setitem__(0, 1)),
                (["__iadd__", "x = x + y"], lambda s, b, h, q, kv: s.__iadd__(1)),
                (["largest float64", "math.inf"], lambda s, b, h, q, kv: s + 10**400),
                (["x.round", "decimals"], lambda s, b, h, q, kv: s.round(decimals=1)),
                (["x.exp", "argument"], lambda s, b, h, q, kv: s.exp(2)),
                (["a list as an index"], lambda s, b, h, q, kv: s + vectors[[q], 0]),
                (["[90, 3]", "table[q_idx, kv_idx]"], lambda s, b, h, q, kv: s + (vectors == 2)),
                (["[90, 3]", "table[q_idx, kv_idx]"], lambda s, b, h, q, kv: s + vectors @ s),
                (["'dtype'"], lambda s, b, h, q, kv: np.add(s, 1, dtype=np.float32)),
                (["an assignment to a part"], lambda s, b, h, q, kv: vectors.__setitem__(q, s)),
                (["loop", "[90, 3]"], lambda s, b, h, q, kv: sum(vectors)),
                (["float()"], lambda s, b, h, q, kv: s + math.sqrt(fovea.captured(7))),
                (["to the power -1"], lambda s, b, h, q, kv: s + (q + 1) ** -1),
                ([".add_", "x = x.add("], lambda s, b, h, q, kv: s.add_(1)),
                (["out="], lambda s, b, h, q, kv: np.add(s, 1, out=plain)),
                (["condition"], lambda s, b, h, q, kv: (q > kv).where(s, 0.0)),
                (["uint8", "x & 255"], lambda s, b, h, q, kv: s + (q - kv).astype(np.uint8)),
                (["float16"], lambda s, b, h, q, kv: s.astype(np.float16)),
                (["'foo'", "'tanh'"], lambda s, b, h, q, kv: s.gelu(approximate="foo")),
                (["bool, int or float"], lambda s, b, h, q, kv: s.astype(complex))):
            with self.subTest(words=words):
                self.fails(["test_captured.py", *words], score)

    def test_an_index_beyond_its_axis(self):
        table = fovea.captured(np.zeros((2, 3)))
        for index, axis, read in ((r"(3|6\d)", 1, lambda b, h, q, kv: table[b, q]),
                                  (r"\d+", 1, lambda b, h, q, kv: table[b, kv + 3]),
                                  (r"-\d+", 0, lambda b, h, q, kv: table[b - q, q % 3]),
                                  ("2", 0, lambda b, h, q, kv: table[2, 0])):
            words = rf"index {index} is beyond axis {axis} of captured array 0 of \w+_mod, \[2, 3\]"
            with self.assertRaisesRegex(fovea.UsageError, words):
                fovea.attention(*problem().qkv, score_mod=lambda s, b, h, q, kv, read=read: s + read(b, h, q, kv))
            with self.assertRaisesRegex(fovea.UsageError, words):
                fovea.attention(*problem().qkv, mask_mod=lambda b, h, q, kv, read=read: read(b, h, q, kv) > 0)

    def test_wrong_kinds_of_arguments(self):
        self.fails(["score_mod", "expected a function", "int"], 3)
        self.fails(["mask_mod", "expected a function", "ndarray"], mask=np.ones((T, S), bool))
        self.fails(["score_mod", "4", "5", "score, b, h, q_idx, kv_idx"], lambda b, h, q, kv: q >= kv)
        self.fails(["mask_mod", "returns nothing"], mask=lambda b, h, q, kv: None)
        self.fails(["[3]"], lambda s, b, h, q, kv: np.zeros(3))
        for x in (np.zeros(3, complex), np.array(["a"]), np.zeros(3, np.uint64), object()):
            with self.assertRaisesRegex(fovea.UsageError, "captured: "):
                fovea.captured(x)
        table = fovea.captured(np.zeros(3))
        for use in (lambda: table[0], lambda: np.exp(table), lambda: list(table), lambda: table * 2):
            with self.assertRaisesRegex(fovea.UsageError, r"captured\(float64 \[3\]\)"):
                use()
        with self.assertRaisesRegex(fovea.UsageError, "at most 6"):
            seven = fovea.captured(np.zeros((1,) * 7))
            fovea.attention(*problem().qkv, score_mod=lambda s, b, h, q, kv: s + seven[(0,) * 7])

    def test_an_error_of_the_function_itself_is_left_alone(self):
        def score(s, b, h, q, kv):
            return s + len(3)

        with self.assertRaisesRegex(TypeError, "len"):
            fovea.attention(*problem().qkv, score_mod=score)

    def test_symbols_of_another_call(self):
        kept = []
        fovea.attention(*problem().qkv, score_mod=lambda s, b, h, q, kv: kept.append(q) or s)
        self.fails(["another call"], lambda s, b, h, q, kv: s + kept[0])
        with self.assertRaisesRegex(fovea.UsageError, "key of a dict"):
            hash(kept[0])

    def test_packed_sequences_have_no_traced_functions(self):
        p = Problem(sizes=(1, 9, 9, 4, 2, 8, 6))
        offsets = np.array([0, 4, 9], np.int32)
        for name, mod in (("score_mod", lambda s, b, h, q, kv: s), ("mask_mod", lambda b, h, q, kv: q >= kv)):
            with self.assertRaisesRegex(fovea.UsageError, f"{name} and query_offsets exclude each other"):
                fovea.attention(*p.qkv, query_offsets=offsets, key_offsets=offsets, **{name: mod})

    def test_whole_numbers_that_float32_does_not_hold(self):
        ids = fovea.captured(np.full(S, 2**24 + 1))
        mask = lambda b, h, q, kv: ids[q] == ids[kv]  # noqa: E731
        fovea.attention(*problem().qkv, mask_mod=mask)
        with self.assertRaisesRegex(fovea.UsageError, "float32"):
            fovea.attention(*problem(np.float32).qkv, mask_mod=mask)

    def test_nothing_to_do(self):
        p = problem()
        for q, k, v in ((p.q[:, :0], p.k, p.v), (p.q, p.k[:, :0], p.v[:, :0])):
            attended = fovea.attend(q, k, v, score_mod=lambda s, b, h, q, kv: s + q, mask_mod=lambda b, h, q, kv: q > 0)
            self.assertEqual(attended.o.tolist(), np.zeros((B, q.shape[1], H, 6)).tolist())


if __name__ == "__main__":
    unittest.main()
