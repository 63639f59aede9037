#!/usr/bin/env python3
"""Many processes on one address, started and killed in any order: those that are left alone finish,
with the right data, whoever dies beside them, and who starts later finds nothing stale.

usage: many_processes_test.py [BUILD_DIR] [-k PATTERN]      SEED=n: another course of events
"""

import os
import random
import time
import unittest

import harness

BUILD = harness.build_from_command_line()
PAIRS = 8  # alive at a time
SECONDS = 8
LIMIT_S = 60
PROGRAM = ("ibv_rc_pingpong", "-c", "-e", "-g", 3)


class ManyProcessesTest(unittest.TestCase):
    def setUp(self):
        self.seed = int(os.environ.get("SEED", "1"))
        self.random = random.Random(self.seed)

    def start_pair(self):
        count = self.random.choice((1, 100, 1000, 5000))
        size = self.random.choice((1, 4096, 65536))
        pair = BUILD.start_pair(*PROGRAM, "-n", count, "-s", size)
        for program in pair:
            self.addCleanup(program.kill)
        return pair

    def check_finished(self, pair):
        for program in pair:
            status = program.wait(LIMIT_S)
            self.assertEqual(status, 0, f"SEED={self.seed}\n{pair[0]}\n{pair[1]}")
            self.assertNotIn("invalid data", program.output())

    def test_survivors_do_not_notice(self):
        alive, finished, killed = [], 0, 0
        deadline = time.monotonic() + SECONDS
        while time.monotonic() < deadline:
            while len(alive) < PAIRS:
                alive.append(self.start_pair())
            pair = alive.pop(self.random.randrange(len(alive)))
            if self.random.random() < 0.4:
                for program in self.random.sample(pair, 2):
                    program.kill()
                killed += 1
            else:
                self.check_finished(pair)
                finished += 1
        for pair in alive:
            self.check_finished(pair)
        self.check_finished(self.start_pair())
        self.assertGreater(min(finished, killed), 0)


if __name__ == "__main__":
    harness.main()
