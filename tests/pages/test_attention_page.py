#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The attention page in a real Chromium: what it draws is what the weights are."""

import re
import unittest

import support

# The heat map as [alpha, ...] with what is needed to turn a pixel back into a weight.
MAP = """(() => {
  const read = id => {
    const canvas = document.getElementById(id), {width, height} = canvas;
    const data = canvas.getContext('2d').getImageData(0, 0, width, height).data;
    return {width, height, data, set: canvas.dataset};
  };
  const weights = read('weights'), grounds = read('grounds');
  const alphas = of => Array.from({length: of.width * of.height}, (_, cell) => of.data[4 * cell + 3]);
  return {width: weights.width, height: weights.height, top: Number(weights.set.top),
    shading: weights.set.shading, alphas: alphas(weights), grounds: alphas(grounds),
    // Pale pixels lose their colour to rounding.
    ink: alphas(weights).flatMap((alpha, cell) => alpha < 250 ? [] : [weights.data[4 * cell]])}; })()"""
READING = "document.querySelector('#reading b').textContent"


class AttentionPage(support.PageTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.make_pages(cls.folder)

    def open(self, name, sizes):
        """Opens a page; sizes: (heads, queries, keys) of each map. Returns its weights."""
        self.assert_sound(self.folder / f"{name}.html")
        values = support.floats(self.folder / f"{name}.f32")
        self.assertEqual(len(values), sum(h * t * s for h, t, s in sizes))
        maps, at = [], 0
        for heads, queries, keys in sizes:
            size = queries * keys
            maps.append([values[at + h * size:at + (h + 1) * size] for h in range(heads)])
            at += heads * size
        return maps

    def assert_pixels(self, weights, most=1 / 255):
        shown = self.page.run(MAP)
        self.assertEqual(len(shown["alphas"]), len(weights))
        for cell, (alpha, weight) in enumerate(zip(shown["alphas"], weights)):
            share = alpha / 255
            value = shown["top"] * (share * share if shown["shading"] == "root" else share)
            self.assertLessEqual(abs(value - abs(weight)), most * max(1, shown["top"]) + 1e-7, cell)
        return shown

    def point_at(self, row, column):
        x, y = self.page.run(f"""(() => {{
          const stack = document.querySelector('.stack');
          stack.scrollIntoView({{block: 'center'}});
          const box = stack.getBoundingClientRect();
          return [box.left + ({column} + .5) * state.cell, box.top + ({row} + .5) * state.cell]; }})()""")
        self.page.point(x, y)
        return self.page.run(READING)

    def test_pixels_are_the_weights_of_each_layer_head_and_shading(self):
        maps = self.open("plain", [(3, 7, 7)] * 2)
        for layer in range(2):
            self.page.choose("layer", str(layer))
            for head in range(3):
                self.page.choose("head", str(head))
                for shading in ("largest", "one", "root"):
                    self.page.choose("shading", shading)
                    shown = self.assert_pixels(maps[layer][head])
                    self.assertEqual([g == 0 for g in shown["grounds"]], [w == 0 for w in maps[layer][head]])
            self.page.choose("shading", "largest")
            self.page.choose("head", "-1")
            self.assert_pixels([sum(head[cell] for head in maps[layer]) / 3 for cell in range(49)])
        self.assertEqual(self.page.problems(), [])

    def test_the_mouse_and_the_keyboard_show_the_exact_weight(self):
        maps = self.open("plain", [(3, 7, 7)] * 2)
        self.page.choose("head", "1")
        for row, column in ((6, 0), (3, 2), (0, 0)):
            self.assertEqual(self.point_at(row, column), f"{maps[0][1][7 * row + column]:.6f}")
        self.assertEqual(self.point_at(2, 5), "masked")
        self.page.run("document.getElementById('map').focus()")
        self.point_at(0, 0)
        row = column = 0
        for key, down, right in (("ArrowDown", 1, 0), ("ArrowDown", 1, 0), ("ArrowRight", 0, 1),
                                 ("PageDown", 9, 0), ("End", 0, 9), ("ArrowLeft", 0, -1), ("Home", 0, -9),
                                 ("ArrowUp", -1, 0)):
            self.page.press(key)
            row, column = (max(0, min(6, place + step)) for place, step in ((row, down), (column, right)))
            said = self.page.run(READING)
            weight = maps[0][1][7 * row + column]
            self.assertEqual(said, f"{weight:.6f}" if weight else "masked", (key, row, column))
            self.assertIn(said, self.page.run("document.getElementById('live').textContent"))

    def test_single_characters_above_the_map_stand_upright(self):
        for name, upright in (("plain", ["."]), ("chinese", [*"今天的电影非常好看。"])):
            self.open(name, [(3, 7, 7)] * 2)
            shown = self.page.run("""[...document.querySelectorAll('.map .columns bdi span')]
              .filter(span => getComputedStyle(span).textCombineUpright === 'all').map(span => span.textContent)""")
            self.assertEqual(shown, upright)

    def test_the_strongest_keys_and_lines_of_a_query(self):
        maps = self.open("plain", [(3, 7, 7)] * 2)
        self.point_at(5, 0)
        shown = self.page.run("Array.from(document.querySelectorAll('#row td:not(.bar)'), c => c.textContent)")
        self.assertEqual(shown, [f"{w:.6f}" for w in sorted(maps[0][0][35:41], reverse=True)])
        self.assertEqual(self.page.run("document.querySelectorAll('#lines .chosen path').length"), 6)
        self.assertEqual(self.page.run("document.querySelectorAll('#lines .faint path').length"), 28)

    def test_another_map_has_its_own_strongest_keys(self):
        maps = self.open("plain", [(3, 7, 7)] * 2)
        self.point_at(5, 0)
        numbers = "Array.from(document.querySelectorAll('#row td:not(.bar)'), c => c.textContent)"
        for layer, head in ((0, 1), (1, 2)):
            self.page.choose("layer", str(layer))
            self.page.choose("head", str(head))
            wanted = [f"{w:.6f}" for w in sorted(maps[layer][head][35:41], reverse=True)]
            self.assertEqual(self.page.run(numbers), wanted)

    def test_a_layer_may_have_a_map_for_each_joint(self):
        maps = self.open("numbers", [(2, 4, 4)] * 3 + [(1, 2, 2), (1, 2, 4)])
        names = "Array.from(document.getElementById('{}').options, o => o.textContent)"
        self.assertEqual(self.page.run(names.format("layer")), ["layer 1", "layer 2", "pooling"])
        self.assertEqual(self.page.run(names.format("part")), ["mean of 2 joints", "joint 0", "joint 1"])
        for part in range(3):
            self.page.choose("part", str(part))
            for head in range(2):
                self.page.choose("head", str(head))
                self.assert_pixels(maps[part][head])
        self.assertEqual(self.point_at(2, 1), f"{maps[2][1][9]:.6f}")
        self.assertIn("query time step 6 \u2192 key time step 5",
                      self.page.run("document.getElementById('reading').textContent"))
        shown = "document.getElementById('part').getClientRects().length"
        self.assertEqual(self.page.run(shown), 1)
        for layer, row in (("1", 1), ("2", 2)):
            self.page.choose("layer", layer)
            self.assert_pixels(maps[2 + row][0])
            self.assertEqual(self.page.run(shown), 0)
            chosen = self.page.run("Array.from(document.querySelectorAll('table.heads .chosen'), "
                                   "c => c.parentNode.rowIndex)")
            self.assertEqual(chosen, [row + 1] * 3)
        self.page.run("document.getElementById('map').focus()")
        self.page.press("End")
        self.assertIn("joint 1, time step 7: weight", self.page.run("document.getElementById('live').textContent"))
        distances = self.page.run("Array.from(document.querySelectorAll('table.heads')[2].rows, r => r.cells[1].textContent)")
        self.assertEqual(distances[2:], ["\u2013", "\u2013"])
        self.page.choose("layer", "0")
        self.assertEqual(self.page.run("state.map"), 0)
        self.assertEqual(self.page.run("document.querySelectorAll('table.pairs td.below').length"), 2)
        self.assertEqual(self.page.problems(), [])

    def test_negative_weights_have_a_colour_of_their_own(self):
        maps = self.open("signed", [(1, 2, 2), (4, 2, 3)])
        ordinary = self.page.run(MAP)
        self.page.choose("layer", "1")
        head = next(n for n in range(4) if max(maps[1][n], key=abs) < 0)
        self.page.choose("head", str(head))
        weights = maps[1][head]
        shown = self.assert_pixels(weights)
        self.assertNotEqual(shown["ink"], ordinary["ink"])
        for column in range(3):
            self.assertAlmostEqual(float(self.point_at(1, column)), weights[3 + column], delta=.51e-4)
        self.assertEqual(self.page.run("page.texts[1].tokens"), ["a", "big", "house"])

    def test_a_page_that_is_cut_says_so_and_shows_what_it_keeps(self):
        maps = self.open("cut", [(4, 40, 40)] * 2)
        self.assertLess((self.folder / "cut.html").stat().st_size, 60_000)
        note = self.page.run("Array.from(document.querySelectorAll('.note'), n => n.textContent).join(' ')")
        kept = int(re.search(r"keeps only the (\d+) largest weights of each row", note).group(1))
        self.assertGreater(kept, 1)
        missing = self.page.run("Array.from(shown.kinds, kind => kind === MISSING)")
        self.assert_pixels([0 if gone else w for gone, w in zip(missing, maps[0][0])])
        for row in range(40):
            weights = maps[0][0][40 * row:40 * row + 40]
            cells = range(40 * row, 40 * row + 40)
            stored = [w for w, cell in zip(weights, cells) if not missing[cell]]
            self.assertEqual(len(stored), kept)
            left = [w for w, cell in zip(weights, cells) if missing[cell]]
            self.assertLessEqual(max(left), min(stored) + 1e-4)
        cell = missing.index(True)
        said = self.point_at(cell // 40, cell % 40)
        self.assertTrue(said.startswith("at most "))
        self.assertLessEqual(maps[0][0][cell], float(said.split()[-1]) + .51e-4)
        self.page.choose("head", "-1")  # a mean is at most that of what each head may hold
        for row in range(0, 40, 7):
            for column in range(40):
                said = self.point_at(row, column)
                mean = sum(head[40 * row + column] for head in maps[0]) / 4
                if said.startswith("at most "):
                    self.assertLessEqual(mean, float(said.split()[-1]) + .51e-4)

    def test_hostile_tokens_stay_text(self):
        self.open("hostile", [(2, 13, 13)])
        self.assertIsNone(self.page.run("window.broken"))
        self.assertEqual(self.page.run("document.querySelectorAll('img').length"), 0)
        self.assertEqual(self.page.run("document.querySelectorAll('main script').length"), 0)
        self.assertEqual(self.page.run("document.title"), "</title><script>window.broken=1</script>")
        tokens = self.page.run("page.texts[0].tokens")
        self.assertEqual(tokens[0], "</script><script>window.broken=1</script>")
        self.assertEqual(tokens[2], "[U+202E]right to left")
        self.assertEqual(len(tokens[3]), 10240)
        self.assertEqual(tokens[6:10], ["\uFFFD\uFFFD", "\u2205", "\u2423", "\u21B5"])
        shown = self.page.run("document.body.innerText")
        self.assertIn("<img src=x onerror=window.broken=1>", shown)
        self.assertNotIn("\u202E", shown)
        for row in range(13):
            self.point_at(row, row)
        self.assertIn("<option>", self.page.run("document.querySelector('#layer option').textContent"))
        self.assertEqual(self.page.problems(), [])
        self.assertIsNone(self.page.run("window.broken"))
        self.assertLess(self.page.run("document.documentElement.scrollWidth"), 1281, "the page is too wide")

    def test_the_policy_stops_a_script_that_is_not_of_the_page(self):
        path = self.folder / "injected.html"
        text = (self.folder / "plain.html").read_text()
        path.write_text(text.replace("<main>", "<main><script>window.broken=1</script><img src=x onerror=1>", 1))
        self.page.open(path)
        self.assertIsNone(self.page.run("window.broken"))
        self.assertTrue(any("Content Security Policy" in problem for problem in self.page.problems()))

    def test_light_dark_and_print(self):
        self.open("plain", [(3, 7, 7)] * 2)
        ground = "getComputedStyle(document.documentElement).backgroundColor"
        self.assertEqual(self.page.run(ground), "rgb(255, 255, 255)")
        light = self.page.run(MAP)
        self.page.media("dark")
        self.assertEqual(self.page.run(ground), "rgb(13, 17, 23)")
        dark = self.page.run(MAP)
        self.assertEqual(light["alphas"], dark["alphas"])
        self.assertNotEqual(light["ink"][0], dark["ink"][0])
        self.page.media("dark", "print")
        self.assertEqual(self.page.run(ground), "rgb(255, 255, 255)")
        self.assertEqual(self.page.run(MAP)["ink"][0], light["ink"][0])
        self.assertFalse(self.page.run("document.getElementById('layer').getClientRects().length"))
        self.page.media("light")
        self.page.run("document.getElementById('scheme').click()")
        self.assertEqual(self.page.run(ground), "rgb(13, 17, 23)")
        self.assertEqual(self.page.run(MAP)["ink"][0], dark["ink"][0])

    def test_everything_can_be_reached_and_read(self):
        for name in ("plain", "chinese", "signed", "cut", "numbers"):
            with self.subTest(name):
                self.page.open(self.folder / f"{name}.html")
                self.assert_accessible(least=8)

    def test_chinese(self):
        self.open("chinese", [(3, 7, 7)] * 2)
        self.assertEqual(self.page.run("document.documentElement.lang"), "zh-CN")
        shown = self.page.run("document.body.innerText")
        for phrase in ("注意力权重本身不是解释", "各头平均", "怎样读这一页", "熵"):
            self.assertIn(phrase, shown)
        self.assertNotRegex(re.sub(r"gradient x input|Shrikumar[^\n]*|animals|other|layer \d|a test|Model", "", shown),
                            r"\b(query|key|weight|head|the)\b")

    def test_chinese_names_of_columns_can_be_read_with_any_font(self):
        self.open("chinese", [(3, 7, 7)] * 2)
        heights = self.page.run("Array.from(document.querySelectorAll('.columns bdi'), l => l.clientHeight)")
        for token, height in zip(self.page.run("page.texts[0].tokens"), heights, strict=True):
            self.assertGreaterEqual(height, 12 * len(token), token)

    def test_paper_is_wide_enough(self):
        for name, chosen in (("cut", 16), ("plain", 40), ("numbers", 40)):
            with self.subTest(name):
                self.page.open(self.folder / f"{name}.html")
                self.page.size(718, 1000)  # of A4, but for the margins
                self.page.media(medium="print")
                inside = self.page.run("""Array.from(document.querySelectorAll('.map > *, table'),
                    part => part.getBoundingClientRect().right - part.closest('.panel').getBoundingClientRect().right)""")
                self.assertLessEqual(max(inside), 0)
                cell = self.page.run("document.getElementById('cursor').offsetWidth")
                self.assertEqual(cell, min(chosen, round((718 - 37 - 144) / len(self.page.run("shown.keys")))))
                self.page.media()

    def test_large_pages_stay_small_and_quick(self):
        for layers, heads, tokens, kind, most in ((12, 12, 64, "full", 1_000_000),
                                                  (12, 12, 256, "full", 8_000_000)):
            path = self.folder / f"{tokens}-{kind}"
            self.make_pages(path, layers, heads, tokens, kind)
            html = path.with_suffix(".html")
            self.assertLessEqual(html.stat().st_size, most)
            seconds = self.assert_sound(html)
            ready = self.page.run("document.documentElement.dataset.ready")
            print(f"{tokens} tokens: {html.stat().st_size} bytes, drawn in {ready} ms, open in {seconds:.2f} s")


if __name__ == "__main__":
    unittest.main()
