#!/usr/bin/env python3
"""UCX on Verbena, unmodified: it finds the device by its files; every test of ucx_perftest runs on its
RC and UD transports with the port and GID that it chooses itself; and the examples of its package
run, connected by addresses of workers and by rdma_cm.

usage: ucx_test.py [BUILD_DIR] [-k PATTERN]
"""

import atexit
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

import harness

BUILD = harness.build_from_command_line()
LIMIT_S = 120
# A few dozen messages prove as much as a million; spinning pairs on a busy machine take their time.
COUNTS = "-n 200 -w 20"
DEVICE = "verbena0:1"
EXAMPLES = pathlib.Path("/usr/share/doc/libucx-dev/examples")

UCP_TESTS = ("tag_lat", "tag_bw", "tag_sync_lat", "tag_sync_bw", "ucp_put_lat", "ucp_put_bw",
             "ucp_get", "ucp_add", "ucp_fadd", "ucp_swap", "ucp_cswap", "stream_bw", "stream_lat",
             "ucp_am_lat", "ucp_am_bw")
UCT_RC_TESTS = (("am_lat", "short"), ("am_lat", "bcopy"), ("am_lat", "zcopy"),
                ("am_bw", "bcopy"), ("put_lat", "short"), ("put_lat", "bcopy"),
                ("put_bw", "zcopy"), ("get", "bcopy"), ("get", "zcopy"), ("add_lat", "short"),
                ("add_mr", "short"), ("fadd", "short"), ("cswap", "short"))
UCT_UD_TESTS = (("am_lat", "short"), ("am_lat", "bcopy"), ("am_lat", "zcopy"), ("am_bw", "bcopy"))
ATOMICS = ("add_lat", "add_mr", "fadd", "cswap")


def public_folder():
    folder = pathlib.Path(tempfile.mkdtemp(prefix="verbena-ucx-test-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    folder.chmod(0o755)
    return folder


def variables(tls, **more):
    return {"UCX_TLS": tls, "UCX_WARN_UNUSED_ENV_VARS": "n"} | more


def without_mpi():
    """Options that turn off MPI, in a ucx_perftest that has it: Debian 13's."""
    has_it = "-P " in BUILD.run("ucx_perftest", "-h").output()
    return ["-P", "0"] if has_it else []


@unittest.skipUnless(shutil.which("ucx_perftest"), "ucx-utils is not installed")
class PerftestTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = public_folder()

    def test_the_device_is_found(self):
        program = BUILD.run("ucx_info", "-d")
        self.assertEqual(program.process.returncode, 0, program)
        output = program.output()
        for transport in ("rc_verbs", "ud_verbs"):
            self.assertRegex(output, rf"Transport: {transport}\s+#\s+Device: {DEVICE}")
        self.assertIn("Connection manager: rdmacm", output)

    def run_batch(self, lines, environment):
        """Runs all tests of a list in one pair of processes; each prints a row with its number."""
        batch = self.folder / f"{self.id()}"
        batch.write_text("".join(f"test{i} {line}\n" for i, line in enumerate(lines)))
        pair = BUILD.run_pair("ucx_perftest", *without_mpi(), "-b", batch, "-f", limit_s=LIMIT_S,
                              environment=environment)
        both = f"{batch.read_text()}{pair.server}\n{pair.client}"
        self.assertNotIn("ERROR", pair.client.output() + pair.server.output(), both)
        rows = re.findall(r"^\s*test(\d+)\s+(\d+)\s", pair.client.output(), re.MULTILINE)
        self.assertEqual([int(row[0]) for row in rows], list(range(len(lines))), both)

    def run_ucp(self, tls, tests=UCP_TESTS, **environment):
        self.run_batch([f"-t {test} -s 8 {COUNTS}" for test in tests],
                       variables(tls, **environment))

    def run_uct(self, transport, tests):
        self.run_batch([f"-d {DEVICE} -x {transport} -t {test} -D {layout} "
                        f"-s {8 if test in ATOMICS else 72} {COUNTS}" for test, layout in tests],
                       variables("all"))

    def test_ucp_on_rc(self):
        self.run_ucp("rc_v,self")

    def test_ucp_on_ud(self):
        self.run_ucp("ud_v,self")

    def test_large_messages(self):
        for tls in ("rc_v,self", "ud_v,self"):
            with self.subTest(tls=tls):
                self.run_batch([f"-t {test} -s {size} -n 20 -w 2" for size in (65536, 4 << 20)
                                for test in ("tag_bw", "ucp_put_bw", "ucp_get")], variables(tls))

    def test_uct_on_rc(self):
        self.run_uct("rc_verbs", UCT_RC_TESTS)

    def test_uct_on_ud(self):
        self.run_uct("ud_verbs", UCT_UD_TESTS)

    def test_what_ucx_chooses_itself(self):
        """Of all transports, those through our device and those between processes."""
        self.run_ucp("all", ("tag_lat",))
        self.run_ucp("ib", ("tag_lat",), UCX_NET_DEVICES=DEVICE)

    def test_every_gid_index(self):
        for index in range(4):
            with self.subTest(index=index):
                self.run_ucp("rc_v,ud_v,self", ("tag_lat",), UCX_IB_GID_INDEX=str(index))


@unittest.skipUnless(EXAMPLES.exists(), "libucx-dev is not installed")
class ExamplesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = public_folder()
        for name in ("ucp_client_server", "ucp_hello_world", "uct_hello_world"):
            subprocess.run(["gcc", "-O1", "-w", EXAMPLES / f"{name}.c", "-o", cls.folder / name,
                            "-lucp", "-luct", "-lucs"], check=True, stdin=subprocess.DEVNULL)

    def start(self, *command, environment):
        program = BUILD.start(*command, environment=environment)
        self.addCleanup(program.kill)
        return program

    def start_server(self, port, *command, environment):
        server = self.start(*command, environment=environment)
        harness.wait_until(lambda: harness.sockets("tcp", port, "0A") or server.ended() or
                           "listening" in server.output(), harness.START_LIMIT_S,
                           f"it listens\n{server}")
        return server

    def check_hello(self, *command, tls):
        port = harness.free_tcp_port()
        command = (self.folder / command[0], *command[1:], "-p", port)
        server = self.start_server(port, *command, environment=variables(tls))
        client = self.start(*command, "-n", BUILD.address, environment=variables(tls))
        self.assertEqual(client.wait(LIMIT_S), 0, f"{server}\n{client}")
        self.assertEqual(server.wait(LIMIT_S), 0, f"{server}\n{client}")

    def test_hello_of_uct(self):
        for layout, transport in (("-i", "rc_verbs"), ("-b", "rc_verbs"), ("-z", "rc_verbs"),
                                  ("-i", "ud_verbs"), ("-z", "ud_verbs")):
            with self.subTest(layout=layout, transport=transport):
                self.check_hello("uct_hello_world", layout, "-d", DEVICE, "-t", transport,
                                 tls="all")

    def test_hello_of_ucp(self):
        """Waiting by events of a descriptor, by polling, and by ucp_worker_wait()."""
        for how in ("-f", "-b", "-w"):
            with self.subTest(how=how):
                self.check_hello("ucp_hello_world", how, tls="rc_v,self")

    def test_connections_by_rdma_cm(self):
        """The server runs for ever."""
        for kind in ("tag", "stream", "am"):
            with self.subTest(kind=kind):
                port = harness.free_tcp_port()
                environment = variables("rc_v,self", UCX_SOCKADDR_TLS_PRIORITY="rdmacm")
                command = ("stdbuf", "-oL", self.folder / "ucp_client_server", "-p", port,
                           "-c", kind, "-i", 3)
                server = self.start_server(port, *command, environment=environment)
                client = self.start(*command, "-a", BUILD.address, environment=environment)
                self.assertEqual(client.wait(LIMIT_S), 0, f"{server}\n{client}")
                self.assertIn("Server received a connection request", server.output())
                self.assertEqual(harness.sockets("tcp", port, "0A"), [], "it listens by rdma_cm")


if __name__ == "__main__":
    harness.main()
