#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How far bfloat16 is from float32: the losses of two runs, and the logits of a model beside PyTorch.

  bench/precision.py TEXT [--train "--layers 6 --heads 6 --width 384 --block 256 --batch-size 16"]

Trains a character model twice with the command, in float32 and with --precision bf16, and tells the
losses at each evaluation; --picture FILE draws them. Then computes the logits of the float32 model on
windows of the text's last tenth: in PyTorch in float64 (the yardstick) and float32 from the stored
weights, and under bfloat16 autocast; in fovea in float32 and with precision bf16. Told are the largest
difference, the root mean square, and for how many tokens the likeliest next token is the same. The
interpreter (--python) must have fovea's Python package, PyTorch and safetensors.
"""
import argparse
import json
import os
import pathlib
import shlex
import sys
import tempfile

import common
import speed_pictures

PRECISIONS = "float32", "bf16"
WINDOWS = 64


def losses_of(folder):
    """[(update, training loss, validation loss)], one for each evaluation."""
    records = map(json.loads, (folder / "metrics.jsonl").read_text().splitlines())
    return [(one["step"], one["train_loss"], one["valid_loss"]) for one in records if one["kind"] == "evaluation"]


def tell_losses(losses):
    print("| Update | train float32 | train bf16 | valid float32 | valid bf16 | |\n|---|---|---|---|---|---|")
    for (step, *wide), (_, *rounded) in zip(*losses.values(), strict=True):
        print(f"| {step} | {wide[0]:.4f} | {rounded[0]:.4f} | {wide[1]:.4f} | {rounded[1]:.4f} | {rounded[1] - wide[1]:+.4f} |")


STYLE = """<style>.curve{fill:none;stroke-linejoin:round}.float32{stroke:#b9d7ee;stroke-width:7}.bf16{stroke:#1f2328;stroke-width:1.6}
@media(prefers-color-scheme:dark){.float32{stroke:#22405f}.bf16{stroke:#e6edf3}}</style>"""


def picture_of(losses, title, subtitle):
    """The training and the validation losses: wide pale curves for float32, with those of bf16 on them."""
    left, right, top, bottom = 56, speed_pictures.WIDTH - 110, 100, 390
    steps = [step for step, *_ in losses["float32"]]
    values = [value for points in losses.values() for _, *both in points for value in both]
    low, high = int(min(values) * 10) / 10, max(values) + 0.05

    def place(step, value):
        return left + (right - left) * step / steps[-1], bottom - (bottom - top) * (value - low) / (high - low)

    parts = [STYLE]
    for tick in range(int(low * 5) + 1, int(high * 5) + 1):
        y = place(0, tick / 5)[1]
        parts += [speed_pictures.line(left, y, right, y, "grid"), speed_pictures.text(left - 8, y + 4, f"{tick / 5:.1f}", "soft small", "end")]
    for step in steps[1::2]:
        parts.append(speed_pictures.text(place(step, low)[0], bottom + 18, f"{step}", "soft small", "middle"))
    for name, points in losses.items():
        for n in (1, 2):
            line = " ".join("{:.1f},{:.1f}".format(*place(point[0], point[n])) for point in points)
            parts.append(f'<polyline points="{line}" class="curve {name}"/>')
    step, *last = losses["bf16"][-1]
    ends = sorted((place(step, value)[1], what) for value, what in zip(last, ("training", "validation")))
    apart = max(0, 16 - (ends[1][0] - ends[0][0])) / 2
    for (y, what), shift in zip(ends, (-apart, apart)):
        parts.append(speed_pictures.text(right + 10, y + 4 + shift, what))
    for x, name, words in ((left, "float32", "float32"), (left + 110, "bf16", "bf16, on it")):
        parts += [f'<line x1="{x}" y1="75" x2="{x + 24}" y2="75" class="{name}"/>', speed_pictures.text(x + 32, 79, words, "small")]
    parts.append(speed_pictures.text((left + right) / 2, bottom + 36, "updates", "soft small", "middle"))
    return speed_pictures.picture(bottom + 50, title, subtitle, parts)


def torch_logits(torch, folder, heads, ids, dtype):
    """The decoder-only Transformer of docs/formats.md, written with PyTorch's functions; ids [B, T]."""
    from safetensors.torch import load_file
    F = torch.nn.functional
    weights = {name: value.to(dtype) for name, value in load_file(folder / "model.safetensors").items()}

    def norm(name, x):
        return F.layer_norm(x, x.shape[-1:], weights[f"{name}.weight"])

    def linear(name, x):
        return F.linear(x, weights[f"{name}.weight"])

    B, T = ids.shape
    x = weights["embedding.tokens"][ids] + weights["embedding.positions"][:T]
    for n in range(sum(name.endswith("qkv.weight") for name in weights)):
        block = f"blocks.{n}"
        qkv = linear(f"{block}.attention.qkv", norm(f"{block}.attention_norm", x))
        q, k, v = qkv.view(B, T, 3, heads, -1).permute(2, 0, 3, 1, 4)
        o = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + linear(f"{block}.attention.out", o.transpose(1, 2).reshape(B, T, -1))
        hidden = F.gelu(linear(f"{block}.feed_forward.in", norm(f"{block}.feed_forward_norm", x)))
        x = x + linear(f"{block}.feed_forward.out", hidden)
    return F.linear(norm("norm", x), weights["embedding.tokens"]).double().flatten(0, 1)


def tell_logits(folder, text, threads):
    import fovea
    import numpy
    import torch
    torch.set_num_threads(threads)
    model = fovea.LanguageModel.load(folder)
    config = model.config["model"]
    windows = numpy.reshape(model.encode(text)[:WINDOWS * config["block"]], (-1, config["block"]))
    ids = torch.as_tensor(windows, dtype=torch.long)

    def ours(precision):
        loaded = fovea.LanguageModel.load(folder, precision=precision)
        return torch.cat([torch.as_tensor(loaded.logits(row.tolist(), threads=threads)) for row in windows]).double()

    def theirs(dtype, autocast=False):
        with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16, enabled=autocast):
            return torch_logits(torch, folder, config["heads"], ids, dtype)

    exact = theirs(torch.float64)
    print(f"{len(exact):,} tokens, {exact.shape[1]} logits each, of standard deviation {exact.std():.3f}")
    for name, logits in {"PyTorch, float32": theirs(torch.float32), "PyTorch, autocast": theirs(torch.float32, autocast=True),
                         "fovea, float32": ours("float32"), "fovea, bf16": ours("bf16")}.items():
        error = logits - exact
        same = (logits.argmax(1) == exact.argmax(1)).double().mean()
        print(f"{name:18} largest difference {error.abs().max():.2e}, root mean square {error.square().mean().sqrt():.2e}; "
              f"the same likeliest token {same:.2%}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("text", type=pathlib.Path)
    parser.add_argument("--train", default="", help="more options of fovea train lm")
    parser.add_argument("--picture", type=pathlib.Path, help="draw the losses to this SVG file")
    common.add_common_options(parser, rounds=None)
    options = parser.parse_args()
    common.need_binary(options)
    if pathlib.Path(options.python).absolute() != pathlib.Path(sys.executable).absolute():
        os.execv(options.python, [options.python, *sys.argv])
    print(common.machine(options))
    with tempfile.TemporaryDirectory() as name:
        folders = {precision: pathlib.Path(name) / precision for precision in PRECISIONS}
        for precision, folder in folders.items():
            trained = common.fovea(options, "train", "lm", "--train", options.text, "-o", folder, "--threads", options.threads,
                                   "--precision", precision, *shlex.split(options.train))
        losses = {precision: losses_of(folder) for precision, folder in folders.items()}
        print(f"{trained['parameters']:,} parameters")
        tell_losses(losses)
        if options.picture:
            subtitle = f"{options.text.name}, {trained['parameters'] / 1e6:.2f}M parameters; the curves of bf16 lie on those of float32"
            options.picture.write_text(picture_of(losses, "Losses in float32 and in bfloat16", subtitle), encoding="utf-8")
        text = options.text.read_text(encoding="utf-8")
        tell_logits(folders["float32"], text[len(text) * 9 // 10:], options.threads)


if __name__ == "__main__":
    main()
