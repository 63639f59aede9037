#!/usr/bin/env python3
"""`verbena doctor`: what it says of a healthy machine, and of each thing that can be broken here.

usage: doctor_test.py [BUILD_DIR] [-k PATTERN]
"""

import json
import os
import signal
import socket
import unittest

import harness

BUILD = harness.build_from_command_line()
PREFIX = harness.ADDRESS.rpartition(".")[0]
PEER, NOBODY_THERE = PREFIX + ".2", PREFIX + ".3"


class DoctorTest(unittest.TestCase):
    def setUp(self):
        self.programs = []
        self.addCleanup(lambda: harness.stop(*self.programs))

    def doctor(self, *arguments, status=None):
        """Exit status and findings by subject."""
        program = BUILD.run_verbena("doctor", "--json", *arguments, limit_s=90)
        if status is not None:
            self.assertEqual(program.process.returncode, status, program)
        whole = json.loads(program.output())
        findings = {}
        for finding in whole["findings"]:
            findings.setdefault(finding["subject"], []).append(finding)
            if finding["verdict"] != "ok":
                self.assertTrue(finding["fix"], finding)
        return findings

    def start_listener(self, address):
        listener = harness.Program([BUILD.verbena, "doctor", "--listen", "--address", address], {})
        self.programs.append(listener)
        harness.wait_until(lambda: "answering on" in listener.output() or listener.ended(),
                           harness.START_LIMIT_S, "it listens")
        return listener

    def verdicts(self, findings, subject):
        return [finding["verdict"] for finding in findings[subject]]

    def test_a_healthy_machine(self):
        program = BUILD.run_verbena("doctor", limit_s=90)
        self.assertEqual(program.process.returncode, 0, program)
        for line in program.output().splitlines():
            self.assertRegex(line, r"^(ok|warning) +[a-z-]+ +\S")
        findings = self.doctor(status=0)
        for subject in ("address", "gids", "port", "steering", "exchange", "memlock", "versions"):
            self.assertEqual(self.verdicts(findings, subject), ["ok"], subject)
        self.assertIn(BUILD.address, findings["address"][0]["text"])
        self.assertIn("VERBENA_ADDRESS", findings["address"][0]["text"])

    def test_beside_a_running_program(self):
        server = BUILD.start("ib_write_bw", "-p", harness.free_tcp_port())
        self.programs.append(server)
        harness.wait_until(lambda: harness.sockets("udp", harness.ROCE_PORT),
                           harness.START_LIMIT_S, "it has the port")
        findings = self.doctor(status=0)
        self.assertEqual(self.verdicts(findings, "exchange"), ["ok"])
        self.assertFalse(server.ended(), server)

    def test_a_small_buffer_is_a_warning(self):
        limit = int(open("/proc/sys/net/core/rmem_max", encoding="ascii").read())
        [finding] = self.doctor(status=0)["buffers"]
        self.assertIn(str(limit), finding["text"])
        if limit < 1 << 20:
            self.assertEqual(finding["verdict"], "warning")
            self.assertIn("sysctl -w net.core.rmem_max=", finding["fix"])

    def test_an_address_that_is_not_ours(self):
        findings = self.doctor("--address", "203.0.113.9", status=1)
        self.assertEqual(self.verdicts(findings, "address"), ["problem"])
        self.assertIn("203.0.113.9", findings["address"][0]["text"])

    def test_a_port_that_is_taken(self):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as holder:  # without SO_REUSEPORT
            holder.bind((BUILD.address, harness.ROCE_PORT))
            findings = self.doctor(status=1)
        self.assertEqual(self.verdicts(findings, "port"), ["problem"])
        text = findings["port"][0]["text"]
        self.assertIn("is taken", text)
        self.assertIn(f"user {os.geteuid()}", text)
        if os.geteuid() == harness.ordinary_user()[1]:
            self.assertIn(f"process {os.getpid()} ", text)

    def test_a_doctor_as_peer(self):
        listener = self.start_listener(PEER)
        findings = self.doctor(PEER, status=0)
        for subject, count in {"route": 1, "peer": 1, "ecn": 2, "path-mtu": 1}.items():
            self.assertEqual(self.verdicts(findings, subject), ["ok"] * count, findings[subject])
        self.assertIn("of 100 packets", findings["loss"][0]["text"])
        self.assertIn("ECT(0) arrives as sent, both ways", findings["ecn"][0]["text"])
        listener.process.send_signal(signal.SIGINT)
        self.assertEqual(listener.wait(harness.START_LIMIT_S), 0, listener)

    def test_any_program_as_peer(self):
        server = BUILD.start("ib_write_bw", "-p", harness.free_tcp_port(),
                             environment={"VERBENA_ADDRESS": PEER})
        self.programs.append(server)

        def answers():
            return self.verdicts(self.doctor(PEER), "peer") == ["ok"]
        harness.wait_until(answers, 60, "the program answers")
        findings = self.doctor(PEER, status=0)
        self.assertIn("of 100 packets", findings["loss"][0]["text"])
        self.assertFalse(server.ended(), server)

    def test_a_peer_where_nobody_is(self):
        findings = self.doctor(NOBODY_THERE, status=1)
        self.assertEqual(self.verdicts(findings, "peer"), ["problem"])
        self.assertIn("doctor --listen", findings["peer"][0]["fix"])

    def test_a_peer_without_a_way(self):
        findings = self.doctor("203.0.113.9", status=1)  # not from a loopback address
        self.assertTrue({"problem"} <= {f["verdict"] for s in ("route", "peer")
                                        for f in findings.get(s, [])})

    def test_a_peer_that_is_no_name(self):
        findings = self.doctor("no.such.host.invalid", status=1)
        self.assertEqual(self.verdicts(findings, "peer"), ["problem"])

    def test_a_peer_of_another_family(self):
        findings = self.doctor("::1", status=1)
        self.assertEqual(self.verdicts(findings, "route"), ["problem"])

    def test_wrong_usage(self):
        for arguments in (["--listen", "10.0.0.1"], ["a", "b"], ["--frobnicate"]):
            program = BUILD.run_verbena("doctor", *arguments)
            self.assertEqual(program.process.returncode, 2, program)


if __name__ == "__main__":
    harness.main()
