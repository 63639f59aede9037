#!/usr/bin/env python3
"""Multicast with unmodified programs: mckey with several receivers on several devices, and
ib_send_bw -g.

usage: multicast_programs_test.py [BUILD_DIR] [-k PATTERN]
"""

import os
import socket
import unittest

import harness

BUILD = harness.build_from_command_line()
LIMIT_S = 60
JOINED = "joined dgid"


def group(number):
    """A group of this run alone."""
    pid = os.getpid()
    return f"239.{pid // 250 % 250}.{pid % 250}.{number}"


def members(address):
    """How many sockets of this host are bound to the group's port."""
    bound = socket.inet_aton(address)[::-1].hex().upper()  # as /proc/net/udp has it
    return sum(row[1].startswith(bound) for row in harness.sockets("udp", harness.ROCE_PORT))


def other_address():
    return BUILD.address.rpartition(".")[0] + ".2"


class MckeyTest(unittest.TestCase):
    def start(self, address, *options):
        program = BUILD.start("mckey", "-b", address, *options,
                              environment={"VERBENA_ADDRESS": address})
        self.addCleanup(program.kill)
        return program

    def start_receiver(self, address, number, *options):
        """mckey, once it has joined: it shows that only at its end, when its output is a file."""
        before = members(group(number))
        receiver = self.start(address, *options)
        harness.wait_until(lambda: members(group(number)) > before or receiver.ended(), LIMIT_S,
                           "mckey joins")
        return receiver

    def check_ended(self, *programs):
        for program in programs:
            self.assertEqual(program.wait(LIMIT_S), 0, program)
            self.assertIn("data transfers complete", program.output(), program)

    def test_every_receiver_gets_every_message(self):
        options = ("-m", group(1))
        receivers = [self.start_receiver(address, 1, *options)
                     for address in (BUILD.address, BUILD.address, other_address())]
        self.check_ended(self.start(BUILD.address, "-s", *options), *receivers)
        for receiver in receivers:
            self.assertIn(f"{JOINED}: ::ffff:{group(1)}", receiver.output())

    def test_send_only_member(self):
        options = ("-m", group(2), "-S", "1000")
        receiver = self.start_receiver(BUILD.address, 2, *options)
        self.check_ended(self.start(BUILD.address, "-s", "-o", *options), receiver)

    def test_several_ids_of_one_process(self):
        options = ("-m", group(3), "-C", "5")
        receiver = self.start_receiver(BUILD.address, 3, "-c", "3", *options)
        self.check_ended(self.start(BUILD.address, "-s", *options), receiver)

    def test_an_unmapped_group(self):
        options = ("-M", f"::ffff:{group(4)}")
        receiver = self.start_receiver(BUILD.address, 4, *options)
        self.check_ended(self.start(BUILD.address, "-s", *options), receiver)

    def test_another_group_is_not_received(self):
        receiver = self.start_receiver(BUILD.address, 5, "-m", group(5))
        self.check_ended(self.start(BUILD.address, "-s", "-m", group(6)))
        self.assertFalse(receiver.ended(), receiver)

    def test_no_group(self):
        program = self.start(BUILD.address, "-s", "-m", "10.1.2.3")
        self.assertNotIn(program.wait(LIMIT_S), (0, None), program)
        self.assertIn("RDMA_CM_EVENT_ADDR_ERROR", program.output(), program)


class PerftestMulticastTest(unittest.TestCase):
    """Nothing holds a sender back: so little is sent that a receiver's buffer can hold it all."""

    def test_send_bw(self):
        mgid = ":".join(["0"] * 10 + ["255", "255"] + group(7).split("."))
        for options in ("-s 1024", "-s 64", "-s 1024 -e"):
            with self.subTest(options=options):
                pair = BUILD.run_pair("ib_send_bw", "-c", "UD", "-g", "-M", mgid, "-n", 200,
                                      *options.split())
                self.assertEqual(len(harness.perftest_rows(pair.client.output())), 1, pair.client)
                self.assertIn("MGID", pair.server.output(), pair.server)


if __name__ == "__main__":
    harness.main()
