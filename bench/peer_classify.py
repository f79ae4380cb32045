# SPDX-License-Identifier: Apache-2.0
"""PyTorch's side of classify.py: the same model on the same texts, as ids that are ready in memory."""
import os
import pathlib
import re
import time

import common


def ids_of(model, test, longest):
    """The ids of each text by the model's own list of words, about as fovea cuts them."""
    import subprocess
    words = {word: n for n, word in
             enumerate((pathlib.Path(model) / "vocab.txt").read_text(encoding="utf-8").split("\n"))}
    lines = subprocess.run(["zstd", "-dcq", test], check=True, capture_output=True).stdout.decode().split("\n")[:-1]
    cut = re.compile(r"\w+|[^\w\s]")
    return [[words.get(word, 1) for word in cut.findall(line.split("\t", 1)[1].lower())[:longest]] or [0]
            for line in lines]


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

    state = {}

    def prepare(model, test, longest, vocabulary, width, heads):
        torch.manual_seed(1)
        state["ids"] = sorted(ids_of(model, test, longest), key=len)
        state["model"] = Published(vocabulary, width, heads).eval()
        return {"texts": len(state["ids"]), "tokens": sum(map(len, state["ids"]))}

    def batches_of(size):
        for begin in range(0, len(state["ids"]), size):
            texts = state["ids"][begin:begin + size]
            lengths = torch.tensor([len(text) for text in texts])
            padded = nn.utils.rnn.pad_sequence([torch.tensor(text) for text in texts], batch_first=True)
            yield padded, None if lengths.min() == lengths.max() else lengths

    def measure(size):
        batches = list(batches_of(size))
        with torch.inference_mode():
            state["model"](*batches[0])
            begin = time.perf_counter()
            for batch in batches:
                state["model"](*batch)
            return {"seconds": time.perf_counter() - begin}

    def answer(what, **question):
        return prepare(**question) if what == "prepare" else measure(**question)

    common.serve({"ready": torch.__version__}, answer)


if __name__ == "__main__":
    main()
