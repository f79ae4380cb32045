#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Sizes and times of attention pages in Chromium, with BertViz beside them if it is installed.

  bench/pages.py [--rounds N] [--python INTERPRETER_WITH_BERTVIZ]

12 layers of 12 heads; every row is any point of the simplex, the hardest to store. `drawn` is the time
from the first line of the page's script to the drawn page; `work` is the processor's time for
script, style and layout until then, which a busy machine changes little; `open` is the time from the
request to the end of loading; `scroll` that of a frame after a jump to the end of the map. Medians
of the rounds.
"""

import argparse
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "pages"))

import chromium  # noqa: E402

MAKER = os.environ.get("FOVEA_TEST_PAGES", str(ROOT / "build" / "release" / "tests" / "fovea_test_pages"))
LAYERS, HEADS = 12, 12
CASES = ((64, "full"), (64, "causal"), (256, "causal"), (256, "full"), (512, "causal"), (512, "full"))
COMPARED = 64  # tokens; at 256 a page of BertViz has 200 MB

SCROLL = """new Promise(done => {
  const map = document.getElementById('map');
  map.scrollTop = map.scrollHeight;
  map.scrollLeft = map.scrollWidth;
  requestAnimationFrame(() => requestAnimationFrame(done));
})"""


def measure(tab, path, rounds):
    opened, drawn, worked, scrolled = [], [], [], []
    tab.call("Performance.enable", timeDomain="threadTicks")
    for _ in range(rounds):
        opened.append(tab.open(path))
        counts = {m["name"]: m["value"] for m in tab.call("Performance.getMetrics")["metrics"]}
        worked.append(1000 * sum(counts[f"{what}Duration"] for what in ("Script", "RecalcStyle", "Layout")))
        drawn.append(float(tab.run("document.documentElement.dataset.ready")))
        begin = time.monotonic()
        tab.run(SCROLL)
        scrolled.append(1000 * (time.monotonic() - begin))
    return [statistics.median(times) for times in (opened, drawn, worked, scrolled)]


def compare(tab, path, python):
    """The page of BertViz with the same weights: its size, and what happens without a network."""
    other = path.with_suffix(".bertviz.html")
    done = subprocess.run([python, str(ROOT / "bench" / "peer_pages.py"), path.with_suffix(".f32"), str(LAYERS),
                           str(HEADS), str(COMPARED), other], capture_output=True, text=True)
    if done.returncode:
        print(f"BertViz is left out: {done.stderr.strip().splitlines()[-1]}")
        return
    ours, theirs = path.with_suffix(".html").stat().st_size, other.stat().st_size
    print(f"BertViz, {COMPARED} tokens: {theirs} bytes; ours has {ours / theirs:.3f} of that")
    tab.open(other)
    time.sleep(1)
    asked = [url for url in tab.requests() if url.startswith("http")]
    lines = tab.run("document.querySelectorAll('svg').length")
    print(f"  it asks for {', '.join(asked) or 'nothing'}; without a network it draws {lines} pictures")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--python", default=sys.executable, help="the interpreter that has bertviz")
    options = parser.parse_args()
    if chromium.find() is None:
        sys.exit("there is no chromium: tools/install_dependencies.sh test installs it")
    browser = chromium.Browser()
    with tempfile.TemporaryDirectory() as folder:
        try:
            tab = chromium.Page(browser)
            tab.size(1280, 900)
            print("| tokens | mask | bytes | made, s | open, s | drawn, ms | work, ms | scroll, ms | decimals | kept of a row |")
            print("|---|---|---|---|---|---|---|---|---|---|")
            for tokens, kind in CASES:
                path = pathlib.Path(folder) / f"{tokens}-{kind}"
                begin = time.monotonic()
                subprocess.run([MAKER, path, str(LAYERS), str(HEADS), str(tokens), kind], check=True)
                made = time.monotonic() - begin
                html = path.with_suffix(".html")
                opened, drawn, worked, scrolled = measure(tab, html, options.rounds)
                digits, kept = tab.run("[page.decimals, page.strongest]")
                print(f"| {tokens} | {kind} | {html.stat().st_size} | {made:.1f} | {opened:.2f} | {drawn:.0f} | "
                      f"{worked:.0f} | {scrolled:.0f} | {digits} | {kept or 'all'} |", flush=True)
                if (tokens, kind) == (COMPARED, "full"):
                    compare_at = path
            compare(tab, compare_at, options.python)
        finally:
            browser.close()


if __name__ == "__main__":
    main()
