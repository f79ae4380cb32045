#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes docs/speed.md, its pictures and the table of speeds of both READMEs of the results in bench/results.

Every figure on them comes from those files. A test compares what lies there with made().
"""
import collections
import json
import pathlib
import re

import attention_table
import speed_pictures
import steps_page

ROOT = pathlib.Path(__file__).resolve().parents[1]
RESULTS, PAGE, IMAGES = ROOT / "bench" / "results", ROOT / "docs" / "speed.md", ROOT / "docs" / "images"
KINDS = "forward", "backward"
ZEN = {"25": "Zen 4", "26": "Zen 5"}  # AMD's families of processors with AVX-512
BELOW = " \u25bc"
# Said of a table that was not measured beside PyTorch at its strongest.
OTHER_RUN = " Some of its rows were, by `bench/attention_peers.py` ([results](benchmarks.md#results))."
FARTHEST = 6  # figures that miss their target, by name

HEAD = """# Speed of attention and of training

fovea's attention and its training steps compared with {peer}, in float32 (in bfloat16: [training](#training-steps), [attention](precision.md#attention)), on the same processor with the same number of threads. A bar of 2 means that fovea takes half of PyTorch's time.

{heroes}**Which PyTorch.** Two of them. *As installed*: {peer} as pip installs it, without settings. On AMD processors its matrix library (MKL) then runs AVX2 kernels, even where the processor has AVX-512. *At its strongest*: the faster of that and of the same PyTorch with MKL's kernels for AVX-512, which a preloaded library of one line makes MKL take ([how](benchmarks.md#which-pytorch)). Intel's processors get these kernels anyway: there the two are one. Targets count against the strongest. The last chapters compare at the same instruction set: both sides are pinned to AVX2, and the strongest is then PyTorch with the AVX2 kernels that MKL has for Intel's processors.

**How it is measured.** `bench/attention_table.py` runs fovea and PyTorch in turns ([benchmarks](benchmarks.md)); each figure is the median of its rounds, whose number is in the last column of a table. fovea's times differ by a few per cent between rounds, PyTorch's by more, because some of its processes are fast and others slow (the script starts new ones in every round; a chapter says if it did not); so a figure of one round is less certain than a median of three. `bench/speed_page.py` makes this page from the results in `bench/results`.

The *load* in a line "Measured on" is the load average of the machine in the minute before the last run of the script began. It counts everything that ran in that minute, an earlier measurement included. The load during the measurements was not recorded.

**How to read the tables.**

- *Forward* and *Backward*: the time of PyTorch at its strongest, divided by fovea's; *installed*: that of PyTorch as installed. Where the strongest is empty, it has not been measured there.
- *Share*: the part of the processor's peak rate of fused multiply-adds (FMA) that fovea reaches. The peak is measured by a register-only FMA loop before and after each run. With a causal mask only the kept half of the scores is counted.
- A figure in brackets is the target. \u25bc marks a figure, ratio or share, that is below its target.
- A direction of a row reaches its target by its ratio to the strongest or by its share; a ratio in **bold** means that it reaches neither.

**What the rows of parts are.**

- *alibi*: one learned slope for each head; *sink*: one learned logit for each head.
- *t5*: a learned table of 32 buckets, causal.
- *shaw*: learned vectors on keys and values, distances clipped at 16 (tables of 33 rows).
- *dense*: a learned bias of shape [1, H, T, S].
- *softcap*: 30 tanh(s / 30); *lambda*: a tanh(s / a), written as a lambda, with a learned.
- *dropout*: probability 0.1.
- *entropy + top-8*: two observers; not compared with PyTorch.

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
    "Plain attention (sequences x tokens)": [
        ("forward, 4 x 1024 tokens, 12 heads", "dot B4 H12 T1024 D64 full", "forward"),
        ("backward, 4 x 1024 tokens, 12 heads", "dot B4 H12 T1024 D64 full", "backward"),
        ("causal forward, 4 x 1024 tokens, 12 heads", "dot B4 H12 T1024 D64 causal", "forward"),
        ("causal backward, 4 x 1024 tokens, 12 heads", "dot B4 H12 T1024 D64 causal", "backward"),
        ("causal backward, 1 x 4096 tokens, 8 heads", "dot B1 H8 T4096 D64 causal", "backward"),
        ("forward, 1 x 4096 tokens, width 128", "dot B1 H8 T4096 D128 full", "forward"),
        ("causal backward, 8 x 128 tokens, 8 heads", "dot B8 H8 T128 D64 causal", "backward"),
    ],
    "Variants, forward + backward": [
        ("ALiBi, causal, 1 x 2048 tokens, 8 heads", "alibi", None), ("T5 bias, causal, 1 x 2048 tokens, 8 heads", "t5", None),
        ("softcap, causal, 1 x 2048 tokens, 8 heads", "softcap", None),
        ("dropout, causal, 1 x 2048 tokens, 8 heads", "dropout", None),
        ("lengths up to 512, 16 sequences, 8 heads", "ragged B16 H8 T512", None),
    ],
    "FlexAttention, forward": [("causal example, 1 x 2048 tokens, 8 heads", "flex causal", None)],
}
# The table of the READMEs: (row, directions, English, Chinese).
FRONT = [
    ("dot B4 H12 T1024 D64 full", KINDS, "forward / backward, 4 sequences of 1024 tokens, 12 heads of width 64",
     "前向 / 反向，4 条 1024 词元的序列，12 个宽 64 的头"),
    ("dot B4 H12 T1024 D64 causal", KINDS, "the same, causal", "同上，因果掩码"),
    ("dot B8 H8 T128 D64 causal", KINDS, "forward / backward, causal, 8 sequences of 128 tokens, 8 heads of width 64",
     "前向 / 反向，因果掩码，8 条 128 词元的序列，8 个宽 64 的头"),
    ("dot B1 H8 T4096 D128 full", KINDS, "forward / backward, 4096 tokens, 8 heads of width 128",
     "前向 / 反向，4096 个词元，8 个宽 128 的头"),
    ("alibi", None, "ALiBi with learned slopes: forward + backward, causal, 2048 tokens",
     "ALiBi（斜率可学习）：前向 + 反向，因果掩码，2048 个词元"),
    ("dropout", None, "dropout of the weights: forward + backward, causal, 2048 tokens",
     "注意力权重的 dropout：前向 + 反向，因果掩码，2048 个词元"),
    ("ragged B16 H8 T512", None, "sequences of different lengths, up to 512 tokens: forward + backward",
     "变长序列，最长 512 个词元：前向 + 反向"),
]
FRONT_HEADS = {"README.md": "Times as fast as PyTorch, float32", "README.zh-CN.md": "速度是 PyTorch 的几倍（float32）"}
# What a ratio is to, and how the READMEs say it.
YARDSTICKS = {"strongest": (": PyTorch at its strongest", "，对比最快配置"),
              "ratio": (": PyTorch as installed", "，对比默认安装")}
ONE_ROUND = {"README.md": "\\* Measured in one round only, and less certain than the medians of several rounds.",
             "README.zh-CN.md": "\\* 只测了一次，不如多次的中位数可靠。"}
# Rows that differ in length alone; where they were measured once, they suggest how uncertain that is.
NEIGHBOURS = "dot B1 H1 T512 D64", "dot B1 H1 T1024 D64"


class Results:
    """One file of bench/results: a processor, pinned to an instruction set or not."""

    def __init__(self, path):
        stored = json.loads(path.read_text())
        self.machine, self.peer, self.note = stored["machine"], stored["peer"], stored.get("note")
        self.processor, family = re.match(r"(.*), family (\w+);", self.machine).groups()
        self.design = ZEN.get(family, f"family {family}")
        isa = re.search(r"FOVEA_ISA (\w+)", self.machine)[1]
        self.pinned = None if isa == "best" else isa
        named = {row["name"] for row in attention_table.rows()}  # the others are parts of the table of parts
        parts = [name for name in stored["rows"] if name not in named]
        wanted = {row["name"]: row for row in attention_table.rows(parts, bool(self.pinned))}
        self.rows = {name: attention_table.judged(row, wanted[name]) for name, row in stored["rows"].items()}
        self.name = f"{self.processor}, {self.design}"
        self.threads = re.search(r"(\d+) threads", self.machine)[1]

    def title(self):
        return self.design + (f", both sides pinned to {self.pinned.upper()}" if self.pinned else "")

    def image(self, what=""):
        return IMAGES / ("-".join(["speed", self.design.lower().replace(" ", "-"), *filter(None, (self.pinned, what))]) + ".svg")

    def ratio(self, row, kind=None, to="ratio"):
        """To PyTorch as installed, or to "strongest" (None: not measured)."""
        return (self.rows[row][kind] if kind else self.rows[row]).get(to)

    def target(self, row, kind=None):
        return (self.rows[row][kind] if kind else self.rows[row]).get("target")

    def rounds(self, row):
        return self.rows[row].get("rounds", 1)

    def builds(self):
        """'build d174d94', or how many rows are of which; nothing if no row says so."""
        return in_words(collections.Counter(row.get("build") for row in self.rows.values()))

    def of_section(self, section):
        return {name: row for name, row in self.rows.items() if row["section"] == section}

    def figures(self):
        """(name, figure) of all figures of dot products, each with a ratio, a share and their targets."""
        return [(f"{name.removeprefix('dot ')} {kind}", row[kind])
                for name, row in self.of_section("dot").items() for kind in KINDS]


def in_words(builds):
    """Of {build, or None: number of rows}."""
    if set(builds) == {None}:
        return ""
    if len(builds) == 1:
        return f"; build {next(iter(builds))}"
    return "; builds: " + ", ".join(f"{build or 'not recorded'} ({rows} {'row' if rows == 1 else 'rows'})" for build, rows in builds.most_common())


def everything():
    """Pinned ones last, the newest processor first."""
    found = [Results(path) for path in sorted(RESULTS.glob("*.json"), reverse=True)]
    return sorted(found, key=lambda one: one.pinned or "")


def number(value, digits=2):
    return "" if value is None else f"{value:.{digits}f}"


def shown(value, target=None):
    """With a third digit where two would hide on which side of its target it is."""
    return number(value, 3 if target and number(value) == number(target) else 2)


def with_target(value, target, most=False):
    """'1.50 (1.7) ▼'."""
    if value is None:
        return ""
    if not target:
        return number(value)
    below = value > target if most else value < target
    return f"{shown(value, target)} ({target}){BELOW * below}"


def lines_of_dot(rows):
    yield "| | Forward | Installed | Share | Backward | Installed | Share | Rounds |"
    yield "|---|---|---|---|---|---|---|---|"
    for name, row in rows.items():
        cells = []
        for one in (row[kind] for kind in KINDS):
            ratio = with_target(one.get("strongest"), one["target"])
            cells += [f"**{ratio}**" if ratio and not one["met"] else ratio, number(one["ratio"]),
                      with_target(one["share"], one["target_share"])]
        yield f"| {name.removeprefix('dot ')} | {' | '.join(cells)} | {row.get('rounds', 1)} |"


def lines_of_calls(rows):
    beside = any("beside" in row for row in rows.values())
    yield "| |" + " Time |" * beside + " Times as fast | Installed | PyTorch's way | Rounds |"
    yield "|---|" + "---|" * beside + "---|---|---|---|"
    for name, row in rows.items():
        yield (f"| {name.removeprefix(row['section'] + ' ')} |" +
               f" {with_target(row.get('beside'), row.get('target_beside'), most=True)} |" * beside +
               f" {with_target(row.get('strongest'), row.get('target'))} | {number(row.get('ratio'))} |"
               f" {row.get('way', '')} | {row.get('rounds', 1)} |")


def lines_of_lengths(rows):
    yield "| T | Time per token | Peak memory, MiB | Times as fast | Installed | Rounds |"
    yield "|---|---|---|---|---|---|"
    first = next(iter(rows.values()))
    unit = first["seconds"] / first["length"]
    for row in rows.values():
        yield (f"| {row['length']:,} | {number(row['seconds'] / row['length'] / unit)} |"
               f" {row['peak_memory_bytes'] / 2**20:,.0f} | {with_target(row.get('strongest'), row.get('target'))} |"
               f" {number(row.get('ratio'))} | {row.get('rounds', 1)} |")


LINES = {"dot": lines_of_dot, "window": lines_of_lengths}


def glance(results, all_results):
    """On the scale of all such pictures."""
    def mark(row):
        return " *" if results.rounds(row) == 1 else ""

    groups = [(heading, [(name, *(results.ratio(row, kind, to) for to in YARDSTICKS), mark(row))
                         for name, row, kind in rows]) for heading, rows in GLANCE.items()]
    most = max(one.ratio(row, kind) for one in all_results if not one.pinned for rows in GLANCE.values() for _, row, kind in rows)
    return speed_pictures.groups_of_bars(
        f"Times as fast as PyTorch on {results.name}",
        f"fovea's attention on the CPU, float32, {results.threads} threads, against {results.peer}; width 64; * one round", groups, most)


def bars_of_dot(results):
    """Ratios to the strongest, of the rows that have them; if none has, those as installed, without targets."""
    rows = results.of_section("dot")
    to = "strongest" if any(row[kind].get("strongest") for row in rows.values() for kind in KINDS) else "ratio"
    rows = {name: row for name, row in rows.items() if row["forward"].get(to)}

    def figure(one):
        return (one[to], one["target"], not one["met"]) if to == "strongest" else (one[to], None, False)

    panels = {heading: {name.split(maxsplit=1)[1].removesuffix(f" {mask}"):
                        {kind: figure(row[kind]) for kind in KINDS} for name, row in rows.items() if name.endswith(mask)}
              for heading, mask in [("no mask", "full"), ("causal", "causal")]}
    which = "at its strongest" if to == "strongest" else "as installed"
    return speed_pictures.panels_of_bars(
        f"Dot products: times as fast as PyTorch, {results.title()}",
        f"{results.processor}, against PyTorch {which}; B sequences, H heads, T tokens, head width D", panels)


def reached(all_results):
    """How many figures of dot products reach their targets, and which are farthest from them."""
    for results in all_results:
        all_figures = results.figures()
        figures = [(name, one) for name, one in all_figures if one.get("strongest")]
        if not figures:
            other = "" if results.pinned else OTHER_RUN
            yield f"- {results.title()}: this table was not measured beside PyTorch at its strongest.{other}"
            continue
        missed = sorted((one["strongest"] / one["target"], f"{name} ({one['strongest']:.2f} of {one['target']})")
                        for name, one in figures if not one["met"])
        slower = sum(one["strongest"] < 1 for _, one in figures)
        unknown = len(all_figures) - len(figures)
        yield (f"- {results.title()}: {len(figures) - len(missed)} of {len(figures)} figures reach their target"
               + (f"; another {unknown} are not measured against PyTorch at its strongest." if unknown else ".")
               + (f" Farthest from it: {'; '.join(words for _, words in missed[:FARTHEST])}." if missed else "")
               + (f" In {slower}, fovea is slower than PyTorch." if slower else ""))


def measured_once(results):
    """Says which rows have one round, and how uncertain these are."""
    once = {part: [name for name in names if results.rounds(name) == 1] for part, names in
            [("dot", results.of_section("dot")), ("other", [n for n in results.rows if results.rows[n]["section"] != "dot"])]}
    if any(once.values()):
        dot, other = len(results.of_section("dot")), len(results.rows) - len(results.of_section("dot"))
        of_other = "all" if len(once["other"]) == other else f"{len(once['other'])} of the"
        of_dot = f"{len(once['dot'])} of the {dot} rows of dot products, and " if once["dot"] else ""
        others = "other rows" if of_dot else "rows that are not dot products"
        yield f"**One round only**: {of_dot}{of_other} {other} {others}. These ratios are uncertain."
        pairs = [[f"{name} {mask}" for name in NEIGHBOURS] for mask in ("full", "causal")]
        if all(name in once["dot"] for pair in pairs for name in pair):
            full, causal = ([number(results.ratio(name, "forward")) for name in pair] for pair in pairs)
            yield (f" Two neighbouring rows suggest how much: for one head of width 64, the forward is {full[0]} at 512 tokens and"
                   f" {full[1]} at 1024 tokens, and {causal[0]} and {causal[1]} with a causal mask.")
        yield "\n"


def chapter(results):
    yield f"## {results.title()}\n\nMeasured on: {results.machine}; {results.peer}{results.builds()}.\n"
    if results.note:
        yield f"{results.note}\n"
    once = "".join(measured_once(results))
    if once:
        yield once
    for section, head in SECTIONS.items():
        rows = results.of_section(section)
        if rows:
            yield f"### {head}"
            if section == "dot":
                yield f"![bars: dot products on {results.title()}](images/{results.image('dot').name})\n"
            yield "\n".join(LINES.get(section, lines_of_calls)(rows)) + "\n"


def page(all_results):
    first = all_results[0]
    heroes = "".join(f"![a dozen bars: times as fast as PyTorch on {one.name}](images/{one.image().name})\n\n"
                     for one in all_results if not one.pinned)
    head = HEAD.format(peer=first.peer, heroes=heroes, reached="\n".join(reached(all_results)))
    return "\n".join([head, *steps_page.chapter(), *(part for results in all_results for part in chapter(results))])


def front_table(all_results, readme):
    """A column for each PyTorch, of the processors where all rows were measured beside the strongest."""
    columns = [(one, to) for one in all_results if not one.pinned for to in YARDSTICKS
               if all(one.ratio(row, (kinds or [None])[0], "strongest") for row, kinds, *_ in FRONT)]
    language = list(FRONT_HEADS).index(readme)
    yield f"| {FRONT_HEADS[readme]} | " + " | ".join(f"{one.name}{YARDSTICKS[to][language]}" for one, to in columns) + " |"
    yield "|---|" + "---|" * len(columns)
    for row, kinds, *words in FRONT:
        cells = [" / ".join(shown(one.ratio(row, kind, to), one.target(row, kind)) for kind in kinds or [None])
                 + " \\*" * (one.rounds(row) == 1)
                 for one, to in columns]
        yield f"| {words[language]} | {' | '.join(cells)} |"
    if any(one.rounds(row) == 1 for one, _ in columns for row, *_ in FRONT):
        yield f"\n{ONE_ROUND[readme]}"


def with_table(readme, all_results):
    text = (ROOT / readme).read_text(encoding="utf-8")
    table = "\n".join(front_table(all_results, readme))
    return re.sub(r"(<!-- speeds: begin[^\n]*\n).*?(\n<!-- speeds: end -->)", lambda m: m[1] + table + m[2], text, flags=re.DOTALL)


def made():
    """{file: what it must hold}."""
    all_results = everything()
    files = {PAGE: page(all_results)}
    for results in all_results:
        files[results.image("dot")] = bars_of_dot(results)
        if not results.pinned:
            files[results.image()] = glance(results, all_results)
    return files | {ROOT / readme: with_table(readme, all_results) for readme in FRONT_HEADS}


def main():
    for path, text in made().items():
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
