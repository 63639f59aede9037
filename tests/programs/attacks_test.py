#!/usr/bin/env python3
"""Attacks on RDMA (ReDMArk, sRDMA): each works on a device in clear where RDMA allows it, and fails
on one that encrypts, on a virtual function, or with VERBENA_HARDEN, with the counter that saw it.
What a tenant does to its rings: src/host/nic/nic_server_test.cc. Replays and changed packets of an
encrypted connection: src/host/links/encrypted_link_test.cc.

usage: attacks_test.py [BUILD_DIR] [-k PATTERN]
"""

import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import time
import unittest

import harness

ATTACKS = pathlib.Path(__file__).parent.parent / "attacks"
sys.path.insert(0, str(ATTACKS))
import roce  # noqa: E402

BUILD = harness.build_from_command_line()
PREFIX = harness.ADDRESS.rsplit(".", 1)[0]
PEER, PEER_QPN, FIRST_PSN = f"{PREFIX}.21", 0x123456 & 0xFFFFFF, 0x4321
STRANGER = f"{PREFIX}.22"
PORT = 4796
HEADROOM_S = 6  # of a victim, on a busy machine


def is_answered(path):
    """Whether a NIC listens there. Its socket appears a moment before that."""
    return subprocess.run([BUILD.verbena, "nic", "status", str(path)], capture_output=True,
                          timeout=20).returncode == 0


class AttacksTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        cls.folder.chmod(0o777)
        for name in ("victim", "exhaust"):
            subprocess.run(["gcc", "-O1", "-Wall", "-Werror", ATTACKS / f"{name}.c", "-o",
                            cls.folder / name, "-libverbs"], check=True)
        cls.key = cls.folder / "key"
        cls.key.write_text("what the attacker does not know")
        cls.key.chmod(0o644)

    def setUp(self):
        self.programs = []
        self.addCleanup(lambda: harness.stop(*self.programs))

    def start_nic(self, more=""):
        """The environment of programs on the one function of a NIC; the NIC."""
        path = self.folder / "nic.sock"
        file = self.folder / "nic.yaml"
        file.write_text(f"socket: {path}\nfunctions:\n  - {{name: red, user: "
                        f"{harness.ordinary_user()[1]}, address: {STRANGER}{more}}}\n")
        nic = harness.Program([BUILD.verbena, "nic", str(file)], {}, harness.ordinary_user()[0])
        self.programs.append(nic)
        harness.wait_until(lambda: is_answered(path), 20, "the NIC listens")
        return {"VERBENA_NIC": str(path), "VERBENA_ADDRESS": ""}, nic

    def nic_counters(self, environment):
        done = subprocess.run([BUILD.verbena, "nic", "status", environment["VERBENA_NIC"]],
                              capture_output=True, text=True, timeout=20, check=True)
        return json.loads(done.stdout)["functions"][0]["counters"]

    def exhaust(self, mr_bytes, environment=None):
        program = BUILD.run(self.folder / "exhaust", 600, mr_bytes, environment=environment)
        words = program.output().split()
        return dict(zip(words[::2], map(int, words[1::2])))

    def test_exhaustion(self):
        """A program takes all QPs, entries and regions that it wants; of a function, its limits."""
        self.assertEqual(self.exhaust(1), {"qps": 600, "cqes": 600, "mrs": 600})
        environment, nic = self.start_nic(", qps: 5, cqes: 100, mrs: 7")
        self.assertEqual(self.exhaust(1, environment), {"qps": 5, "cqes": 100, "mrs": 7})
        harness.stop(nic)
        environment, _ = self.start_nic(", registered_bytes: 1048576")
        self.assertEqual(self.exhaust(65536, environment)["mrs"], 16)

    def test_a_flood_of_connection_requests(self):
        """A function sends as many requests a second as it may; the others are refused."""
        environment, _ = self.start_nic(", connections: 5")
        for _ in range(4):
            client = BUILD.start("ucmatose", "-s", PEER, "-c", "10", environment=environment)
            self.programs.append(client)
        harness.wait_until(lambda: self.nic_counters(environment)["refused_connections"] > 10, 60,
                           "the NIC refuses requests")

    @unittest.skipUnless(os.geteuid() == 0, "needs root: a NIC of another user than its tenant's")
    def test_memory_of_the_nic(self):
        """A tenant of another user reads neither the NIC's memory nor what it has open."""
        path, file = self.folder / "root.sock", self.folder / "root.yaml"
        file.write_text(f"socket: {path}\nfunctions:\n  - {{name: red, user: "
                        f"{harness.ordinary_user()[1]}, address: {STRANGER}}}\n")
        nic = harness.Program([BUILD.verbena, "nic", str(file)], {}, {})
        self.programs.append(nic)
        harness.wait_until(lambda: is_answered(path), 20, "the NIC listens")
        for name in ("mem", "maps", "environ", "fd/3", "map_files"):
            read = subprocess.run(["cat", f"/proc/{nic.pid}/{name}"], capture_output=True,
                                  text=True, **harness.ordinary_user()[0])
            self.assertNotEqual(read.returncode, 0, name)
            self.assertIn("Permission denied", read.stderr, name)
        done = BUILD.run("ibv_devinfo", environment={"VERBENA_NIC": str(path),
                                                     "VERBENA_ADDRESS": ""})
        self.assertIn("PORT_ACTIVE", done.output())

    def start_victim(self, seconds=HEADROOM_S, environment=None):
        """The program, and what an attacker knows of it at best: QPN, R_Key, address."""
        victim = BUILD.start(self.folder / "victim", PEER, PEER_QPN, FIRST_PSN, seconds,
                             environment=environment)
        self.programs.append(victim)

        def ready():
            lines = [line for line in victim.output().splitlines() if line.startswith("ready ")]
            return tuple(map(int, lines[0].split()[1:])) if lines else None
        return victim, harness.wait_until(ready, 30, "the victim is ready")

    def fate(self, victim):
        self.assertEqual(victim.wait(60), 0, str(victim))
        return victim.output().splitlines()[-1].split()

    def attack(self, source, *packets, destination=harness.ADDRESS, port=roce.ROCE_PORT):
        attacker = roce.Attacker(source)
        self.addCleanup(attacker.close)
        for packet in packets:
            attacker.send(destination, packet, port)

    def encrypted(self):
        return {"VERBENA_ENCRYPTION": f"psk:{self.key},port={PORT}"}

    def counters(self, victim):
        """Of the victim's device: link and hw_counters."""
        done = BUILD.run_verbena("stats", "--json", "--pid", victim.pid)
        [device] = json.loads(done.output())
        return device

    def await_counters(self, victim, group, is_met):
        """Returns the group's counters once they are as wanted: packets may be under way."""
        def look():
            counters = self.counters(victim)[group]
            return counters if is_met(counters) else None
        return harness.wait_until(look, HEADROOM_S, f"the victim's counters of {group}")

    def test_injected_write_with_known_numbers(self):
        """One who sees QPN, PSN and R_Key writes memory; not where packets are authenticated."""
        victim, (qpn, r_key, address) = self.start_victim()
        self.attack(PEER, roce.write_only(qpn, FIRST_PSN, r_key, address, b"owned..."))
        self.assertEqual(self.fate(victim)[0], "changed")

        victim, (qpn, r_key, address) = self.start_victim(environment=self.encrypted())
        packet = roce.write_only(qpn, FIRST_PSN, r_key, address, b"owned...")
        self.attack(PEER, packet)  # in clear to the port of RoCE: nobody listens
        self.attack(PEER, packet, port=PORT)
        link = self.await_counters(victim, "link", lambda seen: seen["refused_unencrypted"])
        self.assertEqual(link["refused_unencrypted"], 1)
        self.assertEqual(self.fate(victim)[0], "unchanged")

    def test_guessed_r_key(self):
        """The first wrong guess breaks the connection; another R_Key is as good as a drawn one."""
        victim, (qpn, r_key, address) = self.start_victim()
        for guess in range(200):
            self.attack(PEER, roce.write_only(qpn, FIRST_PSN + guess,
                                              (r_key + 1 + guess) & 0xFFFFFFFF, address,
                                              b"owned..."))
        counters = self.await_counters(victim, "hw_counters", lambda seen: seen["resp_remote_access_errors"])
        self.assertEqual(counters["resp_remote_access_errors"], 1)
        self.assertEqual(self.fate(victim)[0], "unchanged")

    def test_forged_source(self):
        """Only the peer's address is believed; the device cannot know who has it."""
        victim, (qpn, r_key, address) = self.start_victim()
        self.attack(STRANGER, roce.write_only(qpn, FIRST_PSN, r_key, address, b"owned..."))
        counters = self.await_counters(victim, "hw_counters", lambda seen: seen["dropped_source"])
        self.assertEqual(counters["dropped_source"], 1)
        self.assertEqual(self.fate(victim)[0], "unchanged")

    def scan(self, qpn):
        first = qpn & ~0x3FFF
        packets = [roce.bth(roce.SEND_ONLY, first + 1 + i, 0) + b"scan" for i in range(3000)]
        attacker = roce.Attacker(STRANGER)
        self.addCleanup(attacker.close)
        for packet in packets:
            attacker.send(harness.ADDRESS, packet)
            time.sleep(20e-6)

    def test_qp_number_scan(self):
        """QPNs count up, so that the first one is found at once; drawn ones are not, and a scan is
        not heard for long."""
        _, (qpn, _, _) = self.start_victim()
        self.assertLess(qpn & 0x3FFF, 16)

        hard = {"VERBENA_HARDEN": "qpn,refusals=50"}
        places = set()
        for _ in range(3):
            victim, (qpn, _, _) = self.start_victim(1, environment=hard)
            places.add(qpn & 0x3FFF)
            victim.kill()
        self.assertGreater(max(places), 16)
        victim, (qpn, _, _) = self.start_victim(environment=hard)
        self.scan(qpn)
        self.await_counters(victim, "hw_counters", lambda seen: seen["dropped_silenced"] > 100 and
                            seen["dropped_unknown_qp"] >= 50)

    def test_what_deregistration_leaves(self):
        victim, _ = self.start_victim(1)
        self.assertEqual(self.fate(victim)[1], "kept")
        victim, _ = self.start_victim(1, environment={"VERBENA_HARDEN": "zero"})
        self.assertEqual(self.fate(victim)[1], "zero")

    def test_rubbish_to_the_port_of_encryption(self):
        victim, _ = self.start_victim(environment=self.encrypted())
        prng = random.Random(7)
        attacker = roce.Attacker(STRANGER)
        self.addCleanup(attacker.close)
        for size in range(200):
            attacker.socket.sendto(prng.randbytes(size), (harness.ADDRESS, PORT))
        link = self.await_counters(victim, "link", lambda seen: seen["refused_unencrypted"] +
                                   seen["refused_spi"] > 100)
        self.assertEqual(link["decrypted"], 0)
        self.assertEqual(self.fate(victim)[0], "unchanged")


if __name__ == "__main__":
    harness.main()
