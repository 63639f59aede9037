#!/usr/bin/env python3
"""The site of the documentation (`./dev site`): it is built, each link in it leads to a file and to a
place in that file, it loads nothing from elsewhere, and its search knows the pages.

usage: site_test.py [BUILD_DIR]
"""

import html.parser
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "programs"))
import testing  # noqa: E402

BUILD = pathlib.Path(sys.argv.pop(1) if len(sys.argv) > 1 else ROOT / "build/test").resolve()
LOADS = {("script", "src"), ("link", "href"), ("img", "src")}


class Page(html.parser.HTMLParser):
    """The links and the places of one page."""

    def __init__(self, path):
        super().__init__()
        self.links, self.places, self.loaded = [], {"", "top"}, []
        self.feed(path.read_text())

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            if name in ("id", "name") and value:
                self.places.add(value)
            if name in ("href", "src") and value is not None:
                self.links.append(value)
                if (tag, name) in LOADS and ("link", dict(attributes).get("rel")) != ("link", "canonical"):
                    self.loaded.append(value)


@unittest.skipUnless(shutil.which("mkdocs", path="/usr/bin"), "mkdocs is not installed")
class Site(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if not (BUILD / "bin/verbena").exists():
            raise unittest.SkipTest("verbena is not built")
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.site = pathlib.Path(folder.name).resolve() / "site"
        done = subprocess.run([sys.executable, ROOT / "packaging/site.py", BUILD, cls.site],
                              capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stdout + done.stderr
        # 404.html has links from the root of the server.
        cls.pages = {path: Page(path) for path in cls.site.rglob("*.html") if path.name != "404.html"}

    def broken(self, path, link):
        """Whether the link of that page leads nowhere inside the site."""
        parts = urllib.parse.urlsplit(link)
        if parts.scheme or parts.netloc:
            return False
        target = (path.parent / urllib.parse.unquote(parts.path)).resolve() if parts.path else path
        if target.is_dir():
            target /= "index.html"
        if not target.is_relative_to(self.site) or not target.exists():
            return True
        return target in self.pages and parts.fragment not in self.pages[target].places

    def test_each_link_leads_somewhere(self):
        found = [f"{path.relative_to(self.site)}: {link}" for path, page in self.pages.items()
                 for link in dict.fromkeys(page.links) if self.broken(path, link)]
        self.assertEqual(found, [])

    def test_it_loads_nothing_from_elsewhere(self):
        found = {link for page in self.pages.values() for link in page.loaded if "//" in link}
        self.assertEqual(found, set())

    def test_each_command_and_header_has_a_page(self):
        said = subprocess.run([BUILD / "bin/verbena", "--help"], capture_output=True, text=True, check=True)
        for command in ("run", "test", "sim", "default", "nvmf"):
            self.assertIn(f"\n  {command} ", said.stdout)
            text = (self.site / f"man/verbena-{command}.html").read_text()
            self.assertIn("SYNOPSIS", text)
        for header in (ROOT / "include/verbena").glob("*.h"):
            self.assertTrue((self.site / f"headers/{header.stem}.html").exists(), header)

    def test_personas_are_pages(self):
        for name in ("for_ci_engineers", "for_network_architects", "for_students", "tutorial"):
            self.assertIn(self.site / f"docs/{name}.html", self.pages)

    def test_its_search_knows_all_pages(self):
        index = json.loads((self.site / "search/search_index.json").read_text())
        known = {entry["location"].split("#")[0] for entry in index["docs"]}
        pages = {str(path.relative_to(self.site)) for path in self.pages}
        self.assertEqual(pages - known - {"index.html", "search.html"}, set())
        self.assertTrue([entry for entry in index["docs"] if "ld.so.conf.d" in entry["text"]])


if __name__ == "__main__":
    testing.main(argv=sys.argv[:1])
