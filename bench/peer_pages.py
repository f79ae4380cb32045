# SPDX-License-Identifier: Apache-2.0
"""Writes the head view of BertViz: python3 peer_pages.py WEIGHTS.f32 LAYERS HEADS TOKENS OUT.html

Runs in an interpreter that has bertviz, torch and IPython.
"""

import pathlib
import sys

import torch
from bertviz import head_view


def main():
    source, layers, heads, tokens, target = sys.argv[1:]
    layers, heads, tokens = int(layers), int(heads), int(tokens)
    data = bytearray(pathlib.Path(source).read_bytes())
    weights = torch.frombuffer(data, dtype=torch.float32).reshape(layers, 1, heads, tokens, tokens)
    view = head_view(list(weights), [f"w{n}" for n in range(tokens)], html_action="return")
    pathlib.Path(target).write_text(view.data)


if __name__ == "__main__":
    main()
