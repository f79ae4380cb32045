#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes docs/speed.md, its pictures and the table of speeds of both READMEs of the results in bench/results.

Every figure on them comes from those files. A test compares what lies there with made().
"""
import json
import pathlib
import re

import speed_pictures

ROOT = pathlib.Path(__file__).resolve().parents[1]
RESULTS, PAGE, IMAGES = ROOT / "bench" / "results", ROOT / "docs" / "speed.md", ROOT / "docs" / "images"
KINDS = "forward", "backward"
ZEN = {"25": "Zen 4", "26": "Zen 5"}  # AMD's families of processors with AVX-512
BELOW = " \u25bc"

HEAD = """# Speed of attention

fovea's attention compared with {peer}, in float32, on the same processor with the same number of threads. A bar of 2 means that fovea takes half of PyTorch's time.

{heroes}**Which PyTorch.** {peer}, as installed by pip, without settings. On AMD processors its matrix library (MKL) then runs AVX2 kernels, even where the processor has AVX-512. PyTorch with AVX-512 kernels forced on is faster; that is not measured here. The last two chapters compare at the same instruction set: both sides are pinned to AVX2.

**How it is measured.** `bench/attention_table.py` runs fovea and PyTorch in turns ([benchmarks](benchmarks.md)); each figure is the median of its rounds, whose number is in the last column of a table. fovea's times differ by a few per cent between rounds, PyTorch's by more. `bench/speed_page.py` makes this page from the results in `bench/results`.

**How to read the tables.**

- *Forward* and *Backward*: PyTorch's time divided by fovea's.
- *Share*: the part of the processor's peak rate of fused multiply-adds (FMA) that fovea reaches. The peak is measured by a register-only FMA loop before and after each run. With a causal mask only the kept half of the scores is counted.
- A figure in brackets is the target. \u25bc marks a figure, ratio or share, that is below its target.
- A direction of a row reaches its target by its ratio or by its share; a ratio in **bold** means that it reaches neither.

**Targets of dot products.**

{reached}
"""
SECTIONS = {
    "dot": "Dot products\n\nB sequences, H heads, T tokens, head width D. *full*: no mask.\n",
    "small": "Small models\n\nForward and backward together, causal.\n",
    "parts": "Parts\n\nForward and backward together at B1 H8 T2048 D64, causal. *Time*: the part's time, where plain dot products take 1 in the same process. The ratio is to PyTorch's fastest way that gives all gradients: the formula in eager mode, or `scaled_dot_product_attention` (sdpa) with a mask, each also by `torch.compile` (compiled).\n",
    "flex": "FlexAttention\n\nForward, against `flex_attention` by `torch.compile`, with the examples of its own authors; B1 H8 T2048 D64.\n",
    "window": "Windows\n\nA window of 64 keys to either side, one head of width 64, forward and backward together. *Time per token*: that at T 1024 is 1. PyTorch gets the window as a mask.\n",
    "ragged": "Sequences of different lengths\n\nLengths spread evenly up to T, forward and backward together. PyTorch computes the padding too.\n",
}
# The picture that is understood at a glance: headings, and (name, row, direction).
GLANCE = {
    "Plain attention, head width 64": [
        ("forward, 1024 tokens", "dot B4 H12 T1024 D64 full", "forward"),
        ("backward, 1024 tokens", "dot B4 H12 T1024 D64 full", "backward"),
        ("causal forward, 1024 tokens", "dot B4 H12 T1024 D64 causal", "forward"),
        ("causal backward, 1024 tokens", "dot B4 H12 T1024 D64 causal", "backward"),
        ("causal backward, 4096 tokens", "dot B1 H8 T4096 D64 causal", "backward"),
        ("causal backward, 128 tokens", "dot B8 H8 T128 D64 causal", "backward"),
    ],
    "Variants, forward + backward": [
        ("ALiBi, causal, 2048 tokens", "alibi", None), ("T5 position bias, causal, 2048 tokens", "t5", None),
        ("softcap, causal, 2048 tokens", "softcap", None), ("dropout, causal, 2048 tokens", "dropout", None),
        ("different lengths, up to 512 tokens", "ragged B16 H8 T512", None),
    ],
    "FlexAttention, forward": [("its causal example, 2048 tokens", "flex causal", None)],
}
# The table of the READMEs: (row, directions, English, Chinese).
FRONT = [
    ("dot B4 H12 T1024 D64 full", KINDS, "forward / backward, 4 sequences of 1024 tokens, 12 heads of width 64",
     "前向 / 反向，4 个 1024 token 的序列，12 个宽 64 的头"),
    ("dot B4 H12 T1024 D64 causal", KINDS, "the same, causal", "同上，因果掩码"),
    ("dot B8 H8 T128 D64 causal", KINDS, "forward / backward, causal, 8 sequences of 128 tokens, 8 heads of width 64",
     "前向 / 反向，因果掩码，8 个 128 token 的序列，8 个宽 64 的头"),
    ("dot B1 H8 T4096 D128 full", KINDS, "forward / backward, 4096 tokens, 8 heads of width 128",
     "前向 / 反向，4096 个 token，8 个宽 128 的头"),
    ("alibi", None, "ALiBi with learned slopes: forward + backward, causal, 2048 tokens",
     "ALiBi（斜率可学习）：前向 + 反向，因果掩码，2048 个 token"),
    ("dropout", None, "dropout of the weights: the same", "注意力权重的 dropout：同上"),
    ("ragged B16 H8 T512", None, "sequences of different lengths, up to 512 tokens: forward + backward",
     "变长序列，最长 512 个 token：前向 + 反向"),
]
FRONT_HEADS = {"README.md": "Times as fast as PyTorch", "README.zh-CN.md": "速度是 PyTorch 的几倍"}


class Results:
    """One file of bench/results: a processor, pinned to an instruction set or not."""

    def __init__(self, path):
        self.stored = json.loads(path.read_text())
        self.machine, self.peer, self.rows = (self.stored[name] for name in ("machine", "peer", "rows"))
        self.processor, family = re.match(r"(.*), family (\w+);", self.machine).groups()
        self.design = ZEN.get(family, f"family {family}")
        isa = re.search(r"FOVEA_ISA (\w+)", self.machine)[1]
        self.pinned = None if isa == "best" else isa
        self.name = f"{self.processor}, {self.design}"
        self.threads = re.search(r"(\d+) threads", self.machine)[1]

    def title(self):
        return self.design + (f", both sides pinned to {self.pinned.upper()}" if self.pinned else "")

    def image(self, what=""):
        return IMAGES / ("-".join(["speed", self.design.lower().replace(" ", "-"), *filter(None, (self.pinned, what))]) + ".svg")

    def ratio(self, row, kind=None):
        return (self.rows[row][kind] if kind else self.rows[row])["ratio"]

    def of_section(self, section):
        return {name: row for name, row in self.rows.items() if row["section"] == section}

    def figures(self):
        """(name, figure) of all figures of dot products, each with a ratio, a share and their targets."""
        return [(f"{name.removeprefix('dot ')} {kind}", row[kind])
                for name, row in self.of_section("dot").items() for kind in KINDS]


def everything():
    found = [Results(path) for path in sorted(RESULTS.glob("*.json"))]
    return sorted(found, key=lambda one: one.pinned or "")


def number(value, digits=2):
    return "" if value is None else f"{value:.{digits}f}"


def with_target(value, target, most=False):
    """'1.50 (1.7) ▼': with a third digit where two would hide on which side of its target it is."""
    if value is None:
        return ""
    if not target:
        return number(value)
    digits = 3 if number(value) == number(target) else 2
    below = value > target if most else value < target
    return f"{number(value, digits)} ({target}){BELOW * below}"


def lines_of_dot(rows):
    yield "| | Forward | Share | Backward | Share | Rounds |"
    yield "|---|---|---|---|---|---|"
    for name, row in rows.items():
        cells = []
        for one in (row[kind] for kind in KINDS):
            ratio = with_target(one["ratio"], one["target"])
            cells += [ratio if one["met"] else f"**{ratio}**", with_target(one["share"], one["target_share"])]
        yield f"| {name.removeprefix('dot ')} | {' | '.join(cells)} | {row.get('rounds', 1)} |"


def lines_of_calls(rows):
    beside = any("beside" in row for row in rows.values())
    yield "| |" + " Time |" * beside + " Times as fast | PyTorch's way |"
    yield "|---|" + "---|" * beside + "---|---|"
    for name, row in rows.items():
        yield (f"| {name.removeprefix(row['section'] + ' ')} |" +
               f" {with_target(row.get('beside'), row.get('target_beside'), most=True)} |" * beside +
               f" {with_target(row.get('ratio'), row.get('target'))} | {row.get('way', '')} |")


def lines_of_lengths(rows):
    yield "| T | Time per token | Peak memory, MiB | Times as fast |"
    yield "|---|---|---|---|"
    first = next(iter(rows.values()))
    unit = first["seconds"] / first["length"]
    for row in rows.values():
        yield (f"| {row['length']:,} | {number(row['seconds'] / row['length'] / unit)} |"
               f" {row['peak_memory_bytes'] / 2**20:,.0f} | {with_target(row.get('ratio'), row.get('target'))} |")


LINES = {"dot": lines_of_dot, "window": lines_of_lengths}


def glance(results):
    groups = [(heading, [(name, results.ratio(row, kind)) for name, row, kind in rows]) for heading, rows in GLANCE.items()]
    return speed_pictures.groups_of_bars(
        f"Times as fast as PyTorch on {results.name}",
        f"fovea's attention on the CPU, float32, {results.threads} threads, against {results.peer} as installed", groups)


def sixty(results):
    rows = results.of_section("dot")
    panels = {heading: {name.split(maxsplit=1)[1].removesuffix(f" {mask}"):
                        {kind: (row[kind]["ratio"], row[kind]["target"]) for kind in KINDS}
                        for name, row in rows.items() if name.endswith(mask)}
              for heading, mask in [("no mask", "full"), ("causal", "causal")]}
    return speed_pictures.panels_of_bars(f"Dot products: times as fast as PyTorch, {results.title()}",
                                         f"{results.processor}; B sequences, H heads, T tokens, head width D", panels)


def reached(all_results):
    """How many figures of dot products reach their targets, and which do not."""
    for results in all_results:
        figures = results.figures()
        missed = [f"{name} ({one['ratio']:.2f})" for name, one in figures if not one["met"]]
        yield (f"- {results.title()}: {len(figures) - len(missed)} of {len(figures)} figures reach their target."
               + (f" Not reached: {'; '.join(missed)}." if missed else ""))


def chapter(results):
    yield f"## {results.title()}\n\nMeasured on: {results.machine}; {results.peer}.\n"
    for section, head in SECTIONS.items():
        rows = results.of_section(section)
        if rows:
            yield f"### {head}"
            if section == "dot":
                yield f"![{len(results.figures())} bars: dot products on {results.title()}](images/{results.image('dot').name})\n"
            yield "\n".join(LINES.get(section, lines_of_calls)(rows)) + "\n"


def page(all_results):
    first = all_results[0]
    heroes = "".join(f"![a dozen bars: times as fast as PyTorch on {one.name}](images/{one.image().name})\n\n"
                     for one in all_results if not one.pinned)
    head = HEAD.format(peer=first.peer, heroes=heroes, reached="\n".join(reached(all_results)))
    return "\n".join([head, *(part for results in all_results for part in chapter(results))])


def front_table(all_results, readme):
    unpinned = [one for one in all_results if not one.pinned]
    yield f"| {FRONT_HEADS[readme]} | " + " | ".join(one.name for one in unpinned) + " |"
    yield "|---|" + "---|" * len(unpinned)
    for row, kinds, *words in FRONT:
        cells = [" / ".join(number(one.ratio(row, kind)) for kind in kinds or [None]) for one in unpinned]
        yield f"| {words[list(FRONT_HEADS).index(readme)]} | {' | '.join(cells)} |"


def with_table(readme, all_results):
    text = (ROOT / readme).read_text(encoding="utf-8")
    table = "\n".join(front_table(all_results, readme))
    return re.sub(r"(<!-- speeds: begin[^\n]*\n).*?(\n<!-- speeds: end -->)", lambda m: m[1] + table + m[2], text, flags=re.DOTALL)


def made():
    """{file: what it must hold}."""
    all_results = everything()
    files = {PAGE: page(all_results)}
    for results in all_results:
        files[results.image("dot")] = sixty(results)
        if not results.pinned:
            files[results.image()] = glance(results)
    return files | {ROOT / readme: with_table(readme, all_results) for readme in FRONT_HEADS}


def main():
    for path, text in made().items():
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
