#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes docs/speed.md, and its pictures, of the results in bench/results."""
import json
import pathlib
import re
from html import escape

ROOT = pathlib.Path(__file__).resolve().parents[1]
RESULTS, PAGE, IMAGES = ROOT / "bench" / "results", ROOT / "docs" / "speed.md", ROOT / "docs" / "images"

HEAD = """# Speed of attention

Fused attention in float32 against PyTorch on the same processor, in turns: `bench/attention_table.py` measures (see [benchmarks](benchmarks.md)), `bench/speed_page.py` makes this page of its results. A ratio is PyTorch's time over ours; a share is that of the FMA peak, which a loop in registers reaches around each run, and a causal share counts the kept half alone. A target stands in brackets; a row that misses it is marked. Each figure is the median over its rounds; rounds of their own processes differ by some per cent, and PyTorch's by much more. Of AMD's families, 25 with avx512f is Zen 4, and 26 Zen 5.
"""
SECTIONS = {
    "dot": "## Dot products\n\nB sequences, H heads, length T, head width D. A row meets its target by the ratio or by the share.\n",
    "small": "## Small models\n\nForward and backward.\n",
    "parts": "## Parts\n\nForward and backward at B1 H8 T2048 D64, causal: the time beside plain dot products in the same process, and the ratio to PyTorch's fastest way that gives a gradient.\n",
    "flex": "## FlexAttention\n\nForward, compiled, its own examples, B1 H8 T2048 D64.\n",
    "window": "## Windows\n\nA window of 64 to either side, one head of width 64, forward and backward.\n",
    "ragged": "## Ragged batches\n\nLengths spread evenly up to the maximum; PyTorch computes the padding.\n",
}


def number(value, digits=2):
    return "" if value is None else f"{value:.{digits}f}"


def with_target(value, target):
    if value is None:
        return ""
    digits = 3 if target and number(value) == number(target) else 2
    return number(value, digits) + (f" ({target})" if target else "")


def lines_of_dot(rows):
    yield "| | Forward | share | Backward | share | Rounds |"
    yield "|---|---|---|---|---|---|"
    for name, row in rows.items():
        cells = []
        for kind in ("forward", "backward"):
            one = row[kind]
            mark = "" if one["met"] else " **missed**"
            cells += [f"{with_target(one['ratio'], one['target'])}{mark}", with_target(one["share"], one["target_share"])]
        yield f"| {name.removeprefix('dot ')} | {' | '.join(cells)} | {row.get('rounds', 1)} |"


def lines_of_calls(rows):
    beside = any("beside" in row for row in rows.values())
    yield "| |" + " Beside plain |" * beside + " Ratio | PyTorch's way |"
    yield "|---|" + "---|" * beside + "---|---|"
    for name, row in rows.items():
        mark = "" if row.get("met", True) else " **missed**"
        yield (f"| {name}{mark} |" + f" {with_target(row.get('beside'), row.get('target_beside'))} |" * beside +
               f" {with_target(row.get('ratio'), row.get('target'))} | {row.get('way', '')} |")


def lines_of_lengths(rows):
    yield "| T | Time a position, beside the first row | Peak memory, MiB | Ratio |"
    yield "|---|---|---|---|"
    first = next(iter(rows.values()))
    unit = first["seconds"] / first["length"]
    for row in rows.values():
        mark = "" if row.get("met", True) else " **missed**"
        yield (f"| {row['length']:,} | {number(row['seconds'] / row['length'] / unit)} | {row['peak_memory_bytes'] / 2**20:,.0f} |"
               f" {with_target(row.get('ratio'), row.get('target'))}{mark} |")


LINES = {"dot": lines_of_dot, "window": lines_of_lengths}


def bars(title, values):
    """Horizontal bars of (name, ratio, target, met): a line at 1, where PyTorch is, and a tick at the target."""
    width, left, row = 760, 270, 22
    most = max(max(value, target or 0) for _, value, target, _ in values) * 1.1
    height = 50 + row * len(values)
    at = lambda x: left + (width - left - 60) * x / most  # noqa: E731
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12">',
           f'<rect width="{width}" height="{height}" fill="white"/>',
           f'<text x="{left}" y="18" font-size="14">{escape(title)}</text>']
    for n, (name, value, target, met) in enumerate(values):
        y = 30 + row * n
        colour = "#2a6f97" if met else "#c1666b"
        after = max(value, target or 0) if target and target < value * 1.2 + 0.2 else value
        out.append(f'<text x="{left - 8}" y="{y + 13}" text-anchor="end">{escape(name)}</text>')
        out.append(f'<rect x="{left}" y="{y + 2}" width="{at(value) - left:.1f}" height="14" fill="{colour}"/>')
        out.append(f'<text x="{at(after) + 5:.1f}" y="{y + 13}">{value:.2f}</text>')
        if target:
            out.append(f'<line x1="{at(target):.1f}" x2="{at(target):.1f}" y1="{y}" y2="{y + 18}" stroke="#333" stroke-width="2"/>')
    out.append(f'<line x1="{at(1):.1f}" x2="{at(1):.1f}" y1="26" y2="{height - 14}" stroke="#999" stroke-dasharray="4 3"/>')
    out.append(f'<text x="{at(1):.1f}" y="{height - 2}" text-anchor="middle" fill="#666">PyTorch</text></svg>')
    return "\n".join(out) + "\n"


def values_of(section, rows):
    if section == "dot":
        for name, row in rows.items():
            for kind in ("forward", "backward"):
                if row[kind]["ratio"]:
                    yield f"{name.removeprefix('dot ')}, {kind}", row[kind]["ratio"], row[kind]["target"], row[kind]["met"]
    else:
        for name, row in rows.items():
            if row.get("ratio"):
                yield name, row["ratio"], row["target"], row.get("met", True)


def pinned_to(results):
    return re.search(r"FOVEA_ISA (\w+)", results["machine"])[1]


def main():
    page = [HEAD]
    found = [(path, json.loads(path.read_text())) for path in sorted(RESULTS.glob("*.json"))]
    for path, results in sorted(found, key=lambda one: pinned_to(one[1]) != "best"):
        pinned = pinned_to(results)
        more = "" if pinned == "best" else f", both sides pinned to {pinned.upper()}"
        page.append(f"## {results['machine'].split(';')[0]}{more}\n\n{results['machine']}; {results['peer']}.\n")
        for section, head in SECTIONS.items():
            rows = {name: row for name, row in results["rows"].items() if row["section"] == section}
            if not rows:
                continue
            page.append(f"#{head}")
            page.append("\n".join(LINES.get(section, lines_of_calls)(rows)) + "\n")
            values = list(values_of(section, rows))
            if len(values) > 1:
                image = IMAGES / f"speed-{path.stem}-{section}.svg"
                image.write_text(bars("times as fast as PyTorch; a tick is the target, red misses it", values))
                page.append(f"![{section}: times as fast as PyTorch](images/{image.name})\n")
    PAGE.write_text("\n".join(page))


if __name__ == "__main__":
    main()
