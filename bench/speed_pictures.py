# SPDX-License-Identifier: Apache-2.0
"""The pictures of docs/speed.md as SVG: bars of "times as fast as PyTorch".

Each picture has a background of its own and follows the reader's light or dark theme. Text is black
or white on it; a bar that misses its target differs from the others by colour and by a mark on its figure.
"""
from html import escape

WIDTH = 760
STYLE = """<style>
text{font:13px system-ui,"Segoe UI",Helvetica,Arial,sans-serif;fill:#1f2328}
.title{font-size:17px;font-weight:600}.head{font-weight:600}.soft{fill:#59636e}.small{font-size:12px}
.back{fill:#fff;stroke:#d1d9e0}.grid{stroke:#e4e8ec}.one{stroke:#59636e;stroke-dasharray:4 3}.tick{stroke:#1f2328;stroke-width:2}
.forward{fill:#1f6fb2}.installed{fill:#b9d7ee}.backward{fill:#74b0dd}
.forward.missed{fill:#d1570c}.backward.missed{fill:#f0a56d}
@media(prefers-color-scheme:dark){text{fill:#e6edf3}.soft{fill:#9aa4af}.back{fill:#0d1117;stroke:#3d444d}
.grid{stroke:#262c34}.one{stroke:#9aa4af}.tick{stroke:#e6edf3}.forward{fill:#2f81d0}.installed{fill:#22405f}.backward{fill:#8cc4f0}
.forward.missed{fill:#f0883e}.backward.missed{fill:#f7bd90}}
</style>"""


def text(x, y, words, kind="", anchor="start"):
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{kind}" text-anchor="{anchor}">{escape(words)}</text>'


def line(x1, y1, x2, y2, kind):
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="{kind}"/>'


def picture(height, title, subtitle, parts):
    """The frame of every picture; its title is also what a screen reader says."""
    start = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" role="img">',
             "<!-- SPDX-License-Identifier: Apache-2.0 -->", f"<title>{escape(title)}</title>", STYLE,
             f'<rect x="0.5" y="0.5" width="{WIDTH - 1}" height="{height - 1}" rx="6" class="back"/>',
             text(20, 32, title, "title"), text(20, 53, subtitle, "soft")]
    return "\n".join([*start, *parts, "</svg>"]) + "\n"


class Axis:
    """Ratios from 0 to `most` over `width` units, with room for the figure behind the longest bar."""

    def __init__(self, left, width, most):
        self.left, self.unit, self.most = left, (width - 42) / most, most

    def at(self, ratio):
        return self.left + self.unit * ratio

    def grid(self, top, bottom):
        step = 1 if self.most <= 7 else 2 if self.most <= 14 else 5
        for ratio in [1, *(n for n in range(0, int(self.most) + 1, step) if n != 1)]:
            yield line(self.at(ratio), top, self.at(ratio), bottom, "one" if ratio == 1 else "grid")
            yield text(self.at(ratio), bottom + 17, f"{ratio}x" if ratio else "0", "soft small", "middle")

    def rectangle(self, y, height, ratio, kind):
        return f'<rect x="{self.left}" y="{y}" width="{self.unit * ratio:.1f}" height="{height}" rx="1.5" class="{kind}"/>'

    def bar(self, y, height, figure, kind):
        ratio, target, missed = figure
        yield self.rectangle(y, height, ratio, kind + " missed" * missed)
        if target:
            yield line(self.at(target), y - 1, self.at(target), y + height + 1, "tick")
        end = self.at(max(ratio, target if target and target < ratio * 1.3 + 0.3 else 0))
        yield text(end + 5, y + height / 2 + 4.5, f"{ratio:.2f}" + " \u25bc" * missed, "small" if height < 14 else "")


def groups_of_bars(title, subtitle, groups, most):
    """Groups of (heading, [(name, ratio to the strongest, ratio as installed, mark)]), on an axis up to `most`.
    The bar of the ratio to the strongest lies on that of the other, and both figures are behind the longer;
    None: not measured."""
    left, room = 310, 48  # for the second figure
    axis = Axis(left, WIDTH - left - 20 - room, most)
    bars, y = [], 112
    for heading, rows in groups:
        bars.append(text(20, y + 13, heading, "head"))
        y += 24
        for name, strongest, installed, mark in rows:
            bars.append(text(left - 10, y + 14, name, anchor="end"))
            for ratio, kind in ((installed, "installed"), (strongest, "forward")):
                if ratio:
                    bars.append(axis.rectangle(y, 18, ratio, kind))
            figures = " / ".join(f"{ratio:.2f}" for ratio in (strongest, installed) if ratio) + mark
            bars.append(text(axis.at(max(strongest or 0, installed)) + 5, y + 13.5, figures))
            y += 25
        y += 8
    marks = [*axis.grid(110, y), text(axis.at(1), 104, "PyTorch", "soft small", "middle")]
    kinds = [("forward", "against PyTorch at its strongest (with AVX-512)"), ("installed", "as installed")]
    if not any(strongest for _, rows in groups for _, strongest, *_ in rows):
        kinds = [("installed", "against PyTorch as installed")]
    return picture(y + 32, title, subtitle, [*legend(kinds)[0], *marks, *bars])


def panels_of_bars(title, subtitle, panels):
    """Panels side by side, of {row: {"forward" or "backward": (ratio, target or None, whether it misses it)}}; a tick
    is the target."""
    left, gap = 152, 16
    names = list(dict.fromkeys(name for rows in panels.values() for name in rows))
    width = (WIDTH - left - 20 - gap * (len(panels) - 1)) / len(panels)
    figures = [figure for rows in panels.values() for row in rows.values() for figure in row.values()]
    most = max(max(ratio, target or 0) for ratio, target, _ in figures)
    row_height, top = 38, 126
    bottom = top + row_height * len(names)
    out = [text(20, top + row_height * n + 20, name, "small") for n, name in enumerate(names)]
    for n, (heading, rows) in enumerate(panels.items()):
        axis = Axis(left + n * (width + gap), width, most)
        out += [text(axis.left, 104, heading, "head"), text(axis.at(1), top - 6, "PyTorch", "soft small", "middle"),
                *axis.grid(top - 2, bottom)]
        for name, row in rows.items():
            y = top + row_height * names.index(name) + 3
            for kind, figure in row.items():
                out += axis.bar(y, 12, figure, kind)
                y += 16
    targets, missed = (any(figure[n] for figure in figures) for n in (1, 2))
    return picture(bottom + 30, title, subtitle, key(targets, missed) + out)


def legend(kinds):
    """A square and a word for each colour, and where they end."""
    out, x = [], 20
    for kind, words in kinds:
        out += [f'<rect x="{x}" y="67" width="12" height="12" rx="1.5" class="{kind}"/>', text(x + 18, 77.5, words, "small")]
        x += 44 + 6.4 * len(words)
    return out, x


def key(targets, missed):
    """What the colours and the tick mean; those of targets only if there are any, and any are missed."""
    kinds = [("forward", "forward (upper bar)"), ("backward", "backward (lower bar)")]
    kinds += [("forward missed", "target missed: ratio and share \u25bc")] * missed
    out, x = legend(kinds)
    return out + [line(x + 2, 66, x + 2, 80, "tick"), text(x + 12, 77.5, "target (ratio)", "small")] * targets
