#!/usr/bin/env python3
"""An InfiniBand subnet in software: Debian's OpenSM manages it, infiniband-diags look around, verbs
programs send along the tables that OpenSM has written. docs/infiniband.md

usage: infiniband_test.py [BUILD_DIR] [-k PATTERN]
"""

import errno
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

import harness
import testing

BUILD = harness.build_from_command_line()
LIMIT_S = 60
LEAVES, SPINES, HOSTS_PER_LEAF = 4, 2, 4
HOSTS = LEAVES * HOSTS_PER_LEAF
SUBNET = f"""
technology: infiniband
topology: {{kind: leaf_spine, leaves: {LEAVES}, hosts_per_leaf: {HOSTS_PER_LEAF}, spines: {SPINES}}}
links: {{rate: EDR, delay: 150ns}}
infiniband: {{vls: 4}}
hosts: {{congestion_control: off}}
"""
TOOLS = ("opensm", "osmtest", "ibnetdiscover", "saquery", "perfquery", "ibv_rc_pingpong",
         "ib_write_bw", "rping")
PARTITIONS = """Default=0x7fff, ipoib: ALL=full;
Red=0x8001: {members};
"""


def missing():
    return [tool for tool in TOOLS if shutil.which(tool, path=harness.PATH) is None]


@unittest.skipIf(missing(), "not installed: " + ", ".join(missing()))
class Subnet(unittest.TestCase):
    """A subnet of 16 hosts and 6 switches, and an OpenSM on h0 that has brought it up."""
    sm_options = ()

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="verbena-subnet-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.folder.chmod(0o777)
        self.scenario = self.folder / "subnet.yaml"
        self.scenario.write_text(SUBNET)
        self.variables = {}  # of all programs, besides
        self.fabric = self.program([BUILD.verbena, "fabric", self.scenario])
        harness.wait_until(lambda: "h15" in str(self.fabric), LIMIT_S, "the fabric runs")

    def program(self, command, environment=None):
        program = harness.Program(command, environment or {})
        self.addCleanup(self.end, program)
        return program

    @staticmethod
    def end(program):
        try:
            os.killpg(program.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        program.kill()

    def start(self, host, *command):
        return self.program([BUILD.verbena, "run", "--fabric", self.scenario, "--as", host, "--",
                             *command], {"OSM_TMP_DIR": str(self.folder),
                                         "OSM_CACHE_DIR": str(self.folder), **self.variables})

    def run_on(self, host, *command, status=0):
        """What it prints."""
        program = self.start(host, *command)
        self.assertEqual(program.wait(LIMIT_S), status, program)
        return program.output()

    def start_manager(self, host="h0", *options):
        log = self.folder / f"opensm-{host}.log"
        configuration = self.folder / "opensm.conf"
        configuration.write_text("sminfo_polling_timeout 500\npolling_retry_number 2\n"
                                 "force_log_flush TRUE\n")
        manager = self.start(host, "opensm", "-f", str(log), "-F", str(configuration), *options)
        return manager, log

    def bring_up(self, host="h0", *options):
        manager, log = self.start_manager(host, *options)
        harness.wait_until(lambda: manager.ended() or "SUBNET UP" in self.text(log), LIMIT_S,
                           "OpenSM brings the subnet up")
        self.assertFalse(manager.ended(), manager)
        return manager, log

    @staticmethod
    def text(path):
        return path.read_text(errors="replace") if path.exists() else ""

    def lid_of(self, host):
        return int(re.search(r"Base lid: (\d+)", self.run_on(host, "ibstat")).group(1))

    def lid_of_switch(self, name):
        found = re.search(rf'"{name}" base port 0 lid (\d+)', self.run_on("h0", "ibswitches"))
        return int(found.group(1))

    def unplug(self, cable, plug=False):
        self.change("--plug" if plug else "--unplug", cable)

    def change(self, *options):
        done = subprocess.run([BUILD.verbena, "fabric", self.scenario, *options],
                              capture_output=True, text=True, timeout=LIMIT_S, check=False,
                              **harness.ordinary_user()[0])
        self.assertEqual(done.returncode, 0, done.stderr)

    def pair(self, server_host, client_host, *command):
        """Runs the command on two hosts; what the client prints."""
        port = harness.free_tcp_port()
        server = self.start(server_host, *command, "-p", str(port))
        harness.wait_until(lambda: server.ended() or harness.sockets("tcp", port, "0A"), LIMIT_S,
                           "the server listens")
        address = f"127.64.0.{int(server_host[1:]) + 1}"
        client = self.start(client_host, *command, "-p", str(port), address)
        self.assertEqual(client.wait(LIMIT_S), 0, f"{client}\n{server}")
        self.assertEqual(server.wait(LIMIT_S), 0, f"{client}\n{server}")
        return client.output()


class ManagementTest(Subnet):
    def test_ports_wait_for_a_manager(self):
        text = self.run_on("h1", "ibstat")
        self.assertIn("State: Initializing", text)
        self.assertIn("Physical state: LinkUp", text)
        self.assertIn("Link layer: InfiniBand", text)

    def test_pairs_of_libibumad(self):
        """An InfiniBand device has subnet management and general services."""
        script = pathlib.Path(__file__).with_name("umad_pairs.py")
        pair, no_device = "verbena0:1 verbena0:1", -errno.ENODEV
        self.assertEqual(json.loads(self.run_on("h1", "python3", script)), {
            "pairs": [pair], "none fits": 0, "first": pair, "named": pair, "with smi": pair,
            "no such port": no_device, "no such device": no_device})

    def test_diagnostics_see_the_scenario(self):
        self.bring_up()
        self.assertIn("State: Active", self.run_on("h1", "ibstat"))
        net = self.run_on("h1", "ibnetdiscover")
        self.assertEqual(len(re.findall(r"^Switch\t", net, re.M)), LEAVES + SPINES)
        self.assertEqual(len(re.findall(r"^Ca\t", net, re.M)), HOSTS)
        hosts = self.run_on("h1", "ibhosts")
        for host in range(HOSTS):
            self.assertIn(f'"h{host}"', hosts)
        links = self.run_on("h1", "iblinkinfo")
        self.assertEqual(len(re.findall(r"4X +25\.78125 Gbps Active/ +LinkUp", links)),
                         2 * (HOSTS + LEAVES * SPINES))
        self.assertIn("SMINFO_MASTER", self.run_on("h1", "sminfo"))
        self.assertEqual(len(re.findall("NodeRecord dump", self.run_on("h1", "saquery"))),
                         HOSTS + LEAVES + SPINES)
        errors = self.run_on("h1", "ibqueryerrors")
        self.assertIn("22 nodes checked, 0 bad nodes found", errors)
        lid, leaf = self.lid_of("h9"), self.lid_of_switch("leaf2")
        trace = self.run_on("h1", "ibtracert", str(self.lid_of("h1")), str(lid))
        self.assertEqual(len(re.findall("-> switch port", trace)), 3, trace)
        self.assertRegex(self.run_on("h1", "ibroute", str(leaf)), rf"0x{lid:04x} 002 .*'h9'")
        self.assertIn("NodeType:........................Channel Adapter",
                      self.run_on("h1", "smpquery", "nodeinfo", str(lid)))
        self.assertIn("PortXmitWait", self.run_on("h1", "perfquery", str(leaf), "1"))
        self.assertIn("LID start", self.run_on("h1", "ibaddr"))
        self.assertIn("Active", self.run_on("h1", "ibportstate", str(leaf), "1"))

    def test_the_first_sweep_takes_no_link_down(self):
        _, log = self.bring_up()
        harness.wait_until(lambda: "num:144" in self.text(log), LIMIT_S,
                           "h0 tells of its manager after the sweep")
        self.assertNotIn("num:128", self.text(log))

    @testing.thorough
    def test_a_fat_tree_of_three_levels(self):
        self.end(self.fabric)
        self.scenario.write_text(SUBNET.replace(re.search(r"{kind.*}", SUBNET).group(),
                                                "{kind: fat_tree, k: 16}"))
        self.fabric = self.program([BUILD.verbena, "fabric", self.scenario])
        harness.wait_until(lambda: "h15" in str(self.fabric), LIMIT_S, "the fabric runs")
        _, log = self.bring_up()
        self.assertNotIn("num:128", self.text(log))
        self.assertEqual(self.run_on("h1023", "ibhosts").count("Ca\t"), 1024)

    def test_a_large_table_of_the_administration(self):
        """702 node records: some 380 segments of RMPP."""
        self.end(self.fabric)
        self.scenario.write_text(SUBNET.replace(f"leaves: {LEAVES}", "leaves: 36").replace(
            f"hosts_per_leaf: {HOSTS_PER_LEAF}", "hosts_per_leaf: 18").replace(
            f"spines: {SPINES}", "spines: 18"))
        self.fabric = self.program([BUILD.verbena, "fabric", self.scenario])
        harness.wait_until(lambda: "h15" in str(self.fabric), LIMIT_S, "the fabric runs")
        self.bring_up()
        text = self.run_on("h5", "saquery", "-N")
        self.assertEqual(text.count("NodeRecord dump"), 648 + 36 + 18)
        self.assertEqual(set(re.findall(r"NodeDescription\.*(h\d+)$", text, re.M)),
                         {f"h{host}" for host in range(648)})

    def test_ibping_at_both_ends(self):
        self.bring_up()
        self.start("h2", "ibping", "-S")
        text = self.run_on("h3", "ibping", "-c", "3", str(self.lid_of("h2")))
        self.assertIn("3 packets transmitted, 3 received, 0% packet loss", text)

    def test_a_pulled_cable_is_trapped_and_routed_around(self):
        _, log = self.bring_up()
        self.unplug("leaf0-spine0")
        harness.wait_until(lambda: "Link state change" in self.text(log) and
                           self.text(log).count("SUBNET UP") >= 2, LIMIT_S, "OpenSM sweeps again")
        trace = self.run_on("h1", "ibtracert", str(self.lid_of("h1")), str(self.lid_of("h15")))
        self.assertIn("spine1", trace)
        self.assertNotIn("spine0", trace)

    def test_a_switch_without_power_comes_back(self):
        """It has lost its tables: OpenSM writes them anew."""
        _, log = self.bring_up()
        for options, switches in (("--power-off", 5), ("--power-on", 6)):
            sweeps = self.text(log).count("SUBNET UP")
            self.change(options, "spine0")
            harness.wait_until(lambda: self.text(log).count("SUBNET UP") > sweeps, LIMIT_S,
                               "OpenSM sweeps again")
            harness.wait_until(lambda: self.run_on("h1", "ibswitches").count("Switch") == switches,
                               LIMIT_S, f"{switches} switches")
        lid = str(self.lid_of_switch("spine0"))
        self.assertIn("valid lids dumped", self.run_on("h1", "ibroute", lid))
        self.assertNotIn("0 valid lids dumped", self.run_on("h1", "ibroute", lid))

    def test_managers_end_when_the_fabric_has_ended(self):
        """The calls of libibumad fail then, as they do when a real device is gone."""
        manager, _ = self.bring_up()
        _, other = self.start_manager("h1")
        harness.wait_until(lambda: "STANDBY" in self.text(other), LIMIT_S, "one is standby")
        ping = self.start("h2", "ibping", "-S")
        time.sleep(1)
        self.fabric.kill()
        harness.wait_until(lambda: "recv error" in self.text(self.folder / "opensm-h0.log"),
                           LIMIT_S, "OpenSM hears of it")
        for program in (manager, ping):
            os.kill(program.pid, signal.SIGTERM)
            harness.wait_until(program.ended, LIMIT_S, "SIGTERM ends it")
        self.assertLess(self.text(self.folder / "opensm-h0.log").count("recv error"), 1000)

    def test_a_second_opensm_takes_over(self):
        first, _ = self.bring_up("h0", "-p", "9")
        _, log = self.start_manager("h5", "-p", "5", "-s", "1")
        harness.wait_until(lambda: "STANDBY" in self.text(log), LIMIT_S, "the second is standby")
        self.assertEqual(self.run_on("h1", "sminfo").split("sm lid ")[1].split()[0],
                         str(self.lid_of("h0")))
        self.end(first)
        harness.wait_until(lambda: "Entering MASTER" in self.text(log), LIMIT_S,
                           "the second takes over")

    def test_multicast_groups_of_osmtest(self):
        self.bring_up()
        inventory = str(self.folder / "osmtest.dat")
        self.run_on("h0", "osmtest", "-f", "c", "-i", inventory)
        self.assertIn('"Multicast" PASS', self.run_on("h0", "osmtest", "-f", "m", "-i", inventory))

    @testing.thorough
    def test_all_of_osmtest(self):
        self.bring_up("h0", "-R", "updn")
        inventory = str(self.folder / "osmtest.dat")
        self.run_on("h0", "osmtest", "-f", "c", "-i", inventory)
        self.assertIn('"All Validations" PASS',
                      self.run_on("h0", "osmtest", "-f", "a", "-i", inventory))

    @testing.thorough
    def test_routing_engines(self):
        for engine in ("minhop", "updn", "ftree", "dor"):
            with self.subTest(engine):
                manager, log = self.bring_up("h0", "-R", engine)
                self.assertIn(f"{engine} tables configured on all switches", self.text(log))
                self.end(manager)
                log.unlink()


class RoutingTest(Subnet):
    """The tables that OpenSM's engines write, as ibroute reads them from the switches."""

    def links(self):
        """{(switch LID, port): (LID or None, port)} of what is at the other end of each port."""
        far = {}
        for line in self.run_on("h0", "iblinkinfo", "-l").splitlines():
            found = re.search(r'^0x\w+ "[^"]*" +(\d+) +(\d+)\[.*==>.*0x\w+ +(\d+) +(\d+)\[', line)
            if found:
                lid, port, other, other_port = map(int, found.groups())
                far[lid, port] = other, other_port
        return far

    def tables(self):
        lids = [int(lid) for lid in re.findall(r"lid (\d+)", self.run_on("h0", "ibswitches"))]
        return {lid: {int(to, 16): int(port) for to, port in
                      re.findall(r"^0x(\w+) (\d+)", self.run_on("h0", "ibroute", str(lid)), re.M)}
                for lid in lids}

    @staticmethod
    def credit_loop(tables, far):
        """Whether packets may wait for each other in a circle: each holds the buffer of a link
        between switches and waits for that of the next. Dally and Seitz, 1987."""
        waits = {}
        for lid, table in tables.items():
            for to, port in table.items():
                following = far.get((lid, port), (None, 0))[0]
                onward = tables.get(following, {}).get(to, 0)
                if onward and far.get((following, onward), (None, 0))[0] in tables:
                    waits.setdefault((lid, port), set()).add((following, onward))
        done, path = set(), set()

        def visit(link):
            if link in path:
                return True
            if link in done:
                return False
            path.add(link)
            found = any(visit(after) for after in waits.get(link, ()))
            path.remove(link)
            done.add(link)
            return found

        return any(visit(link) for link in list(waits))

    def check(self, topology, engine):
        self.end(self.fabric)
        self.scenario.write_text(re.sub(r"topology: .*", f"topology: {topology}", SUBNET))
        self.fabric = self.program([BUILD.verbena, "fabric", self.scenario])
        harness.wait_until(lambda: "--as h7" in str(self.fabric), LIMIT_S, "the fabric runs")
        manager, log = self.bring_up("h0", "-R", engine)
        self.assertIn(f"{engine} tables configured on all switches", self.text(log))
        tables, far = self.tables(), self.links()
        self.end(manager)
        log.unlink()
        self.assertTrue(far)
        self.assertTrue(all(tables.values()))
        return self.credit_loop(tables, far)

    def test_no_credit_loop_of_updn_and_ftree(self):
        topologies = ("{kind: leaf_spine, leaves: 4, hosts_per_leaf: 4, spines: 2}",
                      "{kind: leaf_spine, leaves: 2, hosts_per_leaf: 4, spines: 3}",
                      "{kind: fat_tree, k: 4}")
        for topology in testing.sample(topologies, 2):
            for engine in ("updn", "ftree"):
                with self.subTest(topology=topology, engine=engine):
                    self.assertFalse(self.check(topology, engine))

    def test_the_check_finds_a_loop(self):
        """Three switches in a ring, of which each sends by the next one."""
        far = {(a, 1): (a % 3 + 1, 2) for a in (1, 2, 3)}
        around = {1: {12: 1, 13: 1}, 2: {13: 1, 11: 1}, 3: {11: 1, 12: 1}}
        self.assertTrue(self.credit_loop(around, far))
        self.assertFalse(self.credit_loop({1: {13: 1}, 2: {13: 1}, 3: {13: 9}}, far))


def can_unshare():
    command = ["unshare", "--user", "--map-root-user", "--net", "ip", "link", "set", "lo", "up"]
    return subprocess.run(command, check=False, capture_output=True).returncode == 0


@unittest.skipUnless(can_unshare(), "no network namespaces here")
class NamespacesTest(Subnet):
    """Each program has a network namespace of its own, and reaches the server by a file."""

    def program(self, command, environment=None):
        alone = ["unshare", "--user", "--map-root-user", "--net",
                 "sh", "-c", 'ip link set lo up && exec "$@"', "sh", *command]
        return super().program(alone, {"VERBENA_FABRIC_FOLDER": str(self.folder),
                                       **(environment or {})})

    def test_management_and_data_between_namespaces(self):
        self.bring_up()
        self.assertEqual(self.run_on("h1", "ibhosts").count("Ca\t"), HOSTS)
        self.start("h2", "ibping", "-S")
        text = self.run_on("h3", "ibping", "-c", "3", str(self.lid_of("h2")))
        self.assertIn("3 received, 0% packet loss", text)
        guid = re.search(r"Port GUID: 0x(\w{4})(\w{4})(\w{4})(\w{4})", self.run_on("h1", "ibstat"))
        gid = "fe80::" + ":".join(guid.groups())
        server = self.start("h1", "ucmatose", "-f", "gid", "-b", gid)
        time.sleep(1)
        self.assertIn("return status 0", self.run_on("h9", "ucmatose", "-f", "gid", "-s", gid))
        self.assertEqual(server.wait(LIMIT_S), 0, server)


class BadInputTest(Subnet):
    def test_a_flood_of_traps_from_a_host(self):
        _, log = self.bring_up()
        flood = pathlib.Path(__file__).with_name("umad_flood.py")
        manager = str(self.lid_of("h0"))
        self.assertIn("3000 sent", self.run_on("h5", "python3", flood, manager))
        self.assertIn("SMINFO_MASTER", self.run_on("h1", "sminfo"))
        self.assertIn("50 iters", self.pair("h2", "h14", "ibv_rc_pingpong", "-n", "50"))
        self.assertNotIn("Errors during initialization", self.text(log))

    def test_a_wrong_m_key_is_refused_and_trapped(self):
        configuration = self.folder / "keys.conf"
        configuration.write_text("m_key 0x1234567812345678\nm_key_protection_level 2\n"
                                 "force_log_flush TRUE\n")
        log = self.folder / "opensm-keys.log"
        self.start("h0", "opensm", "-f", str(log), "-F", str(configuration))
        harness.wait_until(lambda: "SUBNET UP" in self.text(log), LIMIT_S, "the subnet is up")
        query = ("smpquery", "-t", "100", "portinfo", str(self.lid_of("h9")))
        self.assertNotEqual(self.start("h5", *query).wait(LIMIT_S), 0)
        self.assertIn("Active", self.run_on("h5", query[0], "-y", "0x1234567812345678", *query[1:]))
        harness.wait_until(lambda: "num:256" in self.text(log), LIMIT_S, "OpenSM has trap 256")

    def test_two_masters_become_one(self):
        """The subnet falls apart, each part has a master; when it is one again, one master stays."""
        _, first = self.bring_up("h0", "-p", "9")
        _, second = self.start_manager("h5", "-p", "5", "-s", "2")
        harness.wait_until(lambda: "STANDBY" in self.text(second), LIMIT_S, "the second is standby")
        for spine in ("spine0", "spine1"):
            self.unplug(f"leaf1-{spine}")
        harness.wait_until(lambda: "Entering MASTER" in self.text(second), LIMIT_S,
                           "the second is master of its part")
        self.assertEqual(self.run_on("h4", "ibhosts").count("Ca\t"), 4)
        for spine in ("spine0", "spine1"):
            self.unplug(f"leaf1-{spine}", plug=True)
        harness.wait_until(lambda: self.text(second).count("Entering STANDBY") >= 2, LIMIT_S,
                           "the second is standby again")
        harness.wait_until(lambda: self.run_on("h1", "ibhosts").count("Ca\t") == HOSTS, LIMIT_S,
                           "the subnet is one")
        lid = self.lid_of("h0")
        harness.wait_until(lambda: f"SM lid: {lid}\n" in self.run_on("h4", "ibstat"), LIMIT_S,
                           "h4 has the first manager again")
        self.assertIn("SUBNET UP", self.text(first))


class VerbsTest(Subnet):
    def test_pingpong_by_lid(self):
        self.bring_up()
        text = self.pair("h1", "h9", "ibv_rc_pingpong", "-n", "50", "-s", "4096")
        self.assertRegex(text, r"remote address: LID 0x00[0-9a-f]+.*GID ::")
        self.assertIn("50 iters", text)

    def test_datagrams(self):
        self.bring_up()
        self.assertIn("50 iters", self.pair("h2", "h14", "ibv_ud_pingpong", "-n", "50"))

    def test_a_connection_survives_a_pulled_cable(self):
        _, log = self.bring_up()
        port = str(harness.free_tcp_port())
        write = ("ib_write_bw", "-n", "600", "-s", "65536", "-p", port)
        server = self.start("h1", *write)
        harness.wait_until(lambda: harness.sockets("tcp", int(port), "0A"), LIMIT_S,
                           "the server listens")
        client = self.start("h15", *write, "127.64.0.2")
        lid = str(self.lid_of_switch("leaf0"))
        harness.wait_until(lambda: re.search(r"PortXmitPkts:\.*[1-9]\d\d",
                                             self.run_on("h0", "perfquery", lid, "2")),
                           LIMIT_S, "data flows")
        sweeps = self.text(log).count("SUBNET UP")
        for spine, other in (("spine0", "spine1"), ("spine1", "spine0")):
            self.unplug(f"leaf0-{other}", plug=True)
            self.unplug(f"leaf0-{spine}")
            sweeps += 1
            harness.wait_until(lambda: self.text(log).count("SUBNET UP") >= sweeps, LIMIT_S,
                               "OpenSM routes around it")
        self.assertEqual(client.wait(LIMIT_S), 0, f"{client}\n{server}")
        self.assertEqual(server.wait(LIMIT_S), 0, f"{client}\n{server}")

    def test_rdma_cm_by_ip_address(self):
        self.bring_up()
        self.start("h1", "rping", "-s", "-C", "3")
        text = self.run_on("h9", "sh", "-c", "sleep 1; rping -c -C 3 -v -a 127.64.0.2")
        self.assertEqual(text.count("ping data"), 3, text)

    def gid_of(self, host):
        guid = re.search(r"Port GUID: 0x(\w{4})(\w{4})(\w{4})(\w{4})", self.run_on(host, "ibstat"))
        return "fe80::" + ":".join(guid.groups())

    def test_rdma_cm_by_a_file_of_addresses(self):
        """IP addresses that the kernel does not know stand for GIDs, as in ibacm's file."""
        self.bring_up()
        file = self.folder / "hosts.data"
        file.write_text(f"# address GID\n10.9.0.1 {self.gid_of('h1')}\n"
                        f"10.9.0.9 {self.gid_of('h9')}\nfd09::1 {self.gid_of('h1')}\n"
                        "10.9.0.5 127.64.0.6\n")
        self.variables = {"VERBENA_ADDRESSES": str(file)}
        for server, client in (
                ("rping -s -a 10.9.0.1 -C 3 -v", "rping -c -a 10.9.0.1 -C 3 -v"),
                ("rping -s -C 3", "rping -c -a 10.9.0.1 -I 10.9.0.9 -C 3 -v"),
                ("rping -s -C 3", "rping -c -a fd09::1 -C 3 -v"),
                ("ucmatose -b 10.9.0.1", "ucmatose -s 10.9.0.1"),
                ("udaddy", "udaddy -s 10.9.0.1"),
                ("ib_write_bw -R -F -n 200", "ib_write_bw -R -F -n 200 10.9.0.1")):
            with self.subTest(client=client):
                first = self.start("h1", *server.split())
                time.sleep(1)
                self.run_on("h9", *client.split())
                self.assertEqual(first.wait(LIMIT_S), 0, first)
        first = self.start("h5", "rping", "-s", "-C", "3")
        time.sleep(1)
        self.run_on("h9", "rping", "-c", "-a", "10.9.0.5", "-C", "3")
        self.assertEqual(first.wait(LIMIT_S), 0, first)
        self.run_on("h2", "rping", "-s", "-a", "10.9.0.1", status=255)  # not its address

    def test_a_bad_file_of_addresses(self):
        file = self.folder / "hosts.data"
        file.write_text("10.9.0.1 h1\n")
        self.variables = {"VERBENA_ADDRESSES": str(file)}
        text = self.run_on("h1", "true", status=2)
        self.assertRegex(text, r"^verbena[^\n]*hosts.data: line 1: [^\n]*\n$")

    def counters_of(self, host, lid, port):
        text = self.run_on(host, "perfquery", "-x", str(lid), str(port))
        return {name: int(value) for name, value in re.findall(r"(Port\w+):\.*(\d+)", text)}

    def test_a_multicast_group_of_rdma_cm(self):
        """The administration creates the group, switches copy to its members, who leave again."""
        self.bring_up()
        receive = ("mckey", "-m", "239.1.2.3", "-C", "10", "-b")
        members = {host: self.start(f"h{host}", *receive, f"127.64.0.{host + 1}")
                   for host in (1, 6, 15)}
        harness.wait_until(lambda: self.run_on("h0", "saquery", "--smkey", "1",
                                                 "-m").count("ScopeState..............0x1") == 3,
                           LIMIT_S, "three ports have joined")
        leaf = self.lid_of_switch("leaf0")
        routes = self.run_on("h0", "ibroute", "-M", str(leaf))
        self.assertRegex(routes, r"0xc00\d .*x", "the MLID leads to h1")
        self.run_on("h9", *receive, "127.64.0.10", "-s")
        for host, member in members.items():
            self.assertEqual(member.wait(LIMIT_S), 0, f"h{host}: {member}")
            self.assertIn("data transfers complete", member.output())
        to_member, to_other = self.counters_of("h0", leaf, 2), self.counters_of("h0", leaf, 3)
        self.assertEqual(to_member["PortMulticastXmitPkts"], 10)
        self.assertEqual(to_other["PortMulticastXmitPkts"], 0)
        sender = self.counters_of("h0", self.lid_of("h9"), 1)
        self.assertEqual(sender["PortMulticastXmitPkts"], 10)
        self.assertIn("0 valid mlids", self.run_on("h0", "ibroute", "-M", str(leaf)))

    def test_rdma_cm_by_af_ib(self):
        """By the port's GID: rdma_cm asks the administration for the path."""
        self.bring_up()
        gid = self.gid_of("h1")
        for program in ("ucmatose", "udaddy"):
            with self.subTest(program):
                by_gid = ("-f", "gid") if program == "ucmatose" else ()
                address = gid if program == "ucmatose" else "127.64.0.2"
                server = self.start("h1", program, *by_gid, "-b", address)
                time.sleep(1)
                self.assertIn("return status 0", self.run_on("h9", program, *by_gid, "-s", address))
                self.assertEqual(server.wait(LIMIT_S), 0, server)

    def test_errors_of_a_link_are_counted_and_trapped(self):
        """RC goes on by its retries; the manager hears of the link by trap 129."""
        _, log = self.bring_up()
        self.change("--error-rate", "leaf0-spine0=0.02", "--error-rate", "leaf0-spine1=0.02")
        self.pair("h1", "h9", "ib_write_bw", "-n", "40", "-s", "65536")
        leaf = self.lid_of_switch("leaf0")
        errors = [self.run_on("h0", "perfquery", str(leaf), str(port)) for port in (5, 6)]
        self.assertTrue(any(re.search(r"SymbolErrorCounter:\.*[1-9]", text) for text in errors),
                        errors)
        harness.wait_until(lambda: "num:129" in self.text(log), LIMIT_S, "OpenSM has trap 129")
        self.assertRegex(self.run_on("h0", "ibqueryerrors", status=1), "leaf0.*|SymbolErrorCounter")
        self.change("--error-rate", "leaf0=0")
        before = self.run_on("h0", "perfquery", str(leaf), "5")
        self.pair("h1", "h9", "ib_write_bw", "-n", "10", "-s", "65536")
        self.assertEqual(re.search(r"SymbolErrorCounter.*", before).group(),
                         re.search(r"SymbolErrorCounter.*", self.run_on(
                             "h0", "perfquery", str(leaf), "5")).group())

    def test_errors_of_flow_control_are_trapped(self):
        _, log = self.bring_up()
        self.change("--overrun", "leaf0-spine0")
        self.change("--credit-stall", "leaf0-spine1")
        for number in (130, 131):
            harness.wait_until(lambda: f"num:{number}" in self.text(log), LIMIT_S, "OpenSM has it")
        leaf = self.lid_of_switch("leaf0")
        self.assertRegex(self.run_on("h0", "perfquery", str(leaf), "5"),
                         r"ExcessiveBufferOverrunErrors:\.*1\b")
        self.assertRegex(self.run_on("h0", "perfquery", str(leaf), "6"),
                         r"LinkErrorRecoveryCounter:\.*1\b")

    def test_limited_members_of_a_partition_do_not_reach_each_other(self):
        guids = {host: 0x0256450000000101 + host * 0x100 for host in range(HOSTS)}
        members = ", ".join(f"{guids[host]:#018x}={'full' if host < 3 else 'limited'}"
                            for host in (1, 2, 3, 4))
        partitions = self.folder / "partitions.conf"
        partitions.write_text(PARTITIONS.format(members=members))
        _, log = self.bring_up("h0", "-P", str(partitions))
        send = ("ib_send_bw", "-c", "UD", "--pkey_index", "1", "-n", "20", "-s", "1024")
        self.pair("h1", "h3", *send)
        port = str(harness.free_tcp_port())
        server = self.start("h3", *send, "-p", port)
        harness.wait_until(lambda: harness.sockets("tcp", int(port), "0A"), LIMIT_S,
                           "the server listens")
        self.start("h4", *send, "-p", port, "127.64.0.4")
        lid = str(self.lid_of("h3"))
        harness.wait_until(lambda: re.search(r"PkeyViolations:\.*20",
                                             self.run_on("h0", "smpquery", "portinfo", lid)),
                           LIMIT_S, "h3 counts what limited members send")
        self.assertFalse(server.ended())
        self.assertRegex(self.text(log), r"num:257 \(Bad P_Key\).*from LID:" + lid)

    def test_counters_are_those_of_the_packets(self):
        self.bring_up()
        count, size = 20, 65536
        self.pair("h1", "h9", "ib_write_bw", "-n", str(count), "-s", str(size), "-m", "4096")
        leaf = self.lid_of_switch("leaf0")  # whose port 2 leads to h1, which is written to
        text = self.run_on("h0", "perfquery", "-x", str(leaf), "2")
        sent = {name: int(value) for name, value in re.findall(r"(Port\w+):\.*(\d+)", text)}
        # 4096 bytes, LRH, BTH, ICRC; the first of a message with a RETH. PortXmitData is in words.
        packets = count * size // 4096
        total = packets * (4096 + 8 + 12 + 4) + count * 16
        self.assertGreaterEqual(sent["PortXmitPkts"], packets)
        self.assertGreaterEqual(sent["PortXmitData"] * 4, total)
        self.assertLess(sent["PortXmitData"] * 4, total * 1.1)


if __name__ == "__main__":
    testing.main()
