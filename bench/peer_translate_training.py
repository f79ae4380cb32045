# SPDX-License-Identifier: Apache-2.0
"""The peer of translate_training.py: the training of a translator in PyTorch, as its users write it.

Sentences of about the same length lie together in padded batches; a mask hides the padding, and the loss leaves it out.
"""
import collections
import json
import math
import os
import random
import sys
import time

import common

try:
    import torch
    from torch import nn
    from torch.nn import functional as F
except ImportError as error:
    torch, ABSENT = None, str(error)

PAD, UNKNOWN, BEGIN, END = 0, 1, 2, 3
SPECIAL = ["<pad>", "<unk>", "<s>", "</s>"]
SORTED_TOGETHER = 64  # batches


def vocabulary(lines, least):
    counts = collections.Counter(word for line in lines for word in line.split())
    words = [word for word, count in counts.items() if count >= least]
    return {word: n for n, word in enumerate(SPECIAL + words)}


def read_pairs(sizes, source, target):
    """Pairs of ids, with their ends, and the sizes of both vocabularies."""
    sides = [open(path, encoding="utf-8").read().splitlines() for path in (source, target)]
    tables = [vocabulary(lines, sizes["min_count"]) for lines in sides]
    ids = [[[table.get(word, UNKNOWN) for word in line.split()] + [END] for line in lines]
           for table, lines in zip(tables, sides)]
    pairs = [pair for pair in zip(*ids) if max(map(len, pair)) <= sizes["block"] and min(map(len, pair)) > 1]
    return pairs, [len(table) for table in tables]


def batches(pairs, tokens, seed):
    """Endless: an epoch is shuffled, then the pairs of some batches at a time are sorted by length and cut."""
    draw = random.Random(seed)
    while True:
        order = draw.sample(range(len(pairs)), len(pairs))
        made, begin = [], 0
        while begin < len(order):
            size, end = 0, begin
            while end < len(order) and size < tokens * SORTED_TOGETHER:
                size += len(pairs[order[end]][1])
                end += 1
            window = sorted(order[begin:end], key=lambda n: (len(pairs[n][1]), len(pairs[n][0])))
            batch, held = [], 0
            for n in window:
                batch.append(pairs[n])
                held += len(pairs[n][1])
                if held >= tokens:
                    made.append(batch)
                    batch, held = [], 0
            if batch:
                made.append(batch)
            begin = end
        draw.shuffle(made)
        yield from made


def padded(rows):
    return nn.utils.rnn.pad_sequence([torch.tensor(row) for row in rows], batch_first=True, padding_value=PAD)


def attention_class(C, heads, drop):
    class Attention(nn.Module):
        def __init__(self, crosses):
            super().__init__()
            self.crosses = crosses
            self.out = nn.Linear(C, C)
            if crosses:
                self.q, self.kv = nn.Linear(C, C), nn.Linear(C, 2 * C)
            else:
                self.qkv = nn.Linear(C, 3 * C)

        def forward(self, x, of=None, mask=None, causal=False):
            q, k, v = (self.q(x), *self.kv(of).chunk(2, -1)) if self.crosses else self.qkv(x).chunk(3, -1)
            q, k, v = (t.unflatten(-1, (heads, -1)).transpose(1, 2) for t in (q, k, v))
            y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=causal,
                                               dropout_p=drop if self.training else 0)
            return self.out(y.transpose(1, 2).flatten(2))

    return Attention


def block_class(C, heads, drop):
    Attention = attention_class(C, heads, drop)

    class Block(nn.Module):
        def __init__(self, crosses):
            super().__init__()
            self.norm1, self.attention = nn.LayerNorm(C), Attention(False)
            if crosses:
                self.norm2, self.cross = nn.LayerNorm(C), Attention(True)
            self.norm3 = nn.LayerNorm(C)
            self.up, self.down = nn.Linear(C, 4 * C), nn.Linear(4 * C, C)
            self.drop = nn.Dropout(drop)

        def forward(self, x, of=None, mask=None, causal=False):
            x = x + self.drop(self.attention(self.norm1(x), mask=None if causal else mask, causal=causal))
            if of is not None:
                x = x + self.drop(self.cross(self.norm2(x), of, mask))
            return x + self.drop(self.down(self.drop(F.relu(self.up(self.norm3(x))))))

    return Block


def build(sizes, source_words, target_words):
    C, heads, drop = sizes["width"], sizes["heads"], sizes["dropout"]
    angles = torch.arange(sizes["block"])[:, None] / 10000 ** (torch.arange(0, C, 2) / C)
    sinusoids = torch.stack([angles.sin(), angles.cos()], -1).flatten(1)

    Block = block_class(C, heads, drop)

    class Translator(nn.Module):
        def __init__(self):
            super().__init__()
            self.source, self.target = nn.Embedding(source_words, C), nn.Embedding(target_words, C)
            self.encoder = nn.ModuleList(Block(False) for _ in range(sizes["layers"]))
            self.decoder = nn.ModuleList(Block(True) for _ in range(sizes["layers"]))
            self.norms = nn.ModuleList(nn.LayerNorm(C) for _ in range(2))
            self.drop = nn.Dropout(drop)
            self.register_buffer("sinusoids", sinusoids)
            for p in self.parameters():
                if p.dim() > 1:
                    nn.init.normal_(p, std=0.02)

        def embed(self, table, ids):
            return self.drop(table(ids) * math.sqrt(C) + self.sinusoids[:ids.shape[1]])

        def forward(self, source, target, mask, places):
            x = self.embed(self.source, source)
            for block in self.encoder:
                x = block(x, mask=mask)
            x = self.norms[0](x)
            y = self.embed(self.target, target)
            for block in self.decoder:
                y = block(y, x, mask, causal=True)  # what pads the end of a target is never looked at
            return self.norms[1](y).flatten(0, 1)[places] @ self.target.weight.T

    return Translator()


def answer_with(pairs, words, sizes):
    torch.manual_seed(1)
    model = build(sizes, *words)
    matrices = [p for p in model.parameters() if p.dim() > 1]
    vectors = [p for p in model.parameters() if p.dim() <= 1]
    optimizer = torch.optim.AdamW([{"params": matrices, "weight_decay": 0.01}, {"params": vectors, "weight_decay": 0}],
                                  lr=1e-4, betas=(0.9, 0.98), fused=True)
    drawn = batches(pairs, sizes["batch_tokens"], seed=1)

    def step():
        batch = next(drawn)
        source, following = padded([s for s, _ in batch]), padded([t for _, t in batch])
        target = torch.cat([torch.full((len(batch), 1), BEGIN), following[:, :-1]], 1)
        mask = (source != PAD)[:, None, None]
        places = (following != PAD).flatten().nonzero()[:, 0]  # logits of padding are not computed
        logits = model(source, target, None if mask.all() else mask, places)
        loss = F.cross_entropy(logits, following.flatten()[places], label_smoothing=0.1)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return len(places), loss

    def answer(updates, warmup):
        for _ in range(warmup):
            step()
        tokens, begin = 0, time.perf_counter()
        for _ in range(updates):
            counted, loss = step()
            tokens += counted
        seconds = time.perf_counter() - begin
        if not math.isfinite(loss.item()):
            raise SystemExit("the loss of PyTorch is not finite")
        return {"tokens_per_second": tokens / seconds}

    return answer, sum(p.numel() for p in model.parameters())


def main():
    if torch is None:
        return common.serve({"absent": ABSENT}, None)
    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    sizes = json.loads(sys.argv[1])
    pairs, words = read_pairs(sizes, *sys.argv[2:4])
    answer, parameters = answer_with(pairs, words, sizes)
    return common.serve({"ready": f"PyTorch {torch.__version__}", "parameters": parameters}, answer)


if __name__ == "__main__":
    main()
