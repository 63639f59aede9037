#!/usr/bin/env python3
"""Gloo's own ibverbs transport, as Debian's libgloo has it, on Verbena: AllReduce by ring, chunked
ring, halving-doubling and bcube, and a broadcast, of 2 to 4 processes. gloo/collectives.cc compares
each element.

usage: gloo_test.py [BUILD_DIR] [-k PATTERN]
"""

import atexit
import pathlib
import shutil
import subprocess
import tempfile
import unittest

import harness

BUILD = harness.build_from_command_line()
SOURCE = pathlib.Path(__file__).parent / "gloo/collectives.cc"
HEADER = pathlib.Path("/usr/include/gloo/transport/ibverbs/device.h")
LIMIT_S = 120
ALGORITHMS = ("ring", "ring_chunked", "halving_doubling", "bcube", "broadcast")
NOT_A_POWER_OF_TWO = ("ring", "ring_chunked", "halving_doubling", "broadcast")  # bcube takes 2 or 4


@unittest.skipUnless(HEADER.exists(), "libgloo-dev is not installed")
class GlooTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="verbena-gloo-test-"))
        atexit.register(shutil.rmtree, cls.folder, ignore_errors=True)
        cls.folder.chmod(0o755)
        cls.program = cls.folder / "gloo_collectives"
        subprocess.run(["g++", "-std=c++17", "-O1", "-w", SOURCE, "-o", cls.program, "-lgloo",
                        "-libverbs"], check=True, stdin=subprocess.DEVNULL)

    def run_ranks(self, ranks, algorithm, elements, rounds):
        """The ranks find each other by files in an empty folder."""
        store = pathlib.Path(tempfile.mkdtemp(dir=self.folder))
        store.chmod(0o777)
        programs = [BUILD.start(self.program, rank, ranks, "ibverbs", store, algorithm, elements,
                                rounds) for rank in range(ranks)]
        for program in programs:
            self.addCleanup(program.kill)
        for program in programs:
            status = program.wait(LIMIT_S)
            self.assertEqual(status, 0, "\n".join(map(str, programs)))
            self.assertIn("wrong elements: 0", program.output())

    def test_two_processes(self):
        for algorithm in ALGORITHMS:
            for elements, rounds in ((1, 20), (1000, 20), (1 << 18, 5)):
                with self.subTest(algorithm=algorithm, elements=elements):
                    self.run_ranks(2, algorithm, elements, rounds)

    def test_three_processes(self):
        for algorithm in NOT_A_POWER_OF_TWO:
            with self.subTest(algorithm=algorithm):
                self.run_ranks(3, algorithm, 10000, 5)

    def test_four_processes(self):
        for algorithm in ALGORITHMS:
            with self.subTest(algorithm=algorithm):
                self.run_ranks(4, algorithm, 10000, 5)

    def test_a_large_vector(self):
        self.run_ranks(2, "ring_chunked", 16 << 20, 2)


if __name__ == "__main__":
    harness.main()
