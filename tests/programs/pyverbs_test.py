#!/usr/bin/env python3
"""pyverbs on Verbena, unmodified: pyverbs_tour.py in an interpreter that runs on the device.

usage: pyverbs_test.py [BUILD_DIR] [-k PATTERN]
"""

import pathlib
import subprocess
import unittest

import harness

BUILD = harness.build_from_command_line()
TOUR = pathlib.Path(__file__).with_name("pyverbs_tour.py")
PYTHON = "/usr/bin/python3"  # pyverbs is built for Debian's own


def is_missing():
    return subprocess.run([PYTHON, "-c", "import pyverbs.device"], stdin=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL).returncode != 0


@unittest.skipIf(is_missing(), "python3-pyverbs is not installed")
class PyverbsTest(unittest.TestCase):
    def test_tour(self):
        """As text: the ordinary user that runs it may not be able to read this folder."""
        program = BUILD.run(PYTHON, "-c", TOUR.read_text())
        self.assertEqual(program.process.returncode, 0, program)
        self.assertIn("OK", program.output().splitlines(), program)


if __name__ == "__main__":
    harness.main()
