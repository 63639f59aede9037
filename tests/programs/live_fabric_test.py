#!/usr/bin/env python3
"""Programs in a simulated network: `verbena run --fabric`. What is checked is in simulated time, and
holds however slow the machine is.

usage: live_fabric_test.py [BUILD_DIR] [-k PATTERN]
"""

import os
import pathlib
import re
import shutil
import signal
import tempfile
import unittest

import harness

BUILD = harness.build_from_command_line()
LIMIT_S = 60
FIGURES = re.compile(
    r"(?P<host>\w+): sent (?P<sent>\d+) packets, \d+ bytes(, data at (?P<rate_out>[\d.]+) Gb/s)?; "
    r"(?P<pauses>\d+) pauses, .* in all\n"
    r"\w+: received (?P<received>\d+) packets, \d+ bytes(, data at (?P<rate>[\d.]+) Gb/s)?; "
    r"(?P<marked>\d+) marked; latency p50 (?P<p50>[\d.]+) us")
DUMBBELL = """
topology: {kind: dumbbell, left: 2, right: 2}
links: {rate: 40Gbps, delay: 1us, fabric: {rate: 10Gbps}}
switch: {buffer: 1MiB}
hosts: {mtu: 1024}
"""
INCAST = """
topology: {kind: star, hosts: 5}
links: {rate: 10Gbps, delay: 1us}
switch: {buffer: 512KiB, ecn: {enabled: on, kmin: 20KB, kmax: 80KB, pmax: 20%}}
hosts: {mtu: 1024}
workload: [{kind: flows, flows: [{from: h4, to: h0, size: 500KB}]}]
"""


class LiveFabricTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="verbena-fabric-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.folder.chmod(0o755)

    def scenario(self, text):
        file = self.folder / "scenario.yaml"
        file.write_text(text)
        return file

    def start(self, scenario, host, *command, options=()):
        program = harness.Program([BUILD.verbena, "run", "--fabric", scenario, "--as", host,
                                   *options, "--", *command], {})
        self.addCleanup(self.end, program)
        return program

    @staticmethod
    def end(program):
        """It, and what it has started."""
        try:
            os.killpg(program.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        program.kill()

    def start_servers(self, scenario, host, program, *arguments, count=1, options=()):
        """So many on one host, and their TCP ports."""
        ports = [harness.free_tcp_port() for _ in range(count)]
        commands = [" ".join(map(str, [program, *arguments, "-p", port])) for port in ports]
        shell = self.start(scenario, host, "sh", "-c", " & ".join(commands) + " & wait",
                           options=options)
        harness.wait_until(
            lambda: shell.ended() or all(harness.sockets("tcp", port, "0A") for port in ports),
            LIMIT_S, "the servers listen")
        self.assertFalse(shell.ended(), shell)
        return shell, ports

    def end_well(self, *programs):
        for program in programs:
            self.assertEqual(program.wait(LIMIT_S), 0, "\n".join(map(str, programs)))

    def figures(self, program):
        """What the program's host says, the last time."""
        found = list(FIGURES.finditer(program.output()))
        self.assertTrue(found, program)
        return found[-1].groupdict()

    def refusal(self, *arguments):
        """The one line that it is refused with."""
        done = BUILD.run_verbena(*arguments)
        self.assertEqual(done.process.returncode, 2, done)
        self.assertEqual(done.output().count("\n"), 1, done)
        return done.output()

    def test_a_bottleneck_is_obeyed(self):
        scenario = self.scenario(DUMBBELL)
        server, [port] = self.start_servers(scenario, 2, "ib_write_bw", "-F", "-s", 65536, "-n", 8)
        client = self.start(scenario, 0, "ib_write_bw", "-F", "-s", 65536, "-n", 8, "-p", port,
                            "127.64.0.3")
        self.end_well(client, server)
        got = self.figures(server)
        self.assertLessEqual(float(got["rate"]), 10.01, server)
        self.assertGreaterEqual(int(got["received"]), 8 * 64, server)
        # Three links, the narrow one with 1 us of its own: 3 us and what serializing takes.
        self.assertGreater(float(got["p50"]), 3, server)

    def test_latency_is_that_of_the_links(self):
        scenario = self.scenario(DUMBBELL)
        server, [port] = self.start_servers(scenario, 2, "ib_send_lat", "-F", "-n", 20)
        client = self.start(scenario, 0, "ib_send_lat", "-F", "-n", 20, "-p", port, "127.64.0.3")
        self.end_well(client, server)
        for program in (client, server):
            p50 = float(self.figures(program)["p50"])
            self.assertTrue(3 < p50 < 4.5, program)

    def test_an_incast_pauses_and_marks(self):
        scenario = self.scenario(INCAST)
        off = ("--cc", "off")
        size = ("-F", "-s", 65536, "-n", 6)
        server, ports = self.start_servers(scenario, "h0", "ib_write_bw", *size, count=3,
                                           options=off)
        clients = [self.start(scenario, f"h{i + 1}", "ib_write_bw", *size, "-p", port, "127.64.0.1",
                              options=off) for i, port in enumerate(ports)]
        self.end_well(*clients, server)
        got = [self.figures(client) for client in clients]
        self.assertGreater(sum(int(figures["pauses"]) for figures in got), 0, clients[0])
        received = self.figures(server)
        self.assertLessEqual(float(received["rate"]), 10.01, server)
        self.assertGreater(int(received["marked"]), 0, server)

    def test_the_dscp_chooses_the_priority(self):
        # Packets of traffic class 32, so DSCP 8, have priority 1, the only one that PFC pauses.
        scenario = self.scenario(INCAST.replace("buffer: 512KiB,",
                                                "buffer: 512KiB, pfc: {priorities: [1]},"))
        off = ("--cc", "off")
        size = ("-F", "-s", 65536, "-n", 6, "--tclass", 32)
        server, ports = self.start_servers(scenario, "h0", "ib_write_bw", *size, count=3,
                                           options=off)
        clients = [self.start(scenario, f"h{i + 1}", "ib_write_bw", *size, "-p", port, "127.64.0.1",
                              options=off) for i, port in enumerate(ports)]
        self.end_well(*clients, server)
        pauses = sum(int(self.figures(client)["pauses"]) for client in clients)
        self.assertGreater(pauses, 0, clients[0])

    def test_packets_to_the_own_host_go_on(self):
        # More data than the simulated NIC queues, which passes no NIC.
        scenario = self.scenario(DUMBBELL)
        program = ("VERBENA_LOCAL=off ib_write_bw -F -s 65536 -n 50 -p "
                   f"{harness.free_tcp_port()}")
        both = self.start(scenario, 0, "sh", "-c", f"{program} & until {program} 127.64.0.1; "
                                                   "do sleep 0.2; done; wait")
        self.end_well(both)

    def test_connections_by_rdma_cm(self):
        scenario = self.scenario(DUMBBELL)
        common = ("rping", "-a", "127.64.0.1", "-p", harness.free_tcp_port(), "-C", 3)
        server = self.start(scenario, "0", *common, "-s")

        def connected():  # a client that comes before the server listens is refused
            client = self.start(scenario, "1", *common, "-c")
            return client.wait(LIMIT_S) == 0 or server.ended()
        harness.wait_until(connected, LIMIT_S, f"rping connects\n{server}")
        self.end_well(server)
        self.assertGreater(int(self.figures(server)["received"]), 6, server)

    def test_a_killed_program_leaves_the_others_well(self):
        scenario = self.scenario(DUMBBELL)
        endless = ("-F", "-s", 4096, "-D", 600)
        server, [port] = self.start_servers(scenario, 2, "ib_write_bw", *endless)
        client = self.start(scenario, 0, "ib_write_bw", *endless, "-p", port, "127.64.0.3")
        BUILD.wait_for_traffic(server, client)
        self.end(client)
        self.end(server)
        self.test_a_bottleneck_is_obeyed()  # on the same hosts

    def test_when_the_simulation_ends_programs_get_an_error(self):
        scenario = self.scenario(DUMBBELL)
        fabric = harness.Program([BUILD.verbena, "fabric", scenario], {})
        self.addCleanup(fabric.kill)
        harness.wait_until(lambda: "--as" in fabric.output() or fabric.ended(), LIMIT_S, "it runs")
        endless = ("-F", "-s", 4096, "-D", 600)
        server, [port] = self.start_servers(scenario, 2, "ib_write_bw", *endless)
        client = self.start(scenario, 0, "ib_write_bw", *endless, "-p", port, "127.64.0.3")
        BUILD.wait_for_traffic(server, client)
        fabric.kill()
        self.assertNotIn(client.wait(LIMIT_S), (None, 0), client)
        self.assertIn("Completion with error", client.output())

    def test_by_hand_it_ends_with_the_figures_of_all(self):
        scenario = self.scenario(DUMBBELL)
        fabric = harness.Program([BUILD.verbena, "fabric", scenario, "--scale", "100"], {})
        self.addCleanup(fabric.kill)
        harness.wait_until(lambda: "--as" in fabric.output() or fabric.ended(), LIMIT_S, "it runs")
        self.assertIn("scale 100", self.refusal("run", "--fabric", scenario, "--as", "0", "--scale",
                                                "50", "--", "true"))
        self.test_a_bottleneck_is_obeyed()
        fabric.process.send_signal(signal.SIGINT)
        self.assertEqual(fabric.wait(LIMIT_S), 0, fabric)
        self.assertEqual(len(FIGURES.findall(fabric.output())), 2, fabric)
        self.assertRegex(fabric.output(), r"fabric: .* simulated; \d+ marks, \d+ pauses, 0 dropped")

    def test_mistakes_are_one_line(self):
        scenario = self.scenario(DUMBBELL)
        holder = self.start(scenario, "1", "sh", "-c", "echo here; sleep 600")
        harness.wait_until(lambda: "here" in holder.output() or holder.ended(), LIMIT_S,
                           "it has its host")
        run = ("run", "--fabric", scenario)
        self.assertIn("host 1 is taken by process", self.refusal(*run, "--as", "1", "--", "true"))
        self.assertIn("there is no host h9", self.refusal(*run, "--as", "h9", "--", "true"))
        self.assertIn("--as HOST", self.refusal(*run, "--", "true"))
        self.assertIn("--scale 0", self.refusal(*run, "--as", "0", "--scale", "0", "--", "true"))
        self.assertIn("--fabric", self.refusal("run", "--as", "0", "--", "true"))
        self.assertIn("--address", self.refusal(*run, "--address", "lo", "--", "true"))
        scenario.write_text(DUMBBELL + "seed: 2\n")
        self.assertIn("has changed", self.refusal(*run, "--as", "0", "--", "true"))
        self.end(holder)
        for technology in ("iwarp", "tcp"):
            file = self.folder / f"{technology}.yaml"
            file.write_text(f"technology: {technology}\ntopology: dumbbell\n")
            self.assertIn(f"its technology is {technology}",
                          self.refusal("run", "--fabric", file, "--as", "0", "--", "true"))
        file = self.folder / "wrong.yaml"
        file.write_text("topology: dumbell\n")
        self.assertIn("dumbbell", self.refusal("run", "--fabric", file, "--as", "0", "--", "true"))
        self.assertIn("nowhere", self.refusal("fabric", self.folder / "nowhere.yaml"))


if __name__ == "__main__":
    harness.main()
