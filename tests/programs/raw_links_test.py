#!/usr/bin/env python3
"""Programs on raw links: AF_PACKET and AF_XDP, against each other and against UDP sockets, with
RoCEv2 and RoCEv1; what is on the wire meanwhile; and what a user is told who may not.

AF_PACKET is tested with no privilege but that of a network namespace. AF_XDP needs root.

usage: raw_links_test.py [BUILD_DIR] [-k PATTERN]
"""

import collections
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

import children
import harness
import testing
import two_hosts

BUILD = harness.build_from_command_line()
LIMIT_S = 60
V1, V2, V1_IPV6, V2_IPV6 = 2, 3, 0, 1  # GID indexes
ROCE_V1, IPV4, IPV6 = 0x8915, 0x0800, 0x86dd  # EtherTypes
ICMP, UDP = 1, 17

# Counts what passes an interface until standard input ends; a line or two that count `frame` follow.
COUNTING = """
import collections, json, select, socket, sys
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
s.bind((sys.argv[1], 0))
seen = collections.Counter()
print("ready", flush=True)
while True:
    for one in select.select([s, sys.stdin], [], [])[0]:
        if one is sys.stdin:
            print(json.dumps([[*key, count] for key, count in seen.items()]))
            sys.exit()
        frame = s.recv(1 << 17)
"""
# UDP datagrams over IPv4, by destination port.
PORT_SNIFFER = COUNTING + """
        if frame[12:14] == b"\\x08\\x00" and frame[23] == 17:
            seen[(int.from_bytes(frame[36:38], "big"),)] += 1
"""
# Frames by EtherType and IP protocol.
SNIFFER = COUNTING + """
        ether_type = int.from_bytes(frame[12:14], "big")
        seen[ether_type, frame[23] if ether_type == 0x0800 else 0] += 1
"""


class Sniffer:
    """What an interface has seen, by (EtherType, IPv4 protocol)."""
    code = SNIFFER

    def __init__(self, host):
        self._process = children.Child(
            [*host.build.prefix, "python3", "-c", self.code, two_hosts.INTERFACE],
            env={"PATH": harness.PATH}, cwd="/", stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, **host.build.user)
        if self._process.stdout.readline() != "ready\n":
            raise harness.Failure("the sniffer does not start")

    def seen(self):
        said, _ = self._process.communicate(timeout=LIMIT_S)
        return collections.Counter({(row[0], row[1]): row[2] for row in json.loads(said)})


class PortSniffer(Sniffer):
    """What an interface has seen, by UDP destination port."""
    code = PORT_SNIFFER

    def seen(self):
        said, _ = self._process.communicate(timeout=LIMIT_S)
        return collections.Counter({port: count for port, count in json.loads(said)})


def icmp_sent(host):
    """ICMP messages "destination unreachable" that the host has sent."""
    lines = [line.split()[1:] for line in host.run("cat /proc/net/snmp").splitlines()
             if line.startswith("Icmp:")]
    return int(dict(zip(*lines))["OutDestUnreachs"])


class RawLinkCase(unittest.TestCase):
    mtu, as_root = 1500, False

    @classmethod
    def setUpClass(cls):
        if cls.as_root and os.geteuid() != 0:
            raise unittest.SkipTest("AF_XDP needs root")
        cls.hosts = two_hosts.TwoHosts(BUILD, cls.mtu, as_root=cls.as_root)
        cls.addClassCleanup(cls.hosts.close)
        cls.a, cls.b = cls.hosts.a, cls.hosts.b

    def start(self, host, link, *command, faults=""):
        program = host.build.start(*command, environment={"VERBENA_LINK": link,
                                                          "VERBENA_FAULT": faults})
        self.addCleanup(program.kill)
        return program

    @harness.again_without_clock
    def run_pair(self, links, line, faults=""):
        """The server on b, the client on a: both end well."""
        command = line.split()
        port = harness.free_tcp_port()
        server = self.start(self.b, links[1], *command, "-p", port)
        harness.wait_until(
            lambda: server.ended() or harness.sockets("tcp", port, "0A", pid=self.b.holder.pid),
            LIMIT_S, f"{command[0]} listens\n{server}")
        client = self.start(self.a, links[0], *command, "-p", port, self.b.ipv4, faults=faults)
        self.assertIsNotNone(client.wait(LIMIT_S), f"hangs:\n{server}\n{client}")
        self.assertEqual(client.process.returncode, 0, f"{server}\n{client}")
        self.assertEqual(server.wait(LIMIT_S), 0, f"{server}\n{client}")
        return client

    def run_all(self, links, gids):
        lines = ("ib_write_bw -q 2 -n 200 -s 65536", "ib_read_bw -n 100", "ib_atomic_lat -n 100",
                 "ib_send_bw -c UD -n 100 -s 1024")
        for line in lines:
            for gid in testing.sample(gids, every=1 + lines.index(line) % 2):
                with self.subTest(line=line, gid=gid, links=links):
                    client = self.run_pair(links, f"{line} -x {gid}")
                    self.assertTrue(harness.perftest_rows(client.output()), client)


class PacketLinkTest(RawLinkCase):
    def test_both_versions(self):
        self.run_all(("packet", "packet"), (V2, V1))

    def test_both_families(self):
        for gid in (V2_IPV6, V1_IPV6):
            self.run_pair(("packet", "packet"), f"ib_write_bw -n 100 -x {gid}")

    def test_the_peer_is_on_udp(self):
        for links in (("packet", "udp"), ("udp", "packet")):
            for line in testing.sample(
                    ("ib_write_bw -n 300 -s 65536", "ib_read_bw -n 100", "ib_send_lat -n 2000"), 2):
                with self.subTest(line=line, links=links):
                    self.run_pair(links, f"{line} -x {V2}")

    def test_what_is_on_the_wire(self):
        """RoCEv1 is not within IP; and the kernel does not answer what it has no use for."""
        for gid, expected in ((V2, (IPV4, UDP)), (V1, (ROCE_V1, 0))):
            with self.subTest(gid=gid):
                before = icmp_sent(self.a) + icmp_sent(self.b)
                sniffer = Sniffer(self.b)
                self.run_pair(("packet", "packet"), f"ib_send_lat -n 100 -x {gid}")
                seen = sniffer.seen()
                self.assertGreaterEqual(seen[expected], 200, seen)
                if gid == V1:
                    self.assertLess(seen[IPV4, UDP], 10, seen)  # questions for the MAC address
                else:
                    self.assertEqual(icmp_sent(self.a) + icmp_sent(self.b), before)
                    self.assertEqual(seen[IPV4, ICMP], 0, seen)

    def test_a_wrong_icrc_is_refused(self):
        """Of the first 200 frames every tenth comes with flipped bits; the payload that arrives is
        right."""
        for gid in (V1, V2):
            with self.subTest(gid=gid):
                client = self.run_pair(("packet", "packet"),
                                       f"ibv_rc_pingpong -c -n 200 -s 2000 -g {gid}",
                                       faults="corrupt every=10 count=20")
                self.assertNotIn("invalid data", client.output(), client)

    def test_connections_by_rdma_cm(self):
        """QP 1 goes by UDP; the connection's packets do not."""
        port = harness.free_tcp_port()
        server = self.start(self.b, "packet", "rping", "-s", "-a", self.b.ipv4, "-p", port, "-C", 5)
        for _ in range(100):
            client = self.start(self.a, "packet", "rping", "-c", "-a", self.b.ipv4, "-p", port,
                                "-C", 5, "-v", "-V")
            self.assertIsNotNone(client.wait(LIMIT_S), f"hangs:\n{client}")
            if client.process.returncode == 0 or server.ended():
                break
        self.assertEqual(client.process.returncode, 0, f"{server}\n{client}")
        self.assertEqual(client.output().count("ping data: rdma-ping-"), 5, client)

    def test_several_processes_on_one_address(self):
        ports = [harness.free_tcp_port() for _ in range(3)]
        command = ("ib_send_bw", "-n", 300, "-s", 4096, "-x", V2, "-p")
        links = ("packet", "packet", "udp")
        servers = [self.start(self.b, link, *command, port) for link, port in zip(links, ports)]
        for server, port in zip(servers, ports):
            harness.wait_until(
                lambda s=server, p=port: s.ended() or
                harness.sockets("tcp", p, "0A", pid=self.b.holder.pid), LIMIT_S, "it listens")
        clients = [self.start(self.a, link, *command, port, self.b.ipv4)
                   for link, port in zip(links, ports)]
        for side in (*clients, *servers):
            self.assertEqual(side.wait(LIMIT_S), 0, side)

    def test_programs_read_the_versions_of_the_gids(self):
        shown = self.start(self.a, "packet", "sh", "-c",
                           "cat /sys/class/infiniband/verbena0/ports/1/gid_attrs/types/[0123]")
        self.assertEqual(shown.wait(LIMIT_S), 0, shown)
        self.assertEqual(shown.output().splitlines(), ["IB/RoCE v1", "RoCE v2"] * 2, shown)


class EncryptedRawCase(RawLinkCase):
    """PSP on raw links. The port needs no privilege."""
    PORT = 4796

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        os.chmod(folder.name, 0o755)
        key = pathlib.Path(folder.name) / "key"
        key.write_text("a key of the two hosts of this test")
        key.chmod(0o644)
        self.encryption = f"psk:{key},port={self.PORT}"

    def start(self, host, link, *command, faults=""):
        program = host.build.start(*command, environment={
            "VERBENA_LINK": link, "VERBENA_FAULT": faults, "VERBENA_ENCRYPTION": self.encryption})
        self.addCleanup(program.kill)
        return program

    def run_encrypted(self, *pairs):
        for links in pairs:
            for line in ("ib_write_bw -q 2 -n 200 -s 65536", "ib_read_bw -n 100",
                         "ib_send_bw -c UD -n 100 -s 1024"):
                with self.subTest(line=line, links=links):
                    sniffer = PortSniffer(self.b)
                    self.run_pair(links, f"{line} -x {V2}")
                    seen = sniffer.seen()
                    self.assertEqual(seen[4791], 0, seen)
                    if "xdp" not in links:  # whose frames packet sockets do not see
                        self.assertGreaterEqual(seen[self.PORT], 1, seen)


class EncryptedPacketLinkTest(EncryptedRawCase):
    def test_links_against_each_other(self):
        self.run_encrypted(("packet", "packet"), ("packet", "udp"), ("udp", "packet"))

    def test_no_gid_is_roce_v1(self):
        shown = self.start(self.a, "packet", "sh", "-c",
                           "cat /sys/class/infiniband/verbena0/ports/1/gid_attrs/types/[0123]")
        self.assertEqual(shown.wait(LIMIT_S), 0, shown)
        self.assertEqual(shown.output().splitlines(), ["RoCE v2"] * 4, shown)


class EncryptedXDPLinkTest(EncryptedRawCase):
    as_root = True

    def test_links_against_each_other(self):
        self.run_encrypted(("xdp", "xdp"), ("xdp", "udp"), ("packet", "xdp"))


class JumboPacketLinkTest(RawLinkCase):
    mtu = 4300

    def test_path_mtu_4096(self):
        for gid in (V2, V1):
            self.run_pair(("packet", "packet"), f"ib_write_bw -m 4096 -n 200 -s 65536 -x {gid}")


class XDPLinkTest(RawLinkCase):
    as_root = True

    def test_both_versions(self):
        self.run_all(("xdp", "xdp"), (V2, V1))

    def test_the_peer_has_another_link(self):
        for links in (("xdp", "udp"), ("udp", "xdp"), ("packet", "xdp")):
            with self.subTest(links=links):
                before = icmp_sent(self.a) + icmp_sent(self.b)
                self.run_pair(links, f"ib_write_bw -n 300 -s 65536 -x {V2}")
                self.assertEqual(icmp_sent(self.a) + icmp_sent(self.b), before)
        self.run_pair(("xdp", "packet"), f"ib_write_bw -n 100 -s 65536 -x {V1}")

    def test_one_process_has_the_interface(self):
        """And it has it until it ends, however that is."""
        first = self.start(self.b, "xdp", "ib_write_bw", "-p", harness.free_tcp_port())
        show = f"ip -d link show dev {two_hosts.INTERFACE}"
        harness.wait_until(lambda: first.ended() or "prog/xdp" in self.b.run(show), LIMIT_S,
                           f"the program is attached\n{first}")
        second = self.start(self.b, "xdp", "ib_write_bw", "-p", harness.free_tcp_port())
        self.assertNotEqual(second.wait(LIMIT_S), 0, second)
        self.assertIn("one process at a time can have the XDP link", second.output())
        third = self.start(self.b, "packet", "ibv_devinfo")
        self.assertEqual(third.wait(LIMIT_S), 0, third)
        first.kill()
        harness.wait_until(lambda: "prog/xdp" not in self.b.run(show), LIMIT_S,
                           "it is detached")


class JumboXDPLinkTest(RawLinkCase):
    mtu, as_root = 4300, True

    def test_path_mtu_4096(self):
        for gid in (V2, V1):
            self.run_pair(("xdp", "xdp"), f"ib_write_bw -m 4096 -n 200 -s 65536 -x {gid}")


class RefusalTest(RawLinkCase):
    def devices(self, link, *prefix):
        """`verbena devices` on a, behind a command that takes rights away."""
        program = harness.Program(
            [*self.a.build.prefix, *prefix, self.a.build.verbena, "devices"],
            {"VERBENA_ADDRESS": two_hosts.INTERFACE, "VERBENA_LINK": link}, self.a.build.user)
        self.addCleanup(program.kill)
        self.assertIsNotNone(program.wait(LIMIT_S), program)
        return program

    def check_one_line(self, program, *words):
        self.assertEqual(program.process.returncode, 2, program)
        lines = [line for line in program.output().splitlines() if line.startswith("verbena: ")]
        self.assertEqual(len(lines), 1, program)
        for word in words:
            self.assertIn(word, lines[0])

    def test_without_the_capability(self):
        self.check_one_line(self.devices("packet", "setpriv", "--bounding-set=-all", "--"),
                            "CAP_NET_RAW", "Operation not permitted")

    def test_xdp_in_a_user_namespace(self):
        self.check_one_line(self.devices("xdp"), "CAP_BPF", "Operation not permitted")

    def test_a_link_that_does_not_exist(self):
        self.check_one_line(self.devices("ethernet"), "udp packet xdp")
        wrong = self.a.build.run_verbena("run", "--link", "ethernet", "--", "true")
        self.check_one_line(wrong, "--link ethernet is none of udp, packet, xdp")

    def test_loopback_is_no_ethernet(self):
        program = BUILD.run_verbena("devices", environment={"VERBENA_LINK": "packet"})
        self.check_one_line(program, "Ethernet")

    def test_open_device_says_so_too(self):
        program = self.start(self.a, "xdp", "ibv_devinfo")
        self.assertNotEqual(program.wait(LIMIT_S), 0, program)
        self.assertIn("CAP_BPF", program.output())


if __name__ == "__main__":
    harness.main()
