#!/usr/bin/env python3
"""The Python module verbena_transfer: buffers, NumPy arrays, torch tensors, KV caches, errors.

usage: transfer_python_test.py [BUILD_DIR] [-k PATTERN]
"""

import os
import pathlib
import subprocess
import sys
import unittest

import children
import harness

BUILD = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 and sys.argv[1][0] != "-" else "build/test")
harness.build_from_command_line()
VERBENA = (BUILD / "bin" / "verbena").resolve()
CASES = pathlib.Path(__file__).resolve().parent / "transfer" / "cases.py"
EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples"
PYTHON = "/usr/bin/python3"  # Debian's, which has NumPy and torch


def has(module):
    return subprocess.run([PYTHON, "-c", f"import {module}"], capture_output=True).returncode == 0


class TransferPythonTest(unittest.TestCase):
    link = "udp"

    def run_python(self, *arguments):
        return subprocess.run(
            [VERBENA, "run", "--link", self.link, "--address", harness.ADDRESS, "--", PYTHON,
             *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            timeout=harness.PAIR_LIMIT_S,
            env={**os.environ, "PYTHONPATH": str((BUILD / "python").resolve()),
                 "PYTHONDONTWRITEBYTECODE": "1"})

    def passes(self, case):
        done = self.run_python(CASES, case)
        self.assertEqual((done.returncode, done.stdout), (0, "passed\n"))

    def test_bytearrays(self):
        self.passes("bytearrays")

    @unittest.skipUnless(has("numpy"), "NumPy is not installed")
    def test_numpy(self):
        self.passes("numpy_arrays")

    @unittest.skipUnless(has("torch"), "torch is not installed")
    def test_torch(self):
        self.passes("torch_tensors")

    @unittest.skipUnless(has("numpy"), "NumPy is not installed")
    def test_kv_cache(self):
        self.passes("kv_cache")

    @unittest.skipUnless(has("numpy"), "NumPy is not installed")
    def test_kv_manager(self):
        self.passes("kv_manager")

    @unittest.skipUnless(has("numpy"), "NumPy is not installed")
    def test_the_example(self):
        done = self.run_python(EXAMPLES / "kv_prefill_decode.py", 40)
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertRegex(done.stdout, "decode: 40 requests are right, 108 blocks were there")
        self.assertNotIn(" 0 evicted", done.stdout)  # there is room for 64 of 86 blocks

    def test_errors(self):
        self.passes("errors")


class OnIWARPTest(TransferPythonTest):
    link = "iwarp"


class MixedLinksTest(unittest.TestCase):
    def test_roce_and_iwarp_do_not_connect(self):
        def start(link, case):
            return children.Child(
                [VERBENA, "run", "--link", link, "--address", harness.ADDRESS, "--", PYTHON, CASES,
                 case], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                env={**os.environ, "PYTHONPATH": str((BUILD / "python").resolve()),
                     "PYTHONDONTWRITEBYTECODE": "1"})
        with start("iwarp", "waiting_agent") as waiting, start("udp", "meet_iwarp") as meeting:
            told = meeting.communicate(waiting.stdout.readline(), harness.PAIR_LIMIT_S)[0]
            waiting.communicate("done\n", harness.PAIR_LIMIT_S)
        self.assertEqual(told, "passed\n")


if __name__ == "__main__":
    harness.main()
