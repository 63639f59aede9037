#!/usr/bin/env python3
"""Faults of `verbena run --fault`, each by what an unmodified program sees of it.

usage: faults_test.py [BUILD_DIR] [-k PATTERN]
"""

import pathlib
import re
import tempfile
import unittest

import harness

BUILD = harness.build_from_command_line()
ITERATIONS = 300
LIMIT_S = 60


class FaultsTest(unittest.TestCase):
    def pair(self, *options, program="ibv_rc_pingpong", arguments=("-c",), limit_s=LIMIT_S):
        """A server without faults, and a client with them; both, ended."""
        port = harness.free_tcp_port()
        command = [program, "-g", 3, "-n", ITERATIONS, "-p", port, *arguments]
        server = BUILD.start(*command)
        self.addCleanup(server.kill)
        harness.wait_until(lambda: harness.sockets("tcp", port, "0A") or server.ended(),
                           harness.START_LIMIT_S, "the server listens")
        client = harness.Program([BUILD.verbena, "run", *options, "--", *command, BUILD.address],
                                 {"VERBENA_ADDRESS": BUILD.address})
        self.addCleanup(client.kill)
        client.wait(limit_s)
        return server, client

    def survives(self, *options, **keywords):
        """One that ends well has all messages and acknowledgements. The last acknowledgement of the
        other may be lost, and who has ended repeats none."""
        server, client = self.pair(*options, **keywords)
        both = f"{options}\n{server}\n{client}"
        well = [side for side in (client, server) if side.wait(LIMIT_S) == 0]
        self.assertTrue(well, both)
        for side in (client, server):
            self.assertNotIn("invalid data", side.output(), both)
            if side.process.returncode != 0:
                self.assertIn("(12) for wr_id 2", side.output(), both)
        return harness.pingpong_result(well[0].output())[1]  # us for each round

    def fails(self, rules, message):
        server, client = self.pair("--fault", rules)
        self.assertNotIn(client.process.returncode, (0, None), f"{rules}\n{server}\n{client}")
        self.assertIn(message, client.output(), client)

    def test_what_reliable_connections_survive(self):
        for rules in ("loss 1%", "burst-loss enter=0.3%", "reorder 5% by=30us", "duplicate 10%",
                      "corrupt 1%", "mark 20%", "rnr 3%", "nak 2% code=sequence",
                      "blackhole from=1ms for=5ms", "flap up=5ms down=1ms",
                      "loss opcode=ack 5%", "loss nth=7 dir=rx; loss 0.5%; delay by=5us"):
            with self.subTest(rules=rules):
                self.survives("--seed", 5, "--fault", rules)

    def test_a_corrupt_payload_under_a_good_icrc_reaches_the_program(self):
        server, client = self.pair("--fault", "corrupt icrc=good bits=20000 opcode=first dir=rx nth=5")
        server.wait(LIMIT_S)  # has it back
        self.assertIn("invalid data", server.output(), f"{server}\n{client}")

    def test_delay_is_seen_in_the_latency(self):
        us = self.survives("--fault", "delay by=2ms dir=tx")
        self.assertGreater(us, 2000)

    def test_rate_is_seen_in_the_time(self):
        us = self.survives("--fault", "rate limit=100Mbit dir=tx")  # 4096 bytes: 328 us and more
        self.assertGreater(us, 320)

    def test_naks_end_the_connection_with_their_status(self):
        self.fails("nak code=remote-access nth=20 dir=tx", "remote access error (10)")
        self.fails("nak code=invalid-request nth=20 dir=tx", "(9)")
        self.fails("nak code=remote-operational nth=20 dir=tx", "(11)")

    def test_a_refusal_of_the_peers_request_reaches_the_peer(self):
        server, client = self.pair("--fault", "nak code=remote-access opcode=send dir=rx nth=20",
                                   limit_s=0.1)
        self.assertNotIn(server.wait(LIMIT_S), (0, None), f"{server}\n{client}")
        self.assertIn("remote access error (10)", server.output())

    def test_silence_ends_in_retries_exceeded(self):
        self.fails("blackhole dir=tx from=2ms", "(12)")

    def test_a_qp_breaks(self):
        self.fails("qp-error nth=30", "(5)")

    def test_registration_fails(self):
        self.fails("registration-error", "Couldn't register MR")

    def test_unreliable_datagrams_are_lost(self):
        _, client = self.pair("--fault", "loss opcode=send dir=tx nth=10",
                              program="ibv_ud_pingpong", limit_s=1)
        self.assertFalse(client.ended(), "ends, though a datagram is missing")

    def test_rules_from_a_file(self):
        with tempfile.NamedTemporaryFile("w", suffix=".faults") as file:
            file.write("# nothing gets through\nblackhole dir=tx from=2ms\n")
            file.flush()
            pathlib.Path(file.name).chmod(0o644)
            server, client = self.pair("--seed", 1, "--fault-file", file.name)
        self.assertIn("(12)", client.output(), f"{server}\n{client}")

    def test_wrong_rules_are_one_line(self):
        done = BUILD.run_verbena("run", "--fault", "los 1%", "--", "true")
        self.assertEqual(done.process.returncode, 2)
        self.assertRegex(done.output(), re.compile(r"^verbena: --fault: unknown fault 'los'.*\n$"))
        done = BUILD.run("ibv_devinfo", environment={"VERBENA_FAULT": "loss 200%"})
        self.assertNotEqual(done.process.returncode, 0)
        self.assertIn("'200%' is not a probability", done.output())


if __name__ == "__main__":
    harness.main()
