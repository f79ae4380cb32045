#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that tests mirror the rooms: fovea/ROOM/x.cc has tests/ROOM/x_test.cc, and
fovea/ROOM/FOLDER/x.cc has tests/ROOM/FOLDER/x_test.cc.

Most folders inside a room are tables (one small file per idea): one test loops over each table.
"""

import argparse
import pathlib
import sys

import sources

# A source, or a folder of them, that another test covers: the test, and why it has none of its own.
COVERED_BY = {
    "fovea/attention/reference_loops.cc": ("tests/attention/reference_test.cc", "reached through the reference"),
    "fovea/attention/check_views.cc": ("tests/attention/checks_test.cc", "reached through the checks of a call"),
    "fovea/attention/relative/by_distance.cc": ("tests/attention/bias/bias_test.cc", "tiles of Alibi and T5"),
    "fovea/attention/mask": ("tests/attention/mask/mask_test.cc", "loops over the table of masks"),
    "fovea/attention/bias": ("tests/attention/bias/bias_test.cc", "loops over the table of biases"),
    "fovea/attention/lambda": ("tests/attention/lambda/traced_test.cc", "lambdas run through the whole compiler"),
    "fovea/attention/observe": ("tests/attention/fused/observed_tile_test.cc", "each observer against its definition"),
    "fovea/attention/values": ("tests/attention/support/problem.cc", "a part of the random problems"),
    "fovea/kernel/crf_chain.cc": ("tests/kernel/crf_test.cc", "the recursions are reached through crf"),
    "fovea/kernel/crf_lanes.cc": ("tests/kernel/crf_test.cc", "the recursions are reached through crf"),
    "fovea/kernel/gemm_at_b.cc": ("tests/kernel/gemm_test.cc", "the tiles are reached through gemm"),
    "fovea/kernel/gemm_tiles.cc": ("tests/kernel/gemm_test.cc", "the tiles are reached through gemm"),
    "fovea/kernel/recurrent_steps.cc": ("tests/kernel/recurrent_test.cc", "the steps are reached through recurrent"),
    "fovea/model/encoder_memory.cc": ("tests/model/language_model_memory_test.cc", "compared with the tape there"),
    "fovea/model/encoder_scratch.cc": ("tests/model/language_model_memory_test.cc", "what layers take beside the tape"),
    "fovea/reference/convolution.cc": ("tests/kernel/convolution_test.cc", "compared with the kernels there"),
    "fovea/reference/crf.cc": ("tests/kernel/crf_test.cc", "compared with the kernels and with all paths there"),
    "fovea/reference/gemm.cc": ("tests/kernel/gemm_test.cc", "compared with gemm there"),
    "fovea/data/tagged/conll.cc": ("tests/data/tagged/tagged_reader_test.cc", "read through TaggedReader"),
    "fovea/data/tagged/conllu.cc": ("tests/data/tagged/tagged_reader_test.cc", "read through TaggedReader"),
    "fovea/data/tagged/tagged_options.cc": ("tests/data/tagged/tagged_reader_test.cc", "checked by TaggedReader"),
    "fovea/model/text_decoder.cc": ("tests/model/translator_test.cc", "the decoder is reached through Translator"),
    "fovea/model/translator_layers.cc": ("tests/model/translator_test.cc", "the layers are reached through Translator"),
    "fovea/model/tagger_layers.cc": ("tests/model/tagger_test.cc", "the layers are reached through Tagger"),
    "fovea/task/translate": ("tests/task/translate/run_test.cc", "a translator from file to folder, and its parts"),
    "fovea/task/tag": ("tests/task/tag/run_test.cc", "a tagger from file to folder, and its parts"),
    "fovea/text/tokenizer": ("tests/text/tokenizer_test.cc", "loops over the table of tokenizers"),
    "fovea/grad/ops": ("tests/grad/ops_test.cc", "loops over the registered cases of every op"),
}


def covered_by(name, table):
    """The test of this source, by the table or by its name."""
    path = pathlib.PurePath(name)
    for key in (name, *(parent.as_posix() for parent in path.parents)):
        if key in table:
            return table[key][0]
    return f"tests/{path.relative_to('fovea').with_suffix('').as_posix()}_test.cc"


def check(names, table):
    """What is missing, given the names of all files."""
    names = set(names)
    problems = []
    for name in sorted(n for n in names if n.startswith("fovea/") and n.endswith(".cc")):
        test = covered_by(name, table)
        if test not in names:
            problems.append(f"{name}: has no test; expected {test}")
    for key, (test, reason) in table.items():
        if not any(n == key or n.startswith(key + "/") for n in names):
            problems.append(f"{key}: is gone: drop it from the table")
        if not reason:
            problems.append(f"{key}: says no reason")
    return problems


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("root", nargs="?", type=pathlib.Path, default=sources.ROOT)
    root = parser.parse_args().root
    names = [path.as_posix() for path in sources.files(root, ("fovea", "tests"))]
    return sources.report("mirror", check(names, COVERED_BY))


if __name__ == "__main__":
    sys.exit(main())
