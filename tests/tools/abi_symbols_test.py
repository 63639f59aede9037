#!/usr/bin/env python3
"""The libraries for other programs export what debian/*.symbols lists, and a package build fails when
that changes. Runs dpkg-gensymbols as debian/rules does.

usage: abi_symbols_test.py [BUILD_DIR]
"""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "programs"))
import testing  # noqa: E402

BUILD = pathlib.Path(sys.argv.pop(1) if len(sys.argv) > 1 else ROOT / "build/test").resolve()
LIBRARIES = {"libverbena-coll1": "libverbena-coll.so.1", "libverbena-transfer1": "libverbena-transfer.so.1"}


def strictness():
    """What debian/rules passes to dpkg-gensymbols."""
    return re.search(r"dh_makeshlibs .*-- (-c\d)", (ROOT / "debian/rules").read_text()).group(1)


def version():
    """Of the packages, from debian/changelog."""
    return re.match(r"verbena \((\S+)\)", (ROOT / "debian/changelog").read_text()).group(1)


def check(package, symbols):
    """The status and the output of a package build's check with this symbols file."""
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder, "symbols")
        file.write_text(symbols)
        done = subprocess.run(["dpkg-gensymbols", strictness(), f"-p{package}", f"-v{version()}", f"-I{file}",
                               f"-e{BUILD / 'lib' / LIBRARIES[package]}", f"-P{folder}",
                               f"-O{folder}/out"], cwd=ROOT, capture_output=True, text=True, timeout=60)
        return done.returncode, done.stdout + done.stderr


@unittest.skipUnless(shutil.which("dpkg-gensymbols"), "dpkg-dev is not installed")
class Symbols(unittest.TestCase):
    def setUp(self):
        if not (BUILD / "lib" / LIBRARIES["libverbena-coll1"]).exists():
            self.skipTest("the libraries are not built")

    def listed(self, package):
        return (ROOT / f"debian/{package}.symbols").read_text()

    def test_the_libraries_export_what_is_listed(self):
        for package in LIBRARIES:
            status, output = check(package, self.listed(package))
            self.assertEqual(status, 0, output)

    def test_a_symbol_that_is_gone_breaks_the_build(self):
        for package in LIBRARIES:
            listed = self.listed(package)
            version = re.search(r"@(\S+)", listed).group(1)
            status, output = check(package, f"{listed} verbena_gone@{version} 0.2\n")
            self.assertNotEqual(status, 0, output)
            self.assertIn("verbena_gone", output)

    def test_a_symbol_that_is_not_listed_breaks_the_build(self):
        for package in LIBRARIES:
            lines = self.listed(package).splitlines(keepends=True)
            status, output = check(package, "".join(lines[:-1]))
            self.assertNotEqual(status, 0, output)
            self.assertIn(lines[-1].split("@")[0].strip(), output)


if __name__ == "__main__":
    testing.main(argv=sys.argv[:1])
