#!/usr/bin/env python3
"""Two processes of one host: WRITEs and READs without packets, packets without datagrams, the same
with datagrams, and what happens when one of the two is killed.

usage: local_path_test.py [BUILD_DIR] [-k PATTERN]
"""

import signal
import unittest

import harness
import testing

BUILD = harness.build_from_command_line()
LOCAL, WIRE = {}, {"VERBENA_LOCAL": "off"}
ENDLESS = ["-D", "600"]
RETRY_EXCEEDED = "Failed status 12"  # IBV_WC_RETRY_EXC_ERR


def transport(program, counter):
    """A counter of the program's devices, added up."""
    devices = BUILD.devices_of(program)
    return sum(device["hw_counters"][counter] for device in devices)


def frames(program, counter="sent_frames"):
    """Real ones; port_xmit_packets counts copies too."""
    return sum(device["link"][counter] for device in BUILD.devices_of(program))


def port(program, counter):
    return sum(device["counters"][counter] for device in BUILD.devices_of(program))


class LocalPathTest(unittest.TestCase):
    def run_for_a_while(self, program, environment=LOCAL):
        """(client, server) in the middle of their work; the caller stops them."""
        server, client = BUILD.start_pair(program, *ENDLESS, environment=environment)
        self.addCleanup(harness.stop, client, server)
        BUILD.wait_for_traffic(server, client)
        return client, server

    def check_copies(self, program, sent, received):
        client, server = self.run_for_a_while(program)
        self.assertGreater(transport(client, sent), 100, client)
        self.assertGreater(transport(server, received), 100, server)
        # These are frames of the connection, and of the first message, which may raise an event.
        self.assertLess(frames(client), 100, client)

    def check_bytes(self, program, sender):
        """The port counts what is copied, at both ends, as it counts packets."""
        pair = self.run_for_a_while(program)
        there = pair[1 - sender]
        size = 4 * port(pair[sender], "port_xmit_data")
        self.assertGreater(size, 100 * 1024, pair[sender])
        self.assertGreater(4 * port(there, "port_rcv_data"), size // 2, there)

    def test_write(self):
        self.check_copies("ib_write_bw", "local_write_requests", "rx_write_requests")

    def test_read(self):
        self.check_copies("ib_read_bw", "local_read_requests", "rx_read_requests")

    def test_sends_and_atomics_are_packets_but_no_datagrams(self):
        for program in ("ib_send_bw", "ib_atomic_bw"):
            with self.subTest(program=program):
                client, _ = self.run_for_a_while(program)
                self.assertGreater(frames(client), 100, client)
                self.assertLess(frames(client, "sent_bursts"), 100, client)

    def test_no_qp_waits_for_packets_while_others_copy(self):
        """Each poll finds what was copied; the first message of each QP is a packet."""
        for _ in testing.sample(range(3), every=3):
            BUILD.run_pair("ib_write_bw", "-s", "8", "-l", "64", "-q", "4", "-D", "1",
                           environment=LOCAL)

    def test_copies_are_counted_at_both_ports(self):
        self.check_bytes("ib_write_bw", sender=0)
        self.check_bytes("ib_read_bw", sender=1)

    def test_the_environment_turns_it_off(self):
        client, _ = self.run_for_a_while("ib_write_bw", WIRE)
        self.assertEqual(transport(client, "local_write_requests"), 0, client)
        self.assertGreater(frames(client), 100, client)

    def test_one_end_without_it_is_enough(self):
        tcp_port = harness.free_tcp_port()
        command = ["ib_write_bw", "-n", "2000", "-p", tcp_port]
        server = BUILD.start(*command, environment=WIRE)
        self.addCleanup(harness.stop, server)
        harness.wait_until(lambda: harness.sockets("tcp", tcp_port, "0A") or server.ended(),
                           harness.START_LIMIT_S, "the server listens")
        client = BUILD.run(*command, BUILD.address, environment=LOCAL)
        self.assertEqual(client.process.returncode, 0, client)
        self.assertEqual(server.wait(harness.PAIR_LIMIT_S), 0, server)

    def test_a_peer_that_is_killed_is_a_retry_error(self):
        for environment in (LOCAL, WIRE):
            with self.subTest(environment=environment):
                client, server = self.run_for_a_while("ib_write_bw", environment)
                server.process.send_signal(signal.SIGKILL)
                self.assertNotEqual(client.wait(harness.PAIR_LIMIT_S), None, client)
                self.assertIn(RETRY_EXCEEDED, client.output(), client)

    def test_with_packets(self):
        for program in ("ib_write_bw", "ib_read_bw"):
            for options in ("-a", "-s 8"):
                with self.subTest(program=program, options=options):
                    pair = BUILD.run_pair(program, *options.split(), "-n", "10", environment=WIRE)
                    self.assertTrue(harness.perftest_rows(pair.client.output()), pair.client)


if __name__ == "__main__":
    harness.main()
