#!/usr/bin/env python3
"""Congestion control, as unmodified programs see it: ECN marks slow them, and only as long as there
are marks.

usage: congestion_test.py [BUILD_DIR] [-k PATTERN]
"""

import unittest

import harness

BUILD = harness.build_from_command_line()
SIZE = 64 << 10
LIMIT_S = 60


class CongestionTest(unittest.TestCase):
    def mib_per_s(self, *options, iterations, program="ib_write_bw"):
        """What the client measures; `options` are of its `verbena run`."""
        port = harness.free_tcp_port()
        command = [program, "-F", "-s", SIZE, "-n", iterations, "-p", port]
        server = BUILD.start(*command)
        self.addCleanup(server.kill)
        harness.wait_until(lambda: harness.sockets("tcp", port, "0A") or server.ended(), 30,
                           "the server listens")
        client = harness.Program([BUILD.verbena, "run", *options, "--", *command, BUILD.address],
                                 {"VERBENA_ADDRESS": BUILD.address})
        self.addCleanup(client.kill)
        self.assertEqual(client.wait(LIMIT_S), 0, f"{server}\n{client}")
        return harness.perftest_rows(client.output())[0].mib_per_s

    def test_marks_slow_a_writer(self):
        free = self.mib_per_s(iterations=5000)
        slow = self.mib_per_s("--fault", "mark dir=tx", iterations=200)
        self.assertLess(slow, free / 4)

    def test_marks_slow_a_reader_where_they_meet_the_data(self):
        free = self.mib_per_s(iterations=2000, program="ib_read_bw")
        slow = self.mib_per_s("--fault", "mark dir=rx", iterations=200, program="ib_read_bw")
        self.assertLess(slow, free / 4)

    def test_with_the_marks_the_slowness_ends(self):
        slow = self.mib_per_s("--fault", "mark dir=tx", iterations=200)
        again = self.mib_per_s("--fault", "mark dir=tx from=0ms for=20ms", iterations=20000)
        self.assertGreater(again, 2 * slow)

    def test_off_is_never_slow(self):
        slow = self.mib_per_s("--fault", "mark dir=tx", iterations=200)
        off = self.mib_per_s("--cc", "off", "--fault", "mark dir=tx", iterations=5000)
        self.assertGreater(off, 2 * slow)

    def test_an_unknown_name_is_one_line(self):
        done = BUILD.run_verbena("run", "--cc", "reno", "--", "true")
        self.assertEqual(done.process.returncode, 2)
        self.assertIn("--cc reno is none of off, dcqcn", done.output())
        done = BUILD.run("ibv_devinfo", environment={"VERBENA_CC": "reno"})
        self.assertNotEqual(done.process.returncode, 0)
        self.assertIn("VERBENA_CC=reno is none of off dcqcn", done.output())


if __name__ == "__main__":
    harness.main()
