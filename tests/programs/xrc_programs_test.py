#!/usr/bin/env python3
"""XRC with unmodified programs: perftest -c XRC, ibv_xsrq_pingpong, and rdma_xclient with
rdma_xserver, which connect by librdmacm.

usage: xrc_programs_test.py [BUILD_DIR] [-k PATTERN]
"""

import pathlib
import time
import unittest

import harness

BUILD = harness.build_from_command_line()
LIMIT_S = 60

PERFTEST = {
    "ib_send_bw": ["", "-q 4", "-b", "-e", "--use-srq", "-m 256 -s 4096", "-s 1", "-I 64 -s 64"],
    "ib_write_bw": ["", "-q 4", "-b", "-s 1048576"],
    "ib_read_bw": ["", "-q 4", "-o 1", "-e"],
    "ib_atomic_bw": ["", "-A CMP_AND_SWAP -q 4"],
    "ib_send_lat": ["", "-e"],
    "ib_write_lat": [""],
    "ib_read_lat": [""],
    "ib_atomic_lat": [""],
}


# The programs create these files for their domains, readable by their user alone, and leave them.
FILES = [pathlib.Path("/tmp/xrc_domain" + end) for end in ("", "_server", "_client")]


def remove_files():
    for file in FILES:
        file.unlink(missing_ok=True)


class XRCProgramsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        try:
            remove_files()
        except PermissionError as error:
            raise unittest.SkipTest(f"another user's: {error}") from None
        cls.addClassCleanup(remove_files)

    def test_perftest(self):
        for program, lines in PERFTEST.items():
            for options in lines:
                with self.subTest(program=program, options=options):
                    pair = BUILD.run_pair(program, "-c", "XRC", *options.split(), "-n", 200)
                    rows = harness.perftest_rows(pair.client.output())
                    self.assertEqual(len(rows), 1, pair.client)
                    self.assertGreaterEqual(rows[0].iterations, 200, pair.client)

    def test_xsrq_pingpong(self):
        for options in ("", "-c 1 -n 3", "-e", "-s 65536"):
            with self.subTest(options=options):
                pair = BUILD.run_pair("ibv_xsrq_pingpong", "-g", 3, *options.split())
                self.assertIn("success", pair.client.output(), pair.client)

    def test_the_device_has_xrc(self):
        self.assertIn("XRC", BUILD.run("ibv_devinfo", "-v").output())

    # --- connections by librdmacm

    def run_x_programs(self, server_type, client_type, port):
        server = BUILD.start("rdma_xserver", "-p", port, "-c", server_type)
        self.addCleanup(server.kill)
        deadline = time.monotonic() + LIMIT_S
        while True:  # the server shows nothing to wait for when it listens
            client = BUILD.run("rdma_xclient", "-s", BUILD.address, "-p", port, "-c", client_type)
            if "end 0" in client.output() or time.monotonic() > deadline:
                return server, client
            time.sleep(0.1)

    def test_rdma_xclient_and_xserver(self):
        for port, kind in ((21001, "r"), (21002, "x")):
            with self.subTest(kind=kind):
                server, client = self.run_x_programs(kind, kind, port)
                self.assertEqual(server.wait(LIMIT_S), 0, f"{server}\n{client}")
                self.assertIn("end 0", client.output(), client)
                self.assertIn("end 0", server.output(), server)


if __name__ == "__main__":
    harness.main()
