#!/usr/bin/env python3
"""report.html in a real browser: the drawing, the time slider, the tables, keys, and its bounds.

usage: viewer_test.py [BUILD_DIR] [-k PATTERN]
"""

import base64
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import browser
import testing

BUILD = pathlib.Path(sys.argv.pop(1) if len(sys.argv) > 1 and not sys.argv[1].startswith("-")
                     else "build/release").resolve()
VERBENA = BUILD / "bin" / "verbena"
ROOT = pathlib.Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
VIEWER = ROOT / "viewer"
PICTURES = pathlib.Path(__file__).resolve().with_name("pictures")
LIMIT_S = 120

FAT_TREE = "topology: {kind: fat-tree, k: 4}\nworkload: {kind: permutation, size: 300KB}\n"
THOUSAND = ("topology: {kind: leaf_spine, leaves: 50, hosts_per_leaf: 20, spines: 16}\n"
            "workload: {kind: permutation, size: 100KB}\n")
RAILS = ("topology: {kind: rail_optimized, nodes: 8, rails: 8, spines: 4}\n"
         "collective: {operation: all reduce, algorithm: ring, size: 512KiB, "
         "nvlink: {rate: 3.6Tbps, latency: 700ns}}\n"
         "switch: {convergence: 10us}\nhosts: {requester: {probe: 100us}}\n"
         "faults: {down: leaf0.0-spine1, at: 10us, for: 50us}\n")


def data_of(page):
    return json.loads(re.search(r'id="data">(.*?)</script>', page.read_text(), re.S).group(1))


FOLDER = pathlib.Path(tempfile.mkdtemp(prefix="verbena-viewer-"))
unittest.addModuleCleanup(shutil.rmtree, FOLDER, ignore_errors=True)


class Reports(unittest.TestCase):
    """Reports of simulations, each made once."""

    folder = FOLDER
    pages = {}

    def report(self, name, text, *options):
        if name not in self.pages:
            scenario = self.folder / f"{name}.yaml"
            scenario.write_text(text)
            done = subprocess.run([VERBENA, "sim", scenario, "-o", self.folder / name, *options],
                                  capture_output=True, text=True, timeout=LIMIT_S)
            self.assertEqual(done.returncode, 0, done)
            self.pages[name] = self.folder / name / "report.html"
        return self.pages[name]


class Data(Reports):
    """The data in the page: docs/viewer.md."""

    def test_paths_lead_from_the_source_to_the_destination(self):
        data = data_of(self.report("fat", FAT_TREE))
        self.assertEqual((data["format"], data["kind"]), (1, "scenario"))
        links, transfers = data["links"], data["runs"]["network"]["transfers"]
        self.assertEqual((transfers["all"], len(transfers["rows"])), (16, 16))
        for source, destination, size, start, end, alone, path in transfers["rows"]:
            at = source
            for direction in transfers["paths"][path]:
                ends = (links["a"][direction // 2], links["b"][direction // 2])
                self.assertEqual(at, ends[direction % 2])
                at = ends[1 - direction % 2]
            self.assertEqual(at, destination)
            self.assertGreaterEqual(end - start, alone * 0.999)
            self.assertEqual(size, 300_000)

    def test_loads_add_up_to_what_was_sent(self):
        page = self.report("fat", FAT_TREE)
        run = data_of(page)["runs"]["network"]
        use, load = run["use"], run["totals"]["load"]
        for direction, *changes in use["load"]:
            points = [0] * use["points"]
            for point, value in zip(changes[::2], changes[1::2]):
                points[point:] = [value] * (use["points"] - point)
            mean = sum(points) * use["point_us"] / run["end_us"]
            self.assertAlmostEqual(mean, load[direction], delta=25)

    def test_a_job_keeps_its_slowest_messages_and_their_paths(self):
        data = data_of(self.report("rails", RAILS))
        self.assertEqual(data["kind"], "job")
        transfers = data["runs"]["ring"]["transfers"]
        lost = [round(end - start - alone, 6) for _, _, _, start, end, alone, _, _ in transfers["rows"]]
        self.assertEqual(lost, sorted(lost, reverse=True))
        self.assertTrue(any(len(path) == 4 for path in transfers["paths"]))  # over a spine
        self.assertEqual([fault["what"] for fault in data["faults"]], ["down"])

    def test_the_page_of_a_thousand_hosts_is_small(self):
        page = self.report("thousand", THOUSAND)
        self.assertLess(page.stat().st_size, 4_000_000)
        use = data_of(page)["runs"]["network"]["use"]
        values = sum(len(row) - 1 for quantity in ("load", "queue", "marks", "paused")
                     for row in use[quantity])
        self.assertLessEqual(values, 250_000)


class Bundle(Reports):
    def test_the_bundle_is_made_of_the_sources(self):
        digest = hashlib.sha256()
        for file in sorted((VIEWER / "src").rglob("*.ts"), key=str):
            digest.update(file.read_bytes())
        first = (VIEWER / "bundle" / "viewer.js").read_text().split("\n", 1)[0]
        self.assertIn(digest.hexdigest(), first, "run `npm run build` in viewer/")

    @unittest.skipUnless((VIEWER / "node_modules" / "vite").exists() and shutil.which("npm"),
                         "run `npm ci` in viewer/: Vite is not installed")
    def test_a_build_gives_the_same_bytes(self):
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run(["npx", "vite", "build", "--outDir", folder], cwd=VIEWER,
                                  capture_output=True, text=True, timeout=LIMIT_S)
            self.assertEqual(done.returncode, 0, done)
            self.assertEqual((pathlib.Path(folder) / "viewer.js").read_bytes(),
                             (VIEWER / "bundle" / "viewer.js").read_bytes())

    @unittest.skipUnless((VIEWER / "node_modules" / "playwright-core").exists() and
                         shutil.which("node") and browser.CHROMIUM,
                         "run `npm ci` in viewer/: Playwright is not installed, or chromium")
    def test_pictures_by_playwright(self):
        self.report("rails", RAILS)
        self.report("thousand", THOUSAND)
        done = subprocess.run(["node", "--test", "tests/"], cwd=VIEWER, capture_output=True,
                              text=True, timeout=LIMIT_S,
                              env={**os.environ, "VIEWER_REPORTS": str(FOLDER),
                                   "CHROMIUM": browser.CHROMIUM, "HOME": str(FOLDER)})
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_no_file_names_an_address_of_a_registry(self):
        self.assertNotIn('"resolved"', (VIEWER / "package-lock.json").read_text())


@unittest.skipUnless(browser.CHROMIUM, "chromium is not installed")
class InABrowser(Reports):
    browser = None

    @classmethod
    def setUpClass(cls):
        if InABrowser.browser is None:
            InABrowser.browser = browser.Browser(FOLDER)
            unittest.addModuleCleanup(InABrowser.browser.close)

    def open(self, page):
        seconds = self.browser.open(page)
        self.assertEqual(self.browser.errors, [])
        self.assertEqual([url for url in self.browser.requests if not url.startswith("file:")], [])
        return seconds

    def text(self, identifier):
        return self.browser(f"document.getElementById('{identifier}').textContent")

    def count(self, selector):
        return self.browser(f"document.querySelectorAll({json.dumps(selector)}).length")

    def focus(self, identifier):
        self.browser(f"document.getElementById('{identifier}').focus()")

    def values(self):
        """What each line of the drawing shows: 0 .. 1."""
        return self.browser("[...document.querySelectorAll('.link')].map(l => +l.dataset.value)")

    def heading(self):
        return self.text("transfers_heading")


class Drawing(InABrowser):
    def test_a_fat_tree_is_drawn_whole(self):
        self.open(self.report("fat", FAT_TREE))
        self.assertEqual(self.count("#picture .item.switch"), 20)
        self.assertEqual(self.count("#picture .item.host"), 16)
        self.assertEqual(self.count("#picture .link"), 48)
        self.assertEqual(self.browser("[...document.querySelectorAll('.framename text')]"
                                      ".map(t => t.textContent).sort()"),
                         [f"pod {i}" for i in range(4)])
        self.assertEqual(self.count("#transfers tbody tr"), 16)

    def test_more_means_darker_and_wider(self):
        self.open(self.report("fat", FAT_TREE))
        lines = self.browser("""[...document.querySelectorAll('.link')].map(l => {
            const [r, g, b] = getComputedStyle(l).stroke.match(/\\d+/g).map(Number);
            return [+l.dataset.value, 0.2126 * r + 0.7152 * g + 0.0722 * b,
                    parseFloat(getComputedStyle(l).strokeWidth)]; })""")
        lines.sort()
        for less, more in zip(lines, lines[1:]):
            if more[0] - less[0] > 0.05:
                self.assertLess(more[1], less[1])
                self.assertGreater(more[2], less[2])

    def test_a_link_that_is_clicked_shows_its_flows(self):
        page = self.report("fat", FAT_TREE)
        self.open(page)
        data = data_of(page)
        names, links = data["nodes"]["name"], data["links"]
        transfers = data["runs"]["network"]["transfers"]
        self.browser("document.getElementById('picture').scrollIntoView()")
        x, y = self.browser("""(() => {
            const at = name => { const box = [...document.querySelectorAll('.item')].find(
                g => g.getAttribute('aria-label') === name).querySelector('.box').getBoundingClientRect();
              return [box.x + box.width / 2, box.y + box.height / 2]; };
            const [a, b] = [at('switch edge0.0'), at('host h0')];
            return [(a[0] + b[0]) / 2, (a[1] + b[1]) / 2]; })()""")
        self.browser.click(x, y)
        link = next(i for i, (a, b) in enumerate(zip(links["a"], links["b"]))
                    if {names[a], names[b]} == {"h0", "edge0.0"})
        through = [row for row in transfers["rows"]
                   if any(d // 2 == link for d in transfers["paths"][row[6]])]
        self.assertEqual(self.heading(), f"{len(through)} flows through link h0-edge0.0")
        self.assertEqual(self.count("#transfers tbody tr"), len(through))

    def test_one_moment_differs_from_the_whole(self):
        self.open(self.report("fat", FAT_TREE))
        whole = self.values()
        self.browser("const m = document.getElementById('moment'); m.value = m.max; "
                     "m.dispatchEvent(new Event('input'))")
        self.browser.frame()
        self.assertNotEqual(self.values(), whole)
        self.assertRegex(self.text("moment_text"), r"\d us to \d")

    def test_quantities_can_be_chosen(self):
        self.open(self.report("incast", (EXAMPLES / "incast.yaml").read_text()))
        seen = {}
        for name in ("load", "queue", "paused", "marks"):
            self.browser(f"const q{name} = document.getElementById('quantity'); q{name}.value = '{name}';"
                         f"q{name}.dispatchEvent(new Event('change'))")
            seen[name] = self.values()
        self.assertGreater(max(seen["load"]), 0.5)
        self.assertEqual(max(seen["queue"]), 1)
        self.assertNotEqual(seen["load"], seen["queue"])
        self.assertRegex(self.text("transfers"), r"(queue of up to|paused for|shared) ")

    def test_failed_links_are_marked_while_they_are_down(self):
        self.open(self.report("dual", (EXAMPLES / "dual_tor.yaml").read_text()))
        crosses = ("[...document.querySelectorAll('.cross')]"
                   ".filter(c => c.style.display !== 'none').length")
        self.assertEqual(self.browser(crosses), 1)
        self.assertEqual(self.count("#overview .fault"), 1)
        for point, marked in (("0", 0), ("100", 1)):  # it goes down at 200 us
            self.browser(f"document.getElementById('moment').value = '{point}'; "
                         "document.getElementById('moment').dispatchEvent(new Event('input'))")
            self.browser.frame()
            self.assertEqual(self.browser(crosses), marked, point)
        self.assertRegex(self.text("transfers"), r"n0.g0-tor0.0.A was down from 200 us")

    def test_a_deadlock_is_dashed(self):
        (self.folder / "ring.txt").write_text("".join(
            f"h{i} s{i}\ns{i} s{(i + 1) % 5}\n" for i in range(5)))
        flows = ", ".join(f"{{from: h{i}, to: h{(i + 2) % 5}, size: 5MB}}" for i in range(5))
        self.open(self.report("ring", "topology: {kind: import, file: ring.txt}\n"
                              "switch: {buffer: 1MiB, ecn: off, pfc: {watchdog: off}}\n"
                              "hosts: {congestion_control: off}\n"
                              f"workload: {{kind: flows, flows: [{flows}]}}\n"))
        self.assertEqual(self.count(".link.circle"), 5)
        self.assertIn("Deadlock", self.text("deadlock"))
        self.assertIn("has not ended", self.text("transfers"))

    def test_rails_and_servers_of_a_job(self):
        self.open(self.report("rails", RAILS))
        self.assertEqual(self.count("#picture .item.switch"), 12)
        self.assertIn("Slowest steps", self.heading())
        self.assertRegex(self.text("transfers"), r"lane \d+: leaf0\.0-spine1 was down from 10 us")
        self.browser("const a = document.getElementById('arrange'); a.value = 'server';"
                     "a.dispatchEvent(new Event('change'))")
        self.assertEqual(self.browser("[...document.querySelectorAll('.framename text')]"
                                      ".map(t => t.textContent).sort()"),
                         [f"server {i}" for i in range(8)])
        self.assertEqual(self.count("#picture .item.host"), 64)

    def test_what_slowed_a_flow_is_named(self):
        self.open(self.report("star", "topology: {kind: star, hosts: 5}\n"
                              "workload: {kind: incast, size: 300KB}\n"))
        why = self.browser("[...document.querySelectorAll('td.why')].map(c => c.textContent)")
        self.assertEqual(len(why), 4)
        for words in why:
            self.assertRegex(words, r"shared s0 → h0, \d+\.\d % busy, with 3 others($|;)")
        self.open(self.report("alone", "topology: {kind: star, hosts: 3}\nworkload: "
                              "{kind: flows, flows: [{from: 0, to: 1, size: 300KB}]}\n"))
        self.assertEqual(self.browser("document.querySelector('td.why').textContent"),
                         "nothing: it took what it takes alone")

    def test_flows_of_one_size_are_a_curve(self):
        kind = "Chart.getChart('slowdown').config.data.datasets.at(-1).type ?? 'line'"
        self.open(self.report("fat", FAT_TREE))
        self.assertEqual(self.browser(kind), "line")
        self.open(self.report("sizes", "topology: {kind: star, hosts: 6}\nworkload:\n"
                              "  - {kind: permutation, size: 10KB}\n"
                              "  - {kind: permutation, size: 900KB}\n"))
        self.assertEqual(self.browser(kind), "scatter")

    def test_a_picture_of_a_fat_tree(self):
        """Without words, whose fonts differ between machines."""
        self.open(self.report("fat", FAT_TREE))
        self.browser("document.head.appendChild(document.createElement('style')).textContent = "
                     "'#picture text, .tip { display: none !important }';"
                     "document.getElementById('picture').scrollIntoView()")
        self.browser.frame()
        clip = self.browser("(() => { const b = document.getElementById('picture')"
                            ".getBoundingClientRect(); return [b.x + scrollX, b.y + scrollY, b.width,"
                            " b.height].map(Math.round); })()")
        taken = self.browser.call("Page.captureScreenshot", format="png", captureBeyondViewport=True,
                                  clip=dict(zip(("x", "y", "width", "height"), clip), scale=0.5))
        known = PICTURES / "fat_tree.png"
        if not known.exists():  # to take a new one, remove the old one
            known.parent.mkdir(exist_ok=True)
            known.write_bytes(base64.b64decode(taken["data"]))
        differing = self.browser("""(async ([a, b]) => {
            const pixels = async data => {
              const image = new Image();
              image.src = 'data:image/png;base64,' + data;
              await image.decode();
              const canvas = document.createElement('canvas');
              [canvas.width, canvas.height] = [image.width, image.height];
              const context = canvas.getContext('2d');
              context.drawImage(image, 0, 0);
              return [image.width, context.getImageData(0, 0, image.width, image.height).data]; };
            const [[w1, p], [w2, q]] = [await pixels(a), await pixels(b)];
            if (w1 !== w2 || p.length !== q.length) return 1;
            let count = 0;
            for (let i = 0; i < p.length; i += 4)
              if (Math.abs(p[i] - q[i]) + Math.abs(p[i+1] - q[i+1]) + Math.abs(p[i+2] - q[i+2]) > 90)
                ++count;
            return count / (p.length / 4); })(%s)""" % json.dumps(
                [base64.b64encode(known.read_bytes()).decode(), taken["data"]]))
        self.assertLess(differing, 0.02)


class Keyboard(InABrowser):
    def test_every_control_has_a_name_and_can_be_reached(self):
        self.open(self.report("rails", RAILS))
        nameless = self.browser("""[...document.querySelectorAll('button, input, select')].filter(e =>
            !e.closest('[hidden]') && !(e.textContent.trim() || e.getAttribute('aria-label') ||
            e.closest('label')?.textContent.trim())).map(e => e.outerHTML)""")
        self.assertEqual(nameless, [])
        reached = set()
        self.browser("document.getElementById('theme').focus()")
        for _ in range(25):
            self.browser.press("Tab")
            reached.add(self.browser("document.activeElement.id"))
        self.assertLessEqual({"quantity", "arrange", "find", "zoom_in", "zoom_out", "zoom_all",
                              "collapse_all", "expand_fit", "picture", "play", "whole", "moment"},
                             reached)

    def test_keys_walk_through_the_drawing(self):
        self.open(self.report("fat", FAT_TREE))
        self.focus("picture")
        self.browser.press("ArrowRight")  # the first item
        at = lambda: self.browser("document.getElementById(document.getElementById('picture')"
                                  ".getAttribute('aria-activedescendant')).getAttribute('aria-label')")
        self.assertEqual(at(), "switch core0")
        self.browser.press("ArrowRight")
        self.assertEqual(at(), "switch core1")
        self.browser.press("ArrowDown")
        self.assertRegex(at(), r"switch agg\d\.\d")
        self.assertRegex(self.text("announcement"), r"switch agg\d\.\d")
        self.browser.press("Enter")
        self.assertRegex(self.heading(), r"\d+ flows? through switch agg")
        self.assertEqual(self.count("#links button"), 4)
        self.browser("document.querySelector('#links button').focus()")
        self.browser.press("Enter")
        self.assertRegex(self.heading(), r"\d+ flows? through link ")
        self.focus("clear")
        self.browser.press("Enter")
        self.assertIn("Slowest flows", self.heading())

    def test_keys_collapse_expand_and_zoom(self):
        self.open(self.report("fat", FAT_TREE))
        self.focus("picture")
        for key in ("ArrowRight", "ArrowDown", "c", "c"):
            self.browser.press(key)
        self.assertLess(self.count("#picture .item.host"), 16)
        self.browser.press("e")
        self.focus("expand_fit")
        self.browser.press("Enter")
        self.assertEqual(self.count("#picture .item.host"), 16)
        view = "document.getElementById('picture').getAttribute('viewBox')"
        whole = self.browser(view)
        self.focus("picture")
        self.browser.press("+")
        near = self.browser(view)
        self.assertNotEqual(near, whole)
        self.browser.press("ArrowRight", shift=True)
        self.assertNotEqual(self.browser(view), near)
        self.browser.press("0")
        self.assertEqual(self.browser(view), whole)

    def test_keys_move_the_slider_and_play(self):
        self.open(self.report("fat", FAT_TREE))
        self.focus("moment")
        self.browser.press("ArrowRight")
        self.assertEqual(self.browser("document.getElementById('whole').getAttribute('aria-pressed')"),
                         "false")
        self.assertRegex(self.browser("document.getElementById('moment').getAttribute('aria-valuetext')"),
                         r"^\d.* to \d")
        self.focus("play")
        self.browser.press(" ")
        self.assertEqual(self.text("play"), "Pause")
        self.browser("new Promise(r => setTimeout(r, 300))")
        self.assertGreater(self.browser("+document.getElementById('moment').value"), 1)
        self.browser.press(" ")
        self.assertEqual(self.text("play"), "Play")
        self.focus("whole")
        self.browser.press("Enter")
        self.assertEqual(self.text("moment_text"), "whole run")

    def test_keys_sort_and_show_paths(self):
        self.open(self.report("fat", FAT_TREE))
        self.browser("[...document.querySelectorAll('th button')].find("
                     "b => b.textContent === 'slowdown').focus()")
        self.browser.press("Enter")
        slowdowns = self.browser("[...document.querySelectorAll('#transfers tbody tr')]"
                                 ".map(r => +r.cells[6].textContent)")
        self.assertEqual(slowdowns, sorted(slowdowns, reverse=True))
        self.assertIn("slowdown", self.browser("document.activeElement.textContent"))
        self.browser("document.querySelector('#transfers td button').focus()")
        self.browser.press("Enter")
        self.assertGreaterEqual(self.count(".link.onpath"), 2)
        self.assertIn("path: ", self.text("announcement"))

    def test_a_node_is_found_by_its_name(self):
        self.open(self.report("thousand", THOUSAND))
        self.focus("find")
        for key in "h777":
            self.browser.press(key)
        self.browser.press("Enter")
        self.assertRegex(self.heading(), r"\d+ flows? through host h777")
        self.assertEqual(self.count("#picture .item.host"), 20)

    def test_the_theme_can_be_chosen(self):
        self.open(self.report("fat", FAT_TREE))
        back = "getComputedStyle(document.body).backgroundColor"
        self.focus("theme")
        seen = []
        for theme in ("light", "dark", "auto"):
            self.browser.press("Enter")
            self.assertEqual(self.text("theme"), f"Theme: {theme}")
            seen.append(self.browser(back))
        self.assertEqual(len(set(seen[:2])), 2)


class Bounds(InABrowser):
    def test_a_thousand_hosts_open_soon_and_move_smoothly(self):
        page = self.report("thousand", THOUSAND)
        self.assertLess(min(self.open(page) for _ in range(3)), 3)
        self.assertLess(self.browser.heap_bytes(), 100e6)
        self.assertLess(self.count("#picture *"), 4000)
        self.assertGreater(self.count("#picture .item"), 50)
        took = self.browser("""(async () => {
            const slider = document.getElementById('moment'), times = [];
            for (let i = 0; i < 20; ++i) {
              slider.value = String(3 * i);
              const before = performance.now();
              slider.dispatchEvent(new Event('input'));
              await new Promise(r => requestAnimationFrame(() => setTimeout(r)));
              times.push(performance.now() - before);
            }
            return times.sort((a, b) => a - b)[10]; })()""")
        self.assertLess(took, 1000)  # ms, with the rendering, on a busy machine

    def test_groups_of_a_thousand_hosts_expand(self):
        self.open(self.report("thousand", THOUSAND))
        self.assertEqual(self.count("#picture .item.hosts"), 50)
        self.focus("collapse_all")
        self.browser.press("Enter")
        self.assertLess(self.count("#picture .item"), 60)
        self.focus("picture")
        self.browser.press("ArrowRight")
        before = self.count("#picture .item")
        self.browser.press("e")
        self.assertGreater(self.count("#picture .item"), before)

    def test_names_that_are_markup_stay_names(self):
        names = ["</script><script>window.bad=1</script>", '"quote\'"', "<img/src=x/onerror=bad=1>",
                 "&amp;", "\\u003c", "tab\x01end", "日本"]
        (self.folder / "bad.txt").write_text("".join(f"{name} s{i % 2}\n"
                                                     for i, name in enumerate(names)) + "s0 s1\n")
        page = self.report("bad", "topology: {kind: import, file: bad.txt}\nworkload: {kind: permutation, size: 10KB}\n")
        self.open(page)
        self.assertIsNone(self.browser("window.bad ?? null"))
        self.assertEqual(self.count("img"), 0)
        shown = self.browser("[...document.querySelectorAll('.item.host')]"
                             ".map(g => g.getAttribute('aria-label'))")
        self.assertLessEqual({f"host {name}" for name in names[:5]}, set(shown))

    def test_other_data_is_refused_with_a_word(self):
        page = self.folder / "other.html"
        page.write_text(self.report("fat", FAT_TREE).read_text().replace('"format":1', '"format":99'))
        self.open(page)
        self.assertIn("format 99", self.text("subtitle"))


if __name__ == "__main__":
    testing.main()
