#!/usr/bin/env python3
"""libfabric on Verbena, unmodified: its verbs provider offers connected, reliable and unconnected
endpoints, and fi_pingpong passes checked data over each.

The provider takes no loopback interface for connected endpoints, so the device stands on another one
where this machine has it.

usage: libfabric_test.py [BUILD_DIR] [-k PATTERN]
"""

import json
import shutil
import unittest

import harness

BUILD = harness.build_from_command_line()
LIMIT_S = 120


def address_beyond_loopback():
    """The IPv4 address of the interface that a device stands on by default; None: it is loopback."""
    program = BUILD.run_verbena("devices", "--json", environment={"VERBENA_ADDRESS": ""})
    try:
        [device] = json.loads(program.output().splitlines() and program.output())
    except ValueError:
        return None
    addresses = [a for a in device["addresses"] if "." in a]
    usable = device["port"]["state"] == "active" and device["interface"] != "lo"
    return addresses[0] if usable and addresses else None


@unittest.skipUnless(shutil.which("fi_pingpong"), "libfabric-bin is not installed")
class LibfabricTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.address = address_beyond_loopback()
        if cls.address is None:
            raise unittest.SkipTest("no interface but loopback that a device can stand on")
        cls.environment = {"VERBENA_ADDRESS": cls.address}

    def test_endpoints_are_offered(self):
        for provider, kind in (("verbs", "FI_EP_MSG"), ("verbs", "FI_EP_DGRAM"),
                               ("verbs;ofi_rxm", "FI_EP_RDM"), ("verbs;ofi_rxd", "FI_EP_RDM")):
            with self.subTest(provider=provider, kind=kind):
                program = BUILD.run("fi_info", "-p", provider, "-t", kind,
                                    environment=self.environment)
                self.assertEqual(program.process.returncode, 0, program)
                self.assertIn("domain: verbena0", program.output())

    def pingpong(self, provider, kind, *options):
        port = harness.free_tcp_port()
        common = ("fi_pingpong", "-p", provider, "-e", kind, "-c", "-I", 5, *options)
        server = BUILD.start(*common, "-B", port, environment=self.environment)
        self.addCleanup(server.kill)
        harness.wait_until(lambda: harness.sockets("tcp", port, "0A") or server.ended(),
                           harness.START_LIMIT_S, f"the server listens\n{server}")
        client = BUILD.start(*common, "-P", port, self.address, environment=self.environment)
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
