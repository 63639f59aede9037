"""Pairs of programs that find each other by librdmacm: for the tests that run them."""

import time
import unittest

import harness

LIMIT_S = 60
# A server of librdmacm shows nothing to wait for when it listens. A client that comes too early is
# refused, as on any RDMA device; it is started again until this.
START_LIMIT_S = 60

_next_port = 20000


def free_port():
    """A port of this test's own address, where nobody else binds, and of which no TCP socket is left
    (in TIME_WAIT, by a test before this one)."""
    global _next_port
    _next_port += 1
    while harness.sockets("tcp", _next_port):
        _next_port += 1
    return _next_port


def ends_apart(address):
    """Two ends on devices of different loopback addresses: the server's device and the options of
    its rping, then the client's. `address`: of the form 127.x.y.1."""
    other = address.rpartition(".")[0] + ".2"
    for server, client in ((f"-a {address}", f"-a {address}"),
                           (f"-a {address}", f"-a {address} -I {other}"),
                           ("-a 0.0.0.0", f"-a {address}"), ("-a 0.0.0.0", "-a 127.0.0.1"),
                           ("-a 127.0.0.1", "-a 127.0.0.1"), ("-a ::1", "-a ::1")):
        yield address, server, other, client
    both = f"{address},{other}"
    yield both, f"-a {address}", both, f"-a {address} -I {other}"


class RDMACMPairs(unittest.TestCase):
    build = None  # a harness.Build, of who derives

    def start(self, *command, environment=None):
        program = self.build.start(*command, environment=environment)
        self.addCleanup(program.kill)
        return program

    def run_client(self, server, *command, limit_s=LIMIT_S, environment=None):
        """Runs the client to its end; again while the server is not ready and refuses it."""
        deadline = time.monotonic() + START_LIMIT_S
        while True:
            client = self.start(*command, environment=environment)
            status = client.wait(limit_s)
            self.assertIsNotNone(status, f"hangs:\n{server}\n{client}")
            if not self.was_refused(client) or server.ended() or time.monotonic() > deadline:
                return client
            time.sleep(0.1)

    @staticmethod
    def was_refused(client):
        """rdma-core 56's cmtime says nothing when its server's control socket refuses it."""
        text = client.output()
        return client.process.returncode != 0 and (not text or any(
            word in text for word in ("REJECTED", "UNREACHABLE", "refused", "Unexpected CM event",
                                      "unable to connect", "Failed to connect RDMA CM events")))

    def check_pair(self, server_command, client_command, limit_s=LIMIT_S,
                   environments=(None, None)):
        """Both end, with exit status 0; returns them."""
        server = self.start(*server_command, environment=environments[0])
        client = self.run_client(server, *client_command, limit_s=limit_s,
                                 environment=environments[1])
        self.assertEqual(client.process.returncode, 0, f"{server}\n{client}")
        self.assertEqual(server.wait(limit_s), 0, f"{server}\n{client}")
        return server, client

    def check_rping_apart(self, address, **environment):
        for server_device, server, client_device, client in ends_apart(address):
            with self.subTest(server=(server_device, server), client=(client_device, client)):
                command = ("rping", "-p", free_port(), "-C", 3, "-v")
                devices = [{"VERBENA_ADDRESS": at} | environment
                           for at in (server_device, client_device)]
                self.check_pair((*command, "-s", *server.split()),
                                (*command, "-c", "-V", *client.split()), environments=devices)
