#!/usr/bin/env python3
"""Servers of Debian under its librspreload, with the programs that test them. Each server waits by
epoll, and most of them accept by accept4(). Debian's librspreload replaces neither (rdma-core has
both since 2024 and 2026), so a server gets an error and ends, or stays on TCP, with a card as well.

usage: preloaded_servers_test.py [BUILD_DIR] [-k PATTERN]
"""

import pathlib
import shutil
import subprocess
import tempfile
import unittest

import harness
import rdmacm_pairs
from rsocket_preload import PRELOAD, preloaded

BUILD = harness.build_from_command_line()
LIMIT_S = 60
REASON = "cannot run over Debian's librspreload, which lacks {}"
POSTGRES = max(pathlib.Path("/usr/lib/postgresql").glob("*/bin"), default=pathlib.Path("none"))


def needs(program):
    return unittest.skipUnless(shutil.which(program, path=harness.PATH), f"{program} is not installed")


@unittest.skipUnless(PRELOAD.exists(), f"{PRELOAD} is not installed")
class PreloadedServersTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="verbena-servers-test-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.folder.chmod(0o777)
        self.port = rdmacm_pairs.free_port()

    def start(self, *command):
        program = BUILD.start(*preloaded(*command))
        self.addCleanup(program.kill)
        return program

    def check_that_it_prints(self, program, text, read=None):
        read = read or program.output
        harness.wait_until(lambda: text in read() or program.ended(), LIMIT_S,
                           f"it prints {text!r}\n{program}")
        self.assertIn(text, read(), program)

    @needs("redis-server")
    def test_redis(self):
        """Its client, too, waits by epoll."""
        program = self.start("redis-server", "--bind", BUILD.address, "--port", self.port, "--save",
                             "")
        self.check_that_it_prints(program, "accept handler")
        harness.record.remark("redis-server", REASON.format("epoll"))

    @needs("memcached")
    def test_memcached(self):
        """Without epoll libevent has poll(); then accept4() is missing."""
        program = self.start("memcached", "-l", BUILD.address, "-p", self.port, "-U", 0, "-vv")
        self.check_that_it_prints(program, "Epoll ADD(1)")
        harness.record.remark("memcached", REASON.format("epoll and accept4"))

    @needs("nginx")
    def test_nginx(self):
        log, configuration = self.folder / "log", self.folder / "configuration"
        paths = " ".join(f"{kind}_temp_path {self.folder}/{kind};" for kind in
                         ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        configuration.write_text(
            f"daemon off; master_process off; pid {self.folder}/pid; error_log {log};\n"
            f"events {{}}\nhttp {{ access_log off; {paths}\n"
            f"  server {{ listen {BUILD.address}:{self.port}; root {self.folder}; }} }}\n")
        configuration.chmod(0o644)
        program = self.start("nginx", "-c", configuration, "-e", log)
        self.check_that_it_prints(program, "epoll_ctl(1, ",
                                  lambda: log.read_text() if log.exists() else "")
        harness.record.remark("nginx", REASON.format("epoll and accept4"))

    @unittest.skipUnless((POSTGRES / "postgres").exists(), "postgresql is not installed")
    def test_postgresql(self):
        """Up to PostgreSQL 15 a connection reaches the server, and the process that serves it fails;
        before, processes that the server had forked closed their copies of the listening rsocket.
        Later servers wait for connections by epoll, too."""
        data = self.folder / "data"
        subprocess.run([POSTGRES / "initdb", "-D", data, "-A", "trust", "-N"], check=True,
                       capture_output=True, cwd="/tmp", **harness.ordinary_user()[0])
        server = self.start(POSTGRES / "postgres", "-D", data, "-h", BUILD.address, "-p", self.port,
                            "-k", self.folder)
        harness.wait_until(lambda: "ready to accept connections" in server.output() or server.ended(),
                           LIMIT_S, f"the server is ready\n{server}")
        if not server.ended():
            client = self.start(POSTGRES / "psql", "-h", BUILD.address, "-p", self.port,
                                "-d", "postgres", "-c", "select 1")
            self.assertNotEqual(client.wait(LIMIT_S), 0, f"{server}\n{client}")
        self.check_that_it_prints(server, "epoll_ctl() failed")
        for program in ("postgres", "psql"):
            harness.record.remark(program, REASON.format("epoll"))


if __name__ == "__main__":
    harness.main()
