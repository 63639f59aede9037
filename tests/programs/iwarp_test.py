#!/usr/bin/env python3
"""iWARP devices (VERBENA_LINK=iwarp): what they say that they are, the programs of rdmacm-utils and
perftest with -R on loopback and between two hosts by IPv4 and IPv6, and peers that speak no MPA, or
wrongly: each sees its connection end, with the TERMINATE that says why, and honest peers go on.

usage: iwarp_test.py [BUILD_DIR] [-k PATTERN]
"""

import os
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import time
import unittest

import harness
import rdmacm_pairs
import two_hosts

BUILD = harness.build_from_command_line()
IWARP = {"VERBENA_LINK": "iwarp"}
LIMIT_S = 60
START_LIMIT_S = 60


class IWARPCase(unittest.TestCase):
    def start(self, *command, host=None, environment=None):
        build = host.build if host else BUILD
        program = build.start(*command, environment=IWARP | (environment or {}))
        self.addCleanup(program.kill)
        return program

    def start_server(self, *command, port, host=None, environment=None):
        server = self.start(*command, host=host, environment=environment)
        pid = host.holder.pid if host else "self"
        harness.wait_until(lambda: server.ended() or harness.sockets("tcp", port, "0A", pid),
                           START_LIMIT_S, f"it listens\n{server}")
        return server

    def check_both(self, server, client):
        self.assertEqual(client.wait(LIMIT_S), 0, f"{server}\n{client}")
        self.assertEqual(server.wait(LIMIT_S), 0, f"{server}\n{client}")

    def check_pair(self, server, client, port, environment=None):
        first = self.start_server(*server, port=port, environment=environment)
        second = self.start(*client, environment=environment)
        self.check_both(first, second)
        return first, second

    def rping(self, address, port, *options, environment=None):
        command = ("rping", "-a", address, "-p", str(port), "-v", *options)
        return self.check_pair((*command, "-s"), (*command, "-c", "-V"), port, environment)


class DeviceTest(IWARPCase):
    def output_of(self, *command):
        program = self.start(*command)
        program.wait(LIMIT_S)
        return program

    def test_is_an_rnic(self):
        shown = self.output_of("ibv_devinfo", "-v")
        self.assertEqual(shown.process.returncode, 0, shown)
        self.assertRegex(shown.output(), r"transport:\s+iWARP \(1\)")
        self.assertRegex(shown.output(), r"link_layer:\s+Ethernet")
        node = self.output_of("cat", "/sys/class/infiniband/verbena0/node_type")
        self.assertEqual(node.output().strip(), "4: RNIC", node)

    def test_has_no_datagrams(self):
        for program in ("ibv_ud_pingpong", "ibv_uc_pingpong"):
            refused = self.output_of(program)
            self.assertNotEqual(refused.process.returncode, 0, refused)
            self.assertIn("Couldn't create QP", refused.output())

    def test_a_setting_that_there_is_not_is_named(self):
        refused = self.start("ibv_devinfo", environment={"VERBENA_IWARP": "crc=perhaps"})
        refused.wait(LIMIT_S)
        self.assertIn('VERBENA_IWARP: "crc=perhaps"', refused.output())


class ProgramsTest(IWARPCase):
    def test_rping(self):
        for options in ("-C 10", "-C 10 -S 65535"):
            with self.subTest(options=options):
                port = harness.free_tcp_port()
                _, client = self.rping(BUILD.address, port, *options.split())
                self.assertEqual(client.output().count("ping data: rdma-ping-"), 10, client)

    def test_rping_by_every_setting(self):
        for setting in ("crc=off", "mpa=1", "p2p=off", "mpa=1,crc=off", "markers=on",
                        "markers=on,crc=off,mpa=1"):
            with self.subTest(setting=setting):
                self.rping(BUILD.address, harness.free_tcp_port(), "-C", "3",
                           environment={"VERBENA_IWARP": setting})

    def test_ends_with_different_settings(self):
        port = harness.free_tcp_port()
        command = ("rping", "-a", BUILD.address, "-p", str(port), "-v", "-C", "3")
        server = self.start_server(*command, "-s", port=port,
                                   environment={"VERBENA_IWARP": "crc=off"})
        self.check_both(server, self.start(*command, "-c",
                                           environment={"VERBENA_IWARP": "crc=on,mpa=1"}))

    def test_rdma_client_and_server(self):
        port = harness.free_tcp_port()
        self.check_pair(("rdma_server", "-p", str(port)),
                        ("rdma_client", "-s", BUILD.address, "-p", str(port)), port)

    def test_ucmatose(self):
        for options in ("-c 1 -C 10 -S 100", "-c 40 -C 5 -S 20000", "-c 3 -C 2 -t 8"):
            with self.subTest(options=options):
                port = harness.free_tcp_port()
                common = ("-p", str(port), *options.split())
                self.check_pair(("ucmatose", "-b", BUILD.address, *common),
                                ("ucmatose", "-s", BUILD.address, *common), port)

    def test_rsockets(self):
        for program in ("rstream", "riostream"):
            for options in ("-S 100 -C 100", "-S 100000 -C 20"):
                with self.subTest(program=program, options=options):
                    port = harness.free_tcp_port()
                    common = ("-p", str(port), *options.split())
                    self.check_pair((program, "-b", BUILD.address, *common),
                                    (program, "-s", BUILD.address, *common), port)

    @unittest.skipUnless(shutil.which("ucx_info"), "ucx-utils is not installed")
    def test_ucx_takes_no_iwarp_device(self):
        """By its own rule; docs/iwarp.md says so."""
        shown = self.start("ucx_info", "-d", environment={"UCX_LOG_LEVEL": "debug"})
        self.assertEqual(shown.wait(LIMIT_S), 0, shown)
        self.assertIn("iWarp device verbena0 is not supported", shown.output())

    def test_nobody_listens(self):
        client = self.start("rping", "-c", "-a", BUILD.address, "-p",
                            str(harness.free_tcp_port()), "-C", "1")
        self.assertNotEqual(client.wait(LIMIT_S), 0, client)
        self.assertIn("REJECTED", client.output())

    def test_a_port_that_tcp_has_is_taken(self):
        with socket.socket() as taken:
            taken.bind((BUILD.address, 0))
            taken.listen()
            server = self.start("rping", "-s", "-a", BUILD.address, "-p",
                                str(taken.getsockname()[1]))
            self.assertNotEqual(server.wait(LIMIT_S), 0, server)
            self.assertIn("Address already in use", server.output())

    @unittest.skipUnless(shutil.which("tshark"), "tshark is not installed")
    def test_captures_are_read_by_wireshark(self):
        words = self.check_capture("40000", {})
        self.assertIn("Read Response", words)
        self.assertNotIn("Malformed", words)

    @unittest.skipUnless(shutil.which("tshark"), "tshark is not installed")
    def test_markers_are_where_wireshark_expects_them(self):
        """Of short FPDUs: its dissector loses its place where one TCP segment has several and markers."""
        words = self.check_capture("1200", {"VERBENA_IWARP": "markers=on"})
        self.assertGreaterEqual(words.count("FPDU back pointer: 0 bytes"), 2)  # before the first
        self.assertGreater(words.count("FPDU back pointer: "), 8)

    def check_capture(self, size, environment):
        with tempfile.TemporaryDirectory() as folder:
            os.chmod(folder, 0o777)
            file = os.path.join(folder, "iwarp.pcapng")
            port = harness.free_tcp_port()
            command = ("rping", "-a", BUILD.address, "-p", str(port), "-C", "3", "-S", size)
            server = self.start_server(*command, "-s", port=port, environment=environment)
            self.check_both(server, self.start(*command, "-c",
                                               environment=environment | {"VERBENA_CAPTURE": file}))
            words = subprocess.run(["tshark", "-P", "-V", "-r", file], capture_output=True, text=True,
                                   check=True).stdout
        self.assertIn("MPA Request Frame", words)
        self.assertGreater(words.count("(Good CRC32)"), 12)
        self.assertEqual(words.count("Bad CRC32"), 0)
        return words

    def test_a_killed_peer_ends_the_connection(self):
        port = harness.free_tcp_port()
        command = ("rping", "-a", BUILD.address, "-p", str(port), "-v")
        server = self.start_server(*command, "-s", port=port)
        client = self.start("stdbuf", "-oL", *command, "-c", "-C", "1000000")
        harness.wait_until(lambda: "ping data" in client.output() or client.ended(), LIMIT_S,
                           f"it pings\n{server}\n{client}")
        client.kill()
        self.assertIsNotNone(server.wait(LIMIT_S), server)
        self.assertIn("DISCONNECT EVENT", server.output())


class ApartTest(rdmacm_pairs.RDMACMPairs):
    build = BUILD

    def test_rping_between_devices_of_different_addresses(self):
        self.check_rping_apart(BUILD.address, **IWARP)

    def test_rping_on_ipv6_loopback(self):
        port = harness.free_tcp_port()
        command = ("rping", "-a", "::1", "-p", port, "-C", 3)
        device = IWARP | {"VERBENA_ADDRESS": "::1"}
        self.check_pair((*command, "-s"), (*command, "-c", "-V"), environments=(device, device))


class PerftestTest(IWARPCase):
    def check(self, program, *options):
        port = harness.free_tcp_port()
        command = (program, "-R", "-F", "-p", str(port), *options)
        return self.check_pair(command, (*command, BUILD.address), port)

    def test_all_operations(self):
        for operation in ("write", "read", "send"):
            for kind, count in (("lat", "200"), ("bw", "1000")):
                for size in ("2", "65536"):
                    with self.subTest(operation=operation, kind=kind, size=size):
                        self.check(f"ib_{operation}_{kind}", "-n", count, "-s", size)

    def test_all_sizes(self):
        self.check("ib_write_bw", "-a", "-n", "20")

    def test_lists_of_requests_and_several_connections(self):
        self.check("ib_write_bw", "-n", "640", "-l", "64", "-s", "64")
        self.check("ib_send_bw", "-n", "500", "-q", "8", "-s", "4096")

    def test_atomics(self):
        for kind in ("FETCH_AND_ADD", "CMP_AND_SWAP"):
            with self.subTest(kind=kind):
                self.check("ib_atomic_bw", "-n", "500", "-A", kind)


class LocalTest(IWARPCase):
    """WRITE and READ between processes of one host are copies, unless either end says no."""

    def counts(self, program, environments=({}, {})):
        """hw_counters of client and server in the middle of an endless ib_X_bw."""
        port = harness.free_tcp_port()
        command = (program, "-R", "-F", "-p", str(port), "-D", "600")
        server = self.start_server(*command, port=port, environment=environments[0])
        client = self.start(*command, BUILD.address, environment=environments[1])
        self.addCleanup(harness.stop, client, server)
        BUILD.wait_for_traffic(server, client)
        return [BUILD.devices_of(end)[0]["hw_counters"] for end in (client, server)]

    def test_write_and_read_are_copies(self):
        for operation in ("write", "read"):
            with self.subTest(operation=operation):
                client, server = self.counts(f"ib_{operation}_bw")
                self.assertGreater(client[f"local_{operation}_requests"], 100)
                self.assertGreater(server[f"rx_{operation}_requests"], 100)

    def test_either_end_turns_it_off(self):
        off = {"VERBENA_LOCAL": "off"}
        for environments in ((off, {}), ({}, off)):
            client, _ = self.counts("ib_write_bw", environments)
            self.assertEqual(client["local_write_requests"], 0)

    def test_a_killed_peer_ends_the_connection(self):
        port = harness.free_tcp_port()
        command = ("ib_write_bw", "-R", "-F", "-p", str(port), "-D", "600")
        server = self.start_server(*command, port=port)
        client = self.start(*command, BUILD.address)
        self.addCleanup(harness.stop, client, server)
        BUILD.wait_for_traffic(server, client)
        server.kill()
        self.assertNotEqual(client.wait(LIMIT_S), None, client)


class FaultsTest(IWARPCase):
    """Rules of --fault see FPDUs: TCP hides losses, and MPA's CRC finds what was corrupted."""

    def start_pair(self, rules, *options, program="ib_send_bw"):
        port = harness.free_tcp_port()
        command = (program, "-R", "-F", "-p", str(port), *options)
        server = self.start_server(*command, port=port)
        client = self.start(*command, BUILD.address,
                            environment={"VERBENA_FAULT": rules, "VERBENA_SEED": "7"})
        return server, client

    def test_what_is_lost_comes_late(self):
        for rules in ("loss nth=30", "loss nth=30 dir=rx", "reorder 5% by=2ms", "delay by=200us",
                      "rate limit=200Mbit", "flap up=20ms down=5ms", "blackhole from=1ms for=30ms"):
            with self.subTest(rules=rules):
                self.check_both(*self.start_pair(rules, "-n", "200", "-s", "16384"))

    def test_a_wrong_crc_ends_both_ends(self):
        server, client = self.start_pair("corrupt nth=50 dir=tx", "-n", "5000", "-s", "16384")
        self.assertNotEqual(client.wait(LIMIT_S), 0, client)
        server.wait(LIMIT_S)

    def test_a_qp_is_broken(self):
        _, client = self.start_pair("qp-error nth=50 dir=tx", "-n", "5000", "-s", "16384")
        self.assertNotEqual(client.wait(LIMIT_S), 0, client)

    def test_registrations_fail(self):
        _, client = self.start_pair("registration-error", "-n", "10")
        self.assertNotEqual(client.wait(LIMIT_S), 0, client)
        self.assertIn("Couldn't allocate MR", client.output())

    def test_rules_without_a_meaning_are_named(self):
        client = self.start("ibv_devinfo", environment={"VERBENA_FAULT": "nak code=sequence"})
        client.wait(LIMIT_S)
        self.assertIn("fault 'nak code=sequence' has no meaning on an iWARP device: iWARP has no "
                      "acknowledgements", client.output())


class TwoHostsTest(IWARPCase):
    @classmethod
    def setUpClass(cls):
        cls.hosts = two_hosts.TwoHosts(BUILD, 1500)
        cls.addClassCleanup(cls.hosts.close)

    def check_hosts(self, server, client, port):
        first = self.start_server(*server, port=port, host=self.hosts.b)
        self.check_both(first, self.start(*client, host=self.hosts.a))

    def test_rping(self):
        for address in (self.hosts.b.ipv4, self.hosts.b.ipv6, self.hosts.b.more_ipv4):
            with self.subTest(address=address):
                port = harness.free_tcp_port()
                command = ("rping", "-a", address, "-p", str(port), "-v", "-C", "10")
                self.check_hosts((*command, "-s"), (*command, "-c", "-V"), port)

    def test_perftest(self):
        for program in ("ib_write_bw", "ib_read_bw", "ib_send_bw", "ib_write_lat"):
            with self.subTest(program=program):
                port = harness.free_tcp_port()
                command = (program, "-R", "-F", "-p", str(port), "-n", "200", "-s", "100000")
                self.check_hosts(command, (*command, self.hosts.b.ipv4), port)


    @unittest.skipUnless(shutil.which("fi_pingpong"), "libfabric-bin is not installed")
    def test_libfabric(self):
        port = harness.free_tcp_port()
        command = ("fi_pingpong", "-p", "verbs", "-e", "msg", "-c", "-I", "5")
        self.check_hosts((*command, "-B", str(port)), (*command, "-P", str(port), self.hosts.b.ipv4),
                         port)

    @unittest.skipUnless(shutil.which("fi_pingpong"), "libfabric-bin is not installed")
    def test_libfabric_reliable_endpoints(self):
        for options in ((), ("-m", "tagged")):
            with self.subTest(options=options):
                port = harness.free_tcp_port()
                command = ("fi_pingpong", "-p", "verbs;ofi_rxm", "-e", "rdm", "-c", "-I", "5", *options)
                self.check_hosts((*command, "-B", str(port)),
                                 (*command, "-P", str(port), self.hosts.b.ipv4), port)

    @unittest.skipUnless(shutil.which("fio"), "fio is not installed")
    def test_fio(self):
        port = harness.free_tcp_port()
        command = ("fio", "--ioengine=rdma", "--bs=64k", "--size=4m", "--iodepth=16",
                   "--iodepth_batch_complete=4", f"--port={port}")
        self.check_hosts((*command, "--name=s", "--rw=read"),
                         (*command, "--name=c", "--rw=write", "--verb=write",
                          f"--hostname={self.hosts.b.ipv4}"), port)


# --- peers written by hand ------------------------------------------------------------------------

MARKERS, CRC, REJECTED, ENHANCED = 0x80, 0x40, 0x20, 0x10
TERMINATE = 7


def crc32c(data):
    crc = 0xffffffff
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82f63b78 if crc & 1 else 0)
    return crc ^ 0xffffffff


def mpa_request(flags=CRC, revision=1, data=b""):
    return b"MPA ID Req Frame" + struct.pack(">BBH", flags, revision, len(data)) + data


def fpdu(ulpdu, spoil=0):
    fpdu = struct.pack(">H", len(ulpdu)) + ulpdu
    fpdu += bytes(-len(fpdu) % 4)
    return fpdu + struct.pack("<I", crc32c(fpdu) ^ spoil)


def tagged(opcode, stag, to, payload, ddp=1):
    return struct.pack(">BBIQ", 0xc0 | ddp, 0x40 | opcode, stag, to) + payload


def untagged(opcode, queue, msn, payload=b"", offset=0, rdmap=1):
    return struct.pack(">BBIIII", 0x41, rdmap << 6 | opcode, 0, queue, msn, offset) + payload


def read_request(stag, length=100):
    return untagged(1, 1, 1, struct.pack(">IQIIQ", 1, 0, length, stag, 0))


# The FPDU that is sent, and the layer, type and code of the TERMINATE.
FAULTS = {
    "WRITE, invalid STag": (fpdu(tagged(0, 0x12345678, 0, b"x" * 100)), (1, 1, 0)),
    "READ, invalid STag": (fpdu(read_request(0x12345678)), (0, 1, 0)),
    "READ response nobody asked for": (fpdu(tagged(2, 1, 0, b"x" * 100)), (1, 1, 0)),
    "wrong queue": (fpdu(untagged(3, 7, 1)), (1, 2, 1)),
    "wrong message number": (fpdu(untagged(3, 0, 9)), (1, 2, 3)),
    "wrong message offset": (fpdu(untagged(3, 0, 1, offset=4)), (1, 2, 4)),
    "message too long": (fpdu(untagged(3, 0, 1, b"x" * 1000)), (1, 2, 5)),
    "RDMAP version": (fpdu(untagged(3, 0, 1, rdmap=0)), (0, 2, 5)),
    "RDMAP opcode": (fpdu(untagged(15, 0, 1)), (0, 2, 6)),
    "DDP version": (fpdu(tagged(0, 1, 0, b"", ddp=2)), (1, 1, 4)),
    "CRC": (fpdu(untagged(3, 0, 1), spoil=1), (2, 0, 2)),
    "length": (b"\0\5" + bytes([0xc1, 0x40]) + bytes(30), (2, 0, 3)),
}


class HandWrittenPeerTest(IWARPCase):
    def setUp(self):
        self.port = harness.free_tcp_port()
        self.command = ("rping", "-a", BUILD.address, "-p", str(self.port))
        self.server = self.start_server(*self.command, "-s", "-P", port=self.port)

    def connect(self):
        peer = socket.create_connection((BUILD.address, self.port), timeout=20)
        self.addCleanup(peer.close)
        return peer

    @staticmethod
    def receive(peer, size):
        data = b""
        while len(data) < size:
            more = peer.recv(size - len(data))
            if not more:
                break
            data += more
        return data

    def begin(self):
        """An rping connection, by MPA's first revision."""
        peer = self.connect()
        peer.sendall(mpa_request())
        reply = self.receive(peer, 20)
        self.assertEqual(reply[:16], b"MPA ID Rep Frame")
        self.assertEqual(reply[16] & REJECTED, 0, reply)
        return peer

    def check_honest_peer(self):
        client = self.start(*self.command, "-c", "-C", "3", "-v")
        self.assertEqual(client.wait(LIMIT_S), 0, f"{self.server}\n{client}")

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.server.pid}/fd"))

    def test_faults_end_the_stream_with_their_terminate(self):
        for name, (garbage, reason) in FAULTS.items():
            with self.subTest(fault=name):
                peer = self.begin()
                peer.sendall(garbage)
                answer = self.receive(peer, 10_000)  # to the end of the stream
                (length,) = struct.unpack_from(">H", answer)
                self.assertGreaterEqual(length, 18 + 4, answer)
                self.assertEqual(answer[2 + 1] & 15, TERMINATE)
                self.assertEqual(struct.unpack_from(">I", answer, 2 + 6)[0], 2)  # its queue
                layer_and_type, code = answer[20], answer[21]
                self.assertEqual((layer_and_type >> 4, layer_and_type & 15, code), reason)
        self.check_honest_peer()
        self.assertIn("we have ended the connection with TERMINATE",
                      " ".join(self.server.output().split()))

    def test_a_peer_that_asks_for_markers_gets_them(self):
        peer = self.connect()
        peer.sendall(mpa_request(flags=MARKERS))
        self.assertEqual(self.receive(peer, 20)[16] & (REJECTED | MARKERS), 0)
        peer.sendall(fpdu(tagged(0, 0x12345678, 0, b"x" * 100)))
        answer = self.receive(peer, 10_000)
        self.assertEqual(answer[:4], bytes(4))  # before the first FPDU
        self.assertEqual(answer[4 + 2 + 1] & 15, TERMINATE)

    def test_garbage_and_silence_hinder_nobody(self):
        peers = [self.connect() for _ in range(20)]
        for number, garbage in enumerate((b"GET / HTTP/1.1\r\n\r\n", b"\0" * 100, b"MPA ID Rep Frame",
                                         mpa_request(revision=8), mpa_request(revision=9),
                                         mpa_request()[:17], b"MPA ID Req Frame\0\1\xff\xff")):
            peers[number].sendall(garbage)
        self.check_honest_peer()
        for number in (0, 1, 2):
            self.assertEqual(peers[number].recv(100), b"")
        for number in (3, 4):
            self.assertEqual(self.receive(peers[number], 20)[16] & REJECTED, REJECTED)
        self.assertFalse(self.server.ended(), self.server)

    def test_an_end_at_every_byte(self):
        """Closed, reset and half-closed, after each byte of a request and an FPDU."""
        request, message = mpa_request(), fpdu(tagged(0, 0x1234, 0, b"x" * 9))
        self.check_honest_peer()
        before = self.descriptors()
        for cut in range(len(request) + len(message) + 1):
            for end in (self.close, self.reset, self.half_close):
                peer = self.connect()
                peer.sendall(request[:cut])
                if cut >= len(request):  # rping takes one request at a time
                    self.assertEqual(len(self.receive(peer, 20)), 20)
                    peer.sendall(message[:cut - len(request)])
                with self.subTest(cut=cut, end=end.__name__):
                    end(peer)
        self.check_honest_peer()
        harness.wait_until(lambda: self.descriptors() <= before, LIMIT_S, "all are closed")

    @staticmethod
    def close(peer):
        peer.close()

    @staticmethod
    def reset(peer):
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        peer.close()

    def half_close(self, peer):
        """The server has at most a TERMINATE to say, and ends its side."""
        peer.shutdown(socket.SHUT_WR)
        self.assertLess(len(self.receive(peer, 10_000)), 1000)
        peer.close()

    def test_a_peer_that_never_speaks_is_closed(self):
        """As a client, before its request (10 s), and in the middle of it."""
        peers = [self.connect() for _ in range(2)]
        peers[1].sendall(mpa_request()[:10])
        self.check_honest_peer()
        for peer in peers:
            peer.settimeout(60)
            self.assertEqual(peer.recv(1), b"")

    def test_more_connections_than_descriptors(self):
        self.server.kill()
        port = harness.free_tcp_port()
        command = ("rping", "-a", BUILD.address, "-p", str(port))
        server = self.start_server("prlimit", "--nofile=64", *command, "-s", "-P", port=port)
        peers = [socket.create_connection((BUILD.address, port), timeout=20) for _ in range(100)]
        turned_away = 0
        for peer in peers[-30:]:
            peer.settimeout(20)
            try:
                turned_away += peer.recv(1) == b""
            except ConnectionResetError:
                turned_away += 1
        self.assertEqual(turned_away, 30)
        for peer in peers:
            peer.close()
        client = self.start(*command, "-c", "-C", "3")
        self.assertEqual(client.wait(LIMIT_S), 0, f"{server}\n{client}")

    def test_a_burst_waits_for_a_server_that_is_slow(self):
        """rping listens with a backlog of 3 requests. Connections without a request do not count."""
        os.kill(self.server.pid, signal.SIGSTOP)
        try:
            for _ in range(200):  # the kernel repeats a SYN after 1 s
                peer = socket.create_connection((BUILD.address, self.port), timeout=0.9)
                self.addCleanup(peer.close)
        finally:
            os.kill(self.server.pid, signal.SIGCONT)
        self.check_honest_peer()

    def test_ten_thousand_connections_as_fast_as_they_come(self):
        """Each ends after no byte, one, or a request."""
        before = self.descriptors()
        garbage = (b"", b"x", mpa_request(revision=9))
        for number in range(10_000):
            peer = socket.create_connection((BUILD.address, self.port), timeout=20)
            peer.send(garbage[number % 3])
            peer.close()
        self.check_honest_peer()
        harness.wait_until(lambda: self.descriptors() <= before + 2, LIMIT_S, "all are closed")


if __name__ == "__main__":
    harness.main()
