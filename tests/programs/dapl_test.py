#!/usr/bin/env python3
"""uDAPL on Verbena, unmodified: its test programs over the two providers that a RoCE device can have,
scm (addresses exchanged by TCP) and cma (rdma_cm), between two network namespaces.

The third provider, ucm, addresses its connection messages by LID, which RoCE has not.

usage: dapl_test.py [BUILD_DIR] [-k PATTERN]
"""

import atexit
import os
import pathlib
import shutil
import tempfile
import unittest

import harness
import testing
import two_hosts

BUILD = harness.build_from_command_line()
LIMIT_S = 90
PROVIDERS = ("scm", "cma")


def provider_table():
    """A dat.conf(5) that names our device. The cma provider opens the device of an interface."""
    file, name = tempfile.mkstemp(prefix="verbena-dat-", suffix=".conf")
    os.close(file)
    atexit.register(os.unlink, name)
    path = pathlib.Path(name)
    line = '{name} u2.0 nonthreadsafe default lib{library}.so.2 dapl.2.0 "{parameters}" ""\n'
    path.write_text("".join(
        line.format(name=provider, library=library, parameters=parameters)
        for provider, library, parameters in (("scm", "daploscm", "verbena0 1"),
                                              ("cma", "daplofa", f"{two_hosts.INTERFACE} 0"),
                                              ("ucm", "daploucm", "verbena0 1"))))
    path.chmod(0o644)
    return name


@unittest.skipUnless(shutil.which("dapltest"), "dapl2-utils is not installed")
class DAPLTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.hosts = two_hosts.TwoHosts(BUILD, mtu=1500)
        cls.addClassCleanup(cls.hosts.close)
        cls.a, cls.b = cls.hosts.a, cls.hosts.b
        cls.environment = {"DAT_OVERRIDE": provider_table(),
                           "DAPL_SCM_NETDEV": two_hosts.INTERFACE}

    def start(self, host, *command):
        program = host.build.start("stdbuf", "-oL", *command, environment=self.environment)
        self.addCleanup(program.kill)
        return program

    def start_server(self, ready, *command):
        server = self.start(self.b, *command)
        harness.wait_until(lambda: ready in server.output() or server.ended(),
                           harness.START_LIMIT_S, f"it listens\n{server}")
        return server

    def run_pair_to_end(self, name, *options, ready):
        server = self.start_server(ready, name, *options)
        client = self.start(self.a, name, *options, "-h", self.b.ipv4)
        self.assertEqual(client.wait(LIMIT_S), 0, f"{server}\n{client}")
        self.assertEqual(server.wait(LIMIT_S), 0, f"{server}\n{client}")
        return server, client

    def run_pair(self, name, *options, ready, passed):
        """Both ends finish, and both print that all was right."""
        server, client = self.run_pair_to_end(name, *options, ready=ready)
        for program in (server, client):
            self.assertIn(passed, program.output(), f"{server}\n{client}")
            self.assertNotRegex(program.output(), r"(?i)\berr(or)?\b[: ]|fail", f"{server}\n{client}")

    def test_dtest(self):
        """-D compares the data of ping-pong by WRITE, whose ends poll memory. Where they share a core,
        each polls for a whole time slice."""
        checked = (("-D", "-b", 65536),) if testing.THOROUGH else ()
        for provider in PROVIDERS:
            for options in ((), ("-p", "-c"), *checked):
                self.run_pair("dtest", "-P", provider, *options, ready="waiting",
                              passed="DAPL Test Complete. PASSED")

    def test_dtestx(self):
        """WRITE with immediate data, FETCH_ADD and COMPARE_SWAP. Over scm it fails now and then in
        its exchange of addresses by TCP ("ACCEPT_RTU: rcv ERR"), before it uses the device."""
        self.run_pair("dtestx", "-P", "cma", ready="waiting",
                      passed="IB extension test - immed/atomic test PASSED")

    def test_dtestsrq(self):
        """Over scm a server learns by TCP that the client has finished, and flushes its QP. What the
        client has acknowledged by then must not be flushed."""
        for provider in PROVIDERS:
            self.run_pair("dtestsrq", "-P", provider, ready="ready",
                          passed="DAPL RC SRQ Test Complete.")

    def test_dtestcm(self):
        """Over scm the server finds in the end that the client has disconnected already."""
        for provider in PROVIDERS:
            server, client = self.run_pair_to_end("dtestcm", "-P", provider, "-c", 20,
                                                  ready="waiting")
            for program in (server, client):
                self.assertRegex(program.output(), "ALL 20 CONNECTED", f"{server}\n{client}")

    def test_dapltest(self):
        """Threads with several endpoints: SENDs, WRITEs and READs of both sides, data compared."""
        for provider in PROVIDERS:
            server = self.start_server("Service Point Ready", "dapltest", "-T", "S", "-D", provider)
            transfers = ("client", "SR", 4096, 2, "server", "SR", 4096, 2, "client", "RW", 65536,
                         "server", "RR", 16384)
            client = self.start(self.a, "dapltest", "-T", "T", "-s", self.b.ipv4, "-D", provider,
                                "-V", "-i", 50, "-t", 2, "-w", 4, *transfers)
            self.assertEqual(client.wait(LIMIT_S), 0, f"{server}\n{client}")
            self.assertRegex(client.output(), r"Total Send +: +[\d.]+ MB", f"{server}\n{client}")
            self.assertNotIn("bad connection event", client.output(), f"{server}\n{client}")
            server.kill()

    def test_ucm_finds_no_peer(self):
        """It has no LID to send its connection messages to: the client gives up."""
        server = self.start(self.b, "dtest", "-P", "ucm")
        client = self.start(self.a, "dtest", "-P", "ucm", "-h", self.b.ipv4)
        self.assertEqual(client.wait(LIMIT_S), 1, f"{server}\n{client}")


if __name__ == "__main__":
    harness.main()
