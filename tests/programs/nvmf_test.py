#!/usr/bin/env python3
"""`verbena nvmf` on loopback: target and host, files and memory, bad input, SIGTERM and SIGKILL, and
programs of NBD through the plugin, where nbdkit is installed.

usage: nvmf_test.py [BUILD_DIR] [-k PATTERN]
"""

import base64
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import unittest.mock
import zlib

import children
import harness

BUILD = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 and sys.argv[1][0] != "-" else "build/test")
harness.build_from_command_line()
VERBENA = str(BUILD / "bin" / "verbena")
PLUGIN = BUILD.resolve() / "lib" / "nbdkit-verbena-plugin.so"
NQN = "nqn.2026-01.test:disk"
ADDRESS = "127.0.44.1"
LIMIT_S = 60
BYTES = 32 << 20


def host(*arguments, **options):
    return subprocess.run([VERBENA, "nvmf", *map(str, arguments)], capture_output=True,
                          timeout=LIMIT_S, check=False,
                          **({"stdin": subprocess.DEVNULL} | options if "input" not in options
                             else options))


class Target:
    def __init__(self, *arguments, address=ADDRESS):
        self.log = tempfile.TemporaryFile()
        self.process = children.Child(
            [VERBENA, "nvmf", "target", *map(str, arguments), "--listen", address],
            stdin=subprocess.DEVNULL, stdout=self.log, stderr=subprocess.STDOUT)
        deadline = time.monotonic() + 20
        while "listening" not in self.output():
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise AssertionError(self.output())
            time.sleep(0.05)

    def output(self):
        return os.pread(self.log.fileno(), 1 << 20, 0).decode()

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self.process.wait(20)


class NVMfTest(unittest.TestCase):
    OPTIONS = ()  # of a target that has no others

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="verbena-nvmf-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.disk = self.folder / "disk"
        with self.disk.open("wb") as disk:
            disk.truncate(BYTES)

    def target(self, *arguments):
        target = Target(*(arguments or (*self.OPTIONS, "--nqn", NQN, "--namespace", self.disk,
                                        "--namespace", "memory:32M,block=4096")))
        self.addCleanup(target.process.wait)
        self.addCleanup(target.process.kill)
        return target

    def good(self, *arguments, **options):
        done = host(*arguments, **options)
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        return done.stdout

    def subsystems_of(self, target):
        told = subprocess.run([VERBENA, "stats", "--json", "--pid", str(target.process.pid)],
                              capture_output=True, check=True, timeout=LIMIT_S).stdout
        return json.loads(told)[0]["nvme_subsystems"]

    def wait_until_it_reads(self, target):
        deadline = time.monotonic() + 20
        while self.subsystems_of(target)[0]["reads"] == 0:
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.05)

    def refused(self, status, words, *arguments, **options):
        done = host(*arguments, **options)
        self.assertEqual(done.returncode, status, done.stderr.decode())
        self.assertIn(words, done.stderr.decode())
        self.assertEqual(done.stderr.decode().count("\n"), 1, done.stderr.decode())

    def test_data_comes_back_and_the_target_drains(self):
        target = self.target()
        data = os.urandom(5_000_001)
        for nsid in 1, 2:
            self.good("write", ADDRESS, "--nqn", NQN, "--nsid", nsid, "--offset", "1M", input=data)
            back = self.good("read", ADDRESS, "--nqn", NQN, "--nsid", nsid, "--offset", "1M",
                             "--length", len(data))
            self.assertEqual(back, data)
        self.assertEqual(target.stop(), 0)
        self.assertIn("errors 0", target.output())
        self.assertEqual(self.disk.read_bytes()[1 << 20:(1 << 20) + len(data)], data)

    def test_counters_in_stats(self):
        target = self.target()
        self.good("write", ADDRESS, "--nqn", NQN, input=bytes(1 << 20))
        self.good("read", ADDRESS, "--nqn", NQN, "--nsid", 2, "--length", "1M")
        hold = children.Child([VERBENA, "nvmf", "connect", ADDRESS, "--nqn", NQN, "--hold"],
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        self.addCleanup(hold.wait)
        self.addCleanup(hold.kill)
        hold.stdout.readline()
        subsystem, = self.subsystems_of(target)
        self.assertEqual((subsystem["nqn"], subsystem["hosts"]), (NQN, 1))
        self.assertEqual((subsystem["bytes_read"], subsystem["bytes_written"]), (1 << 20, 1 << 20))
        self.assertGreater(subsystem["writes"], 0)
        self.assertEqual(subsystem["errors"], 0)
        text = subprocess.run([VERBENA, "stats", "--pid", str(target.process.pid)],
                              capture_output=True, check=True, text=True, timeout=LIMIT_S).stdout
        self.assertIn("NVMe subsystem", text)

    def test_what_a_target_tells(self):
        self.target("--nqn", NQN, "--namespace", "memory:1M", "--nqn", "nqn.x:private",
                    "--namespace", "memory:2M,block=4096,readonly", "--allow-host", "nqn.x:friend")
        log = json.loads(self.good("discover", ADDRESS, "--json"))
        self.assertEqual([r["subnqn"] for r in log["records"]], [NQN])
        self.assertEqual(log["records"][0]["trsvcid"], "4420")
        log = json.loads(self.good("discover", ADDRESS, "--json", "--host-nqn", "nqn.x:friend"))
        self.assertEqual([r["subnqn"] for r in log["records"]], [NQN, "nqn.x:private"])
        told = json.loads(self.good("connect", ADDRESS, "--nqn", NQN, "--json", "--queues", 3))
        self.assertEqual((told["queues"], told["namespaces"][0]["bytes"]), (3, 1 << 20))
        self.refused(1, "0184 (this host is not allowed)", "connect", ADDRESS, "--nqn",
                     "nqn.x:private")
        self.refused(1, "0182 (no such subsystem", "connect", ADDRESS, "--nqn", "nqn.x:absent")

    def test_bench(self):
        self.target()
        for pattern in "randread", "randwrite", "read", "write":
            told = json.loads(self.good("bench", ADDRESS, "--nqn", NQN, "--rw", pattern, "--seconds",
                                        0.3, "--queues", 2, "--json"))
            self.assertGreater(told["iops"], 0)
        told = json.loads(self.good("bench", ADDRESS, "--nqn", NQN, "--nsid", 2, "--block", "1M",
                                    "--depth", 200, "--seconds", 0.3, "--json"))
        self.assertGreater(told["iops"], 0)

    def test_more_writes_than_a_queue_has_entries(self):
        self.target()
        told = json.loads(self.good("bench", ADDRESS, "--nqn", NQN, "--rw", "write", "--depth", 1000,
                                    "--seconds", 0.5, "--json"))
        self.assertEqual(told["reconnects"], 0)

    def test_blocks_of_bench(self):
        self.target("--nqn", NQN, "--namespace", "memory:64K,block=4096")
        self.good("bench", ADDRESS, "--nqn", NQN, "--block", "12K", "--seconds", 0.1)
        for size, words in (("5K", "is no multiple of the namespace's block size, 4096"),
                            ("128K", "is more than the namespace has: 65536 bytes")):
            self.refused(1, words, "bench", ADDRESS, "--nqn", NQN, "--block", size)

    def test_an_ipv6_address_needs_no_port(self):
        target = Target("--nqn", NQN, "--namespace", "memory:1M", address="[::1]")
        self.addCleanup(target.process.wait)
        self.addCleanup(target.process.kill)
        for address in "[::1]", "[::1]:4420", "::1":
            self.good("connect", address, "--nqn", NQN)

    def test_over_iwarp(self):
        self.target("--link", "iwarp", "--nqn", NQN, "--namespace", "memory:8M")
        data = os.urandom(300_000)
        self.good("write", ADDRESS, "--link", "iwarp", "--nqn", NQN, input=data)
        self.assertEqual(self.good("read", ADDRESS, "--link", "iwarp", "--nqn", NQN, "--length",
                                   len(data)), data)

    @unittest.skipUnless(shutil.which("tshark"), "tshark is not installed")
    def test_tshark_reads_the_capture(self):
        with unittest.mock.patch.dict(os.environ, {"VERBENA_LOCAL": "off"}):  # as packets
            self.target()
            capture = self.folder / "capture.pcapng"
            self.good("write", ADDRESS, "--nqn", NQN, "--capture", capture, input=bytes(100_000))
        told = subprocess.run(["tshark", "-r", capture], capture_output=True, text=True,
                              check=True).stdout
        for words in ("NVMeOF Connect", "Property Set Controller Configuration",
                      "NVMe Identify Controller", "NVMe Write"):
            self.assertIn(words, told)

    def secret(self, name, key=b"k" * 32, transform=0):
        file = self.folder / name
        text = base64.b64encode(key + zlib.crc32(key).to_bytes(4, "little")).decode()
        file.write_text(f"DHHC-1:{transform:02}:{text}:\n")
        return file

    def test_authentication(self):
        host_key, own_key = self.secret("host", transform=2), self.secret("own", b"c" * 48)
        self.target("--nqn", NQN, "--namespace", "memory:1M", "--host-key", f"nqn.x:h={host_key}",
                    "--controller-key", own_key, "--allow-host", "nqn.x:open")
        h = ("connect", ADDRESS, "--nqn", NQN, "--host-nqn", "nqn.x:h")
        for group in "null", "ffdhe2048", "ffdhe8192":
            for name in "sha256", "sha384", "sha512":
                with self.subTest(group + name):
                    self.good(*h, "--host-key", host_key, "--dh-group", group, "--auth-hash", name)
        self.good(*h, "--host-key", host_key, "--controller-key", own_key, "--queues", 3)
        self.refused(1, "requires authentication", *h)
        self.refused(1, "the key is not the right one", *h, "--host-key", own_key)
        self.refused(1, "does not know the controller's key", *h, "--host-key", host_key,
                     "--controller-key", host_key)
        self.good("connect", ADDRESS, "--nqn", NQN, "--host-nqn", "nqn.x:open")
        self.refused(1, "0184", "connect", ADDRESS, "--nqn", NQN, "--host-nqn", "nqn.x:other")
        records = json.loads(self.good("discover", ADDRESS, "--json", "--host-nqn", "nqn.x:h"))
        self.assertEqual([r["subnqn"] for r in records["records"]], [NQN])

    def test_a_target_that_accepts_one_group(self):
        key = self.secret("host")
        self.target("--nqn", NQN, "--namespace", "memory:1M", "--host-key", f"nqn.x:h={key}",
                    "--dh-group", "ffdhe3072", "--auth-hash", "sha512")
        h = ("connect", ADDRESS, "--nqn", NQN, "--host-nqn", "nqn.x:h", "--host-key", key)
        self.good(*h)
        self.refused(1, "no DH group is common", *h, "--dh-group", "ffdhe2048")
        self.refused(1, "no hash is common", *h, "--auth-hash", "sha256")

    def test_wrong_keys(self):
        bad = self.folder / "bad"
        bad.write_text("DHHC-1:00:AAAA:")
        key = self.secret("host")
        target = ("target", "--nqn", NQN, "--namespace", "memory:1M")
        for words, arguments in (
                ("is not NQN=FILE", (*target, "--host-key", key)),
                ("cannot be read", (*target, "--host-key", "nqn.h=/nowhere/key")),
                ("its CRC is wrong", (*target, "--host-key", f"nqn.h={bad}")),
                ("needs --nqn before it", ("target", "--host-key", f"nqn.h={key}")),
                ("no --host-key", (*target, "--listen", ADDRESS, "--controller-key", key)),
                ("is not one of null, ffdhe2048", (*target, "--dh-group", "ffdhe1024")),
                ("is not one of sha256, sha384", (*target, "--auth-hash", "md5")),
                ("needs --host-key", ("connect", ADDRESS, "--nqn", NQN, "--controller-key", key)),
                ("its CRC is wrong", ("connect", ADDRESS, "--nqn", NQN, "--host-key", bad))):
            with self.subTest(arguments):
                self.refused(2, words, *arguments)

    def test_wrong_usage(self):
        for words, arguments in (
                ("a command is needed", ()),
                ("unexpected command 'serve'", ("serve",)),
                ("--nqn is missing", ("target", "--listen", ADDRESS)),
                ("--listen is missing", ("target", "--nqn", NQN, "--namespace", "memory:1M")),
                ("has no --namespace", ("target", "--nqn", NQN, "--listen", ADDRESS)),
                ("needs --nqn before it", ("target", "--namespace", "memory:1M")),
                ("block=513", ("target", "--nqn", NQN, "--namespace", "memory:1M,block=513")),
                ("has no size", ("target", "--nqn", NQN, "--namespace", "memory:")),
                ("smaller than a block", ("target", "--nqn", NQN, "--namespace", "memory:100")),
                ("is given twice", ("target", "--nqn", NQN, "--nqn", NQN)),
                ("the target's address is missing", ("discover",)),
                ("is no IP address", ("discover", "nowhere")),
                ("--nqn is missing", ("connect", ADDRESS)),
                ("--depth 0", ("bench", ADDRESS, "--depth", 0)),
                ("nan is not a number", ("bench", ADDRESS, "--seconds", "nan")),
                ("unexpected argument '--what'", ("bench", ADDRESS, "--what")),
                ("--block needs a value", ("bench", ADDRESS, "--block"))):
            with self.subTest(arguments):
                self.refused(2, words, *arguments)

    def test_what_cannot_be_had(self):
        self.refused(1, "No such file", "target", "--nqn", NQN, "--namespace", "/nowhere/disk",
                     "--listen", ADDRESS)
        self.refused(1, "neither a regular file", "target", "--nqn", NQN, "--namespace",
                     "/dev/null,direct=off", "--listen", ADDRESS)
        self.refused(1, ADDRESS, "connect", ADDRESS, "--nqn", NQN, "--ctrl-loss-tmo", 0)
        self.target()
        self.refused(1, "is it in use", "target", "--nqn", NQN, "--namespace", "memory:1M",
                     "--listen", ADDRESS)
        self.refused(1, "no namespace 9", "read", ADDRESS, "--nqn", NQN, "--nsid", 9)
        self.refused(1, "no multiple", "read", ADDRESS, "--nqn", NQN, "--offset", 100)
        self.refused(1, "ends after", "read", ADDRESS, "--nqn", NQN, "--offset", "31M", "--length",
                     "2M")
        self.refused(1, "longer than the namespace", "write", ADDRESS, "--nqn", NQN, "--offset",
                     "31M", input=bytes(2 << 20))

    def test_read_only_namespaces(self):
        self.target("--nqn", NQN, "--namespace", f"{self.disk},readonly", "--namespace",
                    "memory:1M,readonly")
        for nsid in 1, 2:
            where = (ADDRESS, "--nqn", NQN, "--nsid", nsid)
            self.refused(1, "0020", "write", *where, input=bytes(512))
            self.assertEqual(self.good("read", *where, "--length", 512), bytes(512))
            told = json.loads(self.good("connect", ADDRESS, "--nqn", NQN, "--json"))
            self.assertTrue(told["namespaces"][nsid - 1]["readonly"])

    def test_a_signal_ends_what_waits_for_a_pipe(self):
        self.target()
        calls = {"write": (("0", "63"), "0x0"), "read": (("1", "64"), "0x1")}  # x86-64, arm64
        for command, (numbers, descriptor) in calls.items():
            with self.subTest(command):
                waits = children.Child([VERBENA, "nvmf", command, ADDRESS, "--nqn", NQN],
                                       stdin=subprocess.PIPE, stdout=subprocess.PIPE)
                self.addCleanup(waits.wait)
                self.addCleanup(waits.kill)
                deadline = time.monotonic() + 20
                while True:
                    call = pathlib.Path(f"/proc/{waits.pid}/syscall").read_text().split()
                    if call[0] in numbers and call[1] == descriptor:
                        break
                    self.assertLess(time.monotonic(), deadline)
                    time.sleep(0.05)
                waits.terminate()
                self.assertEqual(waits.wait(5), -signal.SIGTERM)

    def test_a_file_that_has_become_shorter(self):
        self.target()
        os.truncate(self.disk, BYTES // 2)
        self.refused(1, "0281", "read", ADDRESS, "--nqn", NQN, "--offset", BYTES // 2, "--length",
                     4096)
        self.assertEqual(self.good("read", ADDRESS, "--nqn", NQN, "--length", 4096), bytes(4096))

    @unittest.skipUnless(os.geteuid() == 0, "a small file system needs root")
    def test_a_full_disk(self):
        mounted = self.folder / "full"
        mounted.mkdir()
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1M", "none", mounted],
                          check=False, stderr=subprocess.DEVNULL).returncode != 0:
            self.skipTest("no tmpfs can be mounted here")
        self.addCleanup(subprocess.run, ["umount", "-l", mounted], check=False)
        with (mounted / "disk").open("wb") as disk:
            disk.truncate(8 << 20)
        target = self.target("--nqn", NQN, "--namespace", mounted / "disk")
        self.refused(1, "0081", "write", ADDRESS, "--nqn", NQN, input=os.urandom(4 << 20))
        self.assertEqual(self.good("read", ADDRESS, "--nqn", NQN, "--offset", "7M", "--length",
                                   4096), bytes(4096))
        self.assertEqual(target.stop(), 0)

    def test_a_killed_target_has_what_was_flushed_and_its_host_goes_on(self):
        target = self.target()
        data = os.urandom(2 << 20)
        self.good("write", ADDRESS, "--nqn", NQN, input=data)
        bench = children.Child(
            [VERBENA, "nvmf", "bench", ADDRESS, "--nqn", NQN, "--seconds", "6", "--json",
             "--reconnect-delay", "0.3"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(bench.kill)
        self.wait_until_it_reads(target)
        target.process.kill()
        target.process.wait()
        time.sleep(1)
        self.target()
        output, errors = bench.communicate(timeout=LIMIT_S)
        self.assertEqual(bench.returncode, 0, errors.decode())
        self.assertGreaterEqual(json.loads(output)["reconnects"], 1)
        self.assertEqual(self.good("read", ADDRESS, "--nqn", NQN, "--length", len(data)), data)

    def test_a_host_gives_up_after_the_loss_timeout(self):
        target = self.target()
        bench = children.Child(
            [VERBENA, "nvmf", "bench", ADDRESS, "--nqn", NQN, "--seconds", "30",
             "--reconnect-delay", "0.2", "--ctrl-loss-tmo", "1"], stdout=subprocess.PIPE,
            stderr=subprocess.PIPE)
        self.addCleanup(bench.kill)
        self.wait_until_it_reads(target)
        target.process.kill()
        self.assertEqual(bench.wait(LIMIT_S), 1)
        self.assertIn(b"the connection was lost", bench.stderr.read())


class ThreadsTest(NVMfTest):
    """The same with three threads, and what concerns them."""
    OPTIONS = ("--threads", 3)
    # These have targets with options of their own:
    test_authentication = test_a_target_that_accepts_one_group = test_wrong_keys = None
    test_a_full_disk = test_read_only_namespaces = test_what_a_target_tells = None
    test_over_iwarp = test_tshark_reads_the_capture = test_what_cannot_be_had = None
    test_blocks_of_bench = test_an_ipv6_address_needs_no_port = None
    test_a_signal_ends_what_waits_for_a_pipe = None  # of hosts

    def test_queues_of_several_hosts_are_spread(self):
        target = self.target()
        benches = [children.Child(
            [VERBENA, "nvmf", "bench", ADDRESS, "--nqn", NQN, "--nsid", nsid, "--queues", "4",
             "--rw", "randwrite", "--seconds", "1", "--json"], stdout=subprocess.PIPE,
            stderr=subprocess.PIPE) for nsid in ("1", "2")]
        for bench in benches:
            output, errors = bench.communicate(timeout=LIMIT_S)
            self.assertEqual(bench.returncode, 0, errors.decode())
            self.assertGreater(json.loads(output)["iops"], 0)
        status = pathlib.Path(f"/proc/{target.process.pid}/status").read_text()
        threads = int(next(line for line in status.splitlines()
                           if line.startswith("Threads:")).split()[1])
        self.assertGreaterEqual(threads, 3)
        subsystem, = self.subsystems_of(target)
        self.assertEqual(subsystem["errors"], 0)
        self.assertEqual(subsystem["bytes_written"], subsystem["writes"] * 4096)
        self.assertEqual(target.stop(), 0)
        commands = int(target.output().split("commands ")[1].split(",")[0])
        self.assertGreaterEqual(commands, subsystem["writes"])

    def test_a_drain_under_load(self):
        target = self.target()
        bench = children.Child(
            [VERBENA, "nvmf", "bench", ADDRESS, "--nqn", NQN, "--queues", "4", "--seconds", "30",
             "--ctrl-loss-tmo", "0"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(bench.wait)
        self.addCleanup(bench.kill)
        self.wait_until_it_reads(target)
        self.assertEqual(target.stop(), 0)
        self.assertEqual(bench.wait(LIMIT_S), 1)
        self.assertIn("errors 0", target.output())

    def test_wrong_usage(self):
        for threads in 0, 65, "x":
            self.refused(2, "is not a number from 1 to 64", "target", "--threads", threads)


@unittest.skipUnless(shutil.which("nbdkit") and PLUGIN.exists(), "nbdkit is not installed")
class NBDTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="verbena-nbd-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.disk = self.folder / "disk"
        with self.disk.open("wb") as disk:
            disk.truncate(BYTES)
        self.target = self.start_target()
        self.socket = self.folder / "nbd"
        self.nbdkit = children.Child(
            [VERBENA, "run", "--address", ADDRESS, "--", "nbdkit", "-f", "-U", self.socket, PLUGIN,
             f"target={ADDRESS}", f"nqn={NQN}", "reconnect-delay=0.3"], stdin=subprocess.DEVNULL)
        self.addCleanup(self.nbdkit.wait)
        self.addCleanup(self.nbdkit.kill)
        deadline = time.monotonic() + 20
        while not self.socket.exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        self.uri = f"nbd+unix:///?socket={self.socket}"

    def start_target(self):
        target = Target("--nqn", NQN, "--namespace", self.disk)
        self.addCleanup(target.process.wait)
        self.addCleanup(target.process.kill)
        return target

    def run_program(self, *command):
        if not shutil.which(command[0]):
            self.skipTest(f"{command[0]} is not installed")
        done = subprocess.run([*map(str, command)], capture_output=True, text=True, check=False,
                              timeout=LIMIT_S, stdin=subprocess.DEVNULL,
                              cwd=self.folder)  # fio leaves files there
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def test_nbdcopy(self):
        source, back = self.folder / "source", self.folder / "back"
        source.write_bytes(os.urandom(BYTES))
        self.run_program("nbdcopy", "--flush", source, self.uri)
        self.assertEqual(self.disk.read_bytes(), source.read_bytes())
        self.run_program("nbdcopy", self.uri, back)
        self.assertEqual(back.read_bytes(), source.read_bytes())

    def test_several_connections_and_many_requests(self):
        """Threads of nbdkit hand the association to each other."""
        source, back = self.folder / "source", self.folder / "back"
        source.write_bytes(os.urandom(BYTES))
        many = ("--connections=4", "--threads=4", "--requests=64", "--request-size=16384")
        self.run_program("nbdcopy", "--flush", *many, source, self.uri)
        self.assertEqual(self.disk.read_bytes(), source.read_bytes())
        self.run_program("nbdcopy", *many, self.uri, back)
        self.assertEqual(back.read_bytes(), source.read_bytes())
        self.nbdkit.terminate()
        self.assertEqual(self.nbdkit.wait(20), 0)

    def test_qemu_img(self):
        source = self.folder / "source"
        source.write_bytes(os.urandom(1 << 20) + bytes(BYTES - (1 << 20)))
        self.run_program("qemu-img", "convert", "-n", "-f", "raw", "-O", "raw", source, self.uri)
        self.run_program("qemu-img", "compare", "-f", "raw", "-F", "raw", source, self.uri)

    def test_fio(self):
        self.run_program("fio", "--name=v", "--ioengine=nbd", f"--uri={self.uri}", "--rw=randwrite",
                         "--bsrange=512-64k", "--blockalign=512", "--size=8m", "--iodepth=16",
                         "--verify=crc32c", "--do_verify=1")

    def test_a_target_that_comes_back_is_no_error(self):
        if not shutil.which("fio"):
            self.skipTest("fio is not installed")
        fio = children.Child(
            ["fio", "--name=v", "--ioengine=nbd", f"--uri={self.uri}", "--rw=randwrite", "--bs=4k",
             "--size=4m", "--iodepth=4", "--rate=1m", "--verify=crc32c", "--do_verify=1"],
            cwd=self.folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True)
        time.sleep(1)
        self.target.process.kill()
        self.target.process.wait()
        time.sleep(1)
        self.start_target()
        output = fio.communicate(timeout=LIMIT_S)[0]
        self.assertEqual(fio.returncode, 0, output)


if __name__ == "__main__":
    harness.main()
