#!/usr/bin/env python3
"""librpma (remote access to persistent memory) on Verbena, unmodified. Debian ships the library
without its examples, so rpma/transfers.c does what they do: writes with flushes, reads, atomic
writes and messages, with every byte compared.

usage: rpma_test.py [BUILD_DIR] [-k PATTERN]
"""

import atexit
import pathlib
import shutil
import subprocess
import tempfile
import unittest

import harness
import rdmacm_pairs
import two_hosts

BUILD = harness.build_from_command_line()
SOURCE = pathlib.Path(__file__).parent / "rpma/transfers.c"
LIMIT_S = 60


@unittest.skipUnless(pathlib.Path("/usr/include/librpma.h").exists(), "librpma-dev is not installed")
class RPMATest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = pathlib.Path(tempfile.mkdtemp(prefix="verbena-rpma-test-"))
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        folder.chmod(0o755)
        cls.program = folder / "rpma_transfers"
        subprocess.run(["gcc", "-O1", SOURCE, "-o", cls.program, "-lrpma", "-libverbs"], check=True,
                       stdin=subprocess.DEVNULL)

    def check_transfers(self, server_build, client_build, address):
        port = rdmacm_pairs.free_port()
        server = server_build.start(self.program, "server", address, port)
        self.addCleanup(server.kill)
        harness.wait_until(lambda: "listening" in server.output() or server.ended(),
                           harness.START_LIMIT_S, f"it listens\n{server}")
        client = client_build.start(self.program, "client", address, port)
        self.addCleanup(client.kill)
        for program in (client, server):
            self.assertEqual(program.wait(LIMIT_S), 0, f"{server}\n{client}")
            self.assertIn("all right", program.output())

    def test_on_one_host(self):
        self.check_transfers(BUILD, BUILD, BUILD.address)

    def test_between_two_hosts(self):
        hosts = two_hosts.TwoHosts(BUILD, mtu=1500)
        self.addCleanup(hosts.close)
        self.check_transfers(hosts.b.build, hosts.a.build, hosts.b.ipv4)


if __name__ == "__main__":
    harness.main()
