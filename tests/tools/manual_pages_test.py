#!/usr/bin/env python3
"""Each command and each public header has a manual page, whose first line whatis(1) can read.

usage: manual_pages_test.py [BUILD_DIR]
"""

import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(sys.argv.pop(1) if len(sys.argv) > 1 else ROOT / "build/test").resolve()


def page(section, name):
    return (BUILD / f"man/man{section}/{name}.{section}").read_text().replace("\\-", "-")


class ManualPages(unittest.TestCase):
    def assert_named(self, text, name):
        self.assertRegex(text, rf"\n\.SH NAME\n{re.escape(name)} - \w")
        self.assertIn("\n.SH SYNOPSIS\n", text)

    def test_each_command_has_one(self):
        helps = [path.stem for path in (ROOT / "src/cli/help").glob("*.txt")]
        self.assertIn("nvmf", helps)
        for name in ("verbena" if each == "verbena" else f"verbena-{each}" for each in helps):
            self.assert_named(page(1, name), name)

    def test_each_header_has_one(self):
        for header in (ROOT / "include/verbena").glob("*.h"):
            name = header.name if header.stem == "verbena" else f"verbena-{header.name}"
            text = page(3, name)
            self.assert_named(text, name)
            for function in re.findall(r"\b(verbena_\w+)\(", header.read_text()):
                self.assertIn(f"{function}(", text)

    def test_an_installation_has_all(self):
        with tempfile.TemporaryDirectory() as prefix:
            subprocess.run(["cmake", "--install", BUILD, "--prefix", prefix], check=True,
                           capture_output=True)
            installed = pathlib.Path(prefix, "share/man")
            self.assertEqual(*({path.relative_to(top) for path in top.rglob("*.[13]")}
                               for top in (installed, BUILD / "man")))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
