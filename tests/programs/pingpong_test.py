#!/usr/bin/env python3
"""The ping-pongs of ibverbs-utils on Verbena, with the data checked (-c): transports, sizes, MTUs,
polling and events, GID indexes, both ways to post.

usage: pingpong_test.py [BUILD_DIR] [-k PATTERN]
"""

import unittest

import harness

BUILD = harness.build_from_command_line()
SIZES = [1, 4096, 65536, 1 << 20]
MTUS = [256, 512, 1024, 2048, 4096]


class PingpongTest(unittest.TestCase):
    def check(self, program, *options, iterations=100):
        # -g: these programs ask for it on every RoCE device; a later one goes before an earlier one.
        pair = BUILD.run_pair(program, "-g", 3, "-n", iterations, *options)
        for side in (pair.server, pair.client):
            self.assertNotIn("invalid data", side.output(), side)
            result = harness.pingpong_result(side.output())
            self.assertIsNotNone(result, side)
            self.assertGreaterEqual(result[0], iterations, side)

    def check_all(self, program, options_list):
        for options in options_list:
            with self.subTest(program=program, options=options):
                self.check(program, *options.split())

    def test_rc_sizes(self):
        self.check_all("ibv_rc_pingpong", [f"-c -s {size}" for size in SIZES])

    def test_rc_mtus(self):
        self.check_all("ibv_rc_pingpong", [f"-c -s 65536 -m {mtu}" for mtu in MTUS])

    def test_rc_events(self):
        self.check_all("ibv_rc_pingpong", ["-c -e", "-c -e -s 1048576", "-c -e -m 256 -s 10000"])

    def test_rc_receive_queue_of_one(self):
        self.check("ibv_rc_pingpong", "-c", "-r", "1")

    def test_rc_new_post_send(self):
        self.check_all("ibv_rc_pingpong", ["-c -N", "-c -N -e"])

    def test_rc_many_iterations(self):
        self.check("ibv_rc_pingpong", "-c", "-s", "64", iterations=3000)

    def test_uc(self):
        self.check_all("ibv_uc_pingpong", ["-c", "-c -s 1", "-c -e", "-c -s 65536 -m 4096",
                                           "-c -s 16384 -m 256"])

    def test_ud(self):
        self.check_all("ibv_ud_pingpong", ["-c", "-c -s 1", "-c -s 1024", "-c -e"])

    def test_srq(self):
        self.check_all("ibv_srq_pingpong", ["-c", "-c -q 1", "-c -e", "-c -s 65536 -m 1024"])

    def test_every_gid_index(self):
        for program in ("ibv_rc_pingpong", "ibv_uc_pingpong", "ibv_ud_pingpong"):
            self.check_all(program, [f"-c -g {index}" for index in range(4)])


if __name__ == "__main__":
    harness.main()
