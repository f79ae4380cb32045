# SPDX-License-Identifier: Apache-2.0
"""PyTorch's side of tag.py: the same BiLSTM-CRF, its training updates, and the whole job of tagging a file."""
import itertools
import os
import random
import statistics
import time

import common

try:
    import torch
    from torch import nn
    from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence
    import peer_crf
except ImportError as error:
    torch, ABSENT = None, str(error)

CLOCKS = {"wall": time.perf_counter, "cpu": time.process_time}
DRAWN = 64  # batches of which the sentences are sorted by length, as fovea's are
WARM_UP, WINDOW = 10, 10  # updates


def sentences_of(path):
    with open(path, encoding="utf-8") as file:
        lines = (line.split() for line in file)
        return [list(group) for is_word, group in itertools.groupby(lines, bool) if is_word]


class Numbers:
    """What words, characters and tags are called."""

    def __init__(self, sentences):
        words = {row[0] for sentence in sentences for row in sentence}
        self.words = {word: n for n, word in enumerate(sorted({word.lower() for word in words}), 2)}
        self.letters = {letter: n for n, letter in enumerate(sorted(set("".join(words))), 2)}
        self.tags = {tag: n for n, tag in enumerate(sorted({row[-1] for s in sentences for row in s}))}
        self.names = list(self.tags)
        self.spelled = {}

    def letters_of(self, word):
        """Made once for each different word."""
        if word not in self.spelled:
            self.spelled[word] = torch.tensor([self.letters.get(letter, 1) for letter in word])
        return self.spelled[word]

    def batch(self, sentences, way):
        """Words [B, T]; letters of all words, as spell takes them; where these words stand [N] in B T;
        lengths [B]."""
        lengths = torch.tensor([len(s) for s in sentences])
        words = pad_sequence([torch.tensor([self.words.get(row[0].lower(), 1) for row in s]) for s in sentences], True)
        spelled = [self.letters_of(row[0]) for s in sentences for row in s]
        mask = torch.arange(words.shape[1]) < lengths[:, None]
        letters = side_by_side(spelled) if "flat" in way else (pad_sequence(spelled, True), None, None)
        return words, letters, mask.flatten().nonzero()[:, 0], lengths

    def tags_of(self, sentences):
        """[B, T], which training asks for alone."""
        return pad_sequence([torch.tensor([self.tags[row[-1]] for row in s]) for s in sentences], True)


def side_by_side(spelled):
    """All words one after another with a 0 between them; where their letters are; how many each has."""
    gap = torch.zeros(1, dtype=torch.long)
    letters = torch.cat([part for word in spelled for part in (gap, word)] + [gap])
    return letters, letters.nonzero()[:, 0], torch.tensor([len(word) for word in spelled])


def tagger(numbers, sizes, way):
    """The layers of fovea's tagger, in its order."""

    class Tagger(nn.Module):
        def __init__(self):
            super().__init__()
            tags, features = len(numbers.tags), sizes["words"] + sizes["features"]
            self.words = nn.Embedding(len(numbers.words) + 2, sizes["words"], sparse="sparse" in way)
            self.letters = nn.Embedding(len(numbers.letters) + 2, sizes["characters"], padding_idx=0)
            self.window = nn.Conv1d(sizes["characters"], sizes["features"], 3, padding=1)
            self.input = nn.Linear(features, sizes["width"])
            self.states = nn.LSTM(sizes["width"], sizes["hidden"], bidirectional=True, batch_first=True)
            self.output = nn.Linear(2 * sizes["hidden"], tags)
            self.crf = peer_crf.Chain(tags)

        def spell(self, letters, places, counts):
            """The maximum over the letters of each word: [N, features]."""
            x = self.letters(letters)
            if places is None:
                y = self.window(x.transpose(1, 2))
                return y.masked_fill((letters == 0)[:, None], -torch.inf).amax(2)
            windows = torch.cat([x[places - 1], x[places], x[places + 1]], 1)
            weight = self.window.weight.permute(2, 1, 0).reshape(windows.shape[1], -1)
            return torch.segment_reduce(torch.addmm(self.window.bias, windows, weight), "max", lengths=counts, axis=0)

        def forward(self, words, letters, places, lengths):
            spelled = self.spell(*letters)
            B, T = words.shape
            beside = spelled.new_zeros(B * T, spelled.shape[1]).index_copy(0, places, spelled).view(B, T, -1)
            x = nn.functional.dropout(torch.cat([self.words(words), beside], 2), .3, self.training)
            x = self.input(x)
            if "packed" in way:
                packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
                y = pad_packed_sequence(self.states(packed)[0], batch_first=True)[0]
            else:  # what is behind a sentence is read, too: not the same model, but as much work
                y = self.states(x)[0]
            return self.output(nn.functional.dropout(y, .5, self.training)).transpose(0, 1)

    return Tagger()


class Training:
    def __init__(self, sentences, sizes, way):
        torch.manual_seed(1)
        self.numbers = Numbers(sentences)
        self.batches = [(*self.numbers.batch(batch, way), self.numbers.tags_of(batch))
                        for batch in arranged(sentences, sizes["batch"])]
        self.model = tagger(self.numbers, sizes, way)
        self.layer = peer_crf.CRF(len(self.numbers.tags)) if "pytorch-crf" in way else None
        dense = [p for name, p in self.model.named_parameters() if "sparse" not in way or name != "words.weight"]
        self.dense = dense + (list(self.layer.parameters()) if self.layer else [])
        self.optimizers = [torch.optim.AdamW(self.dense, lr=1e-3, fused=True)]
        if "sparse" in way:
            self.optimizers.append(torch.optim.SparseAdam([self.model.words.weight], lr=1e-3))

    def update(self, batch):
        words, letters, places, lengths, tags = batch
        emissions = self.model(words, letters, places, lengths)
        tags, mask = tags.T, (torch.arange(tags.shape[1]) < lengths[:, None]).T
        if self.layer:
            loss = -self.layer(emissions, tags, mask)
        else:
            loss = self.model.crf.loss(emissions, tags, mask, lengths)
        loss = loss / int(lengths.sum())
        for optimizer in self.optimizers:
            optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.dense, 1.0)
        for optimizer in self.optimizers:
            optimizer.step()
        return loss.item()

    def seconds(self, updates, clock):
        """Of an update: the median of windows of some updates each."""
        now = CLOCKS[clock]
        batches = itertools.cycle(self.batches)
        for _ in range(WARM_UP):
            self.update(next(batches))
        windows = []
        for _ in range(updates // WINDOW):
            begin = now()
            for _ in range(WINDOW):
                self.update(next(batches))
            windows.append((now() - begin) / WINDOW)
        return {"seconds": statistics.median(windows), "fastest": min(windows)}


def arranged(sentences, size):
    """Batches of sentences of about the same length, in a random order."""
    rng = random.Random(1)
    order = rng.sample(sentences, len(sentences))
    windows = [order[n:n + DRAWN * size] for n in range(0, len(order), DRAWN * size)]
    batches = [window[n:n + size] for window in (sorted(w, key=len) for w in windows)
               for n in range(0, len(window), size)]
    return rng.sample(batches, len(batches))


class Tagging:
    """All that `fovea tag` does, but for starting and reading the model."""

    def __init__(self, train, sizes, way):
        torch.manual_seed(1)
        self.way, self.numbers = way, Numbers(sentences_of(train))
        self.model = tagger(self.numbers, sizes, way).eval()
        self.layer = peer_crf.CRF(len(self.numbers.tags)) if "pytorch-crf" in way else None

    def seconds(self, path, size, clock):
        begin = CLOCKS[clock]()
        self.numbers.spelled = {}
        sentences = sentences_of(path)
        order = sorted(range(len(sentences)), key=lambda n: len(sentences[n]))
        found = [None] * len(sentences)
        with torch.inference_mode():
            for first in range(0, len(order), size):
                chosen = order[first:first + size]
                words, letters, places, lengths = self.numbers.batch(
                    [sentences[n] for n in chosen], self.way)
                mask = (torch.arange(words.shape[1]) < lengths[:, None]).T
                scores = self.model(words, letters, places, lengths)
                paths = (self.layer.decode(scores, mask) if self.layer else
                         self.model.crf.decode(scores, mask).T.tolist())
                for n, tags in zip(chosen, paths):
                    found[n] = tags
        names = self.numbers.names
        with open(os.devnull, "w", encoding="utf-8") as out:
            for sentence, tags in zip(sentences, found):
                out.write("".join("\t".join(row) + f"\t{names[tag]}\n" for row, tag in zip(sentence, tags)) + "\n")
        return {"seconds": CLOCKS[clock]() - begin}


def answers():
    state = {}

    def training(path, sizes, way, updates, clock):
        if "pytorch-crf" in way and peer_crf.CRF is None:
            return {"left_out": "pytorch-crf is not installed"}
        return Training(sentences_of(path), sizes, way).seconds(updates, clock)

    def tagging(train, path, sizes, way, size, clock):
        if way not in state:
            state[way] = Tagging(train, sizes, way)
        return state[way].seconds(path, size, clock)

    return {"training": training, "tagging": tagging}


def main():
    if torch is None:
        return common.serve({"absent": ABSENT}, None)
    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    known = answers()
    common.serve({"ready": torch.__version__}, lambda what, **question: known[what](**question))


if __name__ == "__main__":
    main()
