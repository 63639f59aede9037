#!/usr/bin/env python3
"""libfabric on Verbena, unmodified: its verbs provider offers connected, reliable and unconnected
endpoints, and fi_pingpong passes checked data over each.

The provider takes no loopback interface for connected endpoints, so the two ends are hosts of their
own, in network namespaces.

usage: libfabric_test.py [BUILD_DIR] [-k PATTERN]
"""

import shutil
import unittest

import harness
import two_hosts

BUILD = harness.build_from_command_line()
LIMIT_S = 120


@unittest.skipUnless(shutil.which("fi_pingpong"), "libfabric-bin is not installed")
class LibfabricTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.hosts = two_hosts.TwoHosts(BUILD, mtu=9000)
        cls.addClassCleanup(cls.hosts.close)
        cls.a, cls.b = cls.hosts.a, cls.hosts.b

    def test_endpoints_are_offered(self):
        for provider, kind in (("verbs", "FI_EP_MSG"), ("verbs", "FI_EP_DGRAM"),
                               ("verbs;ofi_rxm", "FI_EP_RDM"), ("verbs;ofi_rxd", "FI_EP_RDM")):
            with self.subTest(provider=provider, kind=kind):
                program = self.a.build.run("fi_info", "-p", provider, "-t", kind)
                self.assertEqual(program.process.returncode, 0, program)
                self.assertIn("domain: verbena0", program.output())

    def pingpong(self, provider, kind, *options):
        port = harness.free_tcp_port()
        common = ("fi_pingpong", "-p", provider, "-e", kind, "-c", "-I", 5, *options)
        server = self.b.build.start(*common, "-B", port)
        self.addCleanup(server.kill)
        harness.wait_until(lambda: server.ended() or harness.sockets("tcp", port, "0A", pid=self.b.holder.pid),
                           harness.START_LIMIT_S, f"the server listens\n{server}")
        client = self.a.build.start(*common, "-P", port, self.b.ipv4)
        self.addCleanup(client.kill)
        self.assertEqual(client.wait(LIMIT_S), 0, f"{server}\n{client}")
        self.assertEqual(server.wait(LIMIT_S), 0, f"{server}\n{client}")
        rows = [line.split() for line in client.output().splitlines() if line[:1].isdigit()]
        self.assertTrue(rows, client)
        for row in rows:  # bytes, #sent, #ack: all were acknowledged
            self.assertEqual((row[1], row[2]), ("5", "=5"), client)
        return rows

    def test_connected_endpoints(self):
        rows = self.pingpong("verbs", "msg")
        self.assertEqual(rows[-1][0], "1m")

    def test_reliable_endpoints(self):
        for options in ((), ("-m", "tagged")):
            with self.subTest(options=options):
                self.pingpong("verbs;ofi_rxm", "rdm", *options)

    def test_reliable_endpoints_over_datagrams(self):
        self.pingpong("verbs;ofi_rxd", "rdm", "-S", "65536")

    def test_datagrams(self):
        """They may be lost, and fi_pingpong then waits for ever: a few small ones."""
        self.pingpong("verbs", "dgram", "-S", "64")


if __name__ == "__main__":
    harness.main()
