#!/usr/bin/env python3
"""The product does not hold the path of its build: two builds in different folders give the same
bytes. packaging/reproducible.sh compares whole packages.

usage: build_paths_test.py [BUILD_DIR]
"""

import pathlib
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(sys.argv.pop(1) if len(sys.argv) > 1 else ROOT / "build/test").resolve()
PATHS = [f"{folder}/".encode() for folder in (ROOT / "src", ROOT / "include", BUILD)]


def product():
    """{name: bytes} of the programs and libraries that are installed."""
    files = [path for folder in ("bin", "lib", "python") for path in (BUILD / folder).rglob("*")
             if path.is_file() and not path.is_symlink()]
    return {str(path.relative_to(BUILD)): content for path in sorted(files)
            if (content := path.read_bytes()).startswith(b"\x7fELF")}


class BuildPaths(unittest.TestCase):
    def test_no_file_holds_the_path_of_its_build(self):
        files = product()
        self.assertIn("bin/verbena", files)
        self.assertIn("lib/librdmacm.so.1", files)
        found = {name: path for name, content in files.items() for path in PATHS if path in content}
        self.assertEqual(found, {})


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
