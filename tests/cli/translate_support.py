# SPDX-License-Identifier: Apache-2.0
"""Small parallel texts with something to learn, and models of them."""

import random

from support import CommandTest

WORDS = {"one": "eins", "two": "zwei", "three": "drei", "four": "vier", "and": "und", "red": "rot"}
SMALL = ("--encoder-layers", "1", "--decoder-layers", "1", "--width", "32", "--heads", "2", "--batch-tokens", "160",
         "--min-count", "1", "--dropout", "0", "--label-smoothing", "0", "--lr", "5e-3", "--min-lr", "5e-3", "--warmup",
         "30", "--block", "32", "--stop-after", "250u", "--eval-every", "50u", "--save-every", "50u", "--progress",
         "none")


def sentences(seed=1, count=150):
    """(source, target), word for word."""
    rng = random.Random(seed)
    pairs = []
    for n in range(count):
        words = [rng.choice(list(WORDS)) for _ in range(n % 5 + 1)]
        pairs.append((" ".join(words), " ".join(WORDS[word] for word in words)))
    return pairs


class TranslateTest(CommandTest):
    def write(self, name, text):
        path = self.folder / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    def parallel(self, pairs=None, name="text"):
        """Two files of lines."""
        pairs = sentences() if pairs is None else pairs
        return [self.write(f"{name}.{side}", "".join(pair[n] + "\n" for pair in pairs))
                for n, side in enumerate(("en", "de"))]

    def fit(self, *args, pairs=None, output="model", small=SMALL):
        source, target = self.parallel(pairs)
        return self.succeed("train", "translate", "--source", source, "--target", target, "-o", self.folder / output,
                            *small, *args)

    def fails(self, status, needle, *args, stdin=b""):
        done = self.run_fovea(*args, stdin=stdin)
        self.assert_error(done, status, needle)
        return done
