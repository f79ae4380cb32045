# SPDX-License-Identifier: Apache-2.0
"""PyTorch's side of classify.py: the same model on the same texts, as ids that are ready in memory, and from the
file to the classes."""
import itertools
import os
import pathlib
import re
import subprocess
import time

import common


CUT = re.compile(r"\w+|[^\w\s]")


def words_of(model):
    lines = (pathlib.Path(model) / "vocab.txt").read_text(encoding="utf-8").split("\n")
    return {word: n for n, word in enumerate(lines)}


def ids_of(words, test, longest):
    """The ids of each text by the model's own list of words, about as fovea cuts them."""
    lines = subprocess.run(["zstd", "-dcq", test], check=True, capture_output=True).stdout.decode().split("\n")[:-1]
    ids = []
    for line in lines:
        found = itertools.islice(CUT.finditer(line.split("\t", 1)[1].lower()), longest)
        ids.append([words.get(word[0], 1) for word in found] or [0])
    return ids


def answers_of(torch, published):
    """What the worker can be asked."""
    state = {}

    def prepare(model, test, longest, vocabulary, width, heads):
        torch.manual_seed(1)
        state.update(words=words_of(model), test=test, longest=longest)
        state["ids"] = sorted(ids_of(state["words"], test, longest), key=len)
        state["model"] = published(vocabulary, width, heads).eval()
        return {"texts": len(state["ids"]), "tokens": sum(map(len, state["ids"]))}

    def batches_of(ids, size):
        for begin in range(0, len(ids), size):
            texts = ids[begin:begin + size]
            lengths = torch.tensor([len(text) for text in texts])
            padded = torch.nn.utils.rnn.pad_sequence([torch.tensor(text) for text in texts], batch_first=True)
            yield padded, None if lengths.min() == lengths.max() else lengths

    def measure(size):
        """The seconds of the model alone, by ids that are ready."""
        batches = list(batches_of(state["ids"], size))
        with torch.inference_mode():
            state["model"](*batches[0])
            begin = time.perf_counter()
            for batch in batches:
                state["model"](*batch)
            return {"seconds": time.perf_counter() - begin}

    def measure_all(size):
        """The seconds of all that `fovea classify` does: unpack, cut, look up, compute, write the lines."""
        begin = time.perf_counter()
        ids = ids_of(state["words"], state["test"], state["longest"])
        order = sorted(range(len(ids)), key=lambda i: len(ids[i]))
        answers = [None] * len(ids)
        with torch.inference_mode():
            done = 0
            for batch in batches_of([ids[i] for i in order], size):
                best, classes = state["model"](*batch).max(-1)
                for value, label in zip(best.tolist(), classes.tolist()):
                    answers[order[done]] = f"{label}\t{value:.4f}\n"
                    done += 1
        with open(os.devnull, "w", encoding="utf-8") as out:
            out.write("".join(answers))
        return {"seconds": time.perf_counter() - begin}

    return {"prepare": prepare, "measure": measure, "measure all": measure_all}


def main():
    try:
        import torch
        from torch import nn
    except ImportError as error:
        return common.serve({"absent": str(error)}, None)
    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))

    class Published(nn.Module):
        """Su 2018: attention without an output product or residual sum, the mean over tokens, a sigmoid."""

        def __init__(self, vocabulary, width, heads):
            super().__init__()
            self.heads = heads
            self.table = nn.Embedding(vocabulary, width)
            self.qkv = nn.Linear(width, 3 * width, bias=False)
            self.output = nn.Linear(width, 2)

        def forward(self, ids, lengths):
            rows, columns = ids.shape
            x = self.qkv(self.table(ids))
            q, k, v = x.view(rows, columns, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
            kept = None if lengths is None else torch.arange(columns) < lengths[:, None]  # padded
            mask = None if lengths is None else kept[:, None, None, :]
            y = nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)
            y = y.transpose(1, 2).reshape(rows, columns, -1)
            if lengths is None:
                y = y.mean(1)
            else:
                y = (y * kept[:, :, None]).sum(1) / lengths[:, None]
            return self.output(y).softmax(-1)

    answers = answers_of(torch, Published)

    def answer(what, **question):
        return answers[what](**question)

    common.serve({"ready": torch.__version__}, answer)


if __name__ == "__main__":
    main()
