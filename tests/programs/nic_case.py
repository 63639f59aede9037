"""The common part of tests of `verbena nic`: NICs, their counters, and pairs of programs."""

import json
import os
import pathlib
import subprocess
import tempfile
import unittest

import harness

PORT = 4795  # of encryption; needs no privilege


class NICCase(unittest.TestCase):
    """Programs on virtual functions, of NICs that the test starts."""
    build = None  # of the test file

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.folder.chmod(0o777)
        _, self.user = harness.ordinary_user()
        self.programs = []
        self.variables = {}  # of all programs, besides
        self.addCleanup(lambda: harness.stop(*self.programs))

    def start_nic(self, name, functions, extra=""):
        """A NIC with functions of a name, an address and more; its process."""
        lines = [f"socket: {self.folder}/{name}.sock", extra, "functions:"]
        for function, address, more in functions:
            lines.append(f"  - {{name: {function}, user: {self.user}, address: {address}{more}}}")
        file = self.folder / f"{name}.yaml"
        file.write_text("\n".join(lines) + "\n")
        file.chmod(0o644)
        nic = harness.Program([self.build.verbena, "nic", str(file)], {})
        self.programs.append(nic)
        harness.wait_until(lambda: self.status(name) is not None, 20, "the NIC listens")
        return nic

    def status(self, name):
        done = subprocess.run([self.build.verbena, "nic", "status", f"{self.folder}/{name}.sock"],
                              capture_output=True, text=True, timeout=20)
        return json.loads(done.stdout) if done.returncode == 0 else None

    def look_at(self, command, name):
        return subprocess.run([self.build.verbena, "nic", command, f"{self.folder}/{name}.sock"],
                              capture_output=True, text=True, timeout=20, check=True).stdout

    def counters(self, name, function):
        [found] = [f for f in self.status(name)["functions"] if f["name"] == function]
        return found["counters"]

    def environment(self, name, function=""):
        return {"VERBENA_NIC": f"{self.folder}/{name}.sock", "VERBENA_ADDRESS": function,
                **self.variables}

    def write_pair(self, server_nic, client_nic, server_address, *arguments):
        server = self.build.start("ib_write_bw", "-F", *arguments,
                                  environment=self.environment(server_nic))
        self.programs.append(server)

        def client_ends():
            client = self.build.start("ib_write_bw", "-F", *arguments, server_address,
                                      environment=self.environment(client_nic))
            self.programs.append(client)
            status = client.wait(60)
            return client if status == 0 or server.ended() else None
        client = harness.wait_until(client_ends, 60, "the client finds the server")
        self.assertEqual(client.process.returncode, 0, f"{server}\n{client}")
        self.assertEqual(server.wait(30), 0, f"{server}\n{client}")
        return client

    def encryption(self):
        key = self.folder / "key"
        key.write_text("only the NICs can read this key")
        key.chmod(0o600)  # the tenants cannot
        if os.geteuid() == 0:
            os.chown(key, self.nic_user(), -1)
        return f"encryption: 'psk:{key},port={PORT}'"

    @staticmethod
    def nic_user():
        return harness.ordinary_user()[1]

    def pair_on_functions(self, server, client):
        """The server's command on the function red, the client's on blue, of one NIC. Returns the
        client."""
        first = self.build.start(*server, environment=self.environment("a", "red"))
        self.programs.append(first)

        def client_ends():
            second = self.build.start(*client, environment=self.environment("a", "blue"))
            self.programs.append(second)
            return second if second.wait(60) == 0 or first.ended() else None
        second = harness.wait_until(client_ends, 60, "the client finds the server")
        self.assertEqual(second.process.returncode, 0, f"{first}\n{second}")
        self.assertEqual(first.wait(30), 0, f"{first}\n{second}")
        return second
