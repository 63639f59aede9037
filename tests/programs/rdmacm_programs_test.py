#!/usr/bin/env python3
"""The programs of rdmacm-utils on Verbena, and perftest with -R: connections of every kind made by
librdmacm, the data checked where the program does, refusals and deaths in time.

usage: rdmacm_programs_test.py [BUILD_DIR] [-k PATTERN]
"""

import signal
import time

import harness
import testing
from rdmacm_pairs import LIMIT_S, START_LIMIT_S, RDMACMPairs, free_port

BUILD = harness.build_from_command_line()


class RDMACMProgramsTest(RDMACMPairs):
    build = BUILD

    # --- rping

    def rping(self, role, *options, port):
        return ("rping", role, "-a", BUILD.address, "-p", port, *options)

    def test_rping(self):
        for options in ("-C 10", "-C 10 -S 65535", "-C 3 -S 30 -q"):
            with self.subTest(options=options):
                port = free_port()
                server, client = self.check_pair(
                    self.rping("-s", "-v", *options.split(), port=port),
                    self.rping("-c", "-v", "-V", *options.split(), port=port))
                count = int(options.split()[1])
                self.assertEqual(client.output().count("ping data: rdma-ping-"), count, client)
                self.assertEqual(server.output().count("server ping data: rdma-ping-"), count)

    def persistent_clients(self, count, pings):
        """`count` clients at once with a persistent server. rping takes one request at a time (it
        keeps one child_cm_id), so each starts when the one before is connected."""
        port = free_port()
        server = self.start(*self.rping("-s", "-P", port=port))
        clients = []
        for _ in range(count):
            clients.append(self.start_connected_rping(server, port, pings))
        return server, clients

    def start_connected_rping(self, server, port, pings):
        deadline = time.monotonic() + START_LIMIT_S
        while True:
            client = self.start("stdbuf", "-oL",
                                *self.rping("-c", "-v", "-V", "-C", pings, port=port))
            harness.wait_until(lambda: client.ended() or "ping data" in client.output(), LIMIT_S,
                               f"a client connects\n{server}")
            if not self.was_refused(client) or time.monotonic() > deadline:
                return client
            time.sleep(0.1)

    def test_rping_persistent_with_many_clients(self):
        pings = 500
        server, clients = self.persistent_clients(16, pings)
        for client in clients:
            self.assertEqual(client.wait(LIMIT_S), 0, f"{server}\n{client}")
            self.assertEqual(client.output().count("ping data: rdma-ping-"), pings, client)
        self.assertFalse(server.ended(), server)

    def test_rping_server_survives_a_killed_client(self):
        server, (victim, other) = self.persistent_clients(2, 1000000)
        victim.process.send_signal(signal.SIGKILL)
        victim.process.wait()
        port = server.command[server.command.index("-p") + 1]
        later = self.start_connected_rping(server, port, 10)
        self.assertEqual(later.wait(LIMIT_S), 0, f"{server}\n{later}")
        self.assertFalse(other.ended(), other)
        self.assertFalse(server.ended(), server)

    def test_rping_on_any_address(self):
        for server_address, client_address in (("0.0.0.0", BUILD.address),
                                               ("127.0.0.1", "127.0.0.1"),
                                               (BUILD.address, "127.0.0.1"), ("::0", "::1")):
            with self.subTest(server=server_address, client=client_address):
                port = free_port()
                self.check_pair(("rping", "-s", "-a", server_address, "-p", port, "-C", 3),
                                ("rping", "-c", "-a", client_address, "-p", port, "-C", 3, "-V"))

    def test_rping_between_devices_of_different_addresses(self):
        self.check_rping_apart(BUILD.address)

    def test_rping_ends_when_its_peer_is_killed(self):
        """As where a kernel ends the connections of a process: the survivor is told, and ends."""
        for victim in (0, 1):
            with self.subTest(victim="client" if victim else "server"):
                port = free_port()
                server = self.start(*self.rping("-s", port=port))
                client = self.start_connected_rping(server, port, 100000000)
                (server, client)[victim].process.send_signal(signal.SIGKILL)
                survivor = (client, server)[victim]
                self.assertIsNotNone(survivor.wait(LIMIT_S), f"hangs:\n{survivor}")

    # --- refusals

    def test_nobody_listens(self):
        started = time.monotonic()
        client = BUILD.run(*self.rping("-c", "-C", 1, port=free_port()), limit_s=LIMIT_S)
        self.assertNotEqual(client.process.returncode, 0, client)
        self.assertIn("RDMA_CM_EVENT_REJECTED, error 8", client.output(), client)
        self.assertLess(time.monotonic() - started, 30, client)

    def test_nobody_listens_synchronously(self):
        client = BUILD.run("rdma_client", "-s", BUILD.address, "-p", free_port())
        self.assertNotEqual(client.process.returncode, 0, client)
        self.assertIn("Connection refused", client.output(), client)

    def test_no_way_to_another_host(self):
        client = BUILD.run("rping", "-c", "-a", "203.0.113.9", "-C", 1, limit_s=LIMIT_S)
        self.assertNotEqual(client.process.returncode, 0, client)
        self.assertIn("RDMA_CM_EVENT_ADDR_ERROR", client.output(), client)

    def test_port_in_use(self):
        port = free_port()
        servers = [self.start(*self.rping("-s", "-P", port=port)) for _ in range(2)]
        loser = harness.wait_until(lambda: next((s for s in servers if s.ended()), None), LIMIT_S,
                                   "one of two servers ends")
        self.assertNotEqual(loser.process.returncode, 0, loser)
        self.assertIn("Address already in use", loser.output(), loser)
        winner = next(server for server in servers if server is not loser)
        self.assertEqual(self.start_connected_rping(winner, port, 3).wait(LIMIT_S), 0, winner)

    # --- the others of rdmacm-utils

    def test_ucmatose(self):
        for options in ("-c 1 -C 10", "-c 20 -C 10 -S 1000", "-c 5 -C 100 -S 65536 -t 8",
                        "-c 32 -C 20 -S 100"):
            with self.subTest(options=options):
                common = ("ucmatose", "-b", BUILD.address, "-p", free_port(), *options.split())
                server, client = self.check_pair(common, (*common, "-s", BUILD.address))
                for program in (server, client):
                    self.assertIn("data transfers complete", program.output(), program)
                    self.assertIn("return status 0", program.output(), program)

    def test_udaddy(self):
        for options in ("-c 1 -C 10", "-c 5 -C 10 -S 1000"):
            with self.subTest(options=options):
                common = ("udaddy", "-b", BUILD.address, *options.split())
                server, client = self.check_pair(common, (*common, "-s", BUILD.address))
                for program in (server, client):
                    self.assertIn("data transfers complete", program.output(), program)

    def test_cmtime(self):
        """The server runs for ever."""
        common = ("cmtime", "-b", BUILD.address, "-p", free_port(), "-c", 100)
        server = self.start(*common)
        client = self.run_client(server, *common, "-s", BUILD.address)
        self.assertEqual(client.process.returncode, 0, f"{server}\n{client}")
        for step in ("create id", "bind addr", "resolve addr", "resolve route", "create qp",
                     "connect", "disconnect", "destroy"):
            self.assertIn(step, client.output(), client)

    def test_rdma_client_and_server(self):
        for options in ((), ("-s", "0.0.0.0")):
            with self.subTest(server=options):
                port = free_port()
                server, client = self.check_pair(
                    ("rdma_server", "-p", port, *options),
                    ("rdma_client", "-s", BUILD.address, "-p", port))
                self.assertIn("rdma_server: end 0", server.output())
                self.assertIn("rdma_client: end 0", client.output())

    def test_rdma_xclient_and_xserver(self):
        port = free_port()
        server, client = self.check_pair(
            ("rdma_xserver", "-p", port, "-c", "r"),
            ("rdma_xclient", "-s", BUILD.address, "-p", port, "-c", "r"))
        self.assertIn("end 0", server.output())
        self.assertIn("end 0", client.output())

    # --- perftest with connections by rdma_cm

    def perftest(self, program, *options):
        """perftest connects twice, and its server listens anew in between: where that comes too late
        for its client, which ends then, both are started again."""
        deadline = time.monotonic() + START_LIMIT_S
        head_start_s = 0.2
        while True:
            common = (program, "-R", "-p", free_port(), *options)
            server = self.start(*common)
            time.sleep(head_start_s)
            head_start_s *= 2
            client = self.start(*common, BUILD.address)
            self.assertIsNotNone(client.wait(LIMIT_S), f"hangs:\n{server}\n{client}")
            if not self.was_refused(client) or time.monotonic() > deadline:
                break
            server.kill()
        self.assertEqual(client.process.returncode, 0, f"{server}\n{client}")
        self.assertEqual(server.wait(LIMIT_S), 0, f"{server}\n{client}")
        rows = harness.perftest_rows(client.output())
        self.assertTrue(rows, f"{server}\n{client}")
        return rows

    def test_perftest_bandwidth(self):
        for line in testing.sample(("ib_write_bw -n 500", "ib_read_bw -n 500", "ib_send_bw -n 500",
                     "ib_atomic_bw -n 500", "ib_write_bw -n 200 -q 8", "ib_send_bw -n 500 -e",
                     "ib_send_bw -n 500 -b", "ib_send_bw -c UD -n 500 -s 1024",
                     "ib_write_bw -n 100 -T 96", "ib_send_bw -D 1 -q 4",
                     "ib_write_bw -n 64 -q 64 -s 4096", "ib_read_bw -n 500 -b -q 2", "ib_send_bw -n 500 --use-srq"), every=3):
            with self.subTest(line=line):
                self.perftest(*line.split())

    def test_perftest_options(self):
        for line in testing.sample(("ib_write_bw -n 256 -l 8 -t 16 -q 2 -b", "ib_send_bw -n 256 -l 4 -r 64 -m 256",
                     "ib_read_bw -n 200 -o 1 -m 512 -e -q 4", "ib_atomic_bw -n 200 -A CMP_AND_SWAP -q 4",
                     "ib_send_bw -c UD -n 200 -s 512 -q 2", "ib_send_bw -c UD -n 200 -s 256 -e -I 64",
                     "ib_write_bw -D 1 -b --retry_count=3", "ib_send_bw -n 200 --ipv6 -z",
                     "ib_write_bw -n 200 -x 3 -T 106 -W counters/port_xmit_data",
                     "ib_read_lat -n 200 -o 4 -s 4096 -m 1024", "ib_send_lat -n 200 -e --use-srq",
                     "ib_atomic_lat -n 200 -A CMP_AND_SWAP"), every=4):
            with self.subTest(line=line):
                self.perftest(*line.split())

    def test_perftest_refuses_what_it_does_not_connect_by_rdma_cm(self):
        for line in ("ib_send_bw -c UC", "ib_write_bw -c XRC"):
            with self.subTest(line=line):
                program = BUILD.run(*line.split(), "-R", "-p", free_port(), limit_s=LIMIT_S)
                self.assertEqual(program.process.returncode, 1, program)

    def test_perftest_latency(self):
        for line in testing.sample(("ib_write_lat -n 500", "ib_read_lat -n 500", "ib_send_lat -n 500",
                                    "ib_atomic_lat -n 500", "ib_send_lat -c UD -n 500"), every=3):
            with self.subTest(line=line):
                self.perftest(*line.split())


if __name__ == "__main__":
    harness.main()
