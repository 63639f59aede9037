#!/usr/bin/env python3
"""Many processes on one address, started, stopped and killed in any order: those that are left alone
finish, with the right data, whoever dies beside them; who loses its peer is told so in time; and who
starts later finds nothing stale.

usage: many_processes_test.py [BUILD_DIR] [-k PATTERN]      SEED=n: another course of events
"""

import os
import pathlib
import random
import signal
import time
import unittest

import harness
import testing
import rdmacm_pairs

BUILD = harness.build_from_command_line()
PAIRS = 8  # alive at a time
SECONDS = 8 if testing.THOROUGH else 3
LIMIT_S = 60
TOLD_LIMIT_S = 30  # far beyond the timeouts that these programs set
RETRY_EXCEEDED = 12  # IBV_WC_RETRY_EXC_ERR
PROGRAM = ("ibv_rc_pingpong", "-c", "-e", "-g", 3)


class ManyProcessesTest(unittest.TestCase):
    def setUp(self):
        self.seed = int(os.environ.get("SEED", "1"))
        self.random = random.Random(self.seed)

    def start_pair(self):
        count = self.random.choice((1, 100, 1000, 5000))
        size = self.random.choice((1, 4096, 65536))
        pair = BUILD.start_pair(*PROGRAM, "-n", count, "-s", size)
        for program in pair:
            self.addCleanup(program.kill)
        return pair

    def check_finished(self, pair):
        for program in pair:
            status = program.wait(LIMIT_S)
            self.assertEqual(status, 0, f"SEED={self.seed}\n{pair[0]}\n{pair[1]}")
            self.assertNotIn("invalid data", program.output())

    def test_survivors_do_not_notice(self):
        alive, finished, killed = [], 0, 0
        deadline = time.monotonic() + SECONDS
        while time.monotonic() < deadline or not (finished and killed):
            while len(alive) < PAIRS:
                alive.append(self.start_pair())
            pair = alive.pop(self.random.randrange(len(alive)))
            if self.random.random() < 0.4:
                for program in self.random.sample(pair, 2):
                    program.kill()
                killed += 1
            else:
                self.check_finished(pair)
                finished += 1
        for pair in alive:
            self.check_finished(pair)
        self.check_finished(self.start_pair())


def sleeps(program):
    """Whether all threads of the program sleep now, and a while later still."""
    time.sleep(0.05)
    tasks = pathlib.Path(f"/proc/{program.pid}/task").glob("*/stat")
    return all(task.read_text().rpartition(")")[2].split()[0] == "S" for task in tasks)


class DeathTest(rdmacm_pairs.RDMACMPairs):
    build = BUILD

    def wait_for_status(self, survivor):
        """Its work completes with an error, and it says so and ends."""
        started = time.monotonic()
        self.assertIsNotNone(survivor.wait(LIMIT_S), f"hangs:\n{survivor}")
        self.assertLess(time.monotonic() - started, TOLD_LIMIT_S, survivor)
        self.assertIn(f"Failed status {RETRY_EXCEEDED}:", survivor.output(), survivor)

    def test_a_killed_server_is_retried_as_long_as_its_client_set(self):
        """perftest's timeout of 67 ms (-u 14), seven retries. (A shorter one a busy machine exceeds.)"""
        for line in testing.sample(("ib_write_bw", "ib_read_bw -q 4", "ib_send_bw", "ib_atomic_bw"), 2):
            with self.subTest(line=line):
                server, client = BUILD.start_pair(*line.split(), "-D", 600)
                for program in (server, client):
                    self.addCleanup(program.kill)
                BUILD.wait_for_traffic(server, client)
                server.kill()
                self.wait_for_status(client)

    def test_a_killed_client_is_seen_by_its_server(self):
        for line in testing.sample(("ib_write_bw", "ib_read_bw"), every=2):
            with self.subTest(line=line):
                server, client = BUILD.start_pair(*line.split(), "-D", 600)
                self.addCleanup(server.kill)
                BUILD.wait_for_traffic(server, client)
                client.kill()
                self.assertIsNotNone(server.wait(LIMIT_S), f"hangs:\n{server}")

    def test_a_stopped_process_holds_up_no_connection(self):
        """The one that came first, whose socket is the kernel's first; requests that reach it are
        repeated after a second, and may reach another."""
        stopped = self.start("rping", "-s", "-a", BUILD.address, "-p", rdmacm_pairs.free_port())
        harness.wait_until(lambda: listens(stopped), LIMIT_S, f"it listens\n{stopped}")
        # While it joins the others it holds a lock that they wait for.
        harness.wait_until(lambda: all(sleeps(stopped) for _ in range(5)), LIMIT_S, "it is idle")
        stopped.process.send_signal(signal.SIGSTOP)
        self.addCleanup(stopped.process.send_signal, signal.SIGCONT)
        for _ in range(4):
            port = rdmacm_pairs.free_port()
            self.check_pair(("rping", "-s", "-a", BUILD.address, "-p", port, "-C", 3),
                            ("rping", "-c", "-a", BUILD.address, "-p", port, "-C", 3))

    def test_nothing_is_left_of_the_killed(self):
        """Neither sockets nor files; and all that died together have left room for others."""
        for _ in range(2):
            programs = [program for _ in range(PAIRS)
                        for program in BUILD.start_pair(*PROGRAM, "-n", 1000000)]
            for program in programs:
                self.addCleanup(program.kill)
            harness.wait_until(lambda: len(own_sockets()) >= len(programs), LIMIT_S, "all are there")
            for program in programs:
                program.process.kill()
            for program in programs:
                program.kill()
            harness.wait_until(lambda: not own_sockets(), LIMIT_S, "their sockets are gone")
            started = time.monotonic()
            BUILD.run_pair(*PROGRAM, "-n", 10)
            self.assertLess(time.monotonic() - started, LIMIT_S)


def own_sockets():
    """On port 4791 of our address."""
    address = "".join(f"{int(part):02X}" for part in reversed(BUILD.address.split(".")))
    return [row for row in harness.sockets("udp", harness.ROCE_PORT) if row[1].startswith(address)]


def listens(server):
    return server.ended() or own_sockets()


if __name__ == "__main__":
    harness.main()
