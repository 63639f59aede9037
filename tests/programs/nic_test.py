#!/usr/bin/env python3
"""Programs on the virtual functions of `verbena nic`: traffic, rates, encryption, who may attach,
and the end of either side by SIGKILL.

usage: nic_test.py [BUILD_DIR] [-k PATTERN]
"""

import errno
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import unittest

import children
import harness
import nic_case
import testing
import two_hosts

BUILD = harness.build_from_command_line()
PREFIX = harness.ADDRESS.rsplit(".", 1)[0]
KILLS = 1000 if testing.THOROUGH else 20
BAD_WORDS = (("max: 0", "max: 0 is no rate"), ("max: 0Gbit", "max: 0Gbit is no rate"),
             ("max: -1Gbit", "max: -1Gbit is no rate"), ("max: 10 TB", "max: 10 TB is no rate"),
             ("max: 99999999Tbit", "no rate"), ("guaranteed: fast", "guaranteed: fast is no rate"),
             ("vlan: 0", "vlan: a number of 1 to 4094"), ("vlan: 4095", "vlan: 4095"),
             ("vlan: 5, vni: 5", "not with vni"),
             ("user: nobody-here", "user: there is no nobody-here"), ("user: -1", "there is no -1"),
             ("user: 4294967296", "user: 4294967296 is no ID"),
             ("group: 4294967295", "group: 4294967295 is no ID"), ("name: b", "name is there twice"),
             ("weight: 0", "weight: 1"), ("programs: 0", "programs: 1"),
             ("burst: 0", "burst: 1"), ("priority: 8", "priority: 8"),
             ("traffic_classes: 5", "traffic_classes: a list"),
             ("traffic_classes: [5]", "must be a map"),
             ("traffic_classes: [{dscp: [5]}]", "each entry needs a class"),
             ("traffic_classes: [{class: 8}]", "class: 8 is no number up to 7"),
             ("traffic_classes: [{class: 5}, {class: 5}]", "class: 5 is there twice"),
             ("traffic_classes: [{class: 5, dscp: [64]}]", "dscp: numbers up to 63"),
             ("traffic_classes: [{class: 5, dscp: [ef]}]", "dscp: numbers up to 63"),
             ("traffic_classes: [{class: 5, dscp: [1]}, {class: 4, dscp: [1]}]", "dscp: 1 is"),
             ("traffic_classes: [{class: 5, max: 0}]", "max: 0 is no rate"),
             ("traffic_classes: [{class: 5, weight: 2}]", "no such key: weight"),
             ("multicast: 1", "multicast: true or false"),
             ("multicast: true, vni: 5", "multicast: not with vni, vlan or encryption"),
             ("multicast: true, vlan: 5", "multicast: not with vni, vlan or encryption"),
             ("groups: 257", "groups: 257 is no number up to 256"),
             ("groups: -1", "groups: -1 is no number"),
             ("streams: -1", "streams: -1 is no number"),
             ("link: tcp", "link: tcp is none of udp, packet, xdp"),
             ("link: iwarp", "link: iwarp is none of udp, packet, xdp"),
             ("link: xdp, vlan: 5", "a: link: xdp: not with vlan or vni"),
             ("link: packet, vni: 5", "a: link: packet: not with vlan or vni"),
             ("p_keys: []", "p_keys"), ("p_keys: [0x8000]", "p_keys"), ("qps: -1", "qps: -1"))


class NICTest(nic_case.NICCase):
    build = BUILD

    def test_traffic_and_status(self):
        self.start_nic("a", [("red", f"{PREFIX}.11", "")])
        self.start_nic("b", [("blue", f"{PREFIX}.12", "")])
        self.write_pair("a", "b", f"{PREFIX}.11", "-s", "65536", "-n", "200")
        self.assertGreaterEqual(self.counters("b", "blue")["sent_packets"], 3200)
        self.assertGreaterEqual(self.counters("a", "red")["received_packets"], 3200)
        self.assertRegex(self.look_at("metrics", "b"),
                         r'\nverbena_nic_sent_packets_total{function="blue",address=".*"} [1-9]\d{3}')
        self.assertRegex(self.look_at("top", "b"), rf"\nblue +{PREFIX}\.12 ")
        doctor = BUILD.run_verbena("doctor", f"{PREFIX}.11", environment=self.environment("b"))
        self.assertIn("and are not encrypted", doctor.output())

    def test_encrypted(self):
        encryption = self.encryption()
        self.start_nic("a", [("red", f"{PREFIX}.13", "")], encryption)
        self.start_nic("b", [("blue", f"{PREFIX}.14", "")], encryption)
        self.write_pair("a", "b", f"{PREFIX}.13", "-s", "65536", "-n", "200")
        doctor = BUILD.run_verbena("doctor", f"{PREFIX}.13", environment=self.environment("b"))
        self.assertIn(f"packets of {PREFIX}.14 are encrypted by the verbena nic", doctor.output())

    def test_rdma_cm_on_functions_of_one_nic(self):
        red, blue = f"{PREFIX}.18", f"{PREFIX}.19"
        self.start_nic("a", [("red", red, ""), ("blue", blue, "")])
        for server, client in (
                (("rping", "-s", "-a", red, "-C", "20"),
                 ("rping", "-c", "-a", red, "-I", blue, "-C", "20")),
                (("ucmatose", "-c", "20"), ("ucmatose", "-s", red, "-c", "20")),
                (("udaddy",), ("udaddy", "-s", red)),
                (("ib_send_bw", "-R", "-F", "-n", "200"),
                 ("ib_send_bw", "-R", "-F", "-n", "200", red))):
            with self.subTest(program=server[0]):
                self.pair_on_functions(server, client)
        self.assertGreater(self.counters("a", "red")["received_packets"], 1000)
        self.assertGreater(self.counters("a", "blue")["sent_packets"], 1000)

    @unittest.skipUnless(shutil.which("ucx_perftest"), "ucx-utils is not installed")
    def test_ucx_on_functions_of_one_nic(self):
        red = f"{PREFIX}.18"
        self.start_nic("a", [("red", red, ""), ("blue", f"{PREFIX}.19", "")])
        options = ("-n", "100", "-w", "10", "-s", "4096")
        for tls in ("rc_v", "ud_v"):
            with self.subTest(tls=tls):
                self.variables = {"UCX_TLS": tls, "UCX_NET_DEVICES": "verbena0:1"}
                self.pair_on_functions(("ucx_perftest", *options),
                                       ("ucx_perftest", red, "-t", "tag_bw", *options))
        self.assertGreater(self.counters("a", "blue")["sent_packets"], 200)

    @unittest.skipUnless(shutil.which("mpicxx"), "Open MPI is not installed")
    def test_open_mpi_on_functions_of_one_nic(self):
        self.start_nic("a", [("red", f"{PREFIX}.18", ""), ("blue", f"{PREFIX}.19", "")])
        program = self.folder / "collectives"
        source = pathlib.Path(__file__).parent / "mpi" / "collectives.cc"
        subprocess.run(["mpicxx", "-O1", source, "-o", program], check=True)
        ranks = []
        for function in ("red", "blue"):
            ranks += ["-n", "1", BUILD.verbena, "run", "--nic", f"{self.folder}/a.sock",
                      "--address", function, "--", program, "1000", ":"]
        done = BUILD.run("mpirun", "--oversubscribe", "--mca", "pml", "ucx", "--mca", "osc", "ucx",
                         "--mca", "btl", "self", *ranks[:-1], limit_s=120,
                         environment=self.environment("a") | {
                             "TMPDIR": str(self.folder), "UCX_TLS": "rc_v,self",
                             "UCX_NET_DEVICES": "verbena0:1"})
        self.assertEqual(done.process.returncode, 0, str(done))
        self.assertGreater(self.counters("a", "red")["sent_packets"], 100)
        self.assertGreater(self.counters("a", "blue")["sent_packets"], 100)

    def members(self, function):
        [found] = [f for f in self.status("a")["functions"] if f["name"] == function]
        return sum(len(program["groups"]) for program in found["programs"])

    def test_sighup_while_traffic_runs(self):
        """Classes and groups change, and no packet is refused."""
        red, blue = f"{PREFIX}.27", f"{PREFIX}.28"
        nic = self.start_nic("a", [("red", red, ""), ("blue", blue, "")])
        file = self.folder / "a.yaml"
        plain = file.read_text()
        others = plain.replace("}", ", multicast: false, traffic_classes: "
                                    "[{class: 1, dscp: [46], max: 2Gbit}]}")
        member = self.mckey(red, "-m", self.group(32))
        harness.wait_until(lambda: self.members("red") == 1, 30, "it has joined")
        command = ("ib_write_bw", "-F", "-D", "5", "--tclass=184", "-s", "65536")
        server = BUILD.start(*command, environment=self.environment("a", "red"))
        self.programs.append(server)
        time.sleep(1)
        client = BUILD.start(*command, red, environment=self.environment("a", "blue"))
        self.programs.append(client)
        while not client.ended():
            for text in (others, plain):
                file.write_text(text)
                nic.process.send_signal(signal.SIGHUP)
                time.sleep(0.05)
        self.assertEqual((client.wait(60), server.wait(60)), (0, 0), f"{server}\n{client}")
        self.received(self.mckey(blue, "-s", "-o", "-m", self.group(32)), member)
        for function in self.status("a")["functions"]:
            refused = {name: count for name, count in function["counters"].items()
                       if "refused" in name and count}
            self.assertEqual(refused, {})
            if function["name"] == "blue":
                sent = {one["class"]: one["packets"] for one in function["sent_by_class"]}
                self.assertGreater(min(sent[1], sent[5]), 100, sent)
        self.assertFalse(nic.ended())

    @staticmethod
    def group(number):
        """A group of this run alone."""
        return f"239.{os.getpid() // 250 % 250}.{os.getpid() % 250}.{number}"

    @staticmethod
    def sockets_of(group):
        """The sockets of this host that are bound to the group's port."""
        bound = socket.inet_aton(group)[::-1].hex().upper()  # as /proc/net/udp has it
        return [row for row in harness.sockets("udp", harness.ROCE_PORT)
                if row[1].startswith(bound)]

    def mckey(self, address, *options, nic=True):
        program = BUILD.start("mckey", "-b", address, *options,
                              environment=self.environment("a", address) if nic
                              else {"VERBENA_ADDRESS": address})
        self.programs.append(program)
        return program

    def received(self, *receivers):
        for receiver in receivers:
            self.assertEqual(receiver.wait(60), 0, str(receiver))
            self.assertIn("data transfers complete", receiver.output(), str(receiver))

    def test_multicast_to_functions(self):
        """From a device of a process to two programs of a function and one of another."""
        red, blue = f"{PREFIX}.27", f"{PREFIX}.28"
        self.start_nic("a", [("red", red, ""), ("blue", blue, "")])
        options = ("-m", self.group(20))
        receivers = [self.mckey(address, *options) for address in (red, red, blue)]
        harness.wait_until(lambda: self.members("red") == 2 and self.members("blue") == 1, 30,
                           "they have joined")
        self.received(self.mckey(f"{PREFIX}.29", "-s", "-o", *options, nic=False), *receivers)
        harness.wait_until(lambda: not self.members("red"), 30, "they have left")
        self.assertGreaterEqual(self.counters("a", "red")["received_from_groups"], 20)

    def test_multicast_from_a_function(self):
        """From a program that is no member to one of another function, and to a device of a
        process."""
        red, blue, plain = f"{PREFIX}.27", f"{PREFIX}.28", f"{PREFIX}.29"
        self.start_nic("a", [("red", red, ""), ("blue", blue, "")])
        options = ("-m", self.group(21))
        receivers = [self.mckey(red, *options), self.mckey(plain, *options, nic=False)]
        harness.wait_until(lambda: len(self.sockets_of(self.group(21))) == 2, 30,
                           "they have joined")
        self.received(self.mckey(blue, "-s", "-o", *options), *receivers)
        self.assertGreaterEqual(self.counters("a", "blue")["sent_to_groups"], 10)

    def test_multicast_of_perftest(self):
        mgid = ":".join(["0"] * 10 + ["255", "255", *self.group(30).split(".")])
        red = f"{PREFIX}.27"
        self.start_nic("a", [("red", red, ""), ("blue", f"{PREFIX}.28", "")])
        command = ("ib_send_bw", "-F", "-c", "UD", "-g", "-M", mgid, "-n", "200", "-s", "1024")
        self.pair_on_functions(command, (*command, red))
        self.assertGreaterEqual(self.counters("a", "blue")["sent_to_groups"], 200)

    def test_no_multicast(self):
        """A program is told that a function has none; a killed one leaves its groups."""
        red, blue = f"{PREFIX}.27", f"{PREFIX}.28"
        self.start_nic("a", [("red", red, ", multicast: false"), ("blue", blue, ", groups: 1")])
        options = ("-m", self.group(31))
        refused = self.mckey(red, *options)
        refused.wait(60)
        self.assertIn(f"RDMA_CM_EVENT_MULTICAST_ERROR, error: {-errno.EOPNOTSUPP}",
                      refused.output())
        member = self.mckey(blue, *options)
        harness.wait_until(lambda: self.members("blue") == 1, 30, "it has joined")
        self.assertEqual(len(self.sockets_of(self.group(31))), 1)
        member.kill()
        harness.wait_until(lambda: self.members("blue") == 0, 30, "it has left")
        self.assertEqual(self.sockets_of(self.group(31)), [])

    def bandwidths(self, nic, functions, seconds):
        """Gb/s of each function's program, which all write to functions of another NIC at once."""
        pairs = []
        for i, function in enumerate(functions):
            options = ("-F", "-D", str(seconds), "-s", "65536", "-p",
                       str(harness.free_tcp_port()))
            server = BUILD.start("ib_write_bw", *options,
                                 environment=self.environment("sink", f"s{i}"))
            self.programs.append(server)
            pairs.append((server, options, i, function))
        time.sleep(1)
        clients = []
        for server, options, i, function in pairs:
            client = BUILD.start("ib_write_bw", *options, f"{PREFIX}.{150 + i}",
                                 environment=self.environment(nic, function))
            self.programs.append(client)
            clients.append(client)
        rates = []
        for client, (server, *_) in zip(clients, pairs):
            self.assertEqual(client.wait(seconds + 60), 0, f"{server}\n{client}")
            [row] = harness.perftest_rows(client.output())
            rates.append(row.mib_per_s * 8 * (1 << 20) / 1e9)
        return rates

    def overtaken(self, traffic_class):
        """How often, of 20 times, a message of the traffic class overtakes those of class 0 that
        its program has sent before it."""
        program = BUILD.start(self.folder / "classes", traffic_class,
                              environment=self.environment("a"))
        self.programs.append(program)
        self.assertEqual(program.wait(60), 0, str(program))
        return int(program.output().split()[1])

    def test_a_higher_class_overtakes_within_a_program(self):
        source = pathlib.Path(__file__).parent / "nic" / "classes.c"
        subprocess.run(["gcc", "-O1", "-Wall", "-Werror", source, "-o", self.folder / "classes",
                        "-libverbs"], check=True)
        expedited, function = 46 << 2, ("red", f"{PREFIX}.142", ", max: 20Mbit, burst: 10000")
        nic = self.start_nic("a", [function])
        self.assertEqual([self.overtaken(0), self.overtaken(expedited)], [0, 20])
        self.assertRegex(self.look_at("metrics", "a"), r'\nverbena_nic_class_sent_packets_total'
                         rf'{{function="red",address="{function[1]}",class="5"}} 20\n')
        file = self.folder / "a.yaml"
        file.write_text(file.read_text().replace(
            "burst", "traffic_classes: [{class: 0, dscp: [46]}], burst"))
        nic.process.send_signal(signal.SIGHUP)
        harness.wait_until(lambda: self.overtaken(expedited) == 0, 60, "the DSCP is of class 0")

    def start_sink(self, count):
        self.start_nic("sink", [(f"s{i}", f"{PREFIX}.{150 + i}", "") for i in range(count)])

    def test_two_functions_have_their_rates(self):
        """Of what leaves, headers included, within 5 %: 65536 bytes of payload are 16 packets."""
        self.start_sink(2)
        self.start_nic("a", [("red", f"{PREFIX}.140", ", max: 400Mbit"),
                             ("blue", f"{PREFIX}.141", ", max: 100Mbit")])
        rates = self.bandwidths("a", ["red", "blue"], 4)
        for rate, wanted in zip(rates, (0.4, 0.1)):
            self.assertLess(abs(rate / wanted - 1), 0.05, rates)

    def test_ten_functions_share_fairly(self):
        """Of a NIC's rate, which all of them exceed, each has a tenth within 10 %."""
        self.start_sink(10)
        self.start_nic("a", [(f"t{i}", f"{PREFIX}.{130 + i}", "") for i in range(10)],
                       "rate: 500Mbit")
        names = [f"t{i}" for i in range(10)]
        rates = self.bandwidths("a", names, 4)
        mean = sum(rates) / len(rates)
        self.assertAlmostEqual(sum(rates), 0.5, delta=0.05)
        for rate in rates:
            self.assertLess(abs(rate / mean - 1), 0.1, rates)

    def test_vxlan(self):
        """Programs of one VNI reach each other, by VXLAN alone; others do not."""
        vni = ", vni: 5001"
        red = f"{PREFIX}.20"
        self.start_nic("a", [("red", red, vni), ("blue", f"{PREFIX}.21", vni),
                             ("green", f"{PREFIX}.22", ", vni: 5002")])
        capture = self.capture("udp port 4789 or udp port 4791")
        self.pair_on_functions(("ib_send_bw", "-R", "-F", "-n", "200", "-s", "4096"),
                               ("ib_send_bw", "-R", "-F", "-n", "200", "-s", "4096", red))
        if capture is not None:
            rows = self.rows_of(capture, f"ip.addr == {red} && infiniband")
            self.assertGreater(len(rows), 20)  # of several packets, before the kernel cuts them
            self.assertEqual({row.split("\t")[0] for row in rows}, {"5001"})
            self.assertTrue(all(":vxlan:eth:" in row for row in rows), rows[:3])
        self.refused_from_green(red)

    def test_networks_with_encryption(self):
        """The VNI goes in PSP's cookie: functions of another one are refused by its counter."""
        red = f"{PREFIX}.23"
        self.start_nic("a", [("red", red, ", vni: 5001"), ("blue", f"{PREFIX}.24", ", vni: 5001"),
                             ("green", f"{PREFIX}.25", ", vni: 5002")], self.encryption())
        self.pair_on_functions(("ib_send_bw", "-R", "-F", "-n", "200", "-s", "4096"),
                               ("ib_send_bw", "-R", "-F", "-n", "200", "-s", "4096", red))
        self.refused_from_green(red)

    def refused_from_green(self, red):
        attached = self.counters("a", "red")["attached"]
        server = BUILD.start("rping", "-s", "-a", red, "-C", "1",
                             environment=self.environment("a", "red"))
        self.programs.append(server)
        harness.wait_until(lambda: self.counters("a", "red")["attached"] > attached, 20,
                           "the server is on its function")
        client = BUILD.start("rping", "-c", "-a", red, "-C", "1",
                             environment=self.environment("a", "green"))
        self.programs.append(client)
        self.assertNotEqual(client.wait(30), 0, str(client))
        self.assertGreater(self.counters("a", "red")["received_refused_vni"], 0)

    def test_status_of_a_thousand_functions(self):
        count = 1000
        self.start_nic("a", [(f"tenant-{i}", f"127.88.{100 + i // 250}.{1 + i % 250}", "")
                             for i in range(count)])
        functions = self.status("a")["functions"]
        self.assertEqual([f["name"] for f in functions], [f"tenant-{i}" for i in range(count)])
        self.assertEqual(self.look_at("metrics", "a").count("\nverbena_nic_sent_bytes_total{"),
                         count)

    def capture(self, what):
        """Begins to capture on the loopback interface; None: without the privilege or tshark."""
        if os.geteuid() != 0 or shutil.which("tshark") is None:
            return None
        file = self.folder / "capture.pcapng"
        program = children.Child(["tshark", "-q", "-i", "lo", "-f", what, "-w", str(file)],
                                 stderr=subprocess.DEVNULL)
        self.addCleanup(program.wait)
        self.addCleanup(program.terminate)
        harness.wait_until(file.exists, 20, "tshark captures")
        self.capturing = program
        return file

    def rows_of(self, capture, what):
        time.sleep(1)
        self.capturing.terminate()
        self.capturing.wait()
        done = subprocess.run(
            ["tshark", "-r", str(capture), "-Y", what, "-T", "fields", "-e", "vxlan.vni", "-e",
             "frame.protocols"], capture_output=True, text=True, check=True)
        return done.stdout.splitlines()

    def test_killed_programs_leave_nothing(self):
        nic = self.start_nic("a", [("red", f"{PREFIX}.15", ", programs: 8")])
        files = pathlib.Path(f"/proc/{nic.pid}/fd")
        before = len(list(files.iterdir()))
        for _ in range(KILLS):
            program = BUILD.start("ib_write_bw", "-F", environment=self.environment("a"))
            harness.wait_until(
                lambda: self.status("a")["functions"][0]["programs"] or program.ended(), 30,
                "the program is attached")
            self.assertFalse(program.ended(), str(program))
            program.kill()
            harness.wait_until(lambda: not self.status("a")["functions"][0]["programs"], 30,
                               "the program is detached")
        counters = self.counters("a", "red")
        self.assertEqual(counters["attached"], counters["detached"])
        self.assertLessEqual(len(list(files.iterdir())), before + 2)

    def test_killed_nic_fails_work_and_comes_back(self):
        nic = self.start_nic("a", [("red", f"{PREFIX}.16", "")])
        self.start_nic("b", [("blue", f"{PREFIX}.17", "")])
        server = BUILD.start("ib_write_bw", "-F", "-D", "60", environment=self.environment("a"))
        self.programs.append(server)
        time.sleep(1)
        client = BUILD.start("ib_write_bw", "-F", "-D", "60", f"{PREFIX}.16",
                             environment=self.environment("b"))
        self.programs.append(client)
        harness.wait_until(
            lambda: self.counters("b", "blue")["sent_packets"] > 1000, 30, "they exchange packets")
        os.kill(nic.pid, signal.SIGKILL)
        self.assertNotEqual(client.wait(60), 0)
        self.start_nic("a", [("red", f"{PREFIX}.16", "")])
        server.kill()
        self.write_pair("a", "b", f"{PREFIX}.16", "-s", "4096", "-n", "100")

    def test_bad_files_are_refused(self):
        for text, wanted in (("socket: /tmp/x\n", "functions"),
                             ("socket: /tmp/x\nfunctions: [{name: a}]\n", "address"),
                             ("socket: /tmp/x\nfunctions: [{name: a, colour: red}]\n", "colour"),
                             ("socket: /tmp/x\nfunctions: [{name: a, address: 127.0.0.1, max: 1}]\n"
                              "rate: fast\n", "rate"),
                             ("socket: /tmp/x\nfunctions: [{name: a, address: 127.0.0.1, "
                              "vni: 16777216}]\n", "vni"),
                             ("socket: /tmp/x\nfunctions: [{name: a, address: 127.0.0.1, vni: 1},"
                              "{name: b, address: 127.0.0.1}]\n", "vni"),
                             *((f"socket: /tmp/x\nfunctions: [{{name: a, address: 127.0.0.1, "
                                f"{word}}}]\n", wanted)
                               for word, wanted in BAD_WORDS),
                             ("socket: /tmp/x\nfunctions: [{name: a, address: 127.0.0.1},"
                              "{name: a, address: 127.0.0.2}]\n", "two functions are named a"),
                             ("socket: /tmp/x\nsocket: /tmp/y\nfunctions: "
                              "[{name: a, address: 127.0.0.1}]\n", "socket is there twice"),
                             ("socket: /tmp/x\nrate: 1Gbit\nfunctions: [{name: a, guaranteed: "
                              "600Mbit, address: 127.0.0.1}, {name: b, guaranteed: 600Mbit, "
                              "address: 127.0.0.2}]\n", "more together than rate"),
                             ("socket: /tmp/x\nlink: xdp\nencryption: psk:/tmp/x\nfunctions: "
                              "[{name: a, address: 127.0.0.1}]\n", "xdp: not with encryption"),
                             ("socket: /tmp/x\nlink: xdp\nfunctions: [{name: a, address: "
                              "127.0.0.1}, {name: b, address: 127.0.0.1}]\n",
                              "which xdp needs for itself"),
                             ("[", "bad.yaml")):
            with self.subTest(text=text):
                file = self.folder / "bad.yaml"
                file.write_text(text)
                done = subprocess.run([BUILD.verbena, "nic", str(file)], capture_output=True,
                                      text=True, timeout=20)
                self.assertEqual(done.returncode, 2)
                self.assertIn(wanted, done.stderr)
                self.assertEqual(done.stderr.count("\n"), 1, done.stderr)

    def test_the_socket_is_no_other_file_and_not_in_use(self):
        self.start_nic("a", [("red", f"{PREFIX}.16", "")])
        file = self.folder / "file"
        file.write_text("precious")
        for path, wanted in ((file, "Address already in use"),
                             (f"{self.folder}/a.sock", "another verbena nic listens"),
                             ("/nonexistent/sock", "No such file or directory")):
            with self.subTest(path=path):
                yaml = self.folder / "second.yaml"
                yaml.write_text(f"socket: {path}\nfunctions: "
                                "[{name: a, address: 127.0.0.1}]\n")
                done = subprocess.run([BUILD.verbena, "nic", str(yaml)], capture_output=True,
                                      text=True, timeout=20)
                self.assertEqual(done.returncode, 2)
                self.assertIn(wanted, done.stderr)
                self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertEqual(file.read_text(), "precious")
        self.assertIsNotNone(self.status("a"))


class TwoNICsCase(unittest.TestCase):
    """Two hosts, each with a NIC."""
    mtu = 5000

    @classmethod
    def setUpClass(cls):
        cls.hosts = two_hosts.TwoHosts(BUILD, cls.mtu, as_root=os.geteuid() == 0)
        cls.addClassCleanup(cls.hosts.close)

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.folder.chmod(0o777)
        self.programs = []
        self.addCleanup(lambda: harness.stop(*self.programs))

    def socket_of(self, host):
        return f"{self.folder}/{host.ipv4}.sock"

    def write_file(self, host, more, *functions):
        file = self.folder / f"{host.ipv4}.yaml"
        file.write_text(f"socket: {self.socket_of(host)}\n{more}\nfunctions:\n" + "".join(
            f"  - {{name: {name}, address: {address}{own}}}\n" for name, address, own in functions))
        return file

    def start_nic(self, host, more, *functions):
        file = self.write_file(host, more, *functions)
        nic = harness.Program([*host.build.prefix, host.build.verbena, "nic", str(file)], {},
                              host.build.user)
        self.programs.append(nic)
        harness.wait_until(lambda: nic.ended() or self.status(host) is not None, 20,
                           "the NIC listens")
        self.assertFalse(nic.ended(), str(nic))
        return nic

    def status(self, host):
        done = subprocess.run([BUILD.verbena, "nic", "status", self.socket_of(host)],
                              capture_output=True, text=True, timeout=20)
        return json.loads(done.stdout) if done.returncode == 0 else None

    def start(self, host, function, *command):
        variables = {"VERBENA_NIC": self.socket_of(host), "VERBENA_ADDRESS": function}
        program = host.build.start(*command, environment=variables if function else {})
        self.programs.append(program)
        return program

    def run_pair(self, host, function, *command):
        """The server on red, the client on the function."""
        server = self.start(self.hosts.a, "red", *command)

        def client_ends():
            client = self.start(host, function, *command, self.hosts.a.ipv4)
            return client if client.wait(60) == 0 or server.ended() else None
        client = harness.wait_until(client_ends, 60, "the client finds the server")
        self.assertEqual(client.process.returncode, 0, f"{server}\n{client}")
        self.assertEqual(server.wait(30), 0, f"{server}\n{client}")

    def refused(self, host, function):
        """Whether a program there gets no connection to red."""
        server = self.start(self.hosts.a, "red", "rping", "-s", "-a", self.hosts.a.ipv4, "-C", "1")
        client = self.start(host, function, "rping", "-c", "-a", self.hosts.a.ipv4, "-C", "1")
        status = client.wait(60)
        server.kill()
        return status != 0


class VLANTest(TwoNICsCase):
    """Red and pink on one host, blue and green on the other; green alone is in another VLAN."""

    def setUp(self):
        super().setUp()
        a, b, ours, other = self.hosts.a, self.hosts.b, ", vlan: 100", ", vlan: 200"
        self.start_nic(a, "", ("red", a.ipv4, ours), ("pink", a.more_ipv4, ours))
        self.other = self.start_nic(b, "", ("blue", b.ipv4, ours), ("green", b.more_ipv4, other))

    def test_functions_of_one_vlan_reach_each_other(self):
        for line in ("ib_write_bw -F -s 65536 -n 200", "ib_send_bw -R -F -s 4096 -n 200"):
            self.run_pair(self.hosts.b, "blue", *line.split())
            self.run_pair(self.hosts.a, "pink", *line.split())

    def test_others_do_not(self):
        self.assertTrue(self.refused(self.hosts.b, "green"))
        harness.stop(self.other)
        self.assertTrue(self.refused(self.hosts.b, None))
        [red] = [f for f in self.status(self.hosts.a)["functions"] if f["name"] == "red"]
        self.assertGreater(red["counters"]["received_refused_vlan"], 0)

    @unittest.skipUnless(os.geteuid() == 0 and shutil.which("tshark"), "needs root and tshark")
    def test_wireshark_reads_the_tag(self):
        file = self.folder / "capture.pcapng"
        capturing = subprocess.Popen(
            [*self.hosts.b.build.prefix, "tshark", "-q", "-i", two_hosts.INTERFACE, "-w",
             str(file)], stderr=subprocess.DEVNULL)
        self.addCleanup(capturing.wait)
        self.addCleanup(capturing.terminate)
        harness.wait_until(file.exists, 20, "tshark captures")
        self.run_pair(self.hosts.b, "blue", "ib_send_bw", "-R", "-F", "-s", "4096", "-n", "200")
        time.sleep(1)
        capturing.terminate()
        capturing.wait()
        rows = subprocess.run(
            ["tshark", "-r", str(file), "-Y", "infiniband || udp.port == 4791", "-T", "fields",
             "-e", "vlan.id"], capture_output=True, text=True, check=True).stdout.splitlines()
        self.assertGreater(len(rows), 20)
        self.assertEqual(set(rows), {"100"})


class LinkTest(TwoNICsCase):
    """Red and pink on one host, blue and green on the other, with frames that the NIC itself writes
    on the interface."""
    mtu = 1500

    def start_nics(self, link_of_a, link_of_b, more=""):
        a, b = self.hosts.a, self.hosts.b
        self.start_nic(a, f"link: {link_of_a}\n{more}", ("red", a.ipv4, ""),
                       ("pink", a.more_ipv4, ""))
        self.nic_of_b = self.start_nic(b, f"link: {link_of_b}\n{more}", ("blue", b.ipv4, ""),
                                       ("green", b.more_ipv4, ""))

    @staticmethod
    def datagrams_of_kernel(host):
        lines = [line.split()[1:] for line in host.run("cat /proc/net/snmp").splitlines()
                 if line.startswith("Udp:")]
        return int(dict(zip(*lines))["InDatagrams"])

    def run_lines(self):
        """Between hosts past the kernel's UDP, between functions of one host through it."""
        for line in ("ib_write_bw -F -q 2 -s 65536 -n 200", "ib_send_bw -R -F -s 4096 -n 200",
                     "ib_read_bw -F -n 100", "ib_send_bw -F -c UD -s 1024 -n 100"):
            self.run_pair(self.hosts.b, "blue", *line.split())
        before = self.datagrams_of_kernel(self.hosts.a)
        self.run_pair(self.hosts.b, "blue", *"ib_send_lat -F -n 2000".split())
        self.assertLess(self.datagrams_of_kernel(self.hosts.a) - before, 500)  # by UDP 2,100
        self.run_pair(self.hosts.a, "pink", *"ib_send_bw -R -F -s 4096 -n 200".split())

    def test_packet(self):
        self.start_nics("packet", "packet")
        self.run_lines()

    def test_packet_encrypted(self):
        key = self.folder / "key"
        key.write_text("a key of the two hosts of this test")
        key.chmod(0o644)
        self.start_nics("packet", "udp", f"encryption: 'psk:{key},port={nic_case.PORT}'")
        self.run_pair(self.hosts.b, "blue", *"ib_write_bw -F -s 65536 -n 200".split())

    @unittest.skipUnless(os.geteuid() == 0, "AF_XDP needs root")
    def test_xdp(self):
        for links in (("xdp", "xdp"), ("xdp", "udp")):
            with self.subTest(links=links):
                self.start_nics(*links)
                self.run_lines()
                harness.stop(*self.programs)

    @unittest.skipUnless(os.geteuid() == 0, "AF_XDP needs root")
    def test_programs_share_xdp(self):
        """Several at once, on two functions of an interface, one of which SIGHUP adds."""
        a, b = self.hosts.a, self.hosts.b
        self.start_nics("xdp", "xdp")
        self.write_file(b, "link: xdp", ("blue", b.ipv4, ""), ("lime", b.more_ipv4, ""))
        self.nic_of_b.process.send_signal(signal.SIGHUP)
        harness.wait_until(lambda: "lime" in [f["name"] for f in self.status(b)["functions"]], 20,
                           "the NIC knows its new function")
        pairs = []
        for function, address in (("blue", b.ipv4), ("lime", b.more_ipv4), ("lime", b.more_ipv4)):
            command = ("ib_send_lat", "-F", "-n", "1000", "-p", str(harness.free_tcp_port()))
            pairs.append((self.start(b, function, *command), command, address))
        time.sleep(2)
        before = self.datagrams_of_kernel(b)
        clients = [self.start(a, "red", *command, address) for _, command, address in pairs]
        for program in (*clients, *(server for server, *_ in pairs)):
            self.assertEqual(program.wait(60), 0, str(program))
        self.assertLess(self.datagrams_of_kernel(b) - before, 500)  # by UDP 3,000

    @unittest.skipUnless(os.geteuid() == 0, "AF_XDP needs root")
    def test_another_xdp_program_is_there(self):
        a = self.hosts.a
        self.start_nics("xdp", "udp")
        second = self.folder / "second.yaml"
        second.write_text(f"socket: {self.folder}/second.sock\nlink: xdp\n"
                          f"functions: [{{name: red, address: {a.ipv4}}}]\n")
        done = subprocess.run([*a.build.prefix, BUILD.verbena, "nic", str(second)],
                              capture_output=True, text=True, timeout=20)
        self.assertEqual(done.returncode, 2)
        self.assertIn("one process at a time can have the XDP link", done.stderr)


if __name__ == "__main__":
    harness.main()
