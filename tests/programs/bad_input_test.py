#!/usr/bin/env python3
"""What goes wrong around a program: one clear line and an error, never a crash, never a hang.

usage: bad_input_test.py [BUILD_DIR] [-k PATTERN]
"""

import contextlib
import signal
import socket
import unittest

import harness

BUILD = harness.build_from_command_line()
REQUESTER_LIMIT_S = 60  # far beyond retry_cnt timeouts of perftest's default: 7 x 67 ms


@contextlib.contextmanager
def port_taken(address):
    """Somebody else's socket on the RoCE port, which shares with nobody."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
        try:
            other.bind((address, harness.ROCE_PORT))
        except OSError as error:
            raise unittest.SkipTest(f"others use port {harness.ROCE_PORT} here: {error}")
        yield


class BadInputTest(unittest.TestCase):
    def refused(self, program, *needles):
        """The program ended by itself with an error, and said why in words."""
        self.assertGreater(program.process.returncode, 0, program)  # below 0: killed by a signal
        lines = [line for line in program.output().splitlines() if line.startswith("verbena")]
        self.assertEqual(len(lines), 1, program)
        for needle in needles:
            self.assertIn(needle, lines[0], program)

    def works(self):
        BUILD.run_pair("ibv_rc_pingpong", "-g", 3, "-c", "-n", 100)

    def test_port_taken(self):
        with port_taken(harness.ADDRESS):
            self.refused(BUILD.run("ibv_rc_pingpong", "-p", harness.free_tcp_port()), "4791")
            self.refused(BUILD.run("ibv_devinfo"), "4791")
            devices = BUILD.run_verbena("devices")
            self.assertEqual(devices.process.returncode, 2, devices)
            self.assertIn("4791", devices.output())
        self.works()

    def test_address_of_another_machine(self):
        elsewhere = {"VERBENA_ADDRESS": "203.0.113.9"}
        for program in (BUILD.run("ibv_devinfo", environment=elsewhere),
                        BUILD.run_verbena("devices", environment=elsewhere),
                        BUILD.run_verbena("run", "--address", "203.0.113.9", "--", "ibv_devinfo")):
            self.assertEqual(program.process.returncode, 2, program)
            self.refused(program, "203.0.113.9")

    def test_address_that_is_none(self):
        for text, needle in {"300.1.2.3": "'300.1.2.3'", "no-such-interface": "no-such-interface",
                             "127.0.0.1,": "empty element", ",": "empty element",
                             "127.0.0.1,127.0.0.1": "second time"}.items():
            with self.subTest(address=text):
                program = BUILD.run("ibv_devinfo", environment={"VERBENA_ADDRESS": text})
                self.assertEqual(program.process.returncode, 2, program)
                self.refused(program, "VERBENA_ADDRESS", needle)

    def test_bad_address_without_verbena_run(self):
        """The library by itself says it too: a program may set the variables by other means."""
        program = harness.Program(["ibv_devinfo"], {
            "LD_LIBRARY_PATH": str(BUILD.library.parent), "VERBENA_ADDRESS": "203.0.113.9"})
        self.assertIsNotNone(program.wait(harness.PAIR_LIMIT_S), program)
        self.refused(program, "203.0.113.9")

    def test_too_few_descriptors(self):
        """For each limit: either it works or it is refused; it does not crash."""
        for limit in range(3, 20):
            with self.subTest(limit=limit):
                command = ["prlimit", f"--nofile={limit}:{limit}", str(BUILD.verbena), "run", "--",
                           "ibv_devinfo"]
                program = harness.Program(command, {"VERBENA_ADDRESS": harness.ADDRESS})
                self.assertIsNotNone(program.wait(harness.PAIR_LIMIT_S), program)
                self.assertGreaterEqual(program.process.returncode, 0, program)
                self.assertNotIn("CHECK", program.output(), program)

    def test_no_locked_memory_needed(self):
        """Locked memory is not needed: registration works with a limit of nothing."""
        program = harness.Program(["prlimit", "--memlock=0:0", str(BUILD.verbena), "run", "--",
                                   "ibv_devinfo"], {"VERBENA_ADDRESS": harness.ADDRESS})
        self.assertEqual(program.wait(harness.PAIR_LIMIT_S), 0, program)


class PeerDiesTest(unittest.TestCase):
    def start(self, program, *options):
        """A pair in the middle of its transfer."""
        server, client = BUILD.start_pair(program, "-D", 600, *options)
        self.addCleanup(harness.stop, server, client)
        BUILD.wait_for_traffic(server, client)
        return server, client

    def ends_with_error(self, survivor):
        status = survivor.wait(REQUESTER_LIMIT_S)
        self.assertIsNotNone(status, f"hangs after its peer was killed:\n{survivor}")
        self.assertGreater(status, 0, survivor)

    def test_responder_dies(self):
        for program in ("ib_write_bw", "ib_read_bw", "ib_send_bw", "ib_atomic_bw"):
            with self.subTest(program=program):
                server, client = self.start(program)
                server.process.send_signal(signal.SIGKILL)
                self.ends_with_error(client)
                self.assertRegex(client.output(), r"(?i)retry exceeded|status 12|failed status",
                                 client)

    def test_responder_dies_with_many_qps(self):
        server, client = self.start("ib_write_bw", "-q", 16)
        server.process.send_signal(signal.SIGKILL)
        self.ends_with_error(client)

    def test_requester_dies(self):
        server, client = self.start("ib_write_bw")
        client.process.send_signal(signal.SIGKILL)
        self.ends_with_error(server)  # it waits on its TCP connection

    def test_both_die_and_the_next_pair_works(self):
        for victim in (0, 1):
            pair = self.start("ib_send_bw")
            pair[victim].process.send_signal(signal.SIGKILL)
            pair[victim].process.wait()
            harness.stop(*pair)
            BUILD.run_pair("ib_send_bw", "-n", 800)

    def test_others_do_not_notice(self):
        """A pair that runs while another one's half is killed keeps running, and ends well."""
        server, client = BUILD.start_pair("ib_write_bw", "-D", 4, "-f", 1)
        self.addCleanup(harness.stop, server, client)
        victim, other = self.start("ib_read_bw")
        victim.process.send_signal(signal.SIGKILL)
        self.ends_with_error(other)
        for program in (client, server):
            self.assertEqual(program.wait(harness.PAIR_LIMIT_S), 0, program)


if __name__ == "__main__":
    harness.main()
