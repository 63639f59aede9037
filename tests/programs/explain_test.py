#!/usr/bin/env python3
"""What `verbena run` says on standard error when work ends in error: for each cause, programs that
fail by it, and the words that name this cause and no other.

usage: explain_test.py [BUILD_DIR] [-k PATTERN]
"""

import json
import os
import pathlib
import re
import signal
import subprocess
import unittest

import harness
import testing

BUILD = harness.build_from_command_line()
LIMIT_S = 30
PYTHON = "/usr/bin/python3"  # pyverbs is built for Debian's own
MISTAKES = pathlib.Path(__file__).with_name("explain_mistakes.py").read_text()

# Words that only one cause has.
MARKS = {
    "rule": "the fault rule '",
    "broken by rule": "a fault rule of this process broke the QP",
    "overrun by rule": "the fault rule cq-overrun",
    "never answered": "never answered",
    "stopped": "had answered before and then stopped",
    "ended": "the peer process has ended",
    "port": "nothing listens on UDP port 4791",
    "no QP": "there is no QP 0x",
    "init": "is in state Init",
    "peer in error": "is in state Error.",
    "no receive": "no receive posted",
    "refused": "the NAK does not tell which",
    "unknown key": "never registered, deregistered, or mistyped",
    "other PD": "in another protection domain",
    "bounds": "is out of bounds",
    "not granted": "does not grant it: its access flags are IBV_ACCESS_REMOTE_READ.",
    "not enabled": "not enabled by the qp_access_flags",
    "not allowed": "does not allow the operation",
    "unaligned": "no multiple of 8",
    "long": "is longer than the receive that the peer had posted",
    "too small": "came to a receive of 100 bytes",
    "operational": "for a reason of its own",
    "local write": "lacks IBV_ACCESS_LOCAL_WRITE",
    "rd atomic": "max_rd_atomic 0",
    "posted in error": "posted to a QP that was in state Error already",
    "overrun": "the CQ overran",
}

# The explanation of each mistake in explain_mistakes.py: of one process that has both ends, and of
# the requester and the responder in two processes (None: no explanation).
SAID = {
    "none": (set(), None, None),
    "unknown-rkey": ({"unknown key"}, "refused", "unknown key"),
    "out-of-bounds": ({"bounds"}, "refused", "bounds"),
    "region-not-writable": ({"not granted"}, "refused", "not granted"),
    "write-not-enabled": ({"not enabled"}, "not allowed", "not enabled"),
    "read-not-enabled": ({"not enabled"}, "not allowed", "not enabled"),
    "unaligned-atomic": ({"unaligned"}, "unaligned", "unaligned"),
    "long-message": ({"too small"}, "long", "too small"),
    "receive-lkey": ({"unknown key"}, "operational", "unknown key"),
    "no-receive": ({"no receive"}, "no receive", None),
    "empty-srq": ({"no receive"}, "no receive", None),
    "unknown-lkey": ({"unknown key"}, "unknown key", None),
    "lkey-of-other-pd": ({"other PD"}, "other PD", None),
    "beyond-own-region": ({"bounds"}, "bounds", None),
    "read-into-read-only": ({"local write"}, "local write", None),
    "no-rd-atomic": ({"rd atomic"}, "rd atomic", None),
    "wrong-qpn": ({"no QP"}, "never answered", None),
    "responder-in-init": ({"init"}, "never answered", None),
    "responder-in-error": ({"peer in error"}, "stopped", None),
    "responder-ends": (None, "ended", None),
    "no-such-address": ({"port"}, "port", None),
    "post-in-error": ({"posted in error"}, "posted in error", None),
    "small-cq": ({"overrun"}, "overrun", None),
}


def is_missing():
    return subprocess.run([PYTHON, "-c", "import pyverbs.device"], stdin=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL).returncode != 0


def joined(output):
    """Each paragraph in one line."""
    return output.replace("\n  ", " ")


def marks_in(output):
    text = joined(output)
    return {name for name, words in MARKS.items() if words in text}


def packets_received(program):
    found = subprocess.run([BUILD.verbena, "stats", "--json", "--pid", str(program.pid)],
                           stdin=subprocess.DEVNULL, capture_output=True, text=True)
    devices = json.loads(found.stdout) if found.returncode == 0 else []
    return sum(qp["received_packets"] for device in devices for qp in device["qps"])


class ExplainTest(unittest.TestCase):
    def pair(self, *options, program="ibv_rc_pingpong", arguments=("-c",), environment=None):
        """A server, and a client that is run with the options; both, ended."""
        port = harness.free_tcp_port()
        command = [program, "-g", 3, "-n", 300, "-p", port, *arguments]
        server = BUILD.start(*command)
        self.addCleanup(server.kill)
        harness.wait_until(lambda: harness.sockets("tcp", port, "0A") or server.ended(), 30,
                           "the server listens")
        client = harness.Program([BUILD.verbena, "run", *options, "--", *command, BUILD.address],
                                 {"VERBENA_ADDRESS": BUILD.address} | (environment or {}))
        self.addCleanup(client.kill)
        client.wait(LIMIT_S)
        return server, client

    def says(self, program, wanted):
        self.assertEqual(marks_in(program.output()), wanted, program)
        # A packet that is recorded at no time shows the uptime of the machine. No program here is so old.
        self.assertNotRegex(joined(program.output()), r"-\d{3,}\.\d+ s (sent|got)", program)
        paragraphs = re.findall(r"^verbena: ", program.output(), re.M)
        self.assertEqual(bool(paragraphs), bool(wanted), program)

    def test_silence_by_a_rule(self):
        server, client = self.pair("--fault", "blackhole dir=tx from=2ms")
        self.says(client, {"rule"})
        self.assertIn("blackhole dir=tx from=2ms", joined(client.output()))
        self.assertIn("IBV_WC_RETRY_EXC_ERR", client.output())
        # Only the received ACKs are lost. An end that loses the peer's turn as well has no request
        # that waits for an answer.
        _, client = self.pair("--fault", "blackhole dir=rx opcode=ack from=2ms")
        self.says(client, {"rule"})

    def test_refusals_by_a_rule(self):
        for rule in ("nak code=remote-access nth=20 dir=tx", "nak code=invalid-request nth=20 dir=tx",
                     "nak code=remote-operational nth=20 dir=tx"):
            with self.subTest(rule=rule):
                self.says(self.pair("--fault", rule)[1], {"rule"})

    def test_objects_broken_by_a_rule(self):
        self.says(self.pair("--fault", "qp-error nth=30")[1], {"broken by rule"})
        self.says(self.pair("--fault", "cq-overrun nth=30")[1], {"overrun by rule"})

    def test_a_peer_that_was_killed(self):
        """While work is on its way: a ping-pong may be waiting for the peer's turn, and then for ever."""
        port = harness.free_tcp_port()
        command = ["ib_write_bw", "-D", LIMIT_S, "-p", port]
        server = BUILD.start(*command)
        self.addCleanup(server.kill)
        harness.wait_until(lambda: harness.sockets("tcp", port, "0A") or server.ended(), 30,
                           "the server listens")
        client = BUILD.start(*command, BUILD.address)
        self.addCleanup(client.kill)
        harness.wait_until(lambda: client.ended() or packets_received(client) > 100, 30,
                           "the server answers")
        os.killpg(server.pid, signal.SIGKILL)
        client.wait(LIMIT_S)
        self.says(client, {"ended"})

    def test_nothing_is_said_of_what_recovers(self):
        # The last ACK may not be lost: whoever waits for it would ask a peer that is done and gone.
        loss = "loss 1% opcode=send; loss opcode=ack every=100 count=2"
        for options in ((), ("--fault", loss), ("--fault", "rnr 3%")):
            for side in self.pair(*options):
                self.assertEqual(side.wait(LIMIT_S), 0, side)
                self.says(side, set())

    def test_nothing_is_said_of_healthy_programs(self):
        for program in ("ibv_uc_pingpong", "ibv_ud_pingpong", "ibv_srq_pingpong"):
            arguments = () if program == "ibv_srq_pingpong" else ("-c",)
            for side in self.pair(program=program, arguments=arguments):
                self.assertEqual(side.wait(LIMIT_S), 0, side)
                self.says(side, set())

    def test_nothing_is_said_where_nobody_wants_it(self):
        server, client = self.pair("--fault", "blackhole dir=tx from=2ms",
                                   environment={"VERBENA_EXPLAIN": "0"})
        self.says(client, set())

    def test_a_library_by_itself_is_silent_unless_asked(self):
        for wanted, marks in ((None, set()), ("0", set()), ("1", {"unknown key"})):
            environment = {"LD_LIBRARY_PATH": str(BUILD.library.parent), "VERBENA_ADDRESS":
                           BUILD.address} | ({"VERBENA_EXPLAIN": wanted} if wanted else {})
            if is_missing():
                self.skipTest("python3-pyverbs is not installed")
            program = harness.Program([PYTHON, "-c", MISTAKES, "unknown-rkey", "alone"], environment)
            self.addCleanup(program.kill)
            self.assertEqual(program.wait(LIMIT_S), 0, program)
            self.says(program, marks)

    @unittest.skipIf(is_missing(), "python3-pyverbs is not installed")
    def test_mistakes_within_a_process(self):
        for mistake, (alone, _, _) in testing.sample(SAID.items(), every=2):
            if alone is None:
                continue
            with self.subTest(mistake=mistake):
                program = BUILD.run(PYTHON, "-c", MISTAKES, mistake, "alone", limit_s=LIMIT_S)
                self.assertEqual(program.process.returncode, 0, program)
                self.says(program, alone)

    @unittest.skipIf(is_missing(), "python3-pyverbs is not installed")
    def test_mistakes_between_processes(self):
        for mistake, (_, requester, responder) in SAID.items():
            with self.subTest(mistake=mistake):
                program = BUILD.run(PYTHON, "-c", MISTAKES, mistake, "two", limit_s=LIMIT_S)
                self.assertEqual(program.process.returncode, 0, program)
                self.says(program, {mark for mark in (requester, responder) if mark})

    @unittest.skipIf(is_missing(), "python3-pyverbs is not installed")
    def test_many_errors_are_not_all_told(self):
        program = BUILD.run(PYTHON, "-c", MISTAKES, "many", "alone", limit_s=LIMIT_S)
        self.assertEqual(program.process.returncode, 0, program)
        self.assertEqual(len(re.findall("^verbena: QP", program.output(), re.M)), 10, program)
        self.assertEqual(program.output().count("more errors are not explained"), 1, program)


if __name__ == "__main__":
    harness.main()
