#!/usr/bin/env python3
"""Programs of rsockets on Verbena: those of rdmacm-utils with their options, and unmodified TCP
programs under librspreload; data compared, deaths in time.

usage: rsocket_programs_test.py [BUILD_DIR] [-k PATTERN]
"""

import filecmp
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
from rdmacm_pairs import LIMIT_S, RDMACMPairs, free_port
from rsocket_preload import PRELOAD, preloaded

BUILD = harness.build_from_command_line()
LONG_LIMIT_S = 240  # of what is thousands of round trips of two programs that spin

needs_preload = unittest.skipUnless(PRELOAD.exists(), f"{PRELOAD} is not installed")


class RSocketProgramsTest(RDMACMPairs):
    build = BUILD

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="rsocket-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.folder.chmod(0o777)

    def file_with(self, name, size_bytes):
        path = self.folder / name
        path.write_bytes(os.urandom(size_bytes))
        path.chmod(0o644)
        return path

    def check_rows(self, program, count, *others):
        """It printed a line of results for each of its tests, and found no wrong byte."""
        text = program.output()
        shown = "\n".join(map(str, (program, *others)))
        self.assertEqual(len(re.findall(r"^\S+ +[\d.]+[kmg]? +.*s +[\d.]+ +[\d.]+$", text,
                                        re.MULTILINE)), count, shown)
        self.assertNotIn("verification failed", text, shown)

    def stream_pair(self, program, *options, rows=1, limit_s=LIMIT_S, wrap=lambda *c: c):
        port = free_port()
        pair = self.check_pair(
            wrap(program, "-b", BUILD.address, "-p", port, *options),
            wrap(program, "-s", BUILD.address, "-p", port, *options), limit_s=limit_s)
        for each in pair:
            self.check_rows(each, rows, *pair)

    # --- rstream, riostream

    def test_rstream(self):
        self.stream_pair("rstream", rows=8, limit_s=LONG_LIMIT_S)

    def test_rstream_options(self):
        for line in ("-T v -S 1 -C 200", "-T v -S 777 -C 100 -I 3", "-T b -T v -S 4096 -C 300",
                     "-T a -T v -S 4096 -C 300", "-T a -T b -T v -S 100000 -C 20",
                     "-T n -T v -S 1000000 -C 5", "-T r -T v -C 100", "-i 0 -T v -C 100",
                     "-i 512 -T v -S 500 -C 100", "-B 1 -T v -S 100000 -C 10",
                     "-B 4000000 -T v -S 1000000 -C 10", "-k 1 -C 100", "-f ip -C 100",
                     "-I 100 -C 10 -S 64", "-S 65536 -C 100"):
            with self.subTest(line=line):
                self.stream_pair("rstream", *line.split())

    def test_rstream_all_sizes(self):
        for line in ("-T b", "-T a"):
            with self.subTest(line=line):
                for size in (64, 192, 1024, 12288, 65536, 196608, 1048576, 6291456):
                    self.stream_pair("rstream", "-T", "v", "-S", size, "-C", 3, *line.split())

    def test_riostream(self):
        for line in ("-S 64 -C 50", "-S 4096 -C 50 -I 2", "-T b -S 100000 -C 10",
                     "-T v -S 4096 -C 20", "-T a -S 65536 -C 20", "-S 65536 -C 100",
                     "-T v -S 1000000 -C 3 -B 4096", "-i 0 -C 20"):
            with self.subTest(line=line):
                self.stream_pair("riostream", *line.split(), limit_s=LONG_LIMIT_S)

    def test_on_ipv6_loopback(self):
        port = free_port()
        self.check_pair(("rstream", "-b", "::1", "-p", port, "-C", 100),
                        ("rstream", "-s", "::1", "-p", port, "-C", 100))

    def test_a_killed_peer_ends_the_other(self):
        for victim in (0, 1):
            with self.subTest(victim=victim):
                port = free_port()
                command = ("rstream", "-p", port, "-T", "b", "-S", 1000000, "-C", 20000)
                server = self.start(*command, "-b", BUILD.address)
                client = self.start_connected(server, *command, "-s", BUILD.address)
                pair = (server, client)
                pair[victim].process.send_signal(signal.SIGKILL)
                other = pair[1 - victim]
                self.assertIsNotNone(other.wait(LIMIT_S), f"hangs:\n{other}")

    def start_connected(self, server, *command):
        """The client, once it runs: it does not print before its end."""
        deadline = time.monotonic() + LIMIT_S
        while True:
            client = self.start(*command)
            if client.wait(1) is None or time.monotonic() > deadline:
                return client
            self.assertFalse(server.ended(), f"{server}\n{client}")

    def test_nobody_listens(self):
        client = BUILD.run("rstream", "-s", BUILD.address, "-p", free_port(), limit_s=LIMIT_S)
        self.assertNotEqual(client.process.returncode, 0, client)
        self.assertIn("Connection refused", client.output(), client)

    # --- rcopy

    def test_rcopy(self):
        source, copy = self.file_with("source", 50_000_000), self.folder / "copy"
        port = free_port()
        server = self.start("rcopy", "-p", port)
        for _ in range(2):  # and the server takes another
            client = self.run_client(server, "rcopy", source, f"{BUILD.address}:{copy}",
                                     "-p", port, limit_s=LONG_LIMIT_S)
            self.assertEqual(client.process.returncode, 0, f"{server}\n{client}")
            self.assertIn("50000000 bytes in", client.output())
            self.assertTrue(filecmp.cmp(source, copy, shallow=False), f"{server}\n{client}")
            copy.unlink()

    # --- udpong

    def udpong(self, *options, limit_s=LIMIT_S):
        """A server, and a client that has ended; None: it did not within the limit."""
        port = free_port()
        server = self.start("stdbuf", "-oL", "udpong", "-b", BUILD.address, "-p", port)
        harness.wait_until(lambda: harness.sockets("udp", port) or server.ended(), LIMIT_S,
                           f"udpong is bound\n{server}")
        client = self.start("udpong", "-s", BUILD.address, "-p", port, *options)
        ended = client.wait(limit_s) is not None
        server.kill()
        return server, client if ended else None

    def check_udpong(self, server, client):
        self.assertEqual(client.process.returncode, 0, f"{server}\n{client}")
        self.assertRegex(client.output(), r"(?m)^custom +\S+ +\S+ +\S+ +[\d.]+s ", client)
        self.assertIn(f"client login from {BUILD.address}", server.output(), server)

    def test_udpong(self):
        for line in ("-S 64 -C 100", "-S 1000 -C 200", "-T a -S 500 -C 50", "-T b -S 200 -C 100",
                     "-B 8192 -S 1000 -C 100"):
            with self.subTest(line=line):
                server, client = self.udpong(*line.split())
                self.assertIsNotNone(client, server)
                self.check_udpong(server, client)

    def test_udpong_echo(self):
        """Once an answer takes it more than 1 ms, udpong repeats an old question for ever (it asks
        from the buffer that it has received into): where the machine is busy, it gets more tries."""
        for line in ("-T e -S 64 -C 20", "-T e -T a -S 1000 -C 20"):
            with self.subTest(line=line):
                tries = (self.udpong(*line.split(), limit_s=3) for _ in range(20))
                server, client = next((pair for pair in tries if pair[1]), (None, None))
                if client is None:
                    self.skipTest("too busy a machine: it never got all answers within 1 ms")
                self.check_udpong(server, client)

    # --- librspreload

    @needs_preload
    def test_preloaded_rstream_of_plain_sockets(self):
        for line in ("-T s -T v -S 4096 -C 200", "-T s -T a -T v -S 4096 -C 50",
                     "-T s -T b -T v -S 100000 -C 20"):
            with self.subTest(line=line):
                self.stream_pair("rstream", *line.split(), wrap=preloaded)

    @needs_preload
    def test_preloaded_client_meets_an_rsocket(self):
        port = free_port()
        options = ("-p", port, "-T", "v", "-S", 4096, "-C", 100)
        self.check_pair(("rstream", "-b", BUILD.address, *options),
                        preloaded("rstream", "-T", "s", "-s", BUILD.address, *options))

    @needs_preload
    @unittest.skipUnless(shutil.which("openssl"), "openssl is not installed")
    def test_preloaded_openssl_sends_a_file(self):
        page = self.file_with("page", 3_000_000)
        key, certificate = self.folder / "key", self.folder / "certificate"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key,
                        "-out", certificate, "-subj", "/CN=x"], check=True, capture_output=True)
        key.chmod(0o644)
        at = f"{BUILD.address}:{free_port()}"
        server = self.start(*preloaded("sh", "-c",
                                       f"cd {self.folder} && exec openssl s_server -accept {at} "
                                       f"-key {key} -cert {certificate} -WWW"))
        got = self.folder / "got"
        fetch = (f"printf 'GET /{page.name} HTTP/1.0\\r\\n\\r\\n' | "
                 f"openssl s_client -connect {at} -quiet -ign_eof > {got}")
        client = self.run_client(server, *preloaded("sh", "-c", fetch))
        answer = got.read_bytes()
        header, _, body = answer.partition(b"\r\n\r\n")
        self.assertIn(b"200", header, f"{server}\n{client}")
        self.assertTrue(body == page.read_bytes(), f"{server}\n{client}")
        self.assertFalse(harness.sockets("tcp", int(at.rpartition(":")[2])), "it was TCP")

    @needs_preload
    @unittest.skipUnless(shutil.which("iperf3"), "iperf3 is not installed")
    def test_preloaded_iperf3(self):
        """Both ends wait by select(), of which Debian 12's librspreload takes the answers apart by
        the numbers of descriptors."""
        port = free_port()
        server = self.start(*preloaded("iperf3", "-s", "-1", "-B", BUILD.address, "-p", port))
        client = self.run_client(server, *preloaded("iperf3", "-c", BUILD.address, "-p", port,
                                                    "-n", "50M", "-J"))
        self.assertEqual(client.process.returncode, 0, f"{server}\n{client}")
        self.assertEqual(server.wait(LIMIT_S), 0, f"{server}\n{client}")
        output = client.output()
        received = json.loads(output[output.index("{"):])["end"]["sum_received"]["bytes"]
        block = 128 << 10  # of which iperf3 may leave the last unfinished
        self.assertGreater(received, (50 << 20) - block, f"{server}\n{client}")
        self.assertFalse(harness.sockets("tcp", port), "it was TCP")

    @needs_preload
    def test_preloaded_python_works(self):
        """With accept4(), which Debian 12's librspreload does not know: over TCP, then."""
        port = free_port()
        server = self.start(*preloaded("/usr/bin/python3", "-c", f"""
import socket
with socket.create_server(({BUILD.address!r}, {port})) as listener:
    connection, _ = listener.accept()
    with connection:
        while data := connection.recv(65536):
            connection.sendall(data)
"""))
        client = self.run_client(server, *preloaded("/usr/bin/python3", "-c", f"""
import socket
sent = bytes(range(256)) * 400
with socket.create_connection(({BUILD.address!r}, {port})) as connection:
    connection.sendall(sent)
    connection.shutdown(socket.SHUT_WR)
    got = b"".join(iter(lambda: connection.recv(65536), b""))
assert got == sent
print("echoed", len(got))
"""))
        self.assertIn("echoed 102400", client.output(), f"{server}\n{client}")
        self.assertEqual(server.wait(LIMIT_S), 0, server)


if __name__ == "__main__":
    harness.main()
