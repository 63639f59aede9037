#!/usr/bin/env python3
"""Programs whose devices encrypt: perftest with a pre-shared key and with certificates, what
`verbena doctor` says of it, and that nothing in clear is on the wire or taken.

usage: encryption_test.py [BUILD_DIR] [-k PATTERN]
"""

import os
import pathlib
import subprocess
import tempfile
import unittest

import harness

BUILD = harness.build_from_command_line()
PORT = 4794  # needs no privilege
OTHER_ADDRESS = harness.ADDRESS.rpartition(".")[0] + ".2"


def openssl(folder, *arguments):
    subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True)


class EncryptionTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.folder.chmod(0o755)
        self.key = self.write("key", "a secret of the two hosts, long enough")

    def write(self, name, text):
        path = self.folder / name
        path.write_text(text)
        path.chmod(0o644)
        return path

    def settings(self, credentials):
        return {"VERBENA_ENCRYPTION": f"{credentials},port={PORT}", "VERBENA_LOCAL": "off"}

    def certificates(self, *addresses, name="host", days=2):
        """Files of a host with a certificate for the addresses, by this test's authority."""
        key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
        if not (self.folder / "ca.pem").exists():
            openssl(self.folder, "req", "-x509", *key, "-keyout", "ca.key", "-out", "ca.pem",
                    "-subj", "/CN=authority", "-days", "2")
        openssl(self.folder, "req", *key, "-keyout", f"{name}.key", "-out", f"{name}.csr",
                "-subj", "/CN=host")
        names = ",".join(f"IP:{address}" for address in addresses)
        self.write("names", f"subjectAltName={names}\n" if names else "keyUsage=digitalSignature\n")
        openssl(self.folder, "x509", "-req", "-in", f"{name}.csr", "-CA", "ca.pem",
                "-CAkey", "ca.key", "-CAcreateserial", "-days", str(days), "-extfile", "names",
                "-out", f"{name}.pem")
        for file in (f"{name}.key", f"{name}.pem", "ca.pem"):
            (self.folder / file).chmod(0o644)
        return self.settings("tls:cert={0}/{1}.pem,key={0}/{1}.key,ca={0}/ca.pem".format(
            self.folder, name))

    def pair(self, environment, *arguments):
        return BUILD.run_pair("ib_write_bw", *arguments, environment=environment)

    def test_pre_shared_key(self):
        for options in ("", ",cipher=aes-gcm-256", ",crypt_offset=5", ",rotate_packets=50"):
            with self.subTest(options=options):
                self.pair(self.settings(f"psk:{self.key}{options}"), "-s", "65536", "-n", "300")

    def test_certificates(self):
        self.pair(self.certificates(harness.ADDRESS), "-s", "4096", "-n", "300")
        self.pair(self.certificates(), "-s", "4096", "-n", "300")

    def test_rdma_cm(self):
        environment = self.settings(f"psk:{self.key}")
        server = BUILD.start("rping", "-s", "-a", harness.ADDRESS, "-C", "50",
                             environment=environment)
        self.addCleanup(server.kill)

        def client_succeeds():
            client = BUILD.start("rping", "-c", "-a", harness.ADDRESS, "-C", "50",
                                 environment=environment)
            self.addCleanup(client.kill)
            return client.wait(30) == 0
        harness.wait_until(client_succeeds, 60, "rping runs on encrypted packets")

    def test_capture_before_and_after(self):
        """The packets in clear on one interface, and on another the same, encrypted."""
        file = self.folder / "capture.pcapng"
        self.folder.chmod(0o777)
        environment = self.settings(f"psk:{self.key}") | {"VERBENA_CAPTURE": str(file)}
        server, client = BUILD.start_pair("ib_write_bw", "-s", "1024", "-n", "50",
                                          environment=environment)
        self.addCleanup(lambda: harness.stop(server, client))
        self.assertEqual((client.wait(60), server.wait(60)), (0, 0), f"{server}\n{client}")

        def packets(name, filter_text):
            done = subprocess.run(
                ["tshark", "-r", file, "-Y", f'frame.interface_name == "{name}" && {filter_text}'],
                capture_output=True, text=True, check=True)
            return len(done.stdout.splitlines())
        in_clear, encrypted = packets("lo", "infiniband"), packets("lo (PSP)", f"udp.port == {PORT}")
        self.assertGreaterEqual(in_clear, 50)
        self.assertEqual(encrypted, in_clear)
        self.assertEqual(packets("lo (PSP)", "infiniband"), 0)

    def iwarp(self, credentials):
        """What a program on an iWARP device is told; None: nothing of encryption."""
        settings = {"VERBENA_LOCAL": "off"} if credentials is None else self.settings(credentials)
        return settings | {"VERBENA_LINK": "iwarp"}

    def pair_by_rdma_cm(self, server_line, client_line, environment):
        server = BUILD.start(*server_line, environment=environment)
        self.addCleanup(server.kill)

        def client_ends():
            client = BUILD.start(*client_line, environment=environment)
            self.addCleanup(client.kill)
            return client if client.wait(60) == 0 or server.ended() else None
        client = harness.wait_until(client_ends, 60, "the client finds the server")
        self.assertEqual(client.process.returncode, 0, f"{server}\n{client}")
        self.assertEqual(server.wait(30), 0, f"{server}\n{client}")

    def test_iwarp(self):
        at = harness.ADDRESS
        for name, environment in (("psk", self.iwarp(f"psk:{self.key}")),
                                  ("tls", self.certificates(at) | {"VERBENA_LINK": "iwarp"})):
            for server, client in (
                    (("rping", "-s", "-a", at, "-C", "50", "-v", "-V"),
                     ("rping", "-c", "-a", at, "-C", "50", "-v", "-V")),
                    (("ib_write_bw", "-R", "-F", "-s", "262144", "-n", "200", "-q", "3"),
                     ("ib_write_bw", "-R", "-F", "-s", "262144", "-n", "200", "-q", "3", at)),
                    (("ib_read_bw", "-R", "-F", "-n", "200"),
                     ("ib_read_bw", "-R", "-F", "-n", "200", at)),
                    (("ib_send_lat", "-R", "-F", "-n", "500"),
                     ("ib_send_lat", "-R", "-F", "-n", "500", at))):
                with self.subTest(credentials=name, program=server[0]):
                    self.pair_by_rdma_cm(server, client, environment)

    def test_iwarp_in_clear_is_refused_both_ways(self):
        """And each encrypted side says so in one line."""
        encrypted, in_clear = self.iwarp(f"psk:{self.key}"), self.iwarp(None)
        other = self.iwarp(f"psk:{self.write('other', 'a secret that the peer has not')}")
        for at_server, at_client in ((encrypted, in_clear), (in_clear, encrypted),
                                     (encrypted, other)):
            with self.subTest(server=at_server, client=at_client):
                server = BUILD.start("rping", "-s", "-a", harness.ADDRESS, "-C", "1",
                                     environment=at_server)
                self.addCleanup(server.kill)
                harness.wait_until(
                    lambda s=server: s.ended() or harness.sockets("tcp", 7174, "0A", pid=s.pid), 20,
                    "the server listens")
                client = BUILD.start("rping", "-c", "-a", harness.ADDRESS, "-C", "1",
                                     environment=at_client)
                self.addCleanup(client.kill)
                self.assertNotIn(client.wait(30), (0, None), f"{server}\n{client}")
                said = server.output() + client.output()
                self.assertIn("verbena: no iWARP connection with", said)
                self.assertIn("VERBENA_ENCRYPTION", said)
                server.kill()

    def test_doctor_of_iwarp(self):
        done = BUILD.run_verbena("doctor", harness.ADDRESS,
                                 environment=self.iwarp(f"psk:{self.key}"))
        self.assertIn("iWARP connections are encrypted: TLS 1.3 with a pre-shared key",
                      done.output())

    def refused_pair(self, at_server, at_client):
        """The output of a client at another address that gets no key. (Processes of one address
        answer for each other.)"""
        port = harness.free_tcp_port()
        command = ("ib_write_bw", "-F", "-n", "5", "-p", str(port))
        server = BUILD.start(*command, environment=at_server)
        self.addCleanup(server.kill)
        harness.wait_until(lambda: harness.sockets("tcp", port, "0A", pid=server.pid), 20,
                           "the server listens")
        client = BUILD.start(*command, harness.ADDRESS,
                             environment=at_client | {"VERBENA_ADDRESS": OTHER_ADDRESS})
        self.addCleanup(client.kill)
        self.assertNotIn(client.wait(60), (0, None), f"{server}\n{client}")
        server.kill()
        return client.output()

    def test_no_key_is_told_with_the_reason(self):
        wrong = self.settings(f"psk:{self.write('other', 'a secret that the peer has not')}")
        self.assertIn(f"verbena: no key for packets to {harness.ADDRESS}: ",
                      self.refused_pair(wrong, self.settings(f"psk:{self.key}")))

    def test_a_certificate_that_has_expired_is_named(self):
        self.assertIn("certificate has expired",
                      self.refused_pair(self.certificates(name="old", days=-1),
                                        self.certificates()))

    def test_bad_settings_are_named(self):
        for text, wanted in (("psk:/nonexistent", "/nonexistent"),
                             (f"psk:{self.write('short', 'short')}", "16 bytes"),
                             ("psk:/dev/zero", "65536 bytes at most"),
                             ("colour:red", "colour:red")):
            with self.subTest(text=text):
                done = subprocess.run(
                    [BUILD.verbena, "run", "--", "ibv_devinfo", "-v"], capture_output=True,
                    text=True, timeout=60, env={**os.environ, "VERBENA_ENCRYPTION": text})
                self.assertIn(wanted, done.stderr)


if __name__ == "__main__":
    harness.main()
