#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Ids of texts, and the time to encode them, beside the package `tokenizers`, with the same tokenizer.json, on one thread.

  bench/tokenizer_peers.py --strings 1000000 --real FOLDER         ids of random strings by 12 tokenizers: no difference is wanted
  bench/tokenizer_peers.py --texts en.txt zh.txt --real FOLDER     megabytes a second of one core, in turns; the ids are compared, too
                           --python PYTHON_WITH_TOKENIZERS_AND_SENTENCEPIECE

The tokenizers and the strings are those of bench/peer_tokenizers.py, which says what FOLDER holds. Strings have 28 blocks of
scripts, pieces of the sources of this repository, emoji, controls, all white space, marks, bytes that are not UTF-8 (which
`tokenizers` cannot be given: it reads Python's U+FFFD for each) and words of 100 KB. Of --texts the first --megabytes are
encoded line by line; the peer has the fastest of encode_batch, encode_batch_fast and encode, and has them as texts already. Seconds
are those of the processor, so that other programs on the machine matter less.
A difference is printed and kept in --differences FILE, and the status is 1.
"""
import argparse
import json
import pathlib
import statistics
import struct
import subprocess
import sys
import tempfile

import common

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import peer_tokenizers  # noqa: E402

BATCH = 20000  # strings that are compared at once
PEER = """
import json, struct, sys, time, tokenizers
tokenizer = tokenizers.Tokenizer.from_file(sys.argv[1])
read, write = sys.stdin.buffer.read, sys.stdout.buffer.write
def one_by_one(texts, **more):
    return [tokenizer.encode(text, **more) for text in texts]
ways = [tokenizer.encode_batch, one_by_one] + [getattr(tokenizer, "encode_batch_fast", tokenizer.encode_batch)]
timed = len(sys.argv) > 2
best = None
while True:
    head = read(8)
    if len(head) < 8:
        break
    texts = [read(struct.unpack("<I", read(4))[0]).decode("utf-8", "replace") for _ in range(struct.unpack("<Q", head)[0])]
    def seconds(way):
        began = time.process_time()
        encodings = way(texts, add_special_tokens=False)
        return time.process_time() - began, encodings
    if timed and best is None:
        best = min(ways, key=lambda way: seconds(way)[0])
    took, encodings = seconds(best or ways[-1])
    write(struct.pack("<d", took))
    for encoding in encodings:
        ids = encoding.ids
        write(struct.pack(f"<I{len(ids)}i", len(ids), *ids))
    sys.stdout.buffer.flush()
"""


class Side:
    """A process that encodes batches of texts."""

    def __init__(self, command, options):
        environment = {**common.environment(1), "RAYON_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
        self.process = subprocess.Popen(list(map(str, command)), stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment,
                                        preexec_fn=common.pin(1) if options.texts else None)

    def send(self, texts):
        self.process.stdin.write(struct.pack("<Q", len(texts)) + b"".join(struct.pack("<I", len(text)) + text for text in texts))
        self.process.stdin.flush()

    def _read(self, count):
        found = self.process.stdout.read(count)
        if len(found) < count:
            sys.exit(f"{self.process.args[0]} has ended")
        return found

    def answer(self, count):
        """The seconds, and the ids of each text as bytes."""
        seconds, = struct.unpack("<d", self._read(8))
        return seconds, [self._read(4 * struct.unpack("<I", self._read(4))[0]) for _ in range(count)]

    def close(self):
        self.process.stdin.close()
        self.process.wait()


class Both:
    def __init__(self, options, folder, name, *timed):
        file = folder / name / "tokenizer.json"
        self.sides = [Side([options.python, "-c", PEER, file, *timed], options), Side([options.program, folder / name], options)]

    def ids(self, texts):
        """(seconds, ids) of the peer and of ours, one after the other."""
        found = []
        for side in self.sides:
            side.send(texts)
            found.append(side.answer(len(texts)))
        return found

    def close(self):
        for side in self.sides:
            side.close()


def differences(found):
    (_, theirs), (_, ours) = found
    return [n for n, (a, b) in enumerate(zip(theirs, ours)) if a != b]


def compare(options, folder, names):
    """The number of strings that differ, of each tokenizer."""
    sources = [path.read_text(encoding="utf-8") for pattern in ("fovea/*/*.cc", "bench/*.py", "docs/*.md", "*.md")
               for path in sorted(common.ROOT.glob(pattern))]
    counts = dict.fromkeys(names, 0)
    both = {name: Both(options, folder, name) for name in names}
    kept = open(options.differences, "a", encoding="utf-8") if options.differences else None
    done, total = 0, 0
    while done < options.strings:
        strings = peer_tokenizers.Strings(f"{options.seed} {done}", sources)
        texts = [strings.text() for _ in range(min(BATCH, options.strings - done))]
        for name in names:
            for n in differences(both[name].ids(texts)):
                counts[name] += 1
                line = json.dumps({"tokenizer": name, "bytes": texts[n].hex()})
                if counts[name] <= 10:
                    print(line if len(line) < 2000 else f"{name}: a text of {len(texts[n])} bytes", flush=True)
                if kept:
                    print(line, file=kept, flush=True)
        done += len(texts)
        total += sum(map(len, texts))
        if done % (10 * BATCH) == 0:
            print(f"{done} strings, {sum(counts.values())} differ", file=sys.stderr, flush=True)
    for name in names:
        both[name].close()
        print(f"{name:12} {done} strings, {total / 1e6:.1f} MB: {counts[name]} differ", flush=True)
    return sum(counts.values())


def time_texts(options, folder, names):
    """Prints megabytes a second; returns the number of lines that differ."""
    wrong = 0
    for file in options.texts:
        text = pathlib.Path(file).read_bytes()[:int(options.megabytes * 1e6)]
        lines = [line for line in text.decode("utf-8", "replace").encode().splitlines() if line]
        size = sum(map(len, lines)) / 1e6
        for name in names:
            both = Both(options, folder, name, "timed")
            both.ids(lines)  # warm
            pairs = []
            for _ in range(options.rounds):
                found = both.ids(lines)
                pairs.append([seconds for seconds, _ in found])
            both.close()
            wrong += len(differences(found))
            theirs, ours = (statistics.median(column) for column in zip(*pairs))
            print(f"{pathlib.Path(file).name:10} {size:5.1f} MB  {name:12} tokenizers {size / theirs:6.2f} MB/s, fovea {size / ours:6.2f} MB/s,"
                  f" {theirs / ours:5.2f}x; {len(differences(found))} lines differ", flush=True)
    return wrong


def made(options, folder):
    """The names of the tokenizers, which a process with the peer's interpreter makes."""
    asked = {"seed": options.seed, "vocabulary": options.vocabulary, "real": options.real, "train": options.train or options.texts or [
        str(common.ROOT / page) for page in ("docs/attention.md", "README.zh-CN.md", "fovea/grad/tape.cc")]}
    if options.only:
        asked["names"] = options.only
    done = subprocess.run([options.python, common.ROOT / "bench" / "peer_tokenizers.py", folder], input=json.dumps(asked),
                          stdout=subprocess.PIPE, encoding="utf-8", check=True)
    return common.last_object(done.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    common.add_common_options(parser, rounds=5)
    parser.add_argument("--program", default=str(common.ROOT / "build/release/bench/fovea_bench_tokenizer"), help="`make bench` builds it")
    parser.add_argument("--strings", type=int, default=0)
    parser.add_argument("--texts", nargs="+", default=[])
    parser.add_argument("--megabytes", type=float, default=10)
    parser.add_argument("--real", help="a folder with files of published tokenizers")
    parser.add_argument("--train", nargs="+", help="what the others learn from; else of --texts, or of this repository")
    parser.add_argument("--vocabulary", type=int, default=8000, help="of those that are trained")
    parser.add_argument("--only", nargs="+", choices=peer_tokenizers.NAMES)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--made", help="the folders of tokenizers that were made before, or where they are kept")
    parser.add_argument("--differences", help="a file for the strings that differ, a line of JSON each")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(options.made or temporary)
        names = [name for name in options.only or peer_tokenizers.NAMES if (folder / name / "tokenizer.json").exists()]
        names = names or made(options, folder)
        options.threads = 1
        print(common.machine(options))
        wrong = compare(options, folder, names) if options.strings else 0
        wrong += time_texts(options, folder, names) if options.texts else 0
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
