#!/usr/bin/env python3
"""Programs on two hosts: every service by IPv4 and IPv6, small and large path MTU, servers bound to
any, the first and a further address of their host; and what a program is told when nobody listens,
nobody is there, or the other host vanishes.

usage: two_hosts_test.py [BUILD_DIR] [-k PATTERN]
"""

import itertools
import time
import unittest

import harness
import testing
import two_hosts

BUILD = harness.build_from_command_line()
LIMIT_S = 60
START_LIMIT_S = 60
RETRY_EXCEEDED = 12  # IBV_WC_RETRY_EXC_ERR
FLUSHED = ("stdbuf", "-oL")  # what a program prints is seen at once
REFUSED = ("REJECTED", "refused", "UNREACHABLE, error: 1", "unable to connect")

_ports = itertools.count(20000)


class TwoHostsCase(unittest.TestCase):
    mtu = 1500

    @classmethod
    def setUpClass(cls):
        cls.hosts = two_hosts.TwoHosts(BUILD, cls.mtu)
        cls.addClassCleanup(cls.hosts.close)
        cls.a, cls.b = cls.hosts.a, cls.hosts.b

    def start(self, host, *command):
        program = host.build.start(*command)
        self.addCleanup(program.kill)
        return program

    def check_both(self, server, client):
        self.assertIsNotNone(client.wait(LIMIT_S), f"hangs:\n{server}\n{client}")
        self.assertEqual(client.process.returncode, 0, f"{server}\n{client}")
        self.assertEqual(server.wait(LIMIT_S), 0, f"{server}\n{client}")

    def start_listening(self, host, *command):
        """A server that listens on a TCP port for its peer, and the port."""
        port = harness.free_tcp_port()
        server = self.start(host, *command, "-p", port)
        harness.wait_until(
            lambda: server.ended() or harness.sockets("tcp", port, "0A", pid=host.holder.pid),
            START_LIMIT_S, f"{command[0]} listens")
        return server, port

    @harness.again_without_clock
    def run_pair(self, line, to):
        """A program whose server runs on b and whose client on a tells it where it is by TCP."""
        server, port = self.start_listening(self.b, *line.split())
        client = self.start(self.a, *line.split(), "-p", port, to)
        self.check_both(server, client)
        return server, client

    def run_cm_pair(self, server_line, client_line):
        """A program of rdma_cm: a client that comes too early is refused, and started again."""
        server = self.start(self.b, *server_line.split())
        deadline = time.monotonic() + START_LIMIT_S
        while True:
            client = self.start(self.a, *client_line.split())
            self.assertIsNotNone(client.wait(LIMIT_S), f"hangs:\n{server}\n{client}")
            refused = any(word in client.output() for word in REFUSED)
            if not refused or server.ended() or time.monotonic() > deadline:
                break
            time.sleep(0.1)
        self.check_both(server, client)
        return server, client


class ServicesCase:
    """What depends on the path MTU."""

    def test_the_port_has_the_mtu_of_the_interface(self):
        said = self.a.build.run("ibv_devinfo").output()
        self.assertRegex(said, rf"active_mtu:\s+{self.active_mtu} ")

    def test_pingpongs(self):
        for service, gid in testing.sample(itertools.product(("rc", "uc", "ud", "srq"), (1, 3)), 3):
            with self.subTest(service=service, gid=gid):
                for side in self.run_pair(f"ibv_{service}_pingpong -c -g {gid} -n 200", self.b.ipv4):
                    self.assertNotIn("invalid data", side.output(), side)
                    self.assertIsNotNone(harness.pingpong_result(side.output()), side)

    def test_perftest(self):
        lines = ("ib_send_bw -n 400", "ib_write_bw -n 400 -q 4", "ib_read_bw -n 400",
                     "ib_atomic_bw -n 400", "ib_send_lat -n 200", "ib_write_lat -n 200",
                     "ib_read_lat -n 200", "ib_atomic_lat -n 200", "ib_send_bw -b -e -n 400",
                     "ib_send_bw -c UD -n 100 -s 1024", "ib_send_lat -c UC -n 100",
                     "ib_write_lat -c UC -n 100", "ib_send_lat -c UD -n 100")
        for line in testing.sample((line + family for line in lines for family in self.families), 3):
            with self.subTest(line=line):
                _, client = self.run_pair(line, self.b.ipv4)
                self.assertTrue(harness.perftest_rows(client.output()), client)

    def test_perftest_by_rdma_cm(self):
        for line in testing.sample(
                ("ib_send_bw -n 400", "ib_write_lat -n 200", "ib_read_bw -n 400 -q 4",
                 "ib_atomic_lat -n 200", "ib_send_bw -c UD -n 100 -s 1024"), every=3):
            with self.subTest(line=line):
                port = next(_ports)
                _, client = self.run_cm_pair(f"{line} -R -p {port}",
                                             f"{line} -R -p {port} {self.b.ipv4}")
                self.assertTrue(harness.perftest_rows(client.output()), client)


class SmallFramesTest(ServicesCase, TwoHostsCase):
    mtu, active_mtu = 1500, 1024
    families = ("", " --ipv6 -x 1")


class JumboFramesTest(ServicesCase, TwoHostsCase):
    mtu, active_mtu = 9000, 4096
    families = (" --ipv6 -x 1",)


class AddressesTest(TwoHostsCase):
    def rping(self, server_address, client_address):
        port = next(_ports)
        _, client = self.run_cm_pair(f"rping -s -a {server_address} -p {port} -C 5",
                                     f"rping -c -a {client_address} -p {port} -C 5 -v -V")
        self.assertEqual(client.output().count("ping data: rdma-ping-"), 5, client)

    def test_rping_to_every_address(self):
        for to in (self.b.ipv4, self.b.more_ipv4, self.b.ipv6, self.b.more_ipv6, self.b.link_local):
            for bound in ("::" if ":" in to else "0.0.0.0", to):
                with self.subTest(bound=bound, to=to):
                    self.rping(bound, to)

    def test_a_neighbour_that_nobody_has_asked_for(self):
        """Is found as soon as it answers."""
        for to in (self.b.ipv4, self.b.ipv6, self.b.link_local):
            with self.subTest(to=to):
                self.a.run(f"ip neighbour flush dev {two_hosts.INTERFACE}")
                port = next(_ports)
                self.run_cm_pair(f"rping -s -a :: -p {port} -C 3",
                                 f"rping -c -a {to} -p {port} -C 3")

    def test_a_server_on_both_families(self):
        self.rping("::", self.b.ipv4)

    def test_others_of_rdmacm_utils(self):
        for to in (self.b.ipv4, self.b.ipv6):
            for line in (f"ucmatose -c 4 -C 10 -p {next(_ports)}", "udaddy -c 2 -C 10"):
                with self.subTest(line=line, to=to):
                    sides = self.run_cm_pair(f"{line} -b {to}", f"{line} -s {to}")
                    for side in sides:
                        self.assertIn("data transfers complete", side.output(), side)
            port = next(_ports)
            with self.subTest(line="rdma_client", to=to):
                self.run_cm_pair(f"rdma_server -s {to} -p {port}", f"rdma_client -s {to} -p {port}")

    def test_the_gid_table_has_every_address(self):
        said = self.a.build.run("ibv_devinfo", "-v").output()
        for address in (self.a.ipv6, self.a.more_ipv6, f"::ffff:{self.a.ipv4}",
                        f"::ffff:{self.a.more_ipv4}"):
            self.assertIn(address, said)

    def test_both_ends_on_one_host(self):
        server, port = self.start_listening(self.a, "ibv_rc_pingpong", "-c", "-g", 3)
        client = self.start(self.a, "ibv_rc_pingpong", "-c", "-g", 3, "-p", port, self.a.ipv4)
        self.check_both(server, client)


class FailuresTest(TwoHostsCase):
    @testing.thorough  # the CM's timeouts take 20 s; interop has a refusal by another host
    def test_nobody_listens(self):
        client = self.a.build.run("rping", "-c", "-a", self.b.ipv4, "-p", next(_ports), "-C", 1,
                                  limit_s=LIMIT_S)
        self.assertNotEqual(client.process.returncode, 0, client)
        # No Verbena runs there at all, or one that refuses.
        self.assertRegex(client.output(), "RDMA_CM_EVENT_(REJECTED, error 8|UNREACHABLE, error -110)")

    def test_no_way(self):
        client = self.a.build.run("rping", "-c", "-a", "203.0.113.9", "-C", 1, limit_s=LIMIT_S)
        self.assertIn("RDMA_CM_EVENT_ADDR_ERROR", client.output(), client)

    def test_nobody_is_there(self):
        """An address of our network that is nobody's, found out within the two seconds that
        programs give."""
        for to in (self.a.ipv4.rpartition(".")[0] + ".99", "fd77::99"):
            with self.subTest(to=to):
                started = time.monotonic()
                client = self.a.build.run("rping", "-c", "-a", to, "-C", 1, limit_s=LIMIT_S)
                self.assertIn("RDMA_CM_EVENT_ADDR_ERROR, error -110", client.output(), client)
                self.assertLess(time.monotonic() - started, 30, client)
        client = self.a.build.run("rdma_client", "-s", self.a.ipv4.rpartition(".")[0] + ".98",
                                  limit_s=LIMIT_S)
        self.assertIn("Connection timed out", client.output(), client)

    def test_rconnect_to_nobody(self):
        """A nonblocking rconnect() is in progress while a neighbour is asked, and rpoll() tells how
        it ended; a blocking one waits. Where no route leads there, both know at once."""
        absent = self.a.ipv4.rpartition(".")[0] + ".97"
        for to, options, expected in ((absent, (), "rpoll: Connection timed out"),
                                      (absent, ("-T", "b"), "rconnect: Connection timed out"),
                                      ("203.0.113.9", (), "rconnect: Network is unreachable")):
            with self.subTest(to=to, options=options):
                client = self.a.build.run("rstream", "-s", to, "-C", 1, *options, limit_s=LIMIT_S)
                self.assertIn(expected, client.output(), client)

    def test_the_port_is_taken_on_all_addresses(self):
        """Here and not on loopback: no other test's program starts on this host meanwhile."""
        taker = self.a.build.start("python3", "-uc", "import socket, time; "
                                   "s = socket.socket(type=socket.SOCK_DGRAM); "
                                   f"s.bind(('', {harness.ROCE_PORT})); print('bound'); time.sleep(60)")
        self.addCleanup(taker.kill)
        harness.wait_until(lambda: "bound" in taker.output() or taker.ended(), LIMIT_S, f"{taker}")
        refused = self.a.build.run("ib_write_bw", limit_s=LIMIT_S)
        self.assertGreater(refused.process.returncode, 0, refused)
        self.assertIn("verbena: UDP port 4791", refused.output(), refused)

    def test_a_host_that_vanishes(self):
        """retry_cnt 7 and a timeout of 67 ms: who waits for an acknowledgement is told within a second
        or so; who waits for a message only is told by nobody."""
        server, port = self.start_listening(self.b, *FLUSHED, "ibv_rc_pingpong", "-g", 3, "-n", 100000000)
        client = self.start(self.a, *FLUSHED, "ibv_rc_pingpong", "-g", 3, "-n", 100000000, "-p", port,
                            self.b.ipv4)
        harness.wait_until(lambda: "remote address" in client.output() or client.ended(), LIMIT_S,
                           f"it begins\n{client}")
        time.sleep(0.3)
        self.assertFalse(client.ended(), client)
        self.b.take_link_down()
        self.addCleanup(self.b.take_link_up)
        told = harness.wait_until(lambda: [side for side in (client, server) if side.ended()], LIMIT_S,
                                  f"one of them is told\n{server}\n{client}")
        self.assertIn(f"({RETRY_EXCEEDED}) for wr_id", told[0].output(), told[0])

    def test_a_link_that_comes_back(self):
        """A break shorter than the retries does no harm."""
        command = (*FLUSHED, "ib_send_lat", "-u", 18, "-n", 20000 if testing.THOROUGH else 5000, "-s", 4096)  # 1 s a try
        server, port = self.start_listening(self.b, *command)
        client = self.start(self.a, *command, "-p", port, self.b.ipv4)
        harness.wait_until(lambda: "#bytes" in client.output() or client.ended(), LIMIT_S,
                           f"it begins\n{client}")
        for _ in range(3):
            self.b.take_link_down()
            self.b.take_link_up()
            time.sleep(0.1)
        self.check_both(server, client)


if __name__ == "__main__":
    harness.main()
