#!/usr/bin/env python3
"""Checks the documentation: the sizes of ARCHITECTURE.md and docs/performance.md, the links between
the pages, and the files and folders that the pages about the architecture name."""

import pathlib
import re
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", ROOT / "ARCHITECTURE.md", *sorted(ROOT.glob("docs/**/*.md"))]
MAP = [ROOT / "ARCHITECTURE.md", *sorted(ROOT.glob("docs/architecture/*.md"))]
LAYERS = {folder.name for folder in (ROOT / "src").iterdir() if folder.is_dir()}
TOP = {"src", "tests", "docs", "bench", "cmake", "examples"}

LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")
PATH = re.compile(r"`([\w.*-]+(?:/[\w.*-]+)*/?)`")
FILE = re.compile(r".+\.(h|cc|py|md|cmake|map|toml|yaml|1)$")


def missing_links(page):
    return [link for link in LINK.findall(page.read_text())
            if "://" not in link and not (page.parent / link).exists()]


def exists(path):
    """Of the repository's root or of src/; a `*` stands for any characters."""
    return any(next(folder.glob(path.rstrip("/")), None) for folder in (ROOT, ROOT / "src"))


def missing_paths(page):
    """Paths that begin with a folder of the root or a layer and name a file or, by a last `/`, a
    folder. A name without a folder belongs to a path before it in the text, and is not checked."""
    named = (path for path in PATH.findall(page.read_text())
             if "/" in path and (path.endswith("/") or FILE.match(path)))
    return [path for path in named
            if path.split("/")[0] in TOP | LAYERS and not exists(path)]


class DocsTest(unittest.TestCase):
    def test_the_map_is_read_in_ten_minutes(self):
        self.assertLessEqual((ROOT / "ARCHITECTURE.md").stat().st_size, 12 << 10)

    def test_the_figures_are_no_diary(self):
        self.assertLessEqual((ROOT / "docs/performance.md").stat().st_size, 20 << 10)

    def test_links_lead_to_files(self):
        self.assertEqual({str(page): found for page in PAGES if (found := missing_links(page))}, {})

    def test_the_map_names_what_is_there(self):
        self.assertEqual({str(page): found for page in MAP if (found := missing_paths(page))}, {})

    def test_the_map_links_each_of_its_pages(self):
        linked = set(LINK.findall((ROOT / "ARCHITECTURE.md").read_text()))
        self.assertEqual([page.name for page in MAP[1:]
                          if str(page.relative_to(ROOT)) not in linked], [])

    def test_the_map_names_each_layer(self):
        text = (ROOT / "ARCHITECTURE.md").read_text()
        self.assertEqual([layer for layer in sorted(LAYERS) if f"`{layer}/`" not in text], [])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])  # without the build folder, which this test does not need
