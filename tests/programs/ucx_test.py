#!/usr/bin/env python3
"""UCX on Verbena, unmodified: it finds the device by its files, and every test of ucx_perftest runs on
its RC and UD transports with the port and GID that it chooses itself.

usage: ucx_test.py [BUILD_DIR] [-k PATTERN]
"""

import re
import shutil
import unittest

import harness

BUILD = harness.build_from_command_line()
LIMIT_S = 60
# A few dozen messages prove as much as a million; spinning pairs on a busy machine take their time.
COUNTS = ("-n", "200", "-w", "20")

UCP_TESTS = ("tag_lat", "tag_bw", "tag_sync_lat", "tag_sync_bw", "ucp_put_lat", "ucp_put_bw",
             "ucp_get", "ucp_add", "ucp_fadd", "ucp_swap", "ucp_cswap", "stream_bw", "stream_lat",
             "ucp_am_lat", "ucp_am_bw")
UCT_RC_TESTS = (("am_lat", "short"), ("am_lat", "bcopy"), ("am_lat", "zcopy"),
                ("am_bw", "bcopy"), ("put_lat", "short"), ("put_lat", "bcopy"),
                ("put_bw", "zcopy"), ("get", "bcopy"), ("get", "zcopy"), ("add_lat", "short"),
                ("add_mr", "short"), ("fadd", "short"), ("cswap", "short"))
UCT_UD_TESTS = (("am_lat", "short"), ("am_lat", "bcopy"), ("am_lat", "zcopy"), ("am_bw", "bcopy"))
ATOMICS = ("add_lat", "add_mr", "fadd", "cswap")


@unittest.skipUnless(shutil.which("ucx_perftest"), "ucx-utils is not installed")
class UCXTest(unittest.TestCase):
    def test_the_device_is_found(self):
        program = BUILD.run("ucx_info", "-d")
        self.assertEqual(program.process.returncode, 0, program)
        output = program.output()
        for transport in ("rc_verbs", "ud_verbs"):
            self.assertRegex(output, rf"Transport: {transport}\s+#\s+Device: verbena0:1")
        self.assertIn("Connection manager: rdmacm", output)

    def run_test(self, *options, tls="all", environment=None):
        variables = {"UCX_TLS": tls, "UCX_WARN_UNUSED_ENV_VARS": "n"} | (environment or {})
        pair = BUILD.run_pair("ucx_perftest", *COUNTS, *options, limit_s=LIMIT_S,
                              environment=variables)
        final = re.search(r"^Final:\s+(\d+)", pair.client.output(), re.MULTILINE)
        self.assertIsNotNone(final, f"{pair.server}\n{pair.client}")
        self.assertNotIn("ERROR", pair.client.output() + pair.server.output())

    def test_ucp_on_rc(self):
        for test in UCP_TESTS:
            with self.subTest(test=test):
                self.run_test("-t", test, tls="rc_v,self")

    def test_ucp_on_ud(self):
        for test in UCP_TESTS:
            with self.subTest(test=test):
                self.run_test("-t", test, tls="ud_v,self")

    def test_large_messages(self):
        for tls in ("rc_v,self", "ud_v,self"):
            for size in (65536, 4 << 20):
                with self.subTest(tls=tls, size=size):
                    self.run_test("-t", "tag_bw", "-s", size, "-n", 20, "-w", 2, tls=tls)

    def test_uct_on_rc(self):
        for test, layout in UCT_RC_TESTS:
            with self.subTest(test=test, layout=layout):
                self.run_test("-d", "verbena0:1", "-x", "rc_verbs", "-t", test, "-D", layout,
                              "-s", 8 if test in ATOMICS else 72)

    def test_uct_on_ud(self):
        for test, layout in UCT_UD_TESTS:
            with self.subTest(test=test, layout=layout):
                self.run_test("-d", "verbena0:1", "-x", "ud_verbs", "-t", test, "-D", layout,
                              "-s", 72)

    def test_what_ucx_chooses_itself(self):
        """Of all transports, those through our device and those between processes."""
        self.run_test("-t", "tag_lat")
        self.run_test("-t", "tag_lat", environment={"UCX_NET_DEVICES": "verbena0:1"}, tls="ib")

    def test_every_gid_index(self):
        for index in range(4):
            with self.subTest(index=index):
                self.run_test("-t", "tag_lat", tls="rc_v,ud_v,self",
                              environment={"UCX_IB_GID_INDEX": str(index)})


if __name__ == "__main__":
    harness.main()
